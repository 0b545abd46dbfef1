// Schemas of custom kinds as OpenAPI v2 and v3 have them.

import { describe, expect, it } from 'vitest';
import { openapiOf } from '../../../../apiserver/crd/openapi.ts';
import type { JsonSchema } from '../../../../apiserver/crd/types.ts';

const KINDS = [{ group: 'example.com', version: 'v1', kind: 'Thing' }];
const publish = (schema: JsonSchema, form: 'v2' | 'v3') =>
  openapiOf('example.com', 'v1', 'Thing', schema, form, (name) => ({ $ref: name }));
const spec = (schema: JsonSchema, form: 'v2' | 'v3') =>
  publish({ type: 'object', properties: { spec: schema } }, form)['properties'];
const OPEN = { 'x-kubernetes-preserve-unknown-fields': true } as const;

describe('the schema of a custom kind', () => {
  it('that keeps unknown fields has no fields in v2, so that kubectl takes any', () => {
    const schema: JsonSchema = { type: 'object', ...OPEN, properties: { a: { type: 'string' } } };
    expect(publish(schema, 'v2')).toEqual({ type: 'object', 'x-kubernetes-group-version-kind': KINDS });
    expect(publish(schema, 'v3')).toMatchObject({
      ...OPEN,
      properties: { a: { type: 'string' }, metadata: { allOf: [{ $ref: expect.stringContaining('ObjectMeta') }] } },
    });
  });

  const parts: readonly [string, JsonSchema, object][] = [
    ['keeps unknown fields', { type: 'object', ...OPEN, properties: { a: { type: 'string' } } }, OPEN],
    ['may be null', { type: 'array', nullable: true, items: { type: 'string' } }, {}],
    ['is a list of anything', { type: 'array', ...OPEN }, OPEN],
    [
      'may be null and has values of one type',
      { type: 'object', nullable: true, additionalProperties: { type: 'string', nullable: true } },
      { additionalProperties: {} },
    ],
    [
      'demands fields, of which one may be null',
      {
        type: 'object',
        required: ['a', 'b'],
        properties: { a: { type: 'string', nullable: true }, b: { type: 'string' } },
      },
      { type: 'object', required: ['b'], properties: { a: {}, b: { type: 'string' } } },
    ],
    [
      'demands one field, which may be null',
      { type: 'object', required: ['a'], properties: { a: { type: 'string', nullable: true } } },
      { type: 'object', properties: { a: {} } },
    ],
  ];
  for (const [name, schema, expected] of parts) {
    it(`of a part that ${name} is what v2 can say`, () => {
      expect(spec(schema, 'v2')).toHaveProperty('spec', expected);
      expect(spec(schema, 'v3')).toHaveProperty('spec', schema);
    });
  }
});
