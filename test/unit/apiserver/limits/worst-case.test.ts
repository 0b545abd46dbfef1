// Worst cases of everything that reads what a client sends, at a size and at four times that size: with each doubling the
// time must not grow by more than a factor of 2.8 (it is 2 where it grows with the size alone, and 4 where it grows with
// its square). Processor time of this thread counts, exactly, and the middle of many rounds' ratios, so that what else the
// machine is doing does not decide; the table is printed.

import { describe, expect, it } from 'vitest';
import { convert } from '../../../../apiserver/http/convert.ts';
import { decodeProtobuf } from '../../../../apiserver/http/protobuf.ts';
import { validateObjectMeta } from '../../../../apiserver/kinds/metadata.ts';
import { dns1123Subdomain, qualifiedName } from '../../../../apiserver/kinds/names.ts';
import { clustertrustbundles } from '../../../../apiserver/kinds/trust-bundles.ts';
import { applyPatch, type PatchType } from '../../../../apiserver/patch/apply.ts';
import { parseFieldSelector, parseLabelSelector } from '../../../../apiserver/registry/selectors.ts';
import { checkBodyAs } from '../../../../apiserver/schema/decode.ts';
import { duplicateFields } from '../../../../apiserver/schema/duplicates.ts';
import { canonicalQuantity, quantityError } from '../../../../apiserver/schema/quantity.ts';
import { jsonSize } from '../../../../lib/json-limits.ts';
import { median } from '../../../support/median.ts';

const POD = 'io.k8s.api.core.v1.Pod';
const CONFIG_MAP = 'io.k8s.api.core.v1.ConfigMap';
const NO_LIMITS = { depth: Infinity, objects: Infinity, keys: Infinity, values: Infinity };

const list = <T>(n: number, of: (index: number) => T): T[] => Array.from({ length: n }, (_, index) => of(index));
const names = (n: number, value: unknown = 'v'): Record<string, unknown> =>
  Object.fromEntries(list(n, (i) => [`key-${i}`, value]));

function field(number: number, content: Buffer | string): Buffer {
  const bytes = Buffer.from(content);
  const head = [number * 8 + 2];
  let length = bytes.length;
  for (; length > 127; length = Math.floor(length / 128)) head.push((length % 128) + 128);
  return Buffer.concat([Buffer.from([...head, length]), bytes]);
}

/** A ConfigMap with `n` entries in `data` (field 2). */
function protobufMap(n: number): Buffer {
  const entries = list(n, (i) => field(2, Buffer.concat([field(1, `key-${i}`), field(2, 'v')])));
  const meta = Buffer.concat([field(1, 'v1'), field(2, 'ConfigMap')]);
  return Buffer.concat([Buffer.from('k8s\0'), field(1, meta), field(2, Buffer.concat(entries))]);
}

/** What is timed gets a fresh input each time, made outside the time. */
interface Case {
  readonly n: number;
  make(n: number): unknown;
  run(input: never): void;
}
const worst = <T>(n: number, make: (n: number) => T, run: (input: T) => void): Case => ({ n, make, run });
const tolerant = (body: () => void): void => {
  try {
    body();
  } catch (error) {
    // What is refused may take no longer than what is accepted.
    if (!(error instanceof Error) || !('status' in error)) throw error;
  }
};
const patch = (type: string, n: number, make: (n: number) => { object: object; patch: unknown }, schema = POD): Case =>
  worst(n, make, (input) =>
    tolerant(() => {
      applyPatch({ ...input.object }, input.patch, type as PatchType, schema);
    }),
  );

const JSON_PATCH = 'application/json-patch+json';
const STRATEGIC = 'application/strategic-merge-patch+json';
const env = (n: number, from = 0): object[] => list(n, (i) => ({ name: `n${i + from}`, value: 'v' }));
const podWith = (variables: object[]): object => ({ spec: { containers: [{ name: 'c', env: variables }] } });

