import { describe, expect, it } from 'vitest';
import { applyDefaults, prune } from '../../../../apiserver/crd/prune.ts';
import { checkRules, compileRules } from '../../../../apiserver/crd/rules.ts';
import { type JsonSchema, properties } from '../../../../apiserver/crd/types.ts';
import { newErrors, validateValue } from '../../../../apiserver/crd/validate.ts';
import { validateSchema } from '../../../../apiserver/crd/validate-schema.ts';
import { lines } from '../kinds/support.ts';

const field = (schema: JsonSchema): JsonSchema => ({ type: 'object', properties: { f: schema } });

describe('keys of maps', () => {
  const field: JsonSchema = { type: 'string', maxLength: 3, 'x-kubernetes-validations': [{ rule: 'self != "no"' }] };
  const list: JsonSchema = { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } };
  const schema: JsonSchema = {
    type: 'object',
    properties: { map: { type: 'object', additionalProperties: { type: 'object', properties: { field, list } } } },
  };

  it('stand in brackets where a rule or a list is wrong, and behind a point where a value is', () => {
    const fieldsOf = (value: unknown): string[] => validateValue(value, schema).map(({ error }) => error.field ?? '');
    expect(fieldsOf({ map: { a: { field: 'long', list: ['x', 'x'] } } })).toEqual(['map.a.field', 'map[a].list[1]']);
    const { root } = compileRules(schema);
    const broken = root === undefined ? [] : checkRules(root, { map: { 'a.b': { field: 'no' } } }, undefined);
    expect(broken.map((error) => error.field)).toEqual(['map[a.b].field']);
  });
});

