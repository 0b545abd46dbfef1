// The descriptions of types and fields, for kubectl explain. They are not in our schema but read from the package
// kubernetes-types on request, and where it has none own-descriptions.ts has; an installation without that package explains with
// those alone.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isErrno } from '../../lib/errors.ts';
import { getOwn } from '../../lib/own-property.ts';
import type { Definition } from '../schema/definitions.ts';
import { type DtsModule, parseDts } from '../schema/dts.ts';
import { COMMON_FIELDS, OWN_DESCRIPTIONS } from './own-descriptions.ts';

const ROOT = fileURLToPath(new URL('../../node_modules/kubernetes-types/', import.meta.url));
const modules = new Map<string, DtsModule | undefined>();

export interface Description {
  readonly type: string;
  readonly fields: ReadonlyMap<string, string>;
}

const NONE: Description = { type: '', fields: new Map() };

function moduleAt(path: string): DtsModule | undefined {
  if (modules.has(path)) return modules.get(path);
  const found = readModule(path);
  modules.set(path, found);
  return found;
}

function readModule(path: string): DtsModule | undefined {
  try {
    return parseDts(readFileSync(`${ROOT}${path}.d.ts`, 'utf8'));
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function published(definition: Definition): Description {
  const [path = '', name = ''] = (definition.source ?? '').split(':');
  const found = path === '' ? undefined : moduleAt(path)?.interfaces.get(name);
  if (found === undefined) return NONE;
  return { type: found.description, fields: new Map(found.fields.map((field) => [field.name, field.description])) };
}

/** The description of a definition, by its full name. */
export function describe(name: string, definition: Definition): Description {
  const { type, fields } = published(definition);
  const own = getOwn(OWN_DESCRIPTIONS, name);
  const all = new Map<string, string>();
  for (const field of Object.keys(definition.fields)) {
    const text = fields.get(field) || getOwn(own?.fields, field) || getOwn(COMMON_FIELDS, field);
    if (text !== undefined) all.set(field, text);
  }
  return { type: type || (own?.type ?? ''), fields: all };
}