const CASES: Readonly<Record<string, Case>> = {
  'JSON: counting': worst(
    100_000,
    (n) => Buffer.from(`[${'{"a":1},'.repeat(n)}0]`),
    (text) => jsonSize(text, NO_LIMITS),
  ),
  'JSON: duplicate keys': worst(40_000, (n) => `{${'"a":1,'.repeat(n)}"a":1}`, duplicateFields),
  'JSON: duplicates below a long key': worst(
    300_000,
    (n) => `{"${'k'.repeat(n)}":{${'"a":1,"a":2,'.repeat(n / 12)}"b":1}}`,
    duplicateFields,
  ),
  'YAML: map': worst(
    1500,
    (n) => list(n, (i) => `k${i}: v`).join('\n'),
    (text) => void convert('yaml-to-json', text),
  ),
  'YAML: equal keys of a flow map': worst(
    1000,
    (n) => `[${list(n, (i) => `{a: ${i}}`).join()}]`,
    (text) => void convert('yaml-to-json', text),
  ),
  'protobuf: map': worst(4000, protobufMap, (bytes) => void decodeProtobuf(bytes)),
  'schema: map': worst(
    // V8 keeps an object of some thousand keys in another way than a smaller one: both sizes are beyond that.
    6000,
    (n) => ({ data: names(n) }),
    (object) => void checkBodyAs(CONFIG_MAP, object),
  ),
  'schema: unknown fields': worst(
    2000,
    (n) => ({ spec: { containers: list(n, (i) => ({ name: 'c', [`unknown${i}`]: 1 })) } }),
    (object) => void checkBodyAs(POD, object),
  ),
  'schema: base64': worst(
    200_000,
    (n) => ({ data: { a: 'AAAA'.repeat(n / 4) } }),
    (object) => void checkBodyAs('io.k8s.api.core.v1.Secret', object),
  ),
  'strategic merge: keyed list': patch(STRATEGIC, 1500, (n) => ({
    object: podWith(env(n)),
    patch: podWith(env(n, n / 2)),
  })),
  'strategic merge: deletions': patch(STRATEGIC, 1500, (n) => ({
    object: podWith(env(n)),
    patch: podWith(list(n, (i) => ({ name: `n${i}`, $patch: 'delete' }))),
  })),
  'strategic merge: order': patch(STRATEGIC, 1500, (n) => ({
    object: podWith(env(n)),
    patch: {
      spec: { containers: [{ name: 'c', env: [], '$setElementOrder/env': env(n).toReversed() }] },
    },
  })),
  'strategic merge: primitives': patch(STRATEGIC, 4000, (n) => ({
    object: { metadata: { finalizers: list(n, (i) => `a/${i}`) } },
    patch: {
      metadata: {
        finalizers: list(n, (i) => `b/${i}`),
        '$deleteFromPrimitiveList/finalizers': list(n, (i) => `a/${i}`),
      },
    },
  })),
  'merge patch: map': patch(
    'application/merge-patch+json',
    2000,
    (n) => ({ object: { data: names(n) }, patch: { data: names(n, 'w') } }),
    CONFIG_MAP,
  ),
  'JSON patch: insertions at the front': patch(JSON_PATCH, 2000, (n) => ({
    object: podWith(env(1000)),
    patch: list(n, (i) => ({ op: 'add', path: '/spec/containers/0/env/0', value: { name: `x${i}` } })),
  })),
  'JSON patch: tests': patch(
    JSON_PATCH,
    4000,
    (n) => ({ object: { data: names(2000) }, patch: list(n, () => ({ op: 'test', path: '/data/key-7', value: 'v' })) }),
    CONFIG_MAP,
  ),
  'JSON patch: moves': patch(
    JSON_PATCH,
    4000,
    (n) => ({
      object: { data: names(2000) },
      patch: list(n, (i) => ({ op: 'move', from: `/data/${i === 0 ? 'key-0' : `m${i - 1}`}`, path: `/data/m${i}` })),
    }),
    CONFIG_MAP,
  ),
  'names: subdomain': worst(
    400_000,
    (n) => `${'a.'.repeat(n)}!`,
    (text) => void dns1123Subdomain(text),
  ),
  'names: qualified': worst(
    400_000,
    (n) => `${'a-'.repeat(n)}/${'a'.repeat(n)}!`,
    (text) => void qualifiedName(text),
  ),
  'metadata: labels and finalizers': worst(
    4000,
    (n) => ({ name: 'a', labels: Object.fromEntries(list(n, (i) => [`l/${i}!`, '-'])), finalizers: list(n, () => '') }),
    (meta) => void validateObjectMeta(meta, false, dns1123Subdomain),
  ),
  'quantity: digits': worst(
    400_000,
    (n) => `${'1'.repeat(n)}x`,
    (text) => void quantityError(text),
  ),
  'selector: sets': worst(
    20_000,
    (n) => `a in (${list(n, (i) => `v${i}`).join()})`,
    (text) => void parseLabelSelector(text),
  ),
  'selector: requirements': worst(
    4000,
    (n) => list(n, (i) => `k${i}!=v`).join(),
    (text) => void parseLabelSelector(text),
  ),
  'selector: fields': worst(
    3000,
    (n) => list(n, () => 'a.b=c\\,d').join(),
    (text) => void parseFieldSelector(text),
  ),
  'trust bundle: beginnings without an end': worst(
    20_000,
    (n) => ({
      kind: 'ClusterTrustBundle',
      apiVersion: 'v1',
      metadata: { name: 'a' },
      spec: { trustBundle: '-----BEGIN A-----\n'.repeat(n) },
    }),
    (object) => void clustertrustbundles.strategy.validateCreate?.(object),
  ),
};

const NOBODY = new Int32Array(new SharedArrayBuffer(4));
/** Longer than the kernel's timer slack, so that the thread really gives up the processor. ms. */
const PAUSE_MS = 0.06;

/**
 * Processor time of this thread so far, ms. The kernel counts it in ticks of some milliseconds, and exactly whenever the
 * thread gives up the processor, which it does here for a moment.
 */
