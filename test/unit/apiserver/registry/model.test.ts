// Writers, readers and watchers at once on a few objects, from a seed, and afterwards a comparison with the model: each
// write did what the model says to the version it replaced, each refusal was right at some moment of the request, each list is
// the state at its revision, and each watch has seen exactly the changes that its selector shows.

import { expect, test } from 'vitest';
import { StatusError } from '../../../../apiserver/errors.ts';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import { isObject } from '../../../../apiserver/patch/json-value.ts';
import { applyObject } from '../../../../apiserver/registry/apply.ts';
import { deleteObject } from '../../../../apiserver/registry/delete.ts';
import { listObjects } from '../../../../apiserver/registry/list.ts';
import { patchInTurns } from '../../../../apiserver/registry/patch.ts';
import type { WriteOptions } from '../../../../apiserver/registry/registry.ts';
import { parseSelection } from '../../../../apiserver/registry/selectors.ts';
import { startWatch, type Watch } from '../../../../apiserver/registry/watch.ts';
import { createObject, updateObject } from '../../../../apiserver/registry/write.ts';
import { nextTurn } from '../../../../lib/turns.ts';
import { type Random, seededRandom } from '../../../hostile/random.ts';
import { ADMIN, body, type Fixture, fixture, leases } from '../support.ts';
import { type Effect, effectOf, type Item, type Labels, type Operation } from './model.ts';

const SEEDS = [1, 2, 3, 4, 5, 6];
const WRITERS = 6;
const WRITES = 60;
const READS = 60;
const PATCH_ATTEMPTS = 5;
const NAMES = ['a', 'b', 'c', 'd'] as const;
const VALUES = ['red', 'green', 'blue'] as const;
const SELECTORS = ['', 'color=red', 'color!=red', 'size', 'color in (red,blue),!size'] as const;
/** Every object has it, so that there are always labels. */
const KEEP = { keep: 'x' };

const versionOf = ({ metadata }: Readonly<KubeObject>): number => Number(metadata.resourceVersion);

/** Owners of labels, as managedFields have them. */
function ownersOf({ metadata }: Readonly<KubeObject>): Item['owners'] {
  const owners: Record<string, string[]> = {};
  for (const { manager, operation, fieldsV1 } of metadata.managedFields ?? []) {
    const inMetadata = isObject(fieldsV1) ? fieldsV1['f:metadata'] : undefined;
    const inLabels = isObject(inMetadata) ? inMetadata['f:labels'] : undefined;
    for (const field of Object.keys(isObject(inLabels) ? inLabels : {})) {
      if (!field.startsWith('f:')) continue;
      const label = field.slice(2);
      owners[label] = [...(owners[label] ?? []), `${manager} ${operation}`].sort();
    }
  }
  return owners;
}

const itemOf = (object: Readonly<KubeObject>): Item => ({
  labels: object.metadata.labels ?? {},
  owners: ownersOf(object),
});

/** One text for equal items, whatever the order of their labels. */
function shown(item: Item | undefined): string {
  if (item === undefined) return 'gone';
  const sorted = (record: object): unknown => Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([sorted(item.labels), sorted(item.owners)]);
}

// ---------------------------------------------------------------- what happened

/** A version of an object; `item` is undefined from its deletion on. */
interface Version {
  readonly revision: number;
  readonly item: Item | undefined;
}

/** Every version of every object, from a watch of everything. */
class History {
  readonly #versions = new Map<string, Version[]>();
  readonly revisions: number[] = [];

  add(name: string, version: Version): void {
    this.#versions.set(name, [...this.of(name), version]);
    this.revisions.push(version.revision);
  }

  of(name: string): readonly Version[] {
    return this.#versions.get(name) ?? [];
  }

  at(name: string, revision: number): Version {
    return this.of(name).findLast((each) => each.revision <= revision) ?? { revision: 0, item: undefined };
  }

  /** "name@revision" of what there was and matched. */
  list(revision: number, matches: (labels: Labels) => boolean): string[] {
    return NAMES.flatMap((name) => {
      const version = this.at(name, revision);
      return version.item !== undefined && matches(version.item.labels) ? [`${name}@${version.revision}`] : [];
    });
  }
}

