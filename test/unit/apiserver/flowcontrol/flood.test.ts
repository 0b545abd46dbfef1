// A flood of one user over HTTP: what it costs another. The flood comes from a thread, so that it does not share the event
// loop of the server and of the user who is measured.

import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { at, type Credentials, TestApiServer } from '../../../support/api-server.ts';
import { median } from '../../../support/median.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const MAPS = '/api/v1/namespaces/default/configmaps';
const CONNECTIONS = 32;
const SAMPLES = 10;

/** Sends lists over many connections, each the next one as soon as it has the last; reports how long they took. */
const FLOOD = `
const { parentPort, workerData: { url, count, tls } } = require('node:worker_threads');
const { Agent, request } = require('node:https');
const agent = new Agent({ keepAlive: true, maxSockets: count, ...tls });
const took = [];
let refused = 0;
let isOver = false;
function next() {
  if (isOver) return;
  const began = performance.now();
  const sent = request(url, { agent }, (response) => {
    response.resume();
    response.on('end', () => {
      if (response.statusCode === 200) took.push(performance.now() - began);
      else refused++;
      if (took.length === 2 * count) parentPort.postMessage('flooding');
      next();
    });
  });
  sent.on('error', () => undefined);
  sent.end();
}
for (let i = 0; i < count; i++) next();
parentPort.on('message', () => {
  isOver = true;
  parentPort.postMessage({ took: took.slice(count), refused });
  agent.destroy();
  parentPort.close();
});
`;

let stand: TestApiServer;
afterEach(() => stand.stop());

async function startServer(priorityAndFairness: boolean): Promise<{ flooder: Credentials; user: Credentials }> {
  stand = await TestApiServer.start({ limits: { priorityAndFairness } });
  const [flooder, user] = [await stand.certificate('flooder'), await stand.certificate('user')];
  await stand.admit('POST', `${RBAC}/clusterrolebindings`, {
    metadata: { name: 'readers' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
    subjects: ['flooder', 'user'].map((name) => ({ kind: 'User', name, apiGroup: 'rbac.authorization.k8s.io' })),
  });
  const data = { text: 'x'.repeat(1000) };
  for (let i = 0; i < 100; i++) {
    await stand.admit('POST', MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `map-${i}` }, data });
  }
  return { flooder, user };
}

/** How long each of the user's requests takes, one after the other, ms. */
async function gets(as: Credentials): Promise<number[]> {
  const took: number[] = [];
  for (let i = 0; i < SAMPLES; i++) {
    const began = performance.now();
    const { code } = await stand.call({ path: `${MAPS}/map-${i}`, as });
    expect(code).toBe(200);
    took.push(performance.now() - began);
  }
  return took;
}

interface Flooded {
  readonly alone: number;
  readonly flooded: number;
  /** Of the flood's own requests. */
  readonly flood: number;
}

/** Medians, ms. */
async function measure(priorityAndFairness: boolean): Promise<Flooded> {
  const { flooder, user } = await startServer(priorityAndFairness);
  await gets(user);
  const alone = median(await gets(user));
  const tls = { ca: stand.server.pki.ca.cert, cert: flooder.cert, key: flooder.key };
  const workerData = { url: `${stand.server.url}${MAPS}`, count: CONNECTIONS, tls };
  const worker = new Worker(FLOOD, { eval: true, workerData });
  await new Promise((resolve) => worker.once('message', resolve));
  const flooded = median(await gets(user));
  const report = new Promise<unknown>((resolve) => worker.once('message', resolve));
  worker.postMessage('stop');
  const took = at(await report, 'took');
  await worker.terminate();
  const times = Array.isArray(took) ? took.filter((ms) => typeof ms === 'number') : [];
  return { alone, flooded, flood: median(times) };
}

describe('a flood of lists by one user', () => {
  it('leaves another user a share', async () => {
    const fair = await measure(true);
    await stand.stop();
    const unfair = await measure(false);
    // Without priority and fairness everyone waits for all of the flood; with it, the other user for a few of its requests.
    expect(unfair.flooded / unfair.alone).toBeGreaterThan(CONNECTIONS / 4);
    expect(unfair.flood / unfair.flooded).toBeLessThan(3);
    expect(fair.flood / fair.flooded).toBeGreaterThan(8);
  });
});
