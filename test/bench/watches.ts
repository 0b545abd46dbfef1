// How long a change takes to its watchers: an API server of its own in another process, pods spread over nodes, a watch for
// each node as kubelets have it, some watches of all pods as controllers have them, and writes at a steady rate. Beside it
// the floor, before and after: the same writes to the raw store in this process, up to its listener.
//
//   sh scripts/node24 test/bench/watches.ts [--watchers 2000] [--pods 10000] [--writes 300] [--everything 5] [--seconds 30]
//
// Times are from the moment a write is sent to the moment a watcher has its event, both read in this process, so that they
// have the request, the write, TLS and the reading of the event in them. Writes do not wait for one another.

import { mkdtemp, rm } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parseObject } from '../../apiserver/storage/change.ts';
import { Store } from '../../apiserver/storage/store.ts';
import { elapsedMs, systemClock } from '../../lib/clock.ts';
import { measureDeliveries, steadily, type Times } from './apiserver/deliveries.ts';
import { create, DEFAULT_ACCOUNT, PODS, podName, podOf } from './apiserver/pods.ts';
import { Connections } from './apiserver/requests.ts';
import { BenchServer } from './apiserver/server.ts';
import { Watching } from './apiserver/watching.ts';
import { percentile } from './stats.ts';

const { values } = parseArgs({
  options: {
    watchers: { type: 'string', default: '2000' },
    pods: { type: 'string', default: '10000' },
    writes: { type: 'string', default: '300' },
    everything: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '30' },
  },
});
const [WATCHERS, PODS_IN_ALL, WRITES, EVERYTHING, SECONDS] = [
  Number(values.watchers),
  Number(values.pods),
  Number(values.writes),
  Number(values.everything),
  Number(values.seconds),
];
const FLOOR_SECONDS = 5;
const AT_ONCE = 32;
const nodes = Math.max(1, WATCHERS - EVERYTHING);
const indices = Array.from({ length: PODS_IN_ALL }, (_, index) => index);

/** The raw store: from a write to its listener, ms. */
async function floor(directory: string, template: string): Promise<number[]> {
  const store = new Store(join(directory, 'floor.db'), { clock: systemClock });
  const times: number[] = [];
  let sent = systemClock.monotonic();
  const put = async (index: number): Promise<void> => {
    const key = { resource: '/pods', namespace: 'default', name: podName(index) };
    const object = parseObject(template);
    object.metadata.name = key.name;
    object.metadata.annotations = { 'bench/sent': String(systemClock.monotonic()) };
    await store.commit(() => store.put(key, object, store.get(key)));
  };
  for (const index of indices) await put(index);
  store.subscribe('/pods', () => times.push(elapsedMs(sent, systemClock.monotonic())));
  // The store takes one write after the other, as they come.
  let last = Promise.resolve();
  await steadily(WRITES, FLOOR_SECONDS, (index) => {
    last = last.then(() => {
      sent = systemClock.monotonic();
      return put(index % PODS_IN_ALL);
    });
  });
  await last;
  store.close();
  await rm(join(directory, 'floor.db'), { force: true });
  return times;
}

const shown = (ms: number): string => (ms < 10 ? ms.toFixed(2) : ms.toFixed(0));
function row(name: string, times: Times): string {
  const all = times.flat();
  if (all.length === 0) return `| ${name} | none | | | 0 |`;
  const [p50, p99] = [percentile(all, 0.5), percentile(all, 0.99)];
  return `| ${name} | ${shown(p50)} | ${shown(p99)} | ${shown(percentile(all, 1))} | ${all.length} |`;
}

const directory = await mkdtemp(join(tmpdir(), 'nodelet-watches-'));
const server = await BenchServer.apiServer(directory);
try {
  const connections = await Connections.open(server.access, AT_ONCE);
  const watching = new Watching(server.access, AT_ONCE * 2);
  await connections.run([DEFAULT_ACCOUNT]);
  await connections.run(indices.map((index) => create(podOf(podName(index), index, nodes))));
  connections.close();
  const rssPods = await server.residentMiB();
  console.log(`${PODS_IN_ALL} pods; the server has ${rssPods.toFixed(0)} MiB; load ${loadavg()[0]?.toFixed(1)}`);
  const template = await watching.call('GET', `${PODS}/${podName(0)}`);
  const floorTimes = await floor(directory, template);
  const { one, all, writes, missing } = await measureDeliveries(watching, {
    pods: PODS_IN_ALL,
    nodes,
    watchers: WATCHERS,
    everything: EVERYTHING,
    writesPerSecond: WRITES,
    seconds: SECONDS,
  });
  const rss = await server.residentMiB();
  watching.close();
  floorTimes.push(...(await floor(directory, template)));
  const [load = NaN] = loadavg();
  const count = writes.flat().length;
  console.log(`${count} writes in ${SECONDS} s; the server has ${rss.toFixed(0)} MiB; load ${load.toFixed(1)}`);
  if (missing !== 0) console.log(`${missing} events did not come within 20 s`);
  console.log('| from a write to its event, ms | p50 | p99 | max | events |\n|---|---|---|---|---|');
  console.log(row('raw store, its listener', [floorTimes]));
  console.log(row(`${nodes} watches of a node each`, one));
  console.log(row(`${EVERYTHING} watches of all pods`, all));
  console.log(row('the response to the write itself', writes));
} finally {
  await server.stop();
  await rm(directory, { recursive: true, force: true });
}