interface Response {
  readonly operation: Operation;
  /** The store's revision when the request began and when it ended. */
  readonly began: number;
  readonly ended: number;
  /** Of the written or unchanged object; absent for a refusal. */
  readonly revision?: number;
  readonly item?: Item | undefined;
  readonly code?: number;
}

// ---------------------------------------------------------------- writers

function someLabels(random: Random): Labels {
  const color = random.next() < 0.7 ? { color: random.pick(VALUES) } : {};
  const size = random.next() < 0.5 ? { size: random.pick(VALUES) } : {};
  return { ...color, ...size };
}

function someOperation({ registry }: Fixture, random: Random): Operation {
  const name = random.pick(NAMES);
  const manager = random.pick(['m1', 'm2', 'm3']);
  const labels = someLabels(random);
  const stored = registry.find(leases, 'ns', name);
  const version = stored?.revision ?? 1;
  const share = random.next();
  if (share < 0.15) return { kind: 'create', name, manager, labels: { ...labels, ...KEEP } };
  if (share < 0.22) return { kind: 'delete', name, manager, version: random.next() < 0.5 ? version : undefined };
  if (share < 0.35) return { kind: 'update', name, manager, labels: { ...labels, ...KEEP }, version };
  if (share < 0.65) {
    return { kind: 'apply', name, manager, labels: { ...labels, ...KEEP }, force: random.next() < 0.4 };
  }
  if (share < 0.8) {
    const label = random.pick(['color', 'size']);
    return {
      kind: 'json',
      name,
      manager,
      op: random.pick(['add', 'remove', 'test']),
      label,
      value: random.pick(VALUES),
    };
  }
  const removed = random.next() < 0.3 ? { size: null } : {};
  return { kind: random.pick(['merge', 'strategic']), name, manager, labels: { ...labels, ...removed } };
}

function patchOf(
  operation: Operation,
): { type: Parameters<typeof patchInTurns>[4]['type']; value: unknown } | undefined {
  const { kind } = operation;
  if (kind === 'json') {
    const { op, label, value } = operation;
    const path = `/metadata/labels/${label}`;
    return { type: 'application/json-patch+json', value: [op === 'remove' ? { op, path } : { op, path, value }] };
  }
  if (kind !== 'merge' && kind !== 'strategic') return undefined;
  const type = kind === 'merge' ? 'application/merge-patch+json' : 'application/strategic-merge-patch+json';
  return { type, value: { metadata: { labels: operation.labels } } };
}

/** Carries it out; between what it has read and what it writes, others may write. Rejects with StatusError. */
async function carryOut(f: Fixture, operation: Operation, random: Random): Promise<Readonly<KubeObject> | undefined> {
  const { registry } = f;
  const { name, manager, kind } = operation;
  const options: WriteOptions = { ...ADMIN, fieldManager: manager };
  const patch = patchOf(operation);
  if (patch !== undefined) {
    const { type, value } = patch;
    const request = { type, read: () => structuredClone(value), large: random.next() < 0.7 };
    return (await patchInTurns(registry, leases, 'ns', name, request, options)).object;
  }
  for (let turns = random.below(3); turns > 0; turns--) await nextTurn();
  switch (kind) {
    case 'create':
      return createObject(registry, leases, 'ns', body('Lease', { name, labels: { ...operation.labels } }), options)
        .object;
    case 'update': {
      const metadata = { name, labels: { ...operation.labels }, resourceVersion: String(operation.version) };
      return updateObject(registry, leases, 'ns', name, body('Lease', metadata), options).object;
    }
    case 'apply': {
      const config = { ...body('Lease', { name, labels: { ...operation.labels } }) };
      const request = { config, force: operation.force, mayCreate: () => undefined };
      return (await applyObject(registry, leases, 'ns', name, request, options)).view.object;
    }
    case 'delete': {
      const precondition = operation.version === undefined ? {} : { resourceVersion: String(operation.version) };
      deleteObject(registry, leases, 'ns', name, { dryRun: false, ...precondition });
    }
  }
  return undefined;
}

async function write(f: Fixture, random: Random, responses: Response[]): Promise<void> {
  for (let count = 0; count < WRITES; count++) {
    const operation = someOperation(f, random);
    const began = f.store.revision;
    try {
      const object = await carryOut(f, operation, random);
      const ended = f.store.revision;
      const result =
        object === undefined
          ? { revision: ended, item: undefined }
          : { revision: versionOf(object), item: itemOf(object) };
      responses.push({ operation, began, ended, ...result });
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      responses.push({ operation, began, ended: f.store.revision, code: error.status.code });
    }
    if (random.next() < 0.5) await nextTurn();
  }
}