describe('values', () => {
  const wrong = (value: unknown, schema: JsonSchema): string[] =>
    lines(validateValue({ f: value }, field(schema)).map(({ error }) => error));

  it.each<[string, JsonSchema, unknown, string[]]>([
    ['type', { type: 'integer' }, 'x', ['f: Invalid value: "string": f in body must be of type integer: "string"']],
    [
      'a fraction',
      { type: 'integer' },
      1.5,
      ['f: Invalid value: "number": f in body must be of type integer: "number"'],
    ],
    ['a whole number', { type: 'number' }, 1, []],
    ['null', { type: 'string' }, null, ['f: Invalid value: "null": f in body must be of type string: "null"']],
    ['a null that may be', { type: 'string', nullable: true }, null, []],
    ['enum', { type: 'string', enum: ['a', 'b'] }, 'c', ['f: Unsupported value: "c": supported values: "a", "b"']],
    [
      'maximum',
      { type: 'integer', maximum: 5 },
      6,
      ['f: Invalid value: 6: f in body should be less than or equal to 5'],
    ],
    [
      'exclusive',
      { type: 'integer', minimum: 5, exclusiveMinimum: true },
      5,
      ['f: Invalid value: 5: f in body should be greater than 5'],
    ],
    ['multipleOf', { type: 'integer', multipleOf: 3 }, 4, ['f: Invalid value: 4: f in body should be a multiple of 3']],
    ['maxLength', { type: 'string', maxLength: 2 }, 'äöü', ['f: Too long: may not be more than 2 bytes']],
    [
      'minLength',
      { type: 'string', minLength: 2 },
      'a',
      ['f: Invalid value: "a": f in body should be at least 2 chars long'],
    ],
    ['pattern', { type: 'string', pattern: '^a+$' }, 'b', ['f: Invalid value: "b": f in body should match \'^a+$\'']],
    [
      'format',
      { type: 'string', format: 'date-time' },
      'today',
      ['f: Invalid value: "today": f in body must be of type date-time: "today"'],
    ],
    ['an unknown format', { type: 'string', format: 'colour' }, 'x', []],
    ['maxItems', { type: 'array', maxItems: 1, items: {} }, [1, 2], ['f: Too many: 2: must have at most 1 items']],
    [
      'minItems',
      { type: 'array', minItems: 1, items: {} },
      [],
      ['f: Invalid value: 0: f in body should have at least 1 items'],
    ],
    [
      'set',
      { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
      ['a', 'a'],
      ['f[1]: Duplicate value: "a"'],
    ],
    [
      'map',
      {
        type: 'array',
        items: { type: 'object', properties: { k: { type: 'string' } } },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k'],
      },
      [{ k: 'a' }, { k: 'b' }, { k: 'a' }],
      ['f[2]: Duplicate value: map[string]interface {}{"k":"a"}'],
    ],
    ['required', { type: 'object', required: ['a'] }, {}, ['f.a: Required value']],
    [
      'minProperties',
      { type: 'object', minProperties: 1 },
      {},
      ['f: Invalid value: 0: f in body should have at least 1 properties'],
    ],
    [
      'values of a map',
      { type: 'object', additionalProperties: { type: 'string' } },
      { a: 1 },
      ['f.a: Invalid value: "integer": f.a in body must be of type string: "integer"'],
    ],
    ['int-or-string', { 'x-kubernetes-int-or-string': true }, '50%', []],
    [
      'anyOf',
      { type: 'integer', anyOf: [{ minimum: 5 }, { maximum: 1 }] },
      3,
      [
        'f: Invalid value: "": "f" must validate at least one schema (anyOf)',
        'f: Invalid value: 3: f in body should be greater than or equal to 5',
      ],
    ],
    [
      'oneOf',
      { type: 'object', properties: { a: {}, b: {} }, oneOf: [{ required: ['a'] }, { required: ['b'] }] },
      { a: 1, b: 1 },
      ['f: Invalid value: "": "f" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
    ],
    [
      'not',
      { type: 'integer', not: { minimum: 5 } },
      6,
      ['f: Invalid value: "": "f" must not validate the schema (not)'],
    ],
    [
      'an embedded resource',
      { type: 'object', 'x-kubernetes-embedded-resource': true },
      { kind: 'Pod' },
      ['f.apiVersion: Required value: must not be empty'],
    ],
  ])('%s', (_name, schema, value, expected) => {
    expect(wrong(value, schema)).toEqual(expected);
  });

  it('a pattern is matched in bounded time, however long the text', () => {
    const errors = wrong('a'.repeat(500_000), { type: 'string', pattern: '^(a|aa)+(b|bb)+$' });
    expect(errors).toEqual([expect.stringContaining('cannot be checked with this much')]);
  });

  it('alternatives within alternatives take time by their number, not by two to their depth', () => {
    let schema: JsonSchema = { type: 'integer' };
    for (let depth = 0; depth < 60; depth++) schema = { anyOf: [schema, { enum: ['never'] }] };
    expect(wrong('x', schema)[0]).toMatch('must validate at least one schema (anyOf)');
  });

  it('an update passes over what it leaves as it was', () => {
    const schema = field({
      type: 'object',
      properties: { a: { type: 'integer', maximum: 1 }, b: { type: 'integer', maximum: 1 } },
    });
    const errors = validateValue({ f: { a: 5, b: 7 } }, schema);
    expect(lines(newErrors(errors, { f: { a: 5, b: 7 } }, { f: { a: 5, b: 1 } }, schema))).toEqual([
      'f.b: Invalid value: 7: f.b in body should be less than or equal to 1',
    ]);
  });
});

describe('pruning and defaults', () => {
  it('drops and reports what the schema does not name', () => {
    const value = {
      apiVersion: 'v1',
      kind: 'X',
      metadata: { any: 1 },
      f: { known: 1, other: 2 },
      g: 3,
      kept: { x: 1 },
      m: { a: { y: 1 } },
    };
    const unknown: string[] = [];
    const schema: JsonSchema = {
      type: 'object',
      properties: {
        f: { type: 'object', properties: { known: { type: 'integer' } } },
        kept: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        m: { type: 'object', additionalProperties: { type: 'object', properties: { x: {} } } },
      },
    };
    prune(value, schema, { unknown: (path) => unknown.push(path) });
    expect(unknown).toEqual(['f.other', 'g', 'm.a.y']);
    expect(value).toEqual({
      apiVersion: 'v1',
      kind: 'X',
      metadata: { any: 1 },
      f: { known: 1 },
      kept: { x: 1 },
      m: { a: {} },
    });
  });

  it('fills in defaults, in objects that are there, and for nulls that may not be', () => {
    const schema: JsonSchema = {
      type: 'object',
      properties: {
        a: { type: 'integer', default: 1 },
        b: { type: 'object', properties: { c: { type: 'string', default: 'x' } } },
        d: { type: 'object', default: {}, properties: { e: { type: 'integer', default: 2 } } },
        n: { type: 'string', nullable: true, default: 'y' },
        l: { type: 'array', items: { type: 'object', properties: { p: { type: 'string', default: 'TCP' } } } },
      },
    };
    const value = { a: null, n: null, l: [{}, { p: 'UDP' }] };
    applyDefaults(value, schema);
    expect(value).toEqual({ a: 1, n: null, d: { e: 2 }, l: [{ p: 'TCP' }, { p: 'UDP' }] });
  });
});

describe('rules', () => {
  const run = (schema: JsonSchema, value: unknown, old?: unknown): string[] => {
    const { root, errors } = compileRules(schema);
    if (root === undefined) throw new Error(`no rules: ${JSON.stringify(errors)}`);
    return lines(checkRules(root, value, old));
  };
  const rule = (text: string, more: Record<string, unknown> = {}): JsonSchema => ({
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          min: { type: 'integer' },
          max: { type: 'integer' },
          'when-full': { type: 'string' },
          at: { type: 'string', format: 'date-time' },
          list: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['name'],
            items: { type: 'object', properties: { name: { type: 'string' }, n: { type: 'integer' } } },
          },
          labels: { type: 'object', additionalProperties: { type: 'string' } },
        },
        'x-kubernetes-validations': [{ rule: text, ...more }],
      },
    },
  });

  it.each<[string, Record<string, unknown>, unknown, unknown, string[]]>([
    ['self.min <= self.max', {}, { min: 1, max: 2 }, undefined, []],
    [
      'self.min <= self.max',
      {},
      { min: 3, max: 2 },
      undefined,
      ['spec: Invalid value: "object": failed rule: self.min <= self.max'],
    ],
    [
      'self.min <= self.max',
      { message: 'no' },
      { min: 3 },
      undefined,
      ['spec: Invalid value: "object": no such key: max evaluating rule: no'],
    ],
    [
      'self.min <= self.max',
      { messageExpression: '"min is " + string(self.min)' },
      { min: 3, max: 2 },
      undefined,
      ['spec: Invalid value: "object": min is 3'],
    ],
    [
      'self.min > 0',
      { reason: 'FieldValueRequired', fieldPath: '.min', message: 'set it' },
      { min: 0 },
      undefined,
      ['spec.min: Required value: set it'],
    ],
    ['self.min == oldSelf.min', {}, { min: 2 }, undefined, []],
    ['self.min == oldSelf.min', { message: 'fixed' }, { min: 2 }, { min: 1 }, ['spec: Invalid value: "object": fixed']],
    ['!oldSelf.hasValue() || oldSelf.value().min <= self.min', { optionalOldSelf: true }, { min: 2 }, undefined, []],
    ['self.when__dash__full == "drop"', {}, { 'when-full': 'drop' }, undefined, []],
    ['self.at < timestamp("2030-01-01T00:00:00Z")', {}, { at: '2020-01-01T00:00:00Z' }, undefined, []],
    ['self.list.all(x, x.n > 0) && self.list[0] == self.list[0]', {}, { list: [{ name: 'a', n: 1 }] }, undefined, []],
    ['self.list == oldSelf.list', {}, { list: [{ name: 'a', n: 1 }] }, { list: [{ name: 'a', n: 1 }], min: 1 }, []],
    [
      'self.labels.all(k, self.labels[k].size() < 5) && has(self.labels.app)',
      {},
      { labels: { app: 'web' } },
      undefined,
      [],
    ],
    ['has(self.min) || !has(self.list)', {}, {}, undefined, []],
  ])('%s', (text, more, spec, old, expected) => {
    expect(run(rule(text, more), { spec }, old === undefined ? undefined : { spec: old })).toEqual(expected);
  });

  it('one that takes too long is ended and reported', () => {
    const list = Array.from({ length: 3000 }, (_, n) => ({ name: `n${n}`, n }));
    const text = 'self.list.all(x, self.list.exists(y, y.n == x.n + 1000000) || true)';
    expect(run(rule(text), { spec: { list } })).toEqual([
      `spec: Invalid value: "object": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: ${text}`,
    ]);
  });

  it('many that are cheap use up the budget of an object together', () => {
    const list = Array.from({ length: 1000 }, (_, n) => ({ name: `n${n}`, n }));
    const cheap = { rule: 'self.list.all(x, x.n >= 0)' };
    const schema: JsonSchema = rule(cheap.rule);
    const spec = properties(schema).find(([name]) => name === 'spec')?.[1];
    const many = { ...schema, properties: { spec: { ...spec, 'x-kubernetes-validations': Array(100).fill(cheap) } } };
    expect(run(many, { spec: { list } })).toEqual([
      'spec: Invalid value: "object": validation failed due to running out of cost budget, no further validation rules will be run',
    ]);
  });

  it.each<[string, string]>([
    ['self.missing > 1', "compilation failed: ERROR: <input>:1:5: undefined field 'missing'"],
    ['self.min', 'compilation failed: cel expression must evaluate to a bool'],
    [
      'self.min > "a"',
      "compilation failed: ERROR: <input>:1:1: found no matching overload for '_>_' applied to '(int, string)'",
    ],
  ])('%s cannot be compiled: %s', (text, message) => {
    expect(
      compileRules(rule(text)).errors.map((error) => error.detail.split('\n')[0]?.replace(/:\d+:\d+:/, (at) => at)),
    ).toEqual([expect.stringContaining(message.split(' ERROR')[0] ?? '')]);
    expect(compileRules(rule(text)).errors[0]?.detail).toContain(message.replace(/^.*ERROR: <input>:\d+:\d+: /, ''));
  });
});

