// The descriptions of types and fields, for kubectl explain. They are not in our schema but read from the package
// kubernetes-types on request; an installation without that package explains without descriptions.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isErrno } from '../../lib/errors.ts';
import type { Definition } from '../schema/definitions.ts';
import { type DtsModule, parseDts } from '../schema/dts.ts';

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

/** The description of a definition; empty for definitions of the overlay. */
export function describe(definition: Definition): Description {
  const [path = '', name = ''] = (definition.source ?? '').split(':');
  const found = path === '' ? undefined : moduleAt(path)?.interfaces.get(name);
  if (found === undefined) return NONE;
  return { type: found.description, fields: new Map(found.fields.map((field) => [field.name, field.description])) };
}
