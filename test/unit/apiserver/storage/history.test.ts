// History is bounded by number, bytes and age, and the file gives back what it no longer needs.

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HistoryLimits } from '../../../../apiserver/storage/history.ts';
import { CompactedError } from '../../../../apiserver/storage/object-store.ts';
import { RecentObjects } from '../../../../apiserver/storage/recent.ts';
import { pagesFor, writeKind } from '../../../../apiserver/storage/room.ts';
import { Store } from '../../../../apiserver/storage/store.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
let directory: string;
const open: Store[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nodelet-history-'));
});
afterEach(() => {
  for (const one of open.splice(0)) one.close();
  rmSync(directory, { recursive: true });
});

function store(
  history: Partial<HistoryLimits>,
  name = 'store.db',
): { store: Store; clock: VirtualClock; path: string } {
  const clock = new VirtualClock();
  const path = join(directory, name);
  const made = new Store(path, { clock, history });
  open.push(made);
  return { store: made, clock, path };
}

const key = (name: string) => ({ resource: '/configmaps', namespace: 'ns', name });
function put(to: Store, name: string, bytes: number): number {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { x: 'x'.repeat(bytes) } };
  return to.put(key(name), object, to.get(key(name))).revision;
}
function remove(from: Store, name: string): void {
  const stored = from.get(key(name));
  if (stored === undefined) throw new Error(`${name} is not there`);
  from.remove(key(name), JSON.parse(stored.text), stored);
}

describe('history', () => {
  it('of large objects is bounded by bytes: three times the updates make no larger file', () => {
    const size = (name: string, updates: number): number => {
      const { store: s, path } = store({ bytes: 4 * MIB }, name);
      for (let i = 0; i < updates; i++) put(s, 'big', 900 * KIB);
      s.maintain();
      return statSync(path).size;
    };
    const few = size('few.db', 20);
    expect(size('many.db', 60) / few).toBeLessThan(1.2);
  });

  it('keeps every present object, and each change’s state before it', () => {
    const { store: s } = store({ bytes: 2 * MIB });
    put(s, 'old', 10);
    for (let i = 0; i < 30; i++) put(s, 'big', 500 * KIB);
    s.maintain();
    expect(s.compacted).toBeGreaterThan(2);
    expect([...s.scan('/configmaps')].map(({ name }) => name)).toEqual(['big', 'old']);
    const { changes } = s.since(s.compacted, '/configmaps');
    expect(changes.length).toBeGreaterThan(1);
    for (const { record, previous } of changes) {
      expect(previous?.metadata.resourceVersion).toBe(String(record.revision - 1));
    }
  });

  it('counts its bytes anew after a restart', () => {
    const first = store({ bytes: 4 * MIB });
    for (let i = 0; i < 4; i++) put(first.store, 'big', 900 * KIB);
    first.store.close();
    const { store: s } = store({ bytes: 4 * MIB });
    expect(s.compacted).toBe(0);
    for (let i = 0; i < 12; i++) put(s, 'big', 900 * KIB);
    expect(s.compacted).toBeGreaterThan(4);
  });

  it('ends after five minutes, also when nothing more is written', async () => {
    const { store: s, clock } = store({});
    const first = put(s, 'a', 10);
    await clock.advance(4 * 60_000);
    const second = put(s, 'a', 10);
    expect(s.since(first - 1, '/configmaps').changes).toHaveLength(2);
    await clock.advance(3 * 60_000);
    expect(() => s.since(first - 1, '/configmaps')).toThrow(CompactedError);
    expect(s.since(second - 1, '/configmaps').changes).toHaveLength(1);
    await clock.advance(15 * 60_000);
    expect(s.compacted).toBe(s.revision);
  });

  it('ends after five minutes also when something is written all the time', async () => {
    const { store: s, clock } = store({});
    const first = put(s, 'a', 10);
    for (let second = 0; second < 8 * 60; second++) {
      await clock.advance(1000);
      put(s, 'b', 10);
    }
    expect(() => s.since(first - 1, '/configmaps')).toThrow(CompactedError);
    expect(s.since(s.revision - 200, '/configmaps').changes).toHaveLength(200);
  });

  it('comes in parts of so many bytes, which together are the whole', () => {
    const { store: s } = store({});
    const from = put(s, 'a', 10);
    for (let i = 0; i < 20; i++) put(s, i % 2 === 0 ? 'a' : 'b', 50 * KIB);
    const seen: number[] = [];
    let parts = 0;
    for (let at = from; at < s.revision; parts++) {
      const { changes, reached } = s.since(at, '/configmaps', undefined, 200 * KIB);
      expect(changes.length).toBeLessThanOrEqual(4);
      seen.push(...changes.map(({ record }) => record.revision));
      at = reached;
    }
    expect(parts).toBeGreaterThan(4);
    expect(seen).toEqual(Array.from({ length: 20 }, (_, i) => from + 1 + i));
  });
});

