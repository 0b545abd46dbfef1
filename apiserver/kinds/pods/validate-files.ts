// Rules for the files that a volume makes of keys and of the pod's own fields.

import { addErrors, invalid, required, syntax } from '../field-errors.ts';
import { localPath } from '../names.ts';
import type { FieldError } from '../resource.ts';
import { type DownwardFile, validateDownwardSource } from './validate-env.ts';

const MODE_RANGE = 'must be a number between 0 and 0777 (octal), both inclusive';

export function validateMode(field: string, mode: number | undefined): FieldError[] {
  return mode !== undefined && (mode < 0 || mode > 0o777) ? [invalid(field, mode, MODE_RANGE)] : [];
}

/** Inside the volume, and no name that the kubelet uses itself ("..data"). */
export function validateFilePath(field: string, path = ''): FieldError[] {
  const errors = syntax(field, path, localPath(path));
  if (path.startsWith('..') && !path.startsWith('../')) errors.push(invalid(field, path, "must not start with '..'"));
  return errors;
}

export interface KeyFile {
  key?: string | undefined;
  path?: string | undefined;
  mode?: number | undefined;
}

export function validateKeyFile(field: string, { key = '', path = '', mode }: KeyFile): FieldError[] {
  const errors: FieldError[] = [];
  if (key === '') errors.push(required(`${field}.key`));
  if (path === '') errors.push(required(`${field}.path`));
  addErrors(errors, validateFilePath(`${field}.path`, path), validateMode(`${field}.mode`, mode));
  return errors;
}

/** Of a secret or a config map. */
export function validateKeyFiles(
  field: string,
  { defaultMode, items = [] }: { defaultMode?: number | undefined; items?: KeyFile[] | undefined },
): FieldError[] {
  return [
    ...validateMode(`${field}.defaultMode`, defaultMode),
    ...items.flatMap((item, index) => validateKeyFile(`${field}.items[${index}]`, item)),
  ];
}

export function validateDownwardFiles(field: string, items: readonly DownwardFile[]): FieldError[] {
  return items.flatMap((item) => [
    ...((item.path ?? '') === '' ? [required(`${field}.path`)] : []),
    ...validateFilePath(`${field}.path`, item.path),
    ...validateDownwardSource(field, item),
    ...validateMode(`${field}.mode`, item.mode),
  ]);
}
