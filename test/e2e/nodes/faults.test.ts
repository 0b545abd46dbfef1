// What a lab with several nodes does when its parts are killed in the middle of a rollout, when the API server is silent for longer than the
// nodes' grace period, when a node with a pod of a StatefulSet is cut off, and when requests about its nodes make no sense.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCriClient } from '../../../agent/runtime/grpc-cri-client.ts';
import { readPidFile } from '../../../cli/lab/child.ts';
import type { NodeView } from '../../../cli/lab/node/actions.ts';
import { sendControlRequest } from '../../../cli/lab/node/control.ts';
import { nodePaths } from '../../../cli/lab/node/plan.ts';
import type { LabProcess } from '../../../cli/lab/paths.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Event, Node, Pod, Service } from '../../../client/types.ts';
import type { Deployment } from '../../../controlplane/controllers/shared/objects.ts';
import { systemClock } from '../../../lib/clock.ts';
import { exec } from '../../../lib/exec.ts';
import { Tracer } from '../../../lib/trace.ts';
import { apply, condition, eventually, FOREVER, httpGet, isReady, podWhen, ready, shellPod } from '../agent/harness.ts';
import { type PrivateLab, startLab } from '../support/lab.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
const GRACE_MS = 6_000;
/** No other lab's. */
const SERVICES = '10.223.224.0/20';
/** Answers with its version. */
const SERVER =
  'mkdir /tmp/w; cd /tmp/w; echo version $VERSION > index.html; httpd -f -p 8080 & trap "exit 0" TERM; wait';
