// How soon a Service's EndpointSlice follows a pod's readiness: from the watch event that has the pod's new condition to the one that has the
// slice's. Compared with one write and its watch event on the same connections, in turns: the slice costs the controller a
// decision and one write, so it may take a few of those, and nothing in it waits for a timer.

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ApiClient } from '../../../client/api.ts';
import { resourcePath } from '../../../client/paths.ts';
import { Reflector } from '../../../client/reflector.ts';
import type { Identified, ReadableStore } from '../../../client/store.ts';
import type { ConfigMap, EndpointSlice, Pod } from '../../../client/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import { median } from '../../support/median.ts';
import { Cluster, NODE } from './cluster.ts';

const TURNS = 20;
/** Writes and watch events that one change of a slice may take. Two would be enough on a machine that does nothing else. */
const MOST_WRITES = 20;
const PLACE = { namespace: 'default' } as const;

let cluster: Cluster;
let admin: ApiClient;
const over = new AbortController();
const watching: Promise<unknown>[] = [];

beforeAll(async () => {
  cluster = await Cluster.start();
  admin = await cluster.client();
  await cluster.startControlPlane();
  // A pod on a node that does not exist is in no slice.
  await cluster.startNode();
});
afterAll(async () => {
  over.abort(new Error('the test has ended'));
  await Promise.all(watching);
  await cluster[Symbol.asyncDispose]();
});

function watched<T extends Identified>(apiVersion: string, plural: string): ReadableStore<T> {
  const path = resourcePath(apiVersion, plural, PLACE);
  const reflector = new Reflector<T>({ client: admin, path, clock: systemClock });
  watching.push(reflector.run(over.signal));
  return reflector.store;
}

/** When a watch event first brings an object that is as wanted. */
function arrival<T extends Identified>(store: ReadableStore<T>, wanted: (object: T) => boolean): Promise<number> {
  return new Promise((resolve) => {
    const end = store.onChange((changes) => {
      if (!changes.some(({ type, object }) => type !== 'removed' && wanted(object))) return;
      end();
      resolve(performance.now());
    });
  });
}

const setReady = (status: 'True' | 'False'): Promise<unknown> =>
  admin.patch(
    resourcePath('v1', 'pods', { ...PLACE, name: 'web', subresource: 'status' }),
    {
      status: {
        phase: 'Running',
        podIP: '10.0.0.7',
        podIPs: [{ ip: '10.0.0.7' }],
        conditions: [{ type: 'Ready', status }],
      },
    },
    'strategic',
  );

test('a slice follows readiness after a few writes, and no timer', async () => {
  await admin.create(resourcePath('v1', 'pods', PLACE), {
    metadata: { name: 'web', labels: { app: 'web' } },
    spec: { nodeName: NODE, containers: [{ name: 'web', image: 'nginx' }] },
  });
  await admin.create(resourcePath('v1', 'services', PLACE), {
    metadata: { name: 'web' },
    spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
  });
  await admin.create(resourcePath('v1', 'configmaps', PLACE), { metadata: { name: 'floor' }, data: { turn: '' } });
  const pods = watched<Pod>('v1', 'pods');
  const slices = watched<EndpointSlice>('discovery.k8s.io/v1', 'endpointslices');
  const maps = watched<ConfigMap>('v1', 'configmaps');
  const condition = (pod: Pod): string | undefined =>
    pod.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  const change = async (ready: boolean): Promise<number> => {
    const status = ready ? 'True' : 'False';
    const pod = arrival(pods, (object) => condition(object) === status);
    const slice = arrival(slices, ({ endpoints }) => endpoints?.[0]?.conditions?.ready === ready);
    await setReady(status);
    return (await slice) - (await pod);
  };
  const floor = async (turn: string): Promise<number> => {
    const seen = arrival(maps, ({ data }) => data?.['turn'] === turn);
    const begun = performance.now();
    await admin.patch(resourcePath('v1', 'configmaps', { ...PLACE, name: 'floor' }), { data: { turn } }, 'merge');
    return (await seen) - begun;
  };
  await Promise.all([pods, slices, maps].map((store) => store.whenSynced()));
  await change(true);
  const [changes, floors]: [number[], number[]] = [[], []];
  for (let turn = 0; turn < TURNS; turn++) {
    changes.push(await change(turn % 2 === 1));
    floors.push(await floor(`${turn}`));
  }
  const figure = (values: readonly number[]): string =>
    `${median(values).toFixed(1)} ms (at most ${Math.max(...values).toFixed(1)})`;
  console.log(`slice after readiness: ${figure(changes)}; one write, seen: ${figure(floors)}`);
  expect(median(changes)).toBeLessThan(MOST_WRITES * median(floors));
});
