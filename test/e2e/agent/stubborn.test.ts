// What never answers and what is far too much: a registry that takes a pull and stays silent, manifests of 10 MB beside a
// good one. The agent goes on with the rest, and keeps nothing of either.

import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startLab, type TestLab } from '../support/lab.ts';
import {
  agentLog,
  agentMemory,
  apply,
  container,
  deletePods,
  eventually,
  eventWhen,
  FOREVER,
  getPod,
  gone,
  nothingLeft,
  podResources,
  ready,
  shellPod,
} from './harness.ts';

let lab: TestLab;
let manifests: string;
let before: readonly string[];

beforeAll(async () => {
  manifests = await mkdtemp(join(tmpdir(), 'nodelet-e2e-manifests-'));
  lab = await startLab({
    kubeletConfiguration: { staticPodPath: manifests, serializeImagePulls: true, maxParallelImagePulls: 1 },
  });
  before = await podResources(lab);
});
afterAll(async () => {
  await lab?.stop();
  await rm(manifests, { recursive: true, force: true });
});

/** A server that accepts connections and never responds. */
async function startSilence(): Promise<{ image: string; requested(): number; open(): number; stop(): Promise<void> }> {
  const sockets = new Set<Socket>();
  let requested = 0;
  const server: Server = createServer((socket) => {
    requested++;
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    // Read, or its end would not be seen.
    socket.resume();
  });
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
  return {
    image: `127.0.0.1:${port}/silent/image:v1`,
    requested: () => requested,
    open: () => sockets.size,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test('a registry that never answers holds up no other pull once its pod is deleted: the pull is cancelled', async () => {
  const [first, second] = [await startSilence(), await startSilence()];
  try {
    await apply(lab, shellPod('waits', FOREVER, {}, { image: first.image }));
    await eventually('the first registry to receive a request', () => (first.requested() > 0 ? true : undefined));
    await apply(lab, shellPod('behind', FOREVER, {}, { image: second.image }));
    await eventWhen(lab, 'behind', 'Pulling');
    expect(second.requested()).toBe(0);
    await deletePods(lab, ['waits'], { wait: false });
    await gone(lab, 'waits');
    await eventually('the pull behind it to begin', () => (second.requested() > 0 ? true : undefined));
    await eventually('the first pull to be given up', () => (first.open() === 0 ? true : undefined));
    await deletePods(lab, ['behind'], { wait: false });
    await gone(lab, 'behind');
    await eventually('the second pull to be given up', () => (second.open() === 0 ? true : undefined));
    await nothingLeft(lab, before);
  } finally {
    await Promise.all([first.stop(), second.stop()]);
  }
});

const MB = 1_000_000;
/** How often the large manifest is written anew. */
const ROUNDS = 12;

const file = (name: string): string => join(manifests, name);
/** Written atomically: a partial file would be an error of its own. */
async function put(name: string, text: string): Promise<void> {
  await writeFile(file('.next'), text);
  await rename(file('.next'), file(name));
}
const output = (pattern: RegExp): Promise<true> =>
  eventually(`the agent's log to say ${pattern}`, async () => (pattern.test(await agentLog(lab)) ? true : undefined));

test('manifests of 10 MB are reported one by one, the pod beside them runs, and the agent keeps none of them', async () => {
  await writeFile(file('good.yaml'), JSON.stringify(shellPod('good', FOREVER)));
  const name = `good-${lab.nodeName}`;
  const good = await ready(lab, name);
  const start = await agentMemory(lab);

  const annotated = (round: number): string =>
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `big-${round}`, annotations: { long: 'x'.repeat(10 * MB) } },
      spec: { containers: [{ name: 'main', image: 'busybox:stable' }] },
    });
  let least = Number.POSITIVE_INFINITY;
  for (let round = 1; round <= ROUNDS; round++) {
    // Files of their own: what is logged again and again for one file comes less and less often.
    await put(`json-${round}.yaml`, annotated(round));
    await output(new RegExp(`json-${round}\\.yaml: invalid pod: metadata\\.annotations: Too long`));
    await put(`json-${round}.yaml`, `round: ${round}\n`);
    await output(new RegExp(`json-${round}\\.yaml: couldn't parse as pod`));
    if (round >= ROUNDS - 2) least = Math.min(least, (await agentMemory(lab)).bytes);
  }
  const lines = 'key: [value, value, value, value, value, value]\n'.repeat((10 * MB) / 48);
  await writeFile(file('lines.yaml'), `apiVersion: v1\nkind: Pod\n${lines}`);
  await output(/lines\.yaml: (cannot be read (within|with)|is neither YAML nor JSON|invalid pod)/);
  await writeFile(file('nested.yaml'), '['.repeat(10 * MB));
  await output(/nested\.yaml: (cannot be read (within|with)|is neither YAML nor JSON)/);
  await writeFile(file('over.yaml'), ' '.repeat(10 * 1024 * 1024 + 1));
  await output(/over\.yaml: is larger than 10485760 bytes/);

  // Were only those of the rounds kept, they would be more than this at each measurement, for ever; one may include much that is
  // not collected yet.
  await eventually('the agent to keep less than the manifests of the rounds', async () => {
    least = Math.min(least, (await agentMemory(lab)).bytes);
    const grown = least - start.bytes;
    if (grown >= ROUNDS * 10 * MB * 0.75) throw new Error(`it has grown by ${grown} bytes`);
    return true;
  });
  expect((await agentMemory(lab)).pid).toBe(start.pid);
  expect(container(await getPod(lab, name))).toMatchObject({
    containerID: container(good).containerID,
    restartCount: 0,
    ready: true,
  });
  const rounds = Array.from({ length: ROUNDS }, (_, index) => `json-${index + 1}`);
  for (const each of ['good', ...rounds, 'lines', 'nested', 'over']) await rm(file(`${each}.yaml`));
  await gone(lab, name);
  await nothingLeft(lab, before);
});