describe('structural schemas', () => {
  it.each<[JsonSchema, string]>([
    [field({}), 's.properties[f].type: Required value: must not be empty for specified object fields'],
    [{ type: 'string' }, 's.type: Invalid value: "string": must be object at the root'],
    [field({ type: 'array' }), 's.properties[f].items: Required value: must be specified'],
    [
      field({ type: 'array', items: {} }),
      's.properties[f].items.type: Required value: must not be empty for specified array items',
    ],
    [
      field({ type: 'text' }),
      's.properties[f].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"',
    ],
    [
      field({ type: 'array', items: { type: 'string' }, uniqueItems: true }),
      's.properties[f].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
    ],
    [
      field({ type: 'integer', anyOf: [{ type: 'string' }] }),
      's.properties[f].anyOf[0].type: Forbidden: must be empty to be structural',
    ],
    [
      field({ type: 'string', pattern: '(' }),
      's.properties[f].pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ): `(`',
    ],
    [
      field({ type: 'string', pattern: '(?=a)' }),
      's.properties[f].pattern: Invalid value: "(?=a)": must be a valid regular expression, but isn\'t: error parsing regexp: invalid or unsupported Perl syntax: `(?=`',
    ],
    [
      field({ type: 'integer', default: 'x' }),
      's.properties[f].default: Invalid value: "string":  in body must be of type integer: "string"',
    ],
    [
      field({ type: 'object', properties: { a: { type: 'string' } }, default: { b: 1 } }),
      's.properties[f].default: Invalid value: {"b":1}: must not have unknown fields',
    ],
    [
      field({
        type: 'array',
        'x-kubernetes-list-type': 'map',
        items: { type: 'object', properties: { k: { type: 'string' } } },
      }),
      's.properties[f].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map',
    ],
    [
      { type: 'object', properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } } },
      's.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified',
    ],
    [
      field({ type: 'string', default: 'abc', 'x-kubernetes-validations': [{ rule: "self.startsWith('b')" }] }),
      's.properties[f].default: Invalid value: "string": failed rule: self.startsWith(\'b\')',
    ],
    [
      field({ type: 'integer', 'x-kubernetes-validations': [{ rule: 'self > 0', optionalOldSelf: true }] }),
      's.properties[f].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule',
    ],
    [
      field({ type: 'integer', 'x-kubernetes-validations': [{ rule: ' ' }] }),
      's.properties[f].x-kubernetes-validations[0].rule: Required value: rule is not specified',
    ],
    [
      field({ type: 'array', items: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self > oldSelf' }] } }),
      's.properties[f].items.x-kubernetes-validations[0].rule: Invalid value: "self > oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within s.properties[f]',
    ],
  ])('%j', (schema, expected) => {
    expect(lines(validateSchema(schema, 's'))).toContain(expected);
  });

  it('one that is structural has nothing wrong', () => {
    const schema = field({
      type: 'object',
      properties: { port: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] } },
      oneOf: [{ required: ['port'] }, { not: { required: ['port'] } }],
    });
    expect(lines(validateSchema(schema, 's'))).toEqual([]);
  });
});
