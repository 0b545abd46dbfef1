// What every store does, as test cases: test/unit runs them on the SQLite store, test/e2e/apiserver on etcd.

import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import {
  CompactedError,
  MAX_OBJECT_BYTES,
  type ObjectKey,
  type ObjectStore,
  ObjectTooLargeError,
  type StoredObject,
} from '../../../../apiserver/storage/object-store.ts';

export const key = (name: string, namespace = 'ns', resource = '/pods'): ObjectKey => ({ resource, namespace, name });
const object = ({ name, namespace }: ObjectKey, value: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: namespace === '' ? { name } : { name, namespace },
  value,
});

/** Writes one object, whatever is there. Returns its revision. */
export async function put(store: ObjectStore, at: ObjectKey, value = ''): Promise<number> {
  const stored = await store.commit(() => store.put(at, object(at, value), store.get(at)));
  return stored.revision;
}

export async function remove(store: ObjectStore, at: ObjectKey): Promise<number> {
  const stored = await store.commit(() => {
    const found = store.get(at);
    if (found === undefined) throw new Error(`${at.name} is not there`);
    return store.remove(at, JSON.parse(found.text), found);
  });
  return stored.revision;
}

export const storedValue = (stored: StoredObject | undefined): unknown =>
  stored === undefined ? undefined : JSON.parse(stored.text).value;
const names = (found: Iterable<StoredObject>): string[] =>
  Array.from(found, ({ namespace, name }) => `${namespace}/${name}`);

/** Numbers below a bound, the same ones for the same seed. */
function numbers(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7f_ff_ff_ff;
    return (state >> 8) % bound;
  };
}

