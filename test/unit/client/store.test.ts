import { describe, expect, it } from 'vitest';
import {
  type Change,
  changesForDeletion,
  changesForList,
  changesForState,
  objectKey,
  Store,
} from '../../../client/store.ts';

interface Thing {
  metadata: { name: string; namespace?: string; uid: string; resourceVersion: string };
}

function thing(name: string, version: string, uid = `${name}-1`): Thing {
  return { metadata: { name, namespace: 'ns', uid, resourceVersion: version } };
}

/** "added a@1", for comparing. */
function brief(changes: readonly Change<Thing>[]): string[] {
  return changes.map(({ type, object: { metadata } }) => `${type} ${metadata.name}@${metadata.resourceVersion}`);
}

describe('what a state of an object changes', () => {
  it.each<[string, Thing | undefined, Thing, string[]]>([
    ['an unknown object is added', undefined, thing('a', '1'), ['added a@1']],
    ['a newer state is a modification', thing('a', '1'), thing('a', '2'), ['modified a@2']],
    ['the same state again is no news', thing('a', '1'), thing('a', '1'), []],
    ['another uid is another object', thing('a', '1'), thing('a', '5', 'a-2'), ['removed a@1', 'added a@5']],
  ])('%s', (_what, known, next, expected) => {
    expect(brief(changesForState(known, next))).toEqual(expected);
  });

  it('a deletion of another object of the same name removes nothing', () => {
    expect(changesForDeletion(thing('a', '7', 'a-2'), thing('a', '6', 'a-1'))).toEqual([]);
    expect(changesForDeletion(undefined, thing('a', '6'))).toEqual([]);
    expect(brief(changesForDeletion(thing('a', '5'), thing('a', '6')))).toEqual(['removed a@6']);
  });

  it('a list removes what is not in it, and announces what is new or newer', () => {
    const known = new Map([thing('a', '1'), thing('b', '2'), thing('c', '3')].map((item) => [objectKey(item), item]));
    const changes = changesForList(known, [thing('b', '2'), thing('c', '9'), thing('d', '4')]);
    expect(brief(changes)).toEqual(['removed a@1', 'modified c@9', 'added d@4']);
  });
});

describe('Store', () => {
  it('shows the new state when its listeners are called, and announces each state once', () => {
    const store = new Store<Thing>();
    const seen: string[] = [];
    store.onChange((changes) => {
      seen.push(...brief(changes), `${store.list().map((item) => item.metadata.name)}`);
    });
    store.replace([thing('a', '1')]);
    store.upsert(thing('a', '1'));
    store.upsert(thing('b', '2'));
    store.remove(thing('a', '3'));
    store.remove(thing('a', '3'));
    expect(seen).toEqual(['added a@1', 'a', 'added b@2', 'a,b', 'removed a@3', 'b']);
  });

  it('is synced after the first complete list, even an empty one, and says so', async () => {
    const store = new Store<Thing>();
    let calls = 0;
    store.onChange(() => {
      calls++;
    });
    expect(store.synced).toBe(false);
    store.replace([]);
    await store.whenSynced();
    expect([store.synced, calls]).toEqual([true, 1]);
  });

  it('forgets listeners that have left', () => {
    const store = new Store<Thing>();
    let calls = 0;
    const leave = store.onChange(() => {
      calls++;
    });
    leave();
    store.upsert(thing('a', '1'));
    expect(calls).toBe(0);
  });

  it('finds namespaced objects by namespace/name and others by name', () => {
    expect(objectKey({ metadata: { name: 'n', namespace: 'a' } })).toBe('a/n');
    expect(objectKey({ metadata: { name: 'n' } })).toBe('n');
  });
});