/** As long as a pod may stay on a node that is lost, seconds. */
const tolerations = (tolerationSeconds: number) =>
  ['not-ready', 'unreachable'].map((state) => ({
    key: `node.kubernetes.io/${state}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds,
  }));

let lab: PrivateLab;

beforeAll(async () => {
  lab = await startLab({
    kills: true,
    nodes: { count: 3, zones: [], serviceRange: SERVICES },
    proxy: 'iptables',
    dns: true,
    netpol: true,
    registry: true,
    // A lease is renewed each second, and a machine that stalls for some of them loses no node.
    kubeletConfiguration: { nodeLeaseDurationSeconds: 4 },
    controlplaneFlags: ['--node-monitor-grace-period', `${GRACE_MS / 1000}s`],
  });
});

// Fails when anything of the nodes is left on the machine.
afterAll(async () => lab?.stop());

const get = <T>(apiVersion: string, plural: string, name: string): Promise<T> => {
  const namespace = plural === 'nodes' ? {} : { namespace: 'default' };
  return lab.client.get<T>(resourcePath(apiVersion, plural, { ...namespace, name }));
};
const podsOf = async (app: string): Promise<readonly Pod[]> => {
  const path = resourcePath('v1', 'pods', { namespace: 'default' });
  return (await lab.client.list<Pod>(path, { labelSelector: `app=${app}` })).items;
};
const nodesAre = (status: string, names: readonly string[]): Promise<true> =>
  eventually(`${names.join(', ')} to be Ready ${status}`, async () => {
    const nodes = await Promise.all(names.map((name) => get<Node>('v1', 'nodes', name)));
    return nodes.every((node) => condition(node, 'Ready')?.status === status) ? true : undefined;
  });
const ALL = ['node-1', 'node-2', 'node-3'];

/** A part of the lab, or of one of its nodes. */
interface Part {
  readonly node?: string;
  readonly name: LabProcess;
}

async function pidOf({ node, name }: Part): Promise<number | undefined> {
  const paths = node === undefined ? lab.paths : nodePaths(lab.paths, node);
  return (await readPidFile(paths.pidFile(name)))?.pid;
}

async function killed(part: Part): Promise<void> {
  const before = await pidOf(part);
  if (before === undefined) throw new Error(`${part.name} does not run`);
  process.kill(before, 'SIGKILL');
  await eventually(`another ${part.name}`, async () => {
    const pid = await pidOf(part);
    return pid !== undefined && pid !== before ? pid : undefined;
  });
}

const rolledOut = (): Promise<true> =>
  eventually(
    'the rollout to be complete',
    async () => {
      const { metadata, spec, status } = await get<Deployment>('apps/v1', 'deployments', 'web');
      const counts = [status?.replicas, status?.updatedReplicas, status?.availableReplicas];
      const isSeen = (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);
      return isSeen && counts.every((count) => count === spec.replicas) ? true : undefined;
    },
    240_000,
  );

test('whatever is killed while a Deployment rolls is started again, the rollout is completed, and its Service answers', async () => {
  const { spec } = shellPod('web', SERVER, { tolerations: tolerations(60) }) as Pick<Pod, 'spec'>;
  await apply(
    lab,
    shellPod('client', FOREVER, { nodeSelector: { 'kubernetes.io/hostname': 'node-2' } }),
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: {
        replicas: 3,
        selector: { matchLabels: { app: 'web' } },
        template: { metadata: { labels: { app: 'web' } }, spec },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] },
    },
  );
  await rolledOut();
  await ready(lab, 'client');
  const node = 'node-1';
  const groups: readonly (readonly Part[])[] = [
    [{ name: 'apiserver' }],
    [{ name: 'controlplane' }, { name: 'dns' }, { name: 'registry' }],
    [{ node, name: 'containerd' }],
    [
      { node, name: 'agent' },
      { node, name: 'proxy' },
      { node, name: 'netpol' },
    ],
  ];
  for (const [index, parts] of groups.entries()) {
    await lab.kubectl('set', 'env', 'deployment/web', `VERSION=${index + 1}`);
    await eventually('the rollout to begin', async () => {
      const { metadata, status } = await get<Deployment>('apps/v1', 'deployments', 'web');
      return status?.observedGeneration === metadata.generation ? true : undefined;
    });
    await Promise.all(parts.map(killed));
    await rolledOut();
    await eventually(`the Service to answer with version ${index + 1}`, async () => {
      const wget = ['exec', 'client', '--', 'timeout', '5', 'wget', '-q', '-O-', 'http://web/'];
      return (await lab.kubectl(...wget)).trim() === `version ${index + 1}` ? true : undefined;
    });
  }
  for (const { node: of, name } of groups.flat()) {
    const where = of === undefined ? name : `${name} of ${of}`;
    expect(lab.lines.filter((line) => line.startsWith(`${where} ended (SIGKILL)`))).toHaveLength(1);
  }
}, 1_800_000);

/**
 * Looks for containers that run in pods of a name, on all nodes, whether they have a network or not, until it is stopped. The
 * nodes answer at different moments: what runs at the same time is what is in three looks in a row, and so during the second.
 */
function watchContainers(pod: string) {
  const endpoints = ALL.map((name) => `unix://${nodePaths(lab.paths, name).containerd.socket}`);
  const clients = endpoints.map((endpoint) => createCriClient(endpoint, endpoint, new Tracer()));
  const over = new AbortController();
  let [most, looks] = [0, 0];
  let last: readonly (readonly string[])[] = [];
  const filter = { state: { state: 'CONTAINER_RUNNING' as const }, label_selector: { 'io.kubernetes.pod.name': pod } };
  const look = async (): Promise<void> => {
    const lists = await Promise.all(clients.map((client) => client.call('ListContainers', { filter })));
    const running = lists.flatMap(({ containers }) => containers.map(({ id }) => id));
    last = [...last.slice(-2), running];
    const throughout = running.filter((id) => last.length === 3 && last.every((look) => look.includes(id)));
    most = Math.max(most, throughout.length);
    looks++;
  };
  const looking = (async () => {
    while (!over.signal.aborted) {
      await look();
      await systemClock.sleep(50);
    }
  })();
  return {
    /** The most that ran at a time. */
    stop: async () => {
      over.abort();
      await looking;
      for (const client of clients) client.close();
      return { most, looks };
    },
  };
}

test('of a StatefulSet whose node is cut off no pod runs twice: its name is free when its kubelet has ended it', async () => {
  // Longer than a node whose kubelet stalls is taken for lost.
  const { spec } = shellPod('db', FOREVER, { tolerations: tolerations(5) }) as Pick<Pod, 'spec'>;
  await lab.kubectl('cordon', 'node-1');
  await lab.kubectl('cordon', 'node-2');
  await apply(lab, {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'db' },
    spec: {
      replicas: 1,
      serviceName: 'db',
      // The second one need not wait for the first.
      podManagementPolicy: 'Parallel',
      selector: { matchLabels: { app: 'db' } },
      template: { metadata: { labels: { app: 'db' } }, spec },
    },
  });
  const first = await ready(lab, 'db-0');
  expect(first.spec.nodeName).toBe('node-3');
  await lab.kubectl('uncordon', 'node-1');
  await lab.kubectl('uncordon', 'node-2');
  const watched = watchContainers('db-0');
  await sendControlRequest(lab.paths.controlSocket, 'POST', '/nodes/node-3/partition');
  await podWhen(lab, 'db-0', 'evicted', ({ metadata }) => metadata.deletionTimestamp !== undefined);
  await lab.kubectl('scale', 'statefulset', 'db', '--replicas=2');
  const second = await ready(lab, 'db-1');
  expect(second.spec.nodeName).not.toBe('node-3');
  // The controller is at work, and makes no other pod of that name.
  expect(await lab.kubectl('get', 'pod', 'db-0', '--no-headers')).toMatch(/Terminating/);
  expect((await get<Pod>('v1', 'pods', 'db-0')).metadata.uid).toBe(first.metadata.uid);
  await sendControlRequest(lab.paths.controlSocket, 'POST', '/nodes/node-3/heal');
  const isNew = (pod: Pod): boolean => pod.metadata.uid !== first.metadata.uid && isReady(pod);
  await eventually('a new db-0', async () => {
    const pod = (await podsOf('db')).find(({ metadata }) => metadata.name === 'db-0');
    return pod !== undefined && isNew(pod) ? true : undefined;
  });
  await nodesAre('True', ['node-3']);
  const { most, looks } = await watched.stop();
  expect(most).toBe(1);
  expect(looks).toBeGreaterThan(10);
});

// A node whose lease comes later than that of others, once the server answers, may be Unknown for a moment. It has its grace period
// again; on a busy machine its kubelet may need longer than that, which its pods tolerate, as they do with the five minutes of the default.
test('an API server that is silent for longer than the grace period costs no node its pods', async () => {
  // A node was cut off in the test before: what was evicted there is ended when the node is back.
  const before = await eventually('pods that stay', async () => {
    const pods = await podsOf('web');
    const stays = (pod: Pod): boolean => pod.metadata.deletionTimestamp === undefined && isReady(pod);
    return pods.length === 3 && pods.every(stays) ? pods : undefined;
  });
  const { spec } = await get<Service>('v1', 'services', 'web');
  const server = await pidOf({ name: 'apiserver' });
  if (server === undefined) throw new Error('no API server runs');
  const stopped = systemClock.monotonic();
  process.kill(server, 'SIGSTOP');
  try {
    await eventually('the grace period to pass, with answers of the Service', async () => {
      expect((await httpGet(`http://${spec?.clusterIP}/`)).status).toBe(200);
      return systemClock.monotonic() - stopped > 1.5 * GRACE_MS ? true : undefined;
    });
  } finally {
    process.kill(server, 'SIGCONT');
  }
  await eventually('nodes that are Ready, without taints', async () => {
    const nodes = await Promise.all(ALL.map((name) => get<Node>('v1', 'nodes', name)));
    const well = nodes.every((node) => condition(node, 'Ready')?.status === 'True' && node.spec?.taints === undefined);
    return well ? true : undefined;
  });
  const after = await podsOf('web');
  expect(after.map(({ metadata }) => metadata.uid).sort()).toEqual(before.map(({ metadata }) => metadata.uid).sort());
  expect(after.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)).toEqual([]);
  for (const pod of after) await podWhen(lab, pod.metadata.name, 'Ready', isReady);
  const { items } = await lab.client.list<Event>(resourcePath('v1', 'events', { namespace: 'default' }), {
    fieldSelector: 'reason=TaintManagerEviction',
  });
  const uids = before.map(({ metadata }) => metadata.uid);
  const ofPods = items.filter(({ involvedObject }) => uids.includes(involvedObject.uid ?? ''));
  expect(ofPods.filter(({ message }) => message?.startsWith('Cancelling deletion') !== true)).toEqual([]);
});