function processorTime(): number {
  Atomics.wait(NOBODY, 0, 0, PAUSE_MS);
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** For `count` inputs of size `n`, ms. */
function timeOf({ make, run }: Case, n: number, count: number): number {
  const inputs = list(count, () => make(n) as never);
  const before = processorTime();
  for (const input of inputs) run(input);
  return processorTime() - before;
}

/** As many small inputs as make the size of a large one. */
const TIMES = 4;
const MOST = 2.8;
/** Measured in turns until this much is known of each, ms, in some rounds at least. */
const ENOUGH_MS = 100;
const LEAST_ROUNDS = 9;
const MOST_ROUNDS = 25;
/** What reading the time takes by itself, ms: what costs next to nothing is not compared by that. */
const GRAIN_MS = 0.3;
const rows: string[] = [];

/**
 * How much longer twice the size takes: 2 where time grows with the size alone. The middle of the rounds' ratios, each of two
 * measurements right after each other: a collection of garbage or a program that pushes everything out of the caches
 * is in few rounds, whatever it costs there.
 */
function doubling(what: string, each: Case): number {
  const [small, large] = [each.n / 2, each.n * 2];
  // The first runs are the compiler's.
  timeOf(each, small, TIMES);
  timeOf(each, large, 1);
  let [apart, together] = [0, 0];
  const ratios: number[] = [];
  while (ratios.length < LEAST_ROUNDS || (Math.min(apart, together) < ENOUGH_MS && ratios.length < MOST_ROUNDS)) {
    const times = { apart: 0, together: 0 };
    const order = ratios.length % 2 === 0 ? (['apart', 'together'] as const) : (['together', 'apart'] as const);
    for (const side of order) times[side] = side === 'apart' ? timeOf(each, small, TIMES) : timeOf(each, large, 1);
    apart += times.apart;
    together += times.together;
    ratios.push((times.together + GRAIN_MS) / (times.apart + GRAIN_MS));
  }
  const ratio = 2 * Math.sqrt(median(ratios));
  const shown = [apart, together].map((ms) => (ms / ratios.length).toFixed(1).padStart(9));
  rows.push(`${what.padEnd(42)} ${String(large).padStart(8)} ${shown.join(' ')} ${ratio.toFixed(2).padStart(6)}`);
  return ratio;
}

describe('time against size', () => {
  it.each(Object.entries(CASES))('%s: twice the size takes at most 2.8 times as long', (what, each) => {
    expect(doubling(what, each)).toBeLessThan(MOST);
  });

  it('the table', () => {
    process.stdout.write(`${'worst case'.padEnd(42)}        n  4 of n/4  one of n ratio\n${rows.join('\n')}\n`);
    expect(rows).toHaveLength(Object.keys(CASES).length);
  });
});

describe('what would be too much is refused by name', () => {
  const statusOf = (body: () => unknown): string => {
    try {
      body();
    } catch (error) {
      if (error instanceof Error && 'status' in error) return `${JSON.stringify(error.status)}`;
      throw error;
    }
    return 'accepted';
  };
  const patched = (object: object, operations: unknown): string =>
    statusOf(() => applyPatch({ ...object }, operations, JSON_PATCH, CONFIG_MAP));

  it.each<[string, () => string, string]>([
    [
      'copies that double',
      () =>
        patched(
          { data: { a: 'x'.repeat(100_000) } },
          list(40, (i) => ({ op: 'copy', from: '/data', path: `/data/c${i}` })),
        ),
      '"code":413',
    ],
    [
      'many small copies',
      () =>
        patched(
          { a: list(1000, () => []) },
          list(100, (i) => ({ op: 'copy', from: '/a', path: `/b${i}` })),
        ),
      '"code":413',
    ],
    [
      'moves that nest',
      () =>
        patched(
          Object.fromEntries(list(5000, (i) => [`x${i}`, {}])),
          list(4999, (i) => ({ op: 'move', from: `/x${i}`, path: `/x${i + 1}/a` })),
        ),
      '"code":400',
    ],
    [
      'too many operations',
      () =>
        patched(
          {},
          list(10_001, () => ({ op: 'test', path: '', value: {} })),
        ),
      '"code":413',
    ],
    [
      'pushing a long list along',
      () =>
        patched(
          { a: list(30_000, () => 0) },
          list(1000, () => ({ op: 'add', path: '/a/0', value: 1 })),
        ),
      '"code":413',
    ],
    ['deep protobuf', () => statusOf(() => decodeProtobuf(Buffer.from('k8s\0\x12\x02\x12'))), '"code":400'],
  ])('%s', (_what, run, expected) => expect(run()).toContain(expected));

  it('quantities beyond measure', () => {
    for (const text of ['1e999999999', '1'.repeat(300_000), `${'1'.repeat(100_000)}e9`]) {
      expect(quantityError(text)).toMatch(/^(quantities must match the regular expression|unable to parse)/);
    }
    expect(canonicalQuantity('1e-999999999')).toBe('1e-9');
  });
});
