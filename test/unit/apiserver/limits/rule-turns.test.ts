// Hostile rules and objects of custom resources: none of them occupies the event loop for more than a turn may take. The longest
// turn of each case is compared with a floor of the same run, reading the largest body that there is, so that neither the
// machine nor what else it is doing decides. Processor time of this thread counts; the table is printed.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { checkRules, compileRules, rulesOf } from '../../../../apiserver/crd/rules.ts';
import type { JsonSchema } from '../../../../apiserver/crd/types.ts';
import { validateSchema } from '../../../../apiserver/crd/validate-schema.ts';
import { Pending } from '../../../../apiserver/kinds/resource.ts';

const ROUNDS = 3;
/**
 * Where nothing else runs the floor is some 17 ms on the processor that the limits were set on, and three of it the 50 ms
 * that a turn may take.
 */
const MOST = 3;

const list = <T>(n: number, of: (index: number) => T): T[] => Array.from({ length: n }, (_, index) => of(index));
const NUMBERS = list(30_000, (index) => index);
const LONG = 'ab'.repeat(700_000);
const FLOOR = JSON.stringify(list(200_000, (index) => ({ a: index })));

function time(run: () => void): number {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

/** The longest of the turns that `run` takes, where it may begin anew once what it waits for is ready. */
async function longestTurn(run: () => void): Promise<number> {
  let longest = 0;
  for (;;) {
    let pending: Pending | undefined;
    const spent = time(() => {
      try {
        run();
      } catch (error) {
        if (!(error instanceof Pending)) throw error;
        pending = error;
      }
    });
    longest = Math.max(longest, spent);
    if (pending === undefined) return longest;
    let isReady = false;
    const ready = pending.ready().then(() => {
      isReady = true;
    });
    while (!isReady) {
      const before = process.threadCpuUsage();
      await nextTurn();
      const { user, system } = process.threadCpuUsage(before);
      longest = Math.max(longest, (user + system) / 1000);
    }
    await ready;
  }
}

const TEXT: JsonSchema = { type: 'string' };
const schemaWith = (rules: readonly string[], more: Record<string, JsonSchema> = {}): JsonSchema => ({
  type: 'object',
  properties: { l: { type: 'array', items: { type: 'integer' } }, t: TEXT, u: TEXT, ...more },
  'x-kubernetes-validations': rules.map((rule) => ({ rule })),
});
const on = (schema: () => JsonSchema, object: unknown, old?: unknown) => (): (() => void) => {
  const { root, errors } = compileRules(schema());
  if (root === undefined || errors.length > 0) throw new Error(JSON.stringify(errors));
  return () => void checkRules(root, object, old);
};
const rules =
  (...texts: string[]): (() => JsonSchema) =>
  () =>
    schemaWith(texts);
const VALUE = { l: NUMBERS, t: LONG, u: `${LONG}c` };

/** Rules on each of many levels: each of them sees everything below it. */
function deep(levels: number): { schema: JsonSchema; value: unknown } {
  let schema: JsonSchema = { type: 'array', items: { type: 'integer' } };
  let value: unknown = NUMBERS;
  for (let level = 0; level < levels; level++) {
    schema = { type: 'object', properties: { a: schema }, 'x-kubernetes-validations': [{ rule: 'true' }] };
    value = { a: value };
  }
  return { schema, value };
}
const DEEP = deep(60);
const items = (rule: string, more: object = {}): JsonSchema => ({
  type: 'object',
  properties: {
    l: { type: 'array', items: { type: 'integer', 'x-kubernetes-validations': list(20, () => ({ rule, ...more })) } },
  },
});

const EVALUATIONS: Readonly<Record<string, () => () => void>> = {
  'each item with each': on(rules('self.l.all(x, self.l.all(y, x != y || true))'), VALUE),
  'lists of lists': on(rules('self.l.map(x, self.l.map(y, [x, y])).size() > 0'), VALUE),
  'failing steps that || catches': on(rules('self.l.all(x, self.l[x + 100000] == 1 || true)'), VALUE),
  'comparisons of everything': on(rules(...list(60, () => 'self == self')), VALUE),
  'with what was there': on(rules(...list(60, () => 'self == oldSelf')), VALUE, structuredClone(VALUE)),
  'patterns on long text': on(rules(...list(50, () => "self.t.matches('^(a|b)*c$')")), VALUE),
  'patterns found in long text': on(rules("self.t.findAll('(a*b*)*').size() > 0"), VALUE),
  'long text taken apart and joined': on(rules("self.t.split('').map(x, x + 'a').join('-').size() > 0"), VALUE),
  'long text replaced': on(rules(...list(50, () => "self.t.replace('a', 'bbbbbbbbbbbbbbbb').size() > 0")), VALUE),
  'long text added up': on(rules('self.l.map(x, self.t + self.u).size() > 0'), VALUE),
  'long text in capitals': on(rules(...list(40, () => "self.t.upperAscii() == 'a'")), VALUE),
  'rules on each level': on(() => DEEP.schema, DEEP.value),
  'rules on each level, updated': on(() => DEEP.schema, DEEP.value, structuredClone(DEEP.value)),
  'rules of each item': on(() => items('self >= 0'), { l: NUMBERS }),
  'rules that each item breaks': on(() => items('self < 0', { messageExpression: "'no ' + string(self)" }), {
    l: NUMBERS,
  }),
  'sorting and adding up': on(
    rules(...list(60, () => 'self.l.isSorted() && self.l.sum() > 0 && self.l.max() > 0')),
    VALUE,
  ),
  sets: on(rules('sets.contains(self.l, self.l)', 'sets.equivalent(self.l, self.l)'), VALUE),
};

const compiled = (schema: () => JsonSchema) => (): (() => void) => {
  const made = schema();
  return () => void validateSchema(made, 'schema');
};
const MANY = rules(...list(200, () => 'self.l.all(x, x > 1) && self.t.startsWith("a")'));
const MACROS = rules(`[${list(370, () => 'self.l.all(x,x>1)').join(',')}].size() == 1`);
/** Rules above many fields, and above many objects. */
const WIDE = [
  compiled(() => schemaWith(['true'], Object.fromEntries(list(4000, (i) => [`f${i}`, TEXT])))),
  compiled(() =>
    schemaWith(['true'], Object.fromEntries(list(500, (i) => [`f${i}`, { type: 'object', properties: { a: TEXT } }]))),
  ),
] as const;
const DEFINITIONS: Readonly<Record<string, () => () => void>> = {
  'many rules': compiled(MANY),
  'many long rules': compiled(() => schemaWith(list(60, () => `[${list(330, () => 'self.t').join(',')}].size() == 1`))),
  'macros in macros': compiled(() => schemaWith(list(30, () => `${'self.l.all(x, '.repeat(20)}true${')'.repeat(20)}`))),
  'the longest expression': compiled(() => schemaWith([`[${list(2990, () => '1').join(',')}].size() == 1`])),
  'the most macros': compiled(MACROS),
  'rules on each level': compiled(() => deep(60).schema),
  'rules above many fields': WIDE[0],
  'rules above many objects': WIDE[1],
};

/** Runs of the compiler of rules before it is measured. */
const WARM = 20;
// Code that V8 has not compiled yet takes several times as long, and where other programs want the processor it stays so for longer.
beforeAll(async () => {
  for (let round = 0; round < WARM; round++) {
    compileRules(MANY());
    if (round % 4 === 0) compileRules(MACROS());
    if (round % 4 === 1) for (const make of WIDE) await longestTurn(make());
  }
});

describe.each([
  ['an evaluation', EVALUATIONS],
  ['a definition', DEFINITIONS],
])('%s', (what, cases) => {
  it.each(Object.entries(cases))(`%s: no turn of ${what} is longer than ${MOST} floors`, async (name, make) => {
    const [floors, turns]: [number[], number[]] = [[], []];
    const isCompiledOnce = cases === EVALUATIONS;
    let run = make();
    for (let round = 0; round < ROUNDS; round++) {
      if (round > 0 && !isCompiledOnce) run = make();
      floors.push(time(() => JSON.parse(FLOOR)));
      turns.push(await longestTurn(run));
    }
    process.stdout.write(`${what}, ${name}: ${median(turns).toFixed(1)} ms, floor ${median(floors).toFixed(1)} ms\n`);
    expect(median(turns) / median(floors)).toBeLessThan(MOST);
  });
});

it('rules that take more than a turn are compiled once', async () => {
  const schema = schemaWith(list(300, () => 'self.l.all(x, x > 1)'));
  const pending = ((): unknown => {
    try {
      return rulesOf(schema);
    } catch (error) {
      return error;
    }
  })();
  expect(pending).toBeInstanceOf(Pending);
  if (pending instanceof Pending) await pending.ready();
  expect(rulesOf(schema)).toBe(rulesOf(schema));
  expect(rulesOf(schema).costs).toHaveLength(300);
});
