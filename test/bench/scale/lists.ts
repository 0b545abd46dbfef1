// Lists of many objects: how long they take, and how long another request waits meanwhile.

import type { ClusterAccess } from '../../../client/kubeconfig.ts';
import { systemClock } from '../../../lib/clock.ts';
import { Connections, requestBytes } from '../apiserver/requests.ts';
import type { Watching } from '../apiserver/watching.ts';
import { ALL_PODS, listOwnPods, nodeName, type Size } from './cluster.ts';

const LISTS = 5;
const PAGE = 500;
const PROBE_EVERY_MS = 5;

export interface ListTimes {
  readonly name: string;
  /** ms each. */
  readonly times: readonly number[];
  /** The longest that a get of one object took meanwhile, ms. */
  readonly longestGet: number;
}

/** Calls `work` while single objects are read over another connection. */
async function besideGets(access: ClusterAccess, name: string, work: () => Promise<number[]>): Promise<ListTimes> {
  const probe = await Connections.open(access, 1);
  const get = requestBytes({ method: 'GET', path: `/api/v1/nodes/${nodeName(0)}` });
  let isOver = false;
  let longestGet = 0;
  const probing = (async () => {
    while (!isOver) {
      longestGet = Math.max(longestGet, await probe.send(get));
      await systemClock.sleep(PROBE_EVERY_MS);
    }
  })();
  try {
    return { name, times: await work(), longestGet };
  } finally {
    isOver = true;
    await probing;
    probe.close();
  }
}

/** One page after another; each page's time. */
async function pages(watching: Watching): Promise<number[]> {
  const times: number[] = [];
  for (let token = ''; ; ) {
    const began = performance.now();
    const continued = token === '' ? '' : `&continue=${encodeURIComponent(token)}`;
    const text = await watching.call('GET', `${ALL_PODS}?limit=${PAGE}${continued}`);
    times.push(performance.now() - began);
    token = /"continue":"([^"]+)"/.exec(text.slice(0, 4096))?.[1] ?? '';
    if (token === '') return times;
  }
}

export async function measureLists(
  access: ClusterAccess,
  watching: Watching,
  connections: Connections,
  size: Size,
): Promise<readonly ListTimes[]> {
  const all = requestBytes({ method: 'GET', path: ALL_PODS });
  const own = Array.from({ length: size.nodes }, (_, node) => listOwnPods(node));
  return [
    await besideGets(access, `all ${size.pods} pods`, async () => {
      const times: number[] = [];
      for (let count = 0; count < LISTS; count++) await connections.run([all], times);
      return times;
    }),
    await besideGets(access, `all pods in pages of ${PAGE}, each page`, () => pages(watching)),
    await besideGets(access, 'the pods of a node, as its kubelet', async () => {
      const times: number[] = [];
      await connections.run(own, times);
      return times;
    }),
  ];
}
