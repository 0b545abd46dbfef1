// The estimated costs of rules beside those that kube-apiserver's own code gives for the same schema (costs.json holds them).

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { compileRules } from '../../../../apiserver/crd/rules.ts';
import type { JsonSchema } from '../../../../apiserver/crd/types.ts';
import { validateSchema } from '../../../../apiserver/crd/validate-schema.ts';
import { list, RULE_SCHEMA } from './rule-schema.ts';

const text = (maxLength: number): JsonSchema => ({ type: 'string', maxLength });
const cases: readonly [string, number][] = JSON.parse(
  readFileSync(new URL('../cel/costs.json', import.meta.url), 'utf8'),
);

describe('the estimated cost', () => {
  it.each(cases)('of %s is %i', (rule, cost) => {
    const compiled = compileRules({
      type: 'object',
      properties: { spec: { ...RULE_SCHEMA, 'x-kubernetes-validations': [{ rule }] } },
    });
    expect([compiled.errors.map(({ detail }) => detail), compiled.costs[0]?.own]).toEqual([[], cost]);
  });
});

describe('a schema whose rules may cost too much', () => {
  const LIMITS =
    '(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)';
  const checked = (schema: JsonSchema): string[] =>
    validateSchema({ type: 'object', properties: { spec: schema } }, 's').map(({ type, field, detail }) => {
      return `${type} ${field.replace('s.properties[spec]', '')}: ${detail}`;
    });
  const rule = (text: string, more: object = {}): Pick<JsonSchema, 'x-kubernetes-validations'> => ({
    'x-kubernetes-validations': [{ rule: text, ...more }],
  });
  const AT = 'x-kubernetes-validations[0]';

  it.each<[string, JsonSchema, string[]]>([
    ['within the limits', { ...list(text(10), 10), ...rule('self.all(x, self.exists(y, y == x))') }, []],
    [
      'each item with each, of a list without a limit',
      { ...list({ type: 'string' }), ...rule('self.all(x, self.exists(y, x == y))') },
      [
        `FieldValueForbidden .${AT}.rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x ${LIMITS}`,
        `FieldValueForbidden .${AT}.rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema`,
        `FieldValueForbidden s: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x ${LIMITS}`,
      ],
    ],
    [
      'a pattern for each item of a list without a limit',
      list({ type: 'string', maxLength: 20, ...rule("self.matches('^[a-z]+$')") }),
      [
        `FieldValueForbidden .items.${AT}.rule: Forbidden: estimated rule cost exceeds budget by factor of 2.0x ${LIMITS}`,
      ],
    ],
    [
      'a message',
      {
        type: 'object',
        properties: { l: list(text(1000), 500) },
        ...rule('true', { messageExpression: "self.l.map(x, self.l.map(y, x + y).join(',')).join('')" }),
      },
      [
        `FieldValueForbidden .${AT}.messageExpression: Forbidden: estimated messageExpression cost exceeds budget by factor of more than 100x ${LIMITS}`,
        `FieldValueForbidden .${AT}.messageExpression: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema`,
        `FieldValueForbidden s: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x ${LIMITS}`,
      ],
    ],
  ])('%s', (_name, schema, expected) => {
    expect(checked(schema)).toEqual(expected);
  });

  it('names the four that cost most, once all of them together are too much', () => {
    const one = (size: number): JsonSchema => ({ ...list(text(1), size), ...rule('self.all(x, self.all(y, true))') });
    const sizes = [1400, 1500, 1510, 1520, 1530, 1540, 1550, 1560, 1570, 1575, 1500, 1500, 1500, 1500, 1500, 1500];
    const schema: JsonSchema = {
      type: 'object',
      properties: Object.fromEntries(sizes.map((size, index) => [`f${index}`, one(size)])),
    };
    const fields = checked(schema).map((line) => line.split(': ')[0]);
    expect(fields).toEqual([
      ...[9, 8, 7, 6].map((index) => `FieldValueForbidden .properties[f${index}].${AT}.rule`),
      'FieldValueForbidden s',
    ]);
    expect(checked(schema).at(-1)).toContain('exceeds budget by factor of 1.');
  });

  it('is not refused for single rules that are stored already', () => {
    const schema: JsonSchema = {
      type: 'object',
      properties: {
        s: { type: 'array', items: { type: 'string', maxLength: 20, ...rule("self.matches('^[a-z]+$')") } },
      },
    };
    expect(validateSchema(schema, 's')).toHaveLength(1);
    expect(validateSchema(schema, 's', { isUnchanged: true })).toEqual([]);
  });
});
