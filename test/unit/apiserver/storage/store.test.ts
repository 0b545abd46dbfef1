import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import type { Change } from '../../../../apiserver/storage/change.ts';
import { CompactedError } from '../../../../apiserver/storage/object-store.ts';
import { Store } from '../../../../apiserver/storage/store.ts';
import { UserError } from '../../../../lib/errors.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const open: Store[] = [];
const directories: string[] = [];
function store(path = ':memory:', logLimit?: number): { store: Store; clock: VirtualClock } {
  const clock = new VirtualClock();
  const made = new Store(path, { clock, ...(logLimit === undefined ? {} : { history: { count: logLimit } }) });
  open.push(made);
  return { store: made, clock };
}
function file(): string {
  const directory = mkdtempSync(join(tmpdir(), 'nodelet-store-'));
  directories.push(directory);
  return join(directory, 'sub', 'store.db');
}
afterEach(() => {
  for (const one of open.splice(0)) one.close();
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

const key = (name: string, namespace = 'ns', resource = '/pods') => ({ resource, namespace, name });
const object = (name: string, value = ''): KubeObject => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, value });

function put(to: Store, name: string, value = ''): number {
  return to.put(key(name), object(name, value), to.get(key(name))).revision;
}

describe('the store', () => {
  it('puts the revision into the object and counts one per write', () => {
    const { store: s } = store();
    const first = put(s, 'a');
    expect(put(s, 'b')).toBe(first + 1);
    expect(JSON.parse(s.get(key('b'))?.text ?? '')).toMatchObject({ metadata: { resourceVersion: String(first + 1) } });
  });

  it('keeps objects, revisions and history over a restart', () => {
    const path = file();
    const { store: before } = store(path);
    const first = put(before, 'a', 'one');
    put(before, 'a', 'two');
    before.close();
    const { store: after } = store(path);
    expect(after.revision).toBe(first + 1);
    expect(after.get(key('a'))?.revision).toBe(first + 1);
    expect(after.since(first, '/pods').changes.map((c) => c.record.type)).toEqual(['MODIFIED']);
    expect(put(after, 'b')).toBe(first + 2);
  });

  it('reports the previous state with each change, cached or not', () => {
    const { store: s } = store();
    const seen: unknown[] = [];
    s.subscribe('/pods', (change) => seen.push([change.previous?.['value'], change.object['value']]));
    const many = Array.from({ length: 300 }, (_, index) => `pod-${index}`);
    for (const name of ['a', ...many]) put(s, name, 'one');
    seen.length = 0;
    for (const name of ['a', 'pod-299', 'pod-299']) put(s, name, 'two');
    s.remove(key('a'), object('a', 'last'), s.get(key('a')) ?? { namespace: 'ns', name: 'a', revision: 0, text: '' });
    put(s, 'a', 'new');
    expect(seen).toEqual([
      ['one', 'two'],
      ['one', 'two'],
      ['two', 'two'],
      ['two', 'two'],
      [undefined, 'new'],
    ]);
  });

  it('keeps the revision over a restart when the last write was a deletion', () => {
    const path = file();
    const { store: before } = store(path);
    put(before, 'a');
    const last = before.get(key('a'));
    if (last === undefined) throw new Error('not stored');
    const { revision } = before.remove(key('a'), object('a'), last);
    before.compact(revision);
    before.close();
    const { store: after } = store(path);
    expect([after.revision, after.compacted]).toEqual([revision, revision]);
  });

  it('refuses a file that another store has open, in one clear line', () => {
    const path = file();
    store(path);
    expect(() => store(path)).toThrow(UserError);
    expect(() => store(path)).toThrow(/another API server is using it/);
  });

  it('notifies listeners of their resource only, in order, until they leave', () => {
    const { store: s } = store();
    const seen: string[] = [];
    const leave = s.subscribe('/pods', ({ record }: Change) => seen.push(`${record.type} ${record.name}`));
    put(s, 'a');
    put(s, 'a', 'x');
    s.put(key('l', 'ns', 'coordination.k8s.io/leases'), object('l'));
    leave();
    put(s, 'b');
    expect(seen).toEqual(['ADDED a', 'MODIFIED a']);
  });

  it('replays what came after a revision, with the state before each change', () => {
    const { store: s } = store();
    const first = put(s, 'a', 'one');
    put(s, 'a', 'two');
    const [change] = s.since(first, '/pods').changes;
    expect([change?.object['value'], change?.previous?.['value']]).toEqual(['two', 'one']);
  });

  it('reads the objects of a namespace one by one, and stops when no more are read', () => {
    const { store: s } = store(file());
    for (const name of ['b', 'c', 'a']) put(s, name);
    s.put(key('other', 'elsewhere'), object('other'));
    const taken: string[] = [];
    for (const { name } of s.scan('/pods', 'ns')) {
      for (const inner of s.scan('/pods', 'elsewhere')) taken.push(inner.name);
      taken.push(name);
      if (name === 'b') break;
    }
    expect(taken).toEqual(['other', 'a', 'other', 'b']);
    expect(put(s, 'd')).toBe(s.revision);
    expect([...s.scan('/pods', 'ns')].map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('says how old is too old', () => {
    const { store: s } = store();
    const first = put(s, 'a');
    const second = put(s, 'b');
    s.compact(second);
    expect(() => s.since(first, '/pods')).toThrow(CompactedError);
    expect(() => s.since(first, '/pods')).toThrow(`too old resource version: ${first} (${second})`);
    expect(s.since(second, '/pods').changes).toEqual([]);
  });

  it('bounds its log: in a quiet moment, or at twice the limit', async () => {
    const { store: s, clock } = store(':memory:', 4);
    for (let i = 0; i < 6; i++) put(s, `p${i}`);
    expect(s.compacted).toBe(0);
    await clock.advance(5000);
    expect(s.compacted).toBe(s.revision - 4);
    for (let i = 0; i < 12; i++) put(s, `q${i}`);
    expect(s.revision - s.compacted).toBeLessThanOrEqual(8);
  });

  it('shows the objects as they were at an earlier revision', () => {
    const { store: s } = store();
    put(s, 'a', 'one');
    const then = put(s, 'b');
    put(s, 'a', 'two');
    put(s, 'c');
    const b = s.get(key('b'));
    if (b === undefined) throw new Error('not stored');
    s.remove(key('b'), object('b'), b);
    const was = [...s.scanAt(then, '/pods')];
    expect(was.map((o) => o.name)).toEqual(['a', 'b']);
    expect(JSON.parse(was[0]?.text ?? '')).toMatchObject({ value: 'one' });
    expect([...s.scan('/pods')].map((o) => o.name)).toEqual(['a', 'c']);
  });
});
