// The descriptions of types and fields, for kubectl explain. They are not in our schema but read on request from two packages that
// have upstream's: kubernetes-models, generated from a later version, and kubernetes-types, from an earlier one. Which of the two has the
// words of 1.34 is in apiserver/gen/openapi.json; of types that are in neither, own-descriptions.ts has some. An installation without
// the packages explains with those alone.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isErrno } from '../../lib/errors.ts';
import { getOwn } from '../../lib/own-property.ts';
import { type Comments, readComments } from './dts-comments.ts';
import { OWN_DESCRIPTIONS } from './own-descriptions.ts';
import { publishedFacts } from './published.ts';

const MODULES = fileURLToPath(new URL('../../node_modules/', import.meta.url));
const NONE: Comments = { type: '', fields: new Map() };

export type Description = Comments;

/** Files with many types, which several definitions are in. */
const earlierModules = new Map<string, ReadonlyMap<string, Comments>>();

function commentsIn(path: string): ReadonlyMap<string, Comments> {
  try {
    return readComments(readFileSync(`${MODULES}${path}.d.ts`, 'utf8'));
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return new Map();
    throw error;
  }
}

/** "io.k8s.api.core.v1.Pod" → "core", "v1", "Pod". */
function partsOf(name: string): readonly [group: string, version: string, type: string] {
  const [group = '', version = '', type = ''] = name.split('.').slice(-3);
  return [group, version, type];
}

function earlier(name: string): Comments {
  const [group, version, type] = partsOf(name);
  const path = version === 'resource' ? 'api/resource' : `${group}/${version}`;
  let found = earlierModules.get(path);
  if (found === undefined) {
    found = commentsIn(`kubernetes-types/${path}`);
    earlierModules.set(path, found);
  }
  return found.get(type) ?? NONE;
}

/** Groups whose folder is not their first word with ".k8s.io". */
const FOLDERS: Readonly<Record<string, string>> = {
  core: '',
  apps: 'apps/',
  autoscaling: 'autoscaling/',
  batch: 'batch/',
  policy: 'policy/',
  flowcontrol: 'flowcontrol.apiserver.k8s.io/',
  rbac: 'rbac.authorization.k8s.io/',
};
const MACHINERY = 'io.k8s.apimachinery.pkg.';

function later(name: string): Comments {
  const [group, version, type] = partsOf(name);
  const path = name.startsWith(MACHINERY)
    ? `@kubernetes-models/apimachinery/${name.slice(MACHINERY.length).replaceAll('.', '/')}`
    : `kubernetes-models/${getOwn(FOLDERS, group) ?? `${group}.k8s.io/`}${version}/${type}`;
  return commentsIn(path).get(`I${type}`) ?? NONE;
}

const ENUM_VALUES = '\n\nPossible enum values:';

/** The earlier words of a field, with the list of its values, which only the later ones have. */
function withValues(text: string, laterText: string): string {
  const at = laterText.indexOf(ENUM_VALUES);
  return at < 0 || text === '' ? text : `${text}${laterText.slice(at)}`;
}

/** apiVersion and kind have the same words in every type, and the later package leaves them out. */
function headOf(field: string): string {
  return field === 'apiVersion' || field === 'kind' ? (earlier('io.k8s.api.core.v1.Pod').fields.get(field) ?? '') : '';
}

/** The description of a type and of these of its fields. */
export function describe(name: string, fields: readonly string[]): Description {
  const [before, after] = [earlier(name), later(name)];
  const changed = getOwn(publishedFacts(), name)?.earlier ?? [];
  const own = getOwn(OWN_DESCRIPTIONS, name);
  const all = new Map<string, string>();
  for (const field of fields) {
    const [old = '', recent = ''] = [before.fields.get(field), after.fields.get(field)];
    const text =
      (changed.includes(field) ? withValues(old, recent) : recent) ||
      old ||
      headOf(field) ||
      getOwn(own?.fields, field);
    if (text !== undefined) all.set(field, text);
  }
  const type = (changed.includes('') ? before.type : after.type) || before.type || (own?.type ?? '');
  return { type, fields: all };
}

/** Which of the published descriptions are the earlier package's and not the later one's; "" is the type's. */
export function earlierDescriptions(
  name: string,
  type: string,
  fields: Readonly<Record<string, string>>,
): readonly string[] {
  const [before, after] = [earlier(name), later(name)];
  const texts: readonly (readonly [string, string])[] = [['', type], ...Object.entries(fields)];
  return texts
    .filter(([field, text]) => {
      const recent = field === '' ? after.type : (after.fields.get(field) ?? '');
      const old = field === '' ? before.type : (before.fields.get(field) ?? '');
      return recent !== '' && recent !== text.trim() && withValues(old, recent) === text.trim();
    })
    .map(([field]) => field);
}