/** `open` makes an empty store; closing it is the caller's. */
export function storeContract(open: () => Promise<ObjectStore>): void {
  describe('what every store does', () => {
    it('gives each write a higher revision, and has it in the object once it is committed', async () => {
      const store = await open();
      const [at, other] = [key('a'), key('b')];
      const first = await put(store, at, 'one');
      const second = await put(store, other);
      expect(second).toBeGreaterThan(first);
      const shared = object(at, 'two');
      const stored = await store.commit(() => store.put(at, shared, store.get(at)));
      expect(stored.revision).toBeGreaterThan(second);
      expect(shared.metadata.resourceVersion).toBe(String(stored.revision));
      expect(JSON.parse(stored.text)).toEqual(shared);
      expect(store.get(at)).toMatchObject({ revision: stored.revision, namespace: 'ns', name: 'a' });
      expect(JSON.parse(store.get(at)?.text ?? '')).toEqual(shared);
      expect(store.revision).toBeGreaterThanOrEqual(stored.revision);
      expect(store.get(key('none'))).toBeUndefined();
    });

    it('lists in order of namespace and name, a part of them, and counts them', async () => {
      const store = await open();
      for (const name of ['b', 'a-b', 'a.b', 'ab', 'a']) await put(store, key(name));
      for (const namespace of ['n', 'ns-2', 'n.s']) await put(store, key('x', namespace));
      await put(store, key('node', '', '/nodes'));
      expect(names(store.scan('/pods'))).toEqual([
        'n/x',
        'n.s/x',
        ...['a', 'a-b', 'a.b', 'ab', 'b'].map((name) => `ns/${name}`),
        'ns-2/x',
      ]);
      expect(names(store.scan('/pods', 'ns', { namespace: 'ns', name: 'a.b' }))).toEqual(['ns/ab', 'ns/b']);
      expect(names(store.scan('/pods', undefined, { namespace: 'ns', name: 'ab' }))).toEqual(['ns/b', 'ns-2/x']);
      expect(names(store.scan('/nodes'))).toEqual(['/node']);
      expect(names(store.scan('/services'))).toEqual([]);
      const after = { namespace: 'ns', name: 'a' };
      expect([store.countAt(store.revision, '/pods'), store.countAt(store.revision, '/pods', 'ns', after)]).toEqual([
        8, 4,
      ]);
    });

    it('shows the changes after a revision, with what was before, and pages of them', async () => {
      const store = await open();
      const first = await put(store, key('a'), 'one');
      await put(store, key('a'), 'two');
      await put(store, key('b', 'other'), 'three');
      await put(store, key('node', '', '/nodes'));
      const gone = await remove(store, key('a'));
      const { changes, reached } = store.since(first, '/pods');
      expect(
        changes.map(({ record: { type, name }, object, previous }) => [
          type,
          name,
          previous?.['value'],
          object['value'],
        ]),
      ).toEqual([
        ['MODIFIED', 'a', 'one', 'two'],
        ['ADDED', 'b', undefined, 'three'],
        ['DELETED', 'a', 'two', 'two'],
      ]);
      expect(changes.at(-1)?.object.metadata.resourceVersion).toBe(String(gone));
      expect(reached).toBeGreaterThanOrEqual(gone);
      const page = store.since(first, '/pods', undefined, 1);
      expect(page.changes).toHaveLength(1);
      expect(store.since(page.reached, '/pods').changes).toHaveLength(2);
      expect(store.since(first, '/pods', 'other').changes.map(({ record }) => record.name)).toEqual(['b']);
      expect(store.since(gone, '/pods').changes).toEqual([]);
      expect(() => store.since(store.compacted - 1, '/pods')).toThrow(CompactedError);
    });

    it('notifies listeners of a resource, in order, until they leave', async () => {
      const store = await open();
      const seen: string[] = [];
      const leave = store.subscribe('/pods', ({ record, object }) =>
        seen.push(
          `${record.type} ${record.name} ${object['value']} ${record.revision === Number(object.metadata.resourceVersion)}`,
        ),
      );
      await put(store, key('a'), 'one');
      await put(store, key('node', '', '/nodes'));
      await put(store, key('a'), 'two');
      await remove(store, key('a'));
      leave();
      await put(store, key('b'));
      expect(seen).toEqual(['ADDED a one true', 'MODIFIED a two true', 'DELETED a two true']);
    });

    it('stores nothing of a decision that fails, and refuses what is too large', async () => {
      const store = await open();
      const at = key('a');
      const before = store.revision;
      const failing = store.commit(() => {
        throw new Error('refused');
      });
      await expect(failing).rejects.toThrow('refused');
      const large = store.commit(() => store.put(at, object(at, 'x'.repeat(MAX_OBJECT_BYTES)), undefined));
      await expect(large).rejects.toThrow(ObjectTooLargeError);
      await expect(remove(store, at)).rejects.toThrow('is not there');
      expect([store.get(at), store.revision]).toEqual([undefined, before]);
    });

    it('shows a decision its own writes, in lists too', async () => {
      const store = await open();
      for (const name of ['a', 'c', 'd']) await put(store, key(name), 'old');
      const seen = await store.commit(() => {
        const [a, c] = [store.get(key('a')), store.get(key('c'))];
        if (a === undefined || c === undefined) throw new Error('they are not there');
        store.put(key('a'), object(key('a'), 'new'), a);
        store.remove(key('c'), object(key('c'), 'gone'), c);
        store.put(key('b'), object(key('b'), 'new'));
        const listed = Array.from(store.scan('/pods', 'ns'), (one) => [one.name, storedValue(one)]);
        return [listed, storedValue(store.get(key('b'))), store.get(key('c'))];
      });
      const now = [
        ['a', 'new'],
        ['b', 'new'],
        ['d', 'old'],
      ];
      expect(seen).toEqual([now, 'new', undefined]);
      expect(Array.from(store.scan('/pods'), (one) => [one.name, storedValue(one)])).toEqual(now);
    });

    it('makes concurrent decisions one after the other', async () => {
      const store = await open();
      const at = key('counter');
      const increment = (): Promise<unknown> =>
        store.commit(async () => {
          const found = store.get(at);
          const next = Number(storedValue(found) ?? 0) + 1;
          return store.put(at, object(at, String(next)), found);
        });
      await Promise.all(Array.from({ length: 20 }, increment));
      expect(storedValue(store.get(at))).toBe('20');
    });

    it('shows the state of every revision it still has, as a plain model does', async () => {
      const store = await open();
      const below = numbers(7);
      const model = new Map<string, string>();
      const states: [number, [string, string][]][] = [];
      for (let step = 0; step < 60; step++) {
        const at = key(`p${below(8)}`, below(2) === 0 ? 'a' : 'b');
        const id = `${at.namespace}/${at.name}`;
        let revision: number;
        if (model.has(id) && below(3) === 0) {
          revision = await remove(store, at);
          model.delete(id);
        } else {
          revision = await put(store, at, String(step));
          model.set(id, String(step));
        }
        states.push([revision, [...model].sort(([a], [b]) => (a < b ? -1 : 1))]);
      }
      for (const [revision, expected] of states) {
        const found = Array.from(store.scanAt(revision, '/pods'), (one) => [
          `${one.namespace}/${one.name}`,
          storedValue(one),
        ]);
        expect(found).toEqual(expected);
        const inA = expected.filter(([id]) => id.startsWith('a/'));
        expect(store.countAt(revision, '/pods', 'a')).toBe(inA.length);
      }
    });
  });
}