test('a request that makes no sense is refused in one line', async () => {
  const request = (name: string, word: string) =>
    sendControlRequest(lab.paths.controlSocket, 'POST', `/nodes/${encodeURIComponent(name)}/${word}`);
  const known = 'node-1, node-2, node-3';
  for (const name of ['node-9', 'NODE-1', 'a/b', '../x', '%']) {
    for (const word of ['stop', 'start', 'kill', 'partition', 'heal']) {
      await expect(request(name, word)).rejects.toMatchObject({
        message: `the lab has no node ${name}: it has ${known}`,
      });
    }
  }
  await expect(request('node-1', 'start')).rejects.toThrow(/^node-1 is running already$/);
  await expect(request('node-1', 'heal')).rejects.toThrow(/^node-1 is running already$/);
  await request('node-3', 'partition');
  await expect(request('node-3', 'partition')).rejects.toThrow(/^node-3 is partitioned already$/);
  await expect(request('node-3', 'start')).rejects.toThrow(/^node-3 is partitioned: it cannot be started$/);
  // Two at a time: one is carried out.
  const both = await Promise.allSettled([request('node-3', 'kill'), request('node-3', 'stop')]);
  expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  expect(both[1]).toMatchObject({
    reason: { message: 'node-3 is not stopped: another action is in progress' },
  });
  await expect(request('node-3', 'kill')).rejects.toThrow(/^node-3 is killed already$/);
  await expect(request('node-3', 'stop')).rejects.toThrow(/^node-3 is killed: it cannot be stopped$/);
  for (const word of ['partition', 'heal']) {
    await expect(request('node-3', word)).rejects.toThrow(/^node-3 is killed: it cannot be (partitioned|healed)$/);
  }
  const add = (name: string) => sendControlRequest(lab.paths.controlSocket, 'POST', '/nodes', { name });
  await expect(add('node-1')).rejects.toThrow(/^the lab has a node node-1$/);
  await expect(add('Node_4')).rejects.toThrow(/^"Node_4" is no name for a node/);
  const views: readonly NodeView[] = await sendControlRequest(lab.paths.controlSocket, 'GET', '/nodes');
  expect(views.map(({ name, condition: is }) => `${name} ${is}`)).toEqual([
    'node-1 running',
    'node-2 running',
    'node-3 killed',
  ]);
  const typed = async (...args: string[]) => {
    const { code, stdout, stderr } = await exec(NODELET, ['node', ...args]);
    return [code, stdout, stderr];
  };
  const root = ['--root', lab.root];
  expect(await typed('stop', 'a/b', ...root)).toEqual([1, '', `nodelet: the lab has no node a/b: it has ${known}\n`]);
  expect(await typed('exec', ...root, 'node-3', 'true')).toEqual([1, '', 'nodelet: node-3 is killed\n']);
  const none = ['--root', join(lab.root, 'none')];
  expect(await typed('heal', 'node-1', ...none)).toEqual([
    1,
    '',
    'nodelet: no lab with several nodes runs there: start one with nodelet up --nodes 3\n',
  ]);
});
