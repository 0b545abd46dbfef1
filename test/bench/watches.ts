// How long a change takes to its watchers: an API server of its own in another process, pods spread over nodes, a watch for
// each node as kubelets have it, some watches of all pods as controllers have them, and writes at a steady rate. Beside it
// the floor, before and after: the same writes to the raw store in this process, up to its listener.
//
//   sh scripts/node24 test/bench/watches.ts [--watchers 2000] [--pods 10000] [--writes 300] [--everything 5] [--seconds 30]
//
// Times are from the moment a write is sent to the moment a watcher has its event, both read in this process, so that they
// have the request, the write, TLS and the reading of the event in them. Writes do not wait for one another.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { parseObject } from '../../apiserver/storage/change.ts';
import { Store } from '../../apiserver/storage/store.ts';
import { type ClusterAccess, loadKubeconfig } from '../../client/kubeconfig.ts';
import { elapsedMs, monotonicMs, systemClock } from '../../lib/clock.ts';
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
const [WATCHERS, PODS, WRITES, EVERYTHING, SECONDS] = [
  Number(values.watchers),
  Number(values.pods),
  Number(values.writes),
  Number(values.everything),
  Number(values.seconds),
];
const NODELET = fileURLToPath(new URL('../../bin/nodelet', import.meta.url));
const PATH = '/api/v1/namespaces/default/pods';
/** What a write changes: when it was sent, by this process's clock. */
const MARK = '"bench/sent":"';
const TICK_MS = 10;
const FLOOR_SECONDS = 5;
/** Requests at a time while pods are created and watches opened. */
const AT_ONCE = 32;

interface Client {
  readonly access: ClusterAccess;
  readonly requests: Agent;
  readonly watches: Agent;
}

function clientOf(access: ClusterAccess): Client {
  const tls = { ca: access.ca, cert: access.clientCert, key: access.clientKey };
  return {
    access,
    requests: new Agent({ ...tls, keepAlive: true, maxSockets: AT_ONCE * 2 }),
    watches: new Agent({ ...tls, keepAlive: false }),
  };
}

/** The body of the response. Rejects for a failure. */
async function call(client: Client, method: string, path: string, body?: object): Promise<string> {
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  const outgoing = request(`${client.access.server}${path}`, {
    method,
    agent: client.requests,
    headers: { 'content-type': type },
  });
  const answered = once(outgoing, 'response');
  outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = await answered;
  let text = '';
  response.setEncoding('utf8');
  for await (const chunk of response) text += chunk;
  if (response.statusCode >= 300) throw new Error(`${method} ${path}: ${response.statusCode} ${text}`);
  return text;
}

/** `run` for 0 to count, some at a time. */
async function each(count: number, run: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await run(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

const nodes = Math.max(1, WATCHERS - EVERYTHING);
const podName = (index: number): string => `pod-${index}`;

function podOf(index: number): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: podName(index), labels: { app: `app-${index % 100}` } },
    spec: {
      nodeName: `node-${index % nodes}`,
      containers: [
        {
          name: 'main',
          image: 'registry.example/app:1.0',
          env: [{ name: 'ONE', value: '1' }],
          resources: { requests: { cpu: '100m', memory: '64Mi' } },
        },
      ],
    },
  };
}

/** Takes the lines of one watch; adds the time of each event to `times`. */
function reader(times: number[]): (chunk: string) => void {
  let rest = '';
  return (chunk) => {
    const now = systemClock.monotonic();
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const at = line.indexOf(MARK);
      if (at < 0) throw new Error(`an event that no write made: ${line.slice(0, 300)}`);
      const sent = Number(line.slice(at + MARK.length, line.indexOf('"', at + MARK.length)));
      times.push(elapsedMs(monotonicMs(sent), now));
    }
  };
}

async function openWatch(client: Client, query: string, times: number[]): Promise<() => void> {
  const outgoing = request(`${client.access.server}${PATH}?watch=1&${query}`, { agent: client.watches });
  const answered = once(outgoing, 'response');
  outgoing.end();
  const [response] = await answered;
  if (response.statusCode !== 200) throw new Error(`watch: ${response.statusCode}`);
  response.setEncoding('utf8');
  response.on('data', reader(times));
  // It is ended below.
  response.on('error', () => undefined);
  outgoing.on('error', () => undefined);
  return () => outgoing.destroy();
}

