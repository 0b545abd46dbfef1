// Label and field selectors: parsed once per request, then matched with every object. Pure.

import { getOwn } from '../../lib/own-property.ts';
import type { FieldRequirement } from '../auth/attributes.ts';
import { badRequest } from '../errors.ts';
import type { KubeObject, ResourceKind } from '../kinds/resource.ts';
import type { RequiredValue } from './fan-out.ts';

export interface LabelRequirement {
  readonly key: string;
  readonly operator: 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt';
  readonly values: ReadonlySet<string>;
  /** Of gt and lt. */
  readonly bound?: bigint;
}

const KEY = /^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/;

function unparsable(selector: string, why: string): Error {
  return badRequest(`unable to parse requirement: ${why} in "${selector}"`);
}

/** Splits at commas outside parentheses. */
function splitRequirements(selector: string): string[] {
  const parts: string[] = [];
  let [depth, start] = [0, 0];
  for (let i = 0; i < selector.length; i++) {
    const char = selector[i];
    if (char === '(') depth++;
    else if (char === ')') depth--;
    else if (char === ',' && depth === 0) {
      parts.push(selector.slice(start, i));
      start = i + 1;
    }
  }
  parts.push(selector.slice(start));
  return parts.map((part) => part.trim());
}

/** undefined for what is no integer of 64 bits. */
function int64(text: string): bigint | undefined {
  if (!/^[+-]?\d{1,19}$/.test(text)) return undefined;
  const value = BigInt(text.replace('+', ''));
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

function parseRequirement(part: string, selector: string): LabelRequirement {
  const set = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/.exec(part);
  const compare = /^([^\s=!<>]+)\s*(==|=|!=|>|<)\s*([^\s=!<>]*)$/.exec(part);
  const exists = /^(!?)\s*([^\s=!<>(),]+)$/.exec(part);
  let requirement: { readonly key: string; readonly operator: LabelRequirement['operator']; readonly values: string[] };
  if (set !== null) {
    const [, key = '', operator, values = ''] = set;
    requirement = { key, operator: operator === 'in' ? 'in' : 'notin', values: values.split(',').map((v) => v.trim()) };
  } else if (compare !== null) {
    const [, key = '', operator, value = ''] = compare;
    const operators = { '=': 'in', '==': 'in', '!=': 'notin', '>': 'gt', '<': 'lt' } as const;
    const known = Object.entries(operators).find(([text]) => text === operator)?.[1] ?? 'in';
    requirement = { key, operator: known, values: [value] };
  } else if (exists !== null) {
    const [, not, key = ''] = exists;
    requirement = { key, operator: not === '!' ? '!' : 'exists', values: [] };
  } else throw unparsable(selector, `found "${part}", expected a label requirement`);
  const { key, operator, values } = requirement;
  if (!KEY.test(key)) throw unparsable(selector, `"${key}" is no label key`);
  if (operator === 'gt' || operator === 'lt') {
    const bound = int64(values[0] ?? '');
    if (bound === undefined) throw unparsable(selector, `"${values[0]}" is no integer`);
    return { key, operator, values: new Set(values), bound };
  }
  const bad = values.find((value) => !VALUE.test(value) || value.length > 63);
  if (bad !== undefined) throw unparsable(selector, `"${bad}" is no label value`);
  return { key, operator, values: new Set(values) };
}

/** "a=b,c!=d,e in (f,g),h notin (i),j,!k". Throws 400 with the part that is wrong. */
export function parseLabelSelector(selector: string): readonly LabelRequirement[] {
  if (selector.trim() === '') return [];
  return splitRequirements(selector).map((part) => parseRequirement(part, selector));
}

export function matchesLabels(
  requirements: readonly LabelRequirement[],
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  return requirements.every(({ key, operator, values, bound = 0n }) => {
    const value = getOwn(labels, key);
    switch (operator) {
      case 'in':
        return value !== undefined && values.has(value);
      case 'notin':
        return value === undefined || !values.has(value);
      case 'exists':
        return value !== undefined;
      case '!':
        return value === undefined;
      default: {
        const have = value === undefined ? undefined : int64(value);
        if (have === undefined) return false;
        return operator === 'gt' ? have > bound : have < bound;
      }
    }
  });
}

export type { FieldRequirement } from '../auth/attributes.ts';

/** Splits at `separator`, except after a backslash; the escapes (\\ \, \=) are undone later. */
function splitEscaped(text: string, separator: string): string[] {
  const parts: string[] = [];
  let current = '';
  for (let i = 0; i < text.length; i++) {
    const char = text.charAt(i);
    if (char === '\\') current += char + text.charAt(++i);
    else if (char === separator) {
      parts.push(current);
      current = '';
    } else current += char;
  }
  parts.push(current);
  return parts;
}

/** "spec.nodeName=n,status.phase!=Failed". Throws 400. */
export function parseFieldSelector(selector: string): readonly FieldRequirement[] {
  if (selector.trim() === '') return [];
  return splitEscaped(selector, ',')
    .filter((part) => part !== '')
    .map((part) => {
      const match = /^([^=!\\]+)(!=|==|=)((?:[^=\\]|\\.)*)$/.exec(part);
      if (match === null) throw badRequest(`invalid selector: '${selector}'; can't understand '${part}'`);
      const [, field = '', operator, value = ''] = match;
      return { field: field.trim(), equal: operator !== '!=', value: value.replace(/\\(.)/g, '$1') };
    });
}

type FieldReader = (object: Readonly<KubeObject>) => string;

function fieldReader(kind: ResourceKind, field: string): FieldReader {
  if (field === 'metadata.name') return (object) => object.metadata.name ?? '';
  if (field === 'metadata.namespace' && kind.namespaced) return (object) => object.metadata.namespace ?? '';
  const fields = kind.strategy.selectableFields;
  const read = getOwn(fields, field);
  if (read === undefined) throw badRequest(notSelectable(kind, field));
  return read;
}

/** Upstream has two messages: of kinds with selectable fields of their own, and of all others. */
function notSelectable({ strategy }: ResourceKind, field: string): string {
  if (strategy.selectableFields !== undefined) return `field label not supported: ${field}`;
  return `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`;
}

/** The selectors of a list or watch. */
export interface Selection {
  /** True when every object matches, so that none need be checked. */
  readonly everything: boolean;
  /** The one name that can match, where the selector requires one. */
  readonly name?: string;
  /** A value that a field of every matching object has. */
  readonly required?: RequiredValue;
  matches(object: Readonly<KubeObject>): boolean;
}

/** Both selectors as one question. Throws 400 for a selector that does not parse or a field that is not selectable. */
export function parseSelection(kind: ResourceKind, labelSelector: string, fieldSelector: string): Selection {
  const labels = parseLabelSelector(labelSelector);
  const fields = parseFieldSelector(fieldSelector);
  const readers = fields.map(({ field, value, equal }) => ({ field, read: fieldReader(kind, field), value, equal }));
  const first = readers.find(({ equal }) => equal);
  const name = fields.find(({ field, equal }) => field === 'metadata.name' && equal)?.value;
  return {
    everything: labels.length === 0 && fields.length === 0,
    ...(name === undefined ? {} : { name }),
    ...(first === undefined ? {} : { required: first }),
    matches: (object) =>
      readers.every(({ read, value, equal }) => (read(object) === value) === equal) &&
      matchesLabels(labels, object.metadata.labels),
  };
}
