import { expect, test } from 'vitest';
import { createApiPodSource } from '../../../../agent/api/pod-source.ts';
import type { ListOf, WatchEvent } from '../../../../client/api.ts';
import type { ListWatcher } from '../../../../client/reflector.ts';
import type { Pod } from '../../../../client/types.ts';
import { systemClock } from '../../../../lib/clock.ts';

function pod(name: string, uid: string, resourceVersion: string): Pod {
  return {
    metadata: { name, namespace: 'demo', uid, resourceVersion, managedFields: [{ manager: 'kubectl' }] },
    spec: { containers: [{ name: 'web', image: 'nginx:stable' }] },
  };
}

test('the source emits the complete set after the list and after each event, without managed fields', async () => {
  const queries: unknown[] = [];
  const events: WatchEvent<Pod>[] = [
    { type: 'ADDED', object: pod('b', 'u-b', '11') },
    { type: 'DELETED', object: pod('a', 'u-a', '12') },
  ];
  const watcher: ListWatcher = {
    list: <T>(_path: string, query?: object) => {
      queries.push(query);
      const list: ListOf<unknown> = {
        apiVersion: 'v1',
        kind: 'PodList',
        metadata: { resourceVersion: '10' },
        items: [pod('a', 'u-a', '9')],
      };
      return Promise.resolve(list as ListOf<T>);
    },
    async *watch<T>(_path: string, _query: object, signal: AbortSignal) {
      for (const event of events) yield event as WatchEvent<T>;
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    },
  };
  const source = createApiPodSource({ client: watcher, nodeName: 'node-1', clock: systemClock });
  const reported = await new Promise<string[][]>((resolve) => {
    const sets: string[][] = [];
    source.start((pods) => {
      sets.push([...pods.keys()]);
      for (const one of pods.values()) expect(one.metadata).not.toHaveProperty('managedFields');
      if (sets.length === 3) resolve(sets);
    });
  });
  source.stop();
  expect(reported).toEqual([['u-a'], ['u-a', 'u-b'], ['u-b']]);
  expect(queries).toEqual([{ fieldSelector: 'spec.nodeName=node-1' }]);
});