describe('the file', () => {
  it('shrinks in quiet moments when objects are gone', async () => {
    const { store: s, clock, path } = store({ bytes: MIB });
    for (let i = 0; i < 40; i++) put(s, `big-${i}`, 500 * KIB);
    s.maintain();
    const large = statSync(path).size;
    for (let i = 0; i < 40; i++) remove(s, `big-${i}`);
    await clock.advance(60_000);
    expect(statSync(path).size).toBeLessThan(large / 2);
    expect(s.count('/configmaps')).toBe(0);
  });
});

describe('housekeeping', () => {
  it('that fails is logged, whatever it is, and the timer that called it goes on', () => {
    const log: string[] = [];
    const clock = new VirtualClock();
    const one = new Store(join(directory, 'store.db'), { clock, log: (line) => log.push(line) });
    put(one, 'a', 10);
    one.close();
    one.maintain();
    expect(log).toContain("housekeeping of the API server's store (its file) failed: statement has been finalized");
    expect(log.every((line) => line.startsWith("housekeeping of the API server's store ("))).toBe(true);
  });
});

describe('an older state of the objects', () => {
  it('is the same as it was then, in order, from any place on, whatever came after', () => {
    const { store: s } = store({});
    const states: { revision: number; names: string[] }[] = [];
    const present = new Set<string>();
    // A fixed sequence that creates, changes, removes and creates again.
    for (let i = 0; i < 200; i++) {
      const name = `n-${(i * 7) % 23}`;
      if (present.has(name) && i % 3 === 0) {
        remove(s, name);
        present.delete(name);
      } else {
        put(s, name, 10);
        present.add(name);
      }
      states.push({ revision: s.revision, names: [...present].sort() });
    }
    for (const { revision, names } of states) {
      const read = [...s.scanAt(revision, '/configmaps')];
      expect(read.map(({ name }) => name)).toEqual(names);
      for (const one of read) {
        expect(JSON.parse(one.text)).toMatchObject({ metadata: { resourceVersion: String(one.revision) } });
        expect(one.revision).toBeLessThanOrEqual(revision);
      }
      const after = { namespace: 'ns', name: 'n-15' };
      const rest = [...s.scanAt(revision, '/configmaps', undefined, after)].map(({ name }) => name);
      expect(rest).toEqual(names.filter((name) => name > 'n-15'));
      expect(s.countAt(revision, '/configmaps', 'ns', after)).toBe(rest.length);
    }
  });
});

describe('objects kept for watchers', () => {
  it('are bounded by bytes as well as by number', () => {
    const recent = new RecentObjects();
    const object = { apiVersion: 'v1', kind: 'Pod', metadata: {} };
    for (let i = 0; i < 200; i++) recent.set(`k${i}`, String(i).padEnd(200_000, 'x'), object);
    expect(recent.bytes).toBeLessThanOrEqual(4 * MIB);
    expect(recent.bytes).toBeGreaterThan(3 * MIB);
    recent.set('huge', 'x'.repeat(MIB), object);
    expect(recent.get('huge', 'x'.repeat(MIB))).toBeUndefined();
    for (let i = 0; i < 2000; i++) recent.set(`s${i}`, `${i}`, object);
    expect(recent.get('s1999', '1999')).toBe(object);
    expect(recent.get('s1999', 'other')).toBeUndefined();
    expect(recent.get('s1000', '1000')).toBeUndefined();
  });
});

describe('what a write does to the room', () => {
  const cases: readonly (readonly [string, number, number | undefined, boolean, ReturnType<typeof writeKind>])[] = [
    ['a new object', 100, undefined, false, 'grow'],
    ['a new object that is being deleted already', 100, undefined, true, 'grow'],
    ['the same size', 5000, 5000, false, 'keep'],
    ['a finalizer less', 4900, 5000, false, 'keep'],
    ['a longer condition', 5900, 5000, false, 'keep'],
    ['a good deal more', 7000, 5000, false, 'grow'],
    ['the mark of a deletion', 5100, 5000, true, 'finish'],
    ['the last status of a pod that ends', 9000, 5000, true, 'finish'],
    ['a great deal more in something that is being deleted', 50_000, 5000, true, 'grow'],
  ];
  for (const [what, bytes, before, deleted, kind] of cases) {
    it(`${what}: ${kind}`, () => expect(writeKind(bytes, before, deleted)).toBe(kind));
  }

  it('a value takes no more pages than are counted for it', () => {
    for (const bytes of [0, 100, 5000, MIB]) expect(pagesFor(bytes) * 4000).toBeGreaterThan(bytes);
  });
});