// ---------------------------------------------------------------- readers

interface Reading {
  readonly revision: number;
  readonly selector: string;
  readonly items: readonly string[];
}

/** One list, in pages or whole, of now or of an earlier revision. */
async function read({ registry, store }: Fixture, random: Random): Promise<Reading> {
  const selector = random.pick(SELECTORS);
  const exact = random.next() < 0.3 ? String(1 + random.below(store.revision)) : '';
  const from = Math.max(Number(exact), 3);
  const items: string[] = [];
  let [continueToken, revision] = ['', 0];
  do {
    const isFirst = continueToken === '';
    const options = {
      ...{ namespace: 'ns', selection: parseSelection(leases, selector, ''), limit: random.below(3), continueToken },
      resourceVersion: isFirst && exact !== '' ? String(from) : '',
      resourceVersionMatch: isFirst && exact !== '' ? 'Exact' : '',
    };
    const page = listObjects(registry, leases, options);
    revision = page.revision;
    items.push(...page.items.map(({ object }) => `${object.metadata.name}@${versionOf(object)}`));
    continueToken = page.continueToken ?? '';
    for (let turns = random.below(3); turns > 0; turns--) await nextTurn();
  } while (continueToken !== '');
  return { revision, selector, items };
}

/** A watch that reads slowly, and what it has seen. */
interface Watching {
  readonly watch: Watch;
  readonly start: number;
  readonly fromState: boolean;
  readonly selector: string;
  readonly events: string[];
}

function startWatching({ registry, store }: Fixture, random: Random): Watching {
  const selector = random.pick(SELECTORS);
  const fromState = random.next() < 0.5;
  const start = fromState ? store.revision : 3 + random.below(Math.max(1, store.revision - 2));
  const events: string[] = [];
  const watch = startWatch(
    registry,
    leases,
    {
      ...{ namespace: 'ns', selection: parseSelection(leases, selector, ''), resourceVersionMatch: '' },
      ...{ resourceVersion: fromState ? '' : String(start), allowBookmarks: false },
    },
    {
      event: ({ type, view }) => {
        const { object } = view();
        events.push(`${type} ${object.metadata.name}@${versionOf(object)}`);
      },
      bookmark: () => undefined,
      isFull: () => random.next() < 0.3,
      whenDrained: (resume) => void setImmediate(resume),
      failed: (error) => events.push(`FAILED ${String(error)}`),
    },
  );
  return { watch, start, fromState, selector, events };
}

// ---------------------------------------------------------------- the comparison

const matcher = (selector: string): ((labels: Labels) => boolean) => {
  const conditions: Readonly<Record<string, (labels: Labels) => boolean>> = {
    '': () => true,
    'color=red': ({ color }) => color === 'red',
    'color!=red': ({ color }) => color !== 'red',
    size: ({ size }) => size !== undefined,
    'color in (red,blue),!size': ({ color, size }) => (color === 'red' || color === 'blue') && size === undefined,
  };
  const found = conditions[selector];
  if (found === undefined) throw new Error(`no condition for ${selector}`);
  return found;
};

function same(effect: Effect, item: Item | undefined): boolean {
  return 'item' in effect && shown(effect.item) === shown(item);
}

/** Whether this response wrote the version of its revision, left the object as it was, or neither. */
function roleOf(history: History, { operation, revision = 0, item }: Response): 'wrote' | 'unchanged' | 'wrong' {
  const { name } = operation;
  const version = history.at(name, revision);
  if (version.revision !== revision || shown(version.item) !== shown(item)) return 'wrong';
  const before = history.at(name, revision - 1);
  if (same(effectOf(operation, before.item, before.revision), item)) return 'wrote';
  return same(effectOf(operation, version.item, revision), item) ? 'unchanged' : 'wrong';
}

/** Whether some version that was there during the request refuses it so. */
function isRightRefusal(history: History, { operation, began, ended, code }: Response): boolean {
  const during = history.of(operation.name).filter(({ revision }) => revision > began && revision <= ended);
  const versions = [history.at(operation.name, began), ...during];
  const lost = code === 409 && patchOf(operation) !== undefined && during.length >= PATCH_ATTEMPTS;
  return (
    lost ||
    versions.some(({ item, revision }) => {
      const effect = effectOf(operation, item, revision);
      return 'code' in effect && effect.code === code;
    })
  );
}

