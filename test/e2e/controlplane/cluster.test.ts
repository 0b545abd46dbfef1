import type { Event as CoreEvent } from 'kubernetes-types/core/v1';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NodeAgent } from '../../../agent/node/node-agent.ts';
import type { ApiClient } from '../../../client/api.ts';
import { isAlreadyExists, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { Reflector } from '../../../client/reflector.ts';
import type { ConfigMap, Lease, Node, Pod, Secret } from '../../../client/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import { exec } from '../../../lib/exec.ts';
import { quantityValue } from '../../../lib/quantity.ts';
import { median } from '../../support/median.ts';
import { Cluster, eventually, NODE, type NodeHealthSwitch } from './cluster.ts';

let cluster: Cluster;
let admin: ApiClient;
let agent: NodeAgent;
let health: NodeHealthSwitch;

beforeAll(async () => {
  cluster = await Cluster.start();
  admin = await cluster.client();
  await cluster.startControlPlane();
  ({ agent, health } = await cluster.startNode());
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
});

const podPath = (namespace: string, name: string): string => resourcePath('v1', 'pods', { namespace, name });

async function getOrUndefined<T>(path: string): Promise<T | undefined> {
  try {
    return await admin.get<T>(path);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function condition(object: { status?: { conditions?: { type: string; status: string }[] } } | undefined, type: string) {
  return object?.status?.conditions?.find((candidate) => candidate.type === type);
}

async function nodeIs(ready: string): Promise<Node> {
  return await eventually(`node ${NODE} Ready=${ready}`, async () => {
    const node = await getOrUndefined<Node>(resourcePath('v1', 'nodes', { name: NODE }));
    return condition(node, 'Ready')?.status === ready ? node : undefined;
  });
}

async function makeNamespace(name: string): Promise<void> {
  await admin.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await eventually(`the service account of ${name}`, () =>
    getOrUndefined(resourcePath('v1', 'serviceaccounts', { namespace: name, name: 'default' })),
  );
}

function makePod(namespace: string, name: string, spec: Partial<Pod['spec']> = {}): Promise<Pod> {
  return admin.create<Pod>(resourcePath('v1', 'pods', { namespace }), {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: { containers: [{ name: 'c', image: 'busybox:stable' }], ...spec },
  });
}

async function eventOf(namespace: string, name: string, reason: string): Promise<CoreEvent> {
  return await eventually(`event ${reason} of ${name}`, async () => {
    const { items } = await admin.list<CoreEvent>(resourcePath('v1', 'events', { namespace }));
    return items.find((event) => event.involvedObject.name === name && event.reason === reason);
  });
}

describe('a node', () => {
  it('registers itself, becomes Ready and reports this machine’s figures', async () => {
    const node = await nodeIs('True');
    const { stdout } = await exec('sh', [
      '-c',
      'nproc; grep MemTotal /proc/meminfo | tr -dc 0-9; echo; cat /proc/sys/kernel/random/boot_id; uname -r',
    ]);
    const [cpus, kilobytes, bootID, kernel] = stdout.trim().split('\n');
    expect(node.status?.capacity?.['cpu']).toBe(cpus);
    expect(quantityValue(node.status?.capacity?.['memory'] ?? '0')).toBe(Number(kilobytes) * 1024);
    const kept =
      quantityValue(node.status?.capacity?.['memory'] ?? '0') -
      quantityValue(node.status?.allocatable?.['memory'] ?? '0');
    expect(kept).toBe(164 * 1024 * 1024);
    expect(node.status?.nodeInfo).toMatchObject({
      bootID,
      kernelVersion: kernel,
      containerRuntimeVersion: 'containerd://1.6.20',
    });
    expect(node.metadata.labels).toMatchObject({
      'kubernetes.io/hostname': NODE,
      'kubernetes.io/os': 'linux',
      'example.com/disk': 'ssd',
    });
    expect(node.status?.addresses?.map(({ type }) => type)).toEqual(['InternalIP', 'Hostname']);
    // The agent's own answer may come after this test's.
    await expect.poll(() => agent.node?.metadata.uid).toBe(node.metadata.uid);
  });

  it('is shown as Ready by kubectl', async () => {
    await nodeIs('True');
    const { stdout, stderr } = await exec('kubectl', [
      '--kubeconfig',
      cluster.kubeconfig,
      'get',
      'node',
      NODE,
      '-o',
      'wide',
    ]);
    expect(stderr).toBe('');
    expect(stdout).toMatch(
      new RegExp(
        `^${NODE}\\s+Ready\\s+<none>\\s+\\S+\\s+v1\\.34\\.0\\s+\\d+\\.\\d+\\.\\d+\\.\\d+.*containerd://1\\.6\\.20`,
        'm',
      ),
    );
  });

  it('holds a lease that belongs to it', async () => {
    const node = await nodeIs('True');
    const lease = await eventually('the lease', () =>
      getOrUndefined<Lease>(
        resourcePath('coordination.k8s.io/v1', 'leases', { namespace: 'kube-node-lease', name: NODE }),
      ),
    );
    expect(lease.spec).toMatchObject({ holderIdentity: NODE, leaseDurationSeconds: 40 });
    expect(lease.metadata.ownerReferences).toMatchObject([{ kind: 'Node', name: NODE, uid: node.metadata.uid }]);
  });

  it('turns NotReady with the network, is tainted and takes no pods, and recovers by itself', async () => {
    await nodeIs('True');
    await makeNamespace('flap');
    health.network = { ok: false, reason: 'NetworkPluginNotReady', message: 'no networks found in /etc/cni/net.d' };
    await agent.checkNow();
    const node = await nodeIs('False');
    expect(condition(node, 'Ready')).toMatchObject({
      reason: 'KubeletNotReady',
      message:
        'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:no networks found in /etc/cni/net.d',
    });
    const taint = 'node.kubernetes.io/not-ready';
    await eventually('the taint', async () => {
      const { spec } = await admin.get<Node>(resourcePath('v1', 'nodes', { name: NODE }));
      return spec?.taints?.find(({ key }) => key === taint);
    });
    // By NoExecute pods would be evicted: not where no node at all is ready.
    expect((await admin.get<Node>(resourcePath('v1', 'nodes', { name: NODE }))).spec?.taints).toEqual([
      { key: taint, effect: 'NoSchedule' },
    ]);
    await makePod('flap', 'waiting');
    const event = await eventOf('flap', 'waiting', 'FailedScheduling');
    expect(event.message).toBe(
      `0/1 nodes are available: 1 node(s) had untolerated taint {${taint}: }. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.`,
    );
    health.network = { ok: true, reason: '', message: '' };
    await agent.checkNow();
    await eventually('the pod to be bound', async () => {
      const pod = await admin.get<Pod>(podPath('flap', 'waiting'));
      return pod.spec.nodeName === NODE ? pod : undefined;
    });
    const healed = await eventually('the taints to go', async () => {
      const current = await admin.get<Node>(resourcePath('v1', 'nodes', { name: NODE }));
      return (current.spec?.taints ?? []).length === 0 ? current : undefined;
    });
    expect(condition(healed, 'Ready')?.status).toBe('True');
    await eventOf('default', NODE, 'NodeNotReady');
    await eventOf('default', NODE, 'NodeReady');
  });
});

describe('the scheduler', () => {
  beforeAll(async () => {
    await nodeIs('True');
    await makeNamespace('sched');
  });

  it('binds a pod as soon as it is created, and records an event', async () => {
    const stop = new AbortController();
    const pods = new Reflector<Pod>({
      client: admin,
      path: resourcePath('v1', 'pods', { namespace: 'sched' }),
      clock: systemClock,
    });
    const running = pods.run(stop.signal);
    await pods.store.whenSynced();
    const boundAt = (name: string): Promise<number> =>
      new Promise((resolve) => {
        pods.store.onChange((changes) => {
          for (const { object } of changes) {
            if (object.metadata.name === name && object.spec.nodeName === NODE) resolve(performance.now());
          }
        });
      });
    // Create, watch, decide, bind and watch again, against create and watch alone, in turns: a tick of any kind would be
    // far above what twice the way there and back takes.
    const [scheduled, given]: [number[], number[]] = [[], []];
    const timed = async (name: string, spec: Partial<Pod['spec']> = {}): Promise<number> => {
      const bound = boundAt(name);
      const started = performance.now();
      await makePod('sched', name, spec);
      return (await bound) - started;
    };
    for (let i = 0; i < 15; i++) {
      given.push(await timed(`given-${i}`, { nodeName: NODE }));
      scheduled.push(await timed(i === 0 ? 'fast' : `fast-${i}`));
    }
    console.log(`bound in ${median(scheduled).toFixed(1)} ms, seen in ${median(given).toFixed(1)} ms`);
    expect(median(scheduled)).toBeLessThan(10 * median(given));
    const event = await eventOf('sched', 'fast', 'Scheduled');
    expect(event).toMatchObject({
      type: 'Normal',
      message: `Successfully assigned sched/fast to ${NODE}`,
      source: { component: 'default-scheduler' },
    });
    expect(condition(await admin.get<Pod>(podPath('sched', 'fast')), 'PodScheduled')?.status).toBe('True');
    stop.abort();
    await running;
  });

  it('reports why a pod does not fit, in the pod and as an event, and binds it when it does', async () => {
    const requests = { 'example.com/gpu': '1' };
    await makePod('sched', 'big', {
      containers: [{ name: 'c', image: 'busybox:stable', resources: { requests, limits: requests } }],
    });
    const message =
      '0/1 nodes are available: 1 Insufficient example.com/gpu. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.';
    expect((await eventOf('sched', 'big', 'FailedScheduling')).message).toBe(message);
    const waiting = await eventually('the condition', async () => {
      const pod = await admin.get<Pod>(podPath('sched', 'big'));
      return condition(pod, 'PodScheduled')?.status === 'False' ? pod : undefined;
    });
    expect(condition(waiting, 'PodScheduled')).toMatchObject({ reason: 'Unschedulable', message });
    const capacity = { 'example.com/gpu': '2' };
    const path = resourcePath('v1', 'nodes', { name: NODE, subresource: 'status' });
    await admin.patch(path, { status: { capacity, allocatable: capacity } }, 'merge');
    await eventually('the pod to be bound', async () => {
      const pod = await admin.get<Pod>(podPath('sched', 'big'));
      return pod.spec.nodeName === NODE ? pod : undefined;
    });
  });

  it('leaves a cordoned node alone until it is uncordoned', async () => {
    const path = resourcePath('v1', 'nodes', { name: NODE });
    await admin.patch(path, { spec: { unschedulable: true } }, 'merge');
    await eventually('the taint of a cordoned node', async () => {
      const { spec } = await admin.get<Node>(path);
      return spec?.taints?.some(({ key }) => key === 'node.kubernetes.io/unschedulable') ? true : undefined;
    });
    await makePod('sched', 'cordoned');
    expect((await eventOf('sched', 'cordoned', 'FailedScheduling')).message).toMatch(
      /^0\/1 nodes are available: 1 node\(s\) were unschedulable/,
    );
    await admin.patch(path, { spec: { unschedulable: null } }, 'merge');
    await eventually('the pod to be bound', async () => {
      const pod = await admin.get<Pod>(podPath('sched', 'cordoned'));
      return pod.spec.nodeName === NODE ? pod : undefined;
    });
  });
});

describe('namespaces', () => {
  it('get a service account and the CA of the cluster', async () => {
    await makeNamespace('fresh');
    const configMap = await eventually('kube-root-ca.crt', () =>
      getOrUndefined<ConfigMap>(resourcePath('v1', 'configmaps', { namespace: 'fresh', name: 'kube-root-ca.crt' })),
    );
    expect(configMap.data?.['ca.crt']).toBe(admin.access.ca);
  });

  it('have accounts whose Secrets get a token, which is good as long as the account is there', async () => {
    await makeNamespace('robots');
    const at = { namespace: 'robots', name: 'robot' };
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } };
    await admin.create(resourcePath('v1', 'serviceaccounts', { namespace: 'robots' }), account);
    const secretPath = resourcePath('v1', 'secrets', at);
    await admin.create(resourcePath('v1', 'secrets', { namespace: 'robots' }), {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'robot', annotations: { 'kubernetes.io/service-account.name': 'robot' } },
      type: 'kubernetes.io/service-account-token',
    });
    const secret = await eventually('the token', async () => {
      const found = await admin.get<Secret>(secretPath);
      return found.data?.['token'] === undefined ? undefined : found;
    });
    const text = (key: string): string => Buffer.from(secret.data?.[key] ?? '', 'base64').toString();
    expect(text('ca.crt')).toBe(admin.access.ca);
    expect(text('namespace')).toBe('robots');
    const bearer = async () =>
      (
        await admin.create<{ status?: { authenticated?: boolean; user?: { username?: string } } }>(
          resourcePath('authentication.k8s.io/v1', 'tokenreviews'),
          { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: text('token') } },
        )
      ).status;
    expect(await bearer()).toMatchObject({
      authenticated: true,
      user: { username: 'system:serviceaccount:robots:robot' },
    });
    await admin.delete(resourcePath('v1', 'serviceaccounts', at));
    await eventually('the secret to go', async () =>
      (await getOrUndefined(secretPath)) === undefined ? true : undefined,
    );
    expect((await bearer())?.authenticated).not.toBe(true);
  });

  it('are emptied and go when they are deleted, pods first; a pod that is stopping holds up all else', async () => {
    await makeNamespace('doomed');
    await makePod('doomed', 'p');
    await eventually('the pod to be bound', async () =>
      (await admin.get<Pod>(podPath('doomed', 'p'))).spec.nodeName === NODE ? true : undefined,
    );
    await admin.create(resourcePath('v1', 'secrets', { namespace: 'doomed' }), {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's' },
    });
    await admin.delete('/api/v1/namespaces/doomed');
    const pod = await eventually('the pod to be stopping', async () => {
      const found = await admin.get<Pod>(podPath('doomed', 'p'));
      return found.metadata.deletionTimestamp === undefined ? undefined : found;
    });
    const namespace = await eventually('the condition', async () => {
      const found = await admin.get<{ status?: { conditions?: { type: string; status: string }[] } }>(
        '/api/v1/namespaces/doomed',
      );
      return condition(found, 'NamespaceContentRemaining')?.status === 'True' ? found : undefined;
    });
    expect(namespace.status?.conditions?.map(({ type }) => type)).toContain('NamespaceContentRemaining');
    expect((await admin.list(resourcePath('v1', 'secrets', { namespace: 'doomed' }))).items).toHaveLength(1);
    // What an agent does when the pod's containers are gone.
    await admin.delete(podPath('doomed', 'p'), { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid } });
    await eventually('the namespace to go', async () =>
      (await getOrUndefined('/api/v1/namespaces/doomed')) === undefined ? true : undefined,
    );
  });
});

describe('when the API server restarts', () => {
  it('everything goes on: the lease is renewed, new pods are bound, watchers miss nothing', async () => {
    await makeNamespace('restart');
    const stop = new AbortController();
    const seen: string[] = [];
    const pods = new Reflector<Pod>({
      client: await cluster.client(),
      path: resourcePath('v1', 'pods', { namespace: 'restart' }),
      clock: systemClock,
    });
    pods.store.onChange((changes) => {
      for (const { type, object } of changes)
        seen.push(`${type} ${object.metadata.name} ${object.metadata.resourceVersion}`);
    });
    const running = pods.run(stop.signal);
    await pods.store.whenSynced();
    await makePod('restart', 'before');
    await cluster.stopServer();
    await cluster.startServer();
    await eventually('the server to answer', () =>
      makePod('restart', 'after').then(
        () => true,
        // Its answer may have been lost with the connection.
        (error: unknown) => (isAlreadyExists(error) ? true : undefined),
      ),
    );
    await eventually('both pods bound', async () => {
      const all = pods.store.list();
      return all.length === 2 && all.every((pod) => pod.spec.nodeName === NODE) ? true : undefined;
    });
    expect(new Set(seen).size).toBe(seen.length);
    stop.abort();
    await running;
  });
});
