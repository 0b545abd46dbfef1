import { expect, it } from 'vitest';
import { FanOut } from '../../../../apiserver/registry/fan-out.ts';
import { Change } from '../../../../apiserver/storage/change.ts';
import type { Listener } from '../../../../apiserver/storage/object-store.ts';

const record = { type: 'MODIFIED', revision: 1, resource: '/pods', namespace: 'ns', name: 'a', text: '{}' } as const;
const pod = (node: string) => ({ apiVersion: 'v1', kind: 'Pod', metadata: {}, spec: { nodeName: node } });
const changed = (before: string, after: string): Change => new Change(record, pod(after), pod(before));
const read = (object: object): string => JSON.stringify(Reflect.get(object, 'spec'));
const onNode = (node: string) => ({ field: 'spec.nodeName', value: read(pod(node)), read });

it('a change goes to the watches of the value before and after it, once each, and to those that require none', () => {
  const listeners = new Set<Listener>();
  const fanOut = new FanOut({
    subscribe: (_resource, listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  });
  const calls: string[] = [];
  const follow = (name: string, node?: string): (() => void) =>
    fanOut.subscribe('/pods', node === undefined ? undefined : onNode(node), () => calls.push(name));
  const ends = [follow('a1', 'a'), follow('a2', 'a'), follow('b', 'b'), follow('all')];
  // However many nodes there are, the store calls one listener for them.
  expect(listeners.size).toBe(2);
  const write = (before: string, after: string): string[] => {
    calls.length = 0;
    for (const listener of listeners) listener(changed(before, after));
    return [...calls].sort();
  };
  expect(write('a', 'a')).toEqual(['a1', 'a2', 'all']);
  expect(write('a', 'b')).toEqual(['a1', 'a2', 'all', 'b']);
  expect(write('c', 'c')).toEqual(['all']);
  ends[0]?.();
  ends[0]?.();
  expect(write('a', 'a')).toEqual(['a2', 'all']);
  for (const end of ends) end();
  expect(listeners.size).toBe(0);
});