function expectedEvents(history: History, { start, fromState, selector }: Watching, end: number): string[] {
  const matches = matcher(selector);
  const events = fromState ? history.list(start, matches).map((each) => `ADDED ${each}`) : [];
  for (const revision of history.revisions) {
    if (revision <= start || revision > end) continue;
    for (const name of NAMES) {
      const version = history.at(name, revision);
      if (version.revision !== revision) continue;
      const { item } = history.at(name, revision - 1);
      const before = item !== undefined && matches(item.labels);
      const after = version.item !== undefined && matches(version.item.labels);
      if (after) events.push(`${before ? 'MODIFIED' : 'ADDED'} ${name}@${revision}`);
      else if (before) events.push(`DELETED ${name}@${revision}`);
    }
  }
  return events;
}

function follow({ registry }: Fixture): History {
  const history = new History();
  startWatch(
    registry,
    leases,
    {
      ...{ namespace: 'ns', selection: parseSelection(leases, '', ''), resourceVersionMatch: '' },
      ...{ resourceVersion: '', allowBookmarks: false },
    },
    {
      event: ({ type, revision, view }) => {
        const { object } = view();
        history.add(object.metadata.name ?? '', { revision, item: type === 'DELETED' ? undefined : itemOf(object) });
      },
      bookmark: () => undefined,
      isFull: () => false,
      whenDrained: () => undefined,
      failed: (error) => {
        throw error;
      },
    },
  );
  return history;
}

test.each(SEEDS)('writes, lists and watches at once are what the model says (seed %d)', async (seed) => {
  const f = fixture(':memory:', { count: 100_000 });
  const history = follow(f);
  const random = seededRandom(seed);
  const responses: Response[] = [];
  const readings: Reading[] = [];
  const watches: Watching[] = [];
  const reader = async (own: Random): Promise<void> => {
    for (let count = 0; count < READS; count++) {
      readings.push(await read(f, own));
      if (own.next() < 0.3) watches.push(startWatching(f, own));
      await nextTurn();
    }
  };
  const seeded = (): Random => seededRandom(random.below(2 ** 31));
  createObject(f.registry, leases, 'ns', body('Lease', { name: 'a', labels: { ...KEEP } }), ADMIN);
  await Promise.all([
    ...Array.from({ length: WRITERS }, () => write(f, seeded(), responses)),
    ...Array.from({ length: 2 }, () => reader(seeded())),
  ]);
  const end = f.store.revision;
  await expect.poll(() => watches.filter(({ watch }) => watch.position() !== end).length).toBe(0);
  for (const { watch } of watches) watch.stop();

  const roles = new Map<number, string[]>();
  for (const response of responses) {
    if (response.code !== undefined) {
      expect(isRightRefusal(history, response), JSON.stringify(response)).toBe(true);
      continue;
    }
    const role = roleOf(history, response);
    expect(
      role,
      JSON.stringify([response, history.at(response.operation.name, (response.revision ?? 0) - 1)]),
    ).not.toBe('wrong');
    roles.set(response.revision ?? 0, [...(roles.get(response.revision ?? 0) ?? []), role]);
  }
  // Every change but the first has its writer.
  const withoutWriter = history.revisions
    .slice(1)
    .filter((revision) => roles.get(revision)?.includes('wrote') !== true);
  expect(withoutWriter).toEqual([]);
  for (const { revision, selector, items } of readings) {
    expect(items, `${selector} at ${revision}`).toEqual(history.list(revision, matcher(selector)));
  }
  for (const watching of watches) {
    expect(watching.events, JSON.stringify(watching.selector)).toEqual(expectedEvents(history, watching, end));
  }
  // Each kind of thing has happened.
  expect(new Set(responses.filter(({ code }) => code === undefined).map(({ operation }) => operation.kind)).size).toBe(
    7,
  );
  expect(watches.length).toBeGreaterThan(10);
  expect(responses.filter(({ operation, code }) => operation.kind === 'apply' && code === 409).length).toBeGreaterThan(
    0,
  );
});
