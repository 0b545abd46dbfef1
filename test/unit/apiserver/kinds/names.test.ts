// The rules of names against the patterns that their messages print, on every short text of a small alphabet.

import { describe, expect, it } from 'vitest';
import * as names from '../../../../apiserver/kinds/names.ts';

const ALPHABET = ['a', 'Z', '0', '-', '.', '_', '/', '\n', 'é'];

function* texts(length: number): Generator<string> {
  if (length === 0) yield '';
  else for (const rest of texts(length - 1)) for (const char of ALPHABET) yield char + rest;
}
const ALL = [0, 1, 2, 3, 4, 5].flatMap((length) => [...texts(length)]);

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const NAME_PART = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;

describe('names', () => {
  it.each([
    ['dns1123Label', names.dns1123Label, LABEL],
    ['dns1123Subdomain', names.dns1123Subdomain, SUBDOMAIN],
    ['dns1035Label', names.dns1035Label, '[a-z]([-a-z0-9]*[a-z0-9])?'],
    ['labelValue', names.labelValue, `(${NAME_PART})?`],
    ['qualifiedName', names.qualifiedName, `(${SUBDOMAIN}/)?${NAME_PART}`],
    ['configMapKey', names.configMapKey, '(?!\\.\\.|\\.$)[-._a-zA-Z0-9]+'],
    ['httpHeaderName', names.httpHeaderName, '[-A-Za-z0-9]+'],
    ['envVarName', names.envVarName, '[ -<>-~]+'],
  ] as const)('%s accepts what its pattern accepts', (_name, rule, pattern) => {
    const expected = new RegExp(`^(?:${pattern})$`);
    const different = ALL.filter((text) => (rule(text).length === 0) !== expected.test(text));
    expect(different).toEqual([]);
  });

  it.each(['a', 'a.', 'a-', '.', '/', 'a/', '-'])('megabytes of %j are validated without a stack overflow', (piece) => {
    for (const rule of [names.dns1123Subdomain, names.dns1123Label, names.qualifiedName, names.labelValue]) {
      expect(rule(piece.repeat(1_000_000))).not.toEqual([]);
    }
  });
});