/** Calls `write` at the rate, whether or not earlier ones are done. Resolves with the number of calls. */
async function steadily(seconds: number, write: (index: number) => void): Promise<number> {
  const began = systemClock.monotonic();
  let count = 0;
  for (;;) {
    const elapsed = elapsedMs(began, systemClock.monotonic());
    const due = Math.min(WRITES * seconds, Math.floor((elapsed / 1000) * WRITES));
    for (; count < due; count += 1) write(count);
    if (count >= WRITES * seconds) return count;
    await systemClock.sleep(TICK_MS);
  }
}

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
  for (let index = 0; index < PODS; index += 1) await put(index);
  store.subscribe('/pods', () => times.push(elapsedMs(sent, systemClock.monotonic())));
  // The store takes one write after the other, as they come.
  let last = Promise.resolve();
  await steadily(FLOOR_SECONDS, (index) => {
    last = last.then(() => {
      sent = systemClock.monotonic();
      return put(index % PODS);
    });
  });
  await last;
  store.close();
  await rm(join(directory, 'floor.db'), { force: true });
  return times;
}

const shown = (ms: number): string => (ms < 10 ? ms.toFixed(2) : ms.toFixed(0));
function row(name: string, times: readonly number[]): string {
  if (times.length === 0) return `| ${name} | none | | | 0 |`;
  const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)];
  return `| ${name} | ${shown(p50)} | ${shown(p99)} | ${shown(percentile(times, 1))} | ${times.length} |`;
}

async function startServer(root: string) {
  const server = spawn(NODELET, ['apiserver', '--root', root, '--port', '0'], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ready = Promise.withResolvers<void>();
  const look = (chunk: Buffer): void => {
    if (chunk.includes('the API server serves')) ready.resolve();
  };
  server.stdout.on('data', look);
  server.stderr.on('data', look);
  server.once('exit', (code) => ready.reject(new Error(`the server ended with ${code}`)));
  await ready.promise;
  return server;
}

async function residentMib(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024);
}

async function createPods(client: Client): Promise<string> {
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  await call(client, 'POST', '/api/v1/namespaces/default/serviceaccounts', account);
  await each(PODS, async (index) => void (await call(client, 'POST', PATH, podOf(index))));
  return call(client, 'GET', `${PATH}/${podName(0)}`);
}

function revisionOf(list: string): string {
  return /"resourceVersion":"(\d+)"/.exec(list)?.[1] ?? '';
}

async function measureServer(client: Client, one: number[], all: number[]): Promise<number> {
  const revision = revisionOf(await call(client, 'GET', `${PATH}?limit=1`));
  const ends: (() => void)[] = [];
  await each(WATCHERS, async (index) => {
    const ofAll = index < EVERYTHING;
    const selector = ofAll ? '' : `&fieldSelector=spec.nodeName%3Dnode-${index - EVERYTHING}`;
    ends.push(await openWatch(client, `resourceVersion=${revision}${selector}`, ofAll ? all : one));
  });
  console.log(`${WATCHERS} watches are open`);
  const pending = new Set<Promise<unknown>>();
  const count = await steadily(SECONDS, (index) => {
    // Neighbours are on different nodes.
    const path = `${PATH}/${podName((index * 7919) % PODS)}`;
    const sent = systemClock.monotonic().toFixed(3);
    const write = call(client, 'PATCH', path, { metadata: { annotations: { 'bench/sent': sent } } });
    pending.add(write);
    void write.finally(() => pending.delete(write));
  });
  await Promise.all(pending);
  const patience = systemClock.monotonic();
  while (one.length + all.length < count * (1 + EVERYTHING)) {
    if (elapsedMs(patience, systemClock.monotonic()) > 20_000) break;
    await systemClock.sleep(TICK_MS);
  }
  for (const end of ends) end();
  return count;
}

const directory = await mkdtemp(join(tmpdir(), 'nodelet-watches-'));
const server = await startServer(directory);
try {
  const client = clientOf(await loadKubeconfig(join(directory, 'kubeconfig')));
  const template = await createPods(client);
  const rssPods = await residentMib(server.pid);
  console.log(`${PODS} pods; the server has ${rssPods} MiB; load ${loadavg()[0]?.toFixed(1)}`);
  const floorTimes = await floor(directory, template);
  const one: number[] = [];
  const all: number[] = [];
  const count = await measureServer(client, one, all);
  const rss = await residentMib(server.pid);
  floorTimes.push(...(await floor(directory, template)));
  console.log(`${count} writes in ${SECONDS} s; the server has ${rss} MiB; load ${loadavg()[0]?.toFixed(1)}`);
  const missing = count * (1 + EVERYTHING) - one.length - all.length;
  if (missing !== 0) console.log(`${missing} events did not come within 20 s`);
  console.log('| from a write to its event, ms | p50 | p99 | max | events |\n|---|---|---|---|---|');
  console.log(row('raw store, its listener', floorTimes));
  console.log(row(`${nodes} watches of a node each`, one));
  console.log(row(`${EVERYTHING} watches of all pods`, all));
  client.requests.destroy();
  client.watches.destroy();
} finally {
  server.removeAllListeners('exit');
  server.kill('SIGTERM');
  await once(server, 'exit');
  await rm(directory, { recursive: true, force: true });
}
