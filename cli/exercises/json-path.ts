// The part of kubectl's JSONPath that exercises use: {.a.b[0].c} and {"\n"}. Pure.

import { UserError } from '../../lib/errors.ts';
import { getOwn } from '../../lib/own-property.ts';

/** A name, which may have escaped dots, or an index. */
const STEP = /^(?:\.((?:\\.|[\w-])+)|\[(\d+)\])/;

function follow(path: string, from: unknown): unknown {
  let value = from;
  for (let rest = path; rest !== ''; ) {
    const match = STEP.exec(rest);
    if (match === null) throw new UserError(`"{${path}}" is more than this JSONPath knows: {.a.b[0].c}`);
    const [whole, name, index] = match;
    rest = rest.slice(whole.length);
    if (typeof value !== 'object' || value === null) return undefined;
    if (index !== undefined) value = Array.isArray(value) ? value[Number(index)] : undefined;
    else value = getOwn(Object.fromEntries(Object.entries(value)), (name ?? '').replaceAll(/\\(.)/g, '$1'));
  }
  return value;
}

/** What is not there is printed as nothing, as kubectl does; objects and lists as JSON. Throws UserError. */
export function evaluateJsonPath(template: string, object: object): string {
  return template.replaceAll(/\{("(?:[^"\\]|\\.)*"|[^}]*)\}/g, (_whole, inside: string) => {
    if (inside.startsWith('"')) return String(JSON.parse(inside));
    const value = follow(inside, object);
    if (value === undefined || value === null) return '';
    return typeof value === 'object' ? JSON.stringify(value) : String(value);
  });
}
