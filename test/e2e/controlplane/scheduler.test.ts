// Where pods go, and what people read when they go nowhere: stock kubectl against the API server and the scheduler, with four
// simulated nodes in three zones. The test removes the taint of a new node, and ends the pods that are being deleted, as a
// node would.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../../../client/api.ts';
import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Event, Pod } from '../../../client/types.ts';
import { decodeSchedulerConfiguration } from '../../../controlplane/scheduler/config/decode.ts';
import { type Kubectl, kubectlFor } from '../kubectl/support.ts';
import { kubectls } from '../support/kubectls.ts';
import { Cluster, eventually } from './cluster.ts';

const versions = (await kubectls()).filter(({ full }) => full);
const NODES: readonly (readonly [name: string, zone: string])[] = [
  ['a1', 'a'],
  ['a2', 'a'],
  ['b1', 'b'],
  ['c1', 'c'],
];
const PROFILES = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packer
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins:
    score:
      disabled: [{name: NodeResourcesBalancedAllocation}, {name: PodTopologySpread}]
`;
const CONTROLLERS = [
  'namespace-controller',
  'serviceaccount-controller',
  'deployment-controller',
  'replicaset-controller',
  'garbage-collector-controller',
];

let cluster: Cluster;
let admin: ApiClient;

beforeAll(async () => {
  cluster = await Cluster.start();
  admin = await cluster.client();
  const schedulerSettings = decodeSchedulerConfiguration(PROFILES);
  await cluster.startControlPlane([], undefined, CONTROLLERS, schedulerSettings);
  for (const [name, zone] of NODES) {
    const labels = { 'kubernetes.io/hostname': name, 'topology.kubernetes.io/zone': zone };
    await admin.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });
    const allocatable = { cpu: '4', memory: '8Gi', pods: '20' };
    const status = { capacity: allocatable, allocatable, conditions: [{ type: 'Ready', status: 'True' }] };
    await admin.patch(resourcePath('v1', 'nodes', { name, subresource: 'status' }), { status }, 'merge');
    await admin.patch(resourcePath('v1', 'nodes', { name }), { spec: { taints: null } }, 'merge');
  }
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
});

describe.each(versions)('kubectl $version', ({ command, version }) => {
  const namespace = `scheduling-${version.replace('.', '-')}`;
  let kubectl: Kubectl;

  beforeAll(async () => {
    const home = join(cluster.root, namespace);
    await mkdir(home);
    kubectl = kubectlFor(command, cluster.kubeconfig, home);
    await kubectl.ok('create', 'namespace', namespace);
    await kubectl.ok('config', 'set-context', '--current', `--namespace=${namespace}`);
    await eventually('the service account', () =>
      admin.get(resourcePath('v1', 'serviceaccounts', { namespace, name: 'default' })).catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      }),
    );
  });
  // As a node ends pods: also those that a replica set makes before it is collected.
  afterEach(async () => {
    await kubectl.ok('delete', 'deployments', '--all');
    await eventually('no pods', async () => {
      const left = await pods();
      for (const { metadata } of left) {
        try {
          await admin.delete(resourcePath('v1', 'pods', { namespace, name: metadata.name }), { gracePeriodSeconds: 0 });
        } catch (error) {
          if (!isNotFound(error)) throw error;
        }
      }
      const sets = await admin.list(resourcePath('apps/v1', 'replicasets', { namespace }));
      return left.length + sets.items.length === 0 ? true : undefined;
    });
  });

  const pods = async (): Promise<readonly Pod[]> =>
    (await admin.list<Pod>(resourcePath('v1', 'pods', { namespace }))).items;
  const get = (name: string): Promise<Pod> => admin.get<Pod>(resourcePath('v1', 'pods', { namespace, name }));
  const create = (name: string, spec: object = {}, labels: Record<string, string> = {}): Promise<Pod> =>
    admin.create<Pod>(resourcePath('v1', 'pods', { namespace }), {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels },
      spec: { containers: [{ name: 'c', image: 'app:1' }], ...spec },
    });
  const cpu = (amount: string) => ({
    containers: [{ name: 'c', image: 'app:1', resources: { requests: { cpu: amount } } }],
  });
  const nodeOf = (name: string): Promise<string> =>
    eventually(`${name} to have a node`, async () => (await get(name)).spec.nodeName);
  const failure = (name: string): Promise<string> =>
    eventually(`why ${name} has no node`, async () => {
      const { status } = await get(name);
      return status?.conditions?.find(({ type, status: value }) => type === 'PodScheduled' && value === 'False')
        ?.message;
    });
  const eventOf = (name: string, reason: string): Promise<Event> =>
    eventually(`event ${reason} of ${name}`, async () => {
      const { items } = await admin.list<Event>(resourcePath('v1', 'events', { namespace }));
      return items.find((event) => event.involvedObject.name === name && event.reason === reason);
    });
  const near = (topologyKey: string, app: string) => [{ topologyKey, labelSelector: { matchLabels: { app } } }];

  it('spreads a deployment over the zones', async () => {
    const labels = { app: 'web' };
    const spread = {
      topologyKey: 'topology.kubernetes.io/zone',
      maxSkew: 1,
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: { matchLabels: labels },
    };
    const template = {
      metadata: { labels },
      spec: { containers: [{ name: 'c', image: 'app:1' }], topologySpreadConstraints: [spread] },
    };
    const spec = { replicas: 6, selector: { matchLabels: labels }, template };
    await kubectl.feed(
      JSON.stringify({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, spec }),
      'create',
      '-f',
      '-',
    );
    const zones = await eventually('six pods with nodes', async () => {
      const found = (await pods()).flatMap(({ spec: { nodeName } }) => (nodeName === undefined ? [] : [nodeName]));
      return found.length === 6 ? found.map((name) => name.slice(0, 1)).toSorted() : undefined;
    });
    expect(zones).toEqual(['a', 'a', 'b', 'b', 'c', 'c']);
  });

  it('keeps pods together and apart, and says when there is no room left', async () => {
    await create('db', { nodeSelector: { 'kubernetes.io/hostname': 'b1' } }, { app: 'db' });
    expect(await nodeOf('db')).toBe('b1');
    const together = near('kubernetes.io/hostname', 'db');
    await create('cache', { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: together } } });
    expect(await nodeOf('cache')).toBe('b1');
    const apart = {
      podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: near('topology.kubernetes.io/zone', 'one') },
    };
    for (const name of ['one', 'two', 'three', 'four']) {
      await create(name, { affinity: apart }, { app: 'one' });
      if (name !== 'four') await nodeOf(name);
    }
    const message =
      "0/4 nodes are available: 4 node(s) didn't match pod anti-affinity rules. preemption: 0/4 nodes are available: 4 No preemption victims found for incoming pod.";
    expect(await failure('four')).toBe(message);
    await eventOf('four', 'FailedScheduling');
    expect(await kubectl.ok('describe', 'pod', 'four')).toContain(message);
  });

  it('respects taints, and comes as soon as one is removed', async () => {
    await kubectl.ok('taint', 'nodes', 'a1', 'a2', 'gpu=yes:NoSchedule');
    await create('p', { ...cpu('3'), nodeSelector: { 'topology.kubernetes.io/zone': 'a' } });
    expect(await failure('p')).toBe(
      "0/4 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, 2 node(s) had untolerated taint {gpu: yes}. preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.",
    );
    await create('tolerant', {
      nodeSelector: { 'topology.kubernetes.io/zone': 'a' },
      tolerations: [{ key: 'gpu', operator: 'Exists' }],
    });
    expect(['a1', 'a2']).toContain(await nodeOf('tolerant'));
    await kubectl.ok('taint', 'nodes', 'a2', 'gpu-');
    expect(await nodeOf('p')).toBe('a2');
    await kubectl.ok('taint', 'nodes', 'a1', 'gpu-');
  });

  it('leaves a pod with gates alone until they are removed', async () => {
    await create('gated', { schedulingGates: [{ name: 'example.com/wait' }] });
    await create('other');
    await nodeOf('other');
    expect(await kubectl.ok('get', 'pod', 'gated')).toContain('SchedulingGated');
    const remove = '[{"op":"remove","path":"/spec/schedulingGates"}]';
    await kubectl.ok('patch', 'pod', 'gated', '--type=json', '-p', remove);
    await nodeOf('gated');
  });

  it('says for each node why not, also where only some come into question', async () => {
    await create('big', cpu('5'));
    expect(await failure('big')).toBe(
      '0/4 nodes are available: 4 Insufficient cpu. preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.',
    );
    const matchFields = [{ key: 'metadata.name', operator: 'In', values: ['a1'] }];
    const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields }] } };
    await create('daemon', { ...cpu('5'), affinity: { nodeAffinity: required } });
    expect(await failure('daemon')).toBe(
      "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) didn't satisfy plugin(s) [NodeAffinity]. preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.",
    );
    await create('data', { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'late' } }] });
    expect(await failure('data')).toBe(
      '0/4 nodes are available: persistentvolumeclaim "late" not found. preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.',
    );
  });

  it('preempts the pod that no budget protects, and comes when that has ended; a critical pod preempts it', async () => {
    const name = `high-${version.replace('.', '-')}`;
    await kubectl.ok('create', 'priorityclass', name, '--value=1000');
    await create('protected', { ...cpu('4'), nodeSelector: { 'kubernetes.io/hostname': 'b1' } }, { app: 'protected' });
    await create('plain', { ...cpu('4'), nodeSelector: { 'kubernetes.io/hostname': 'c1' } });
    await Promise.all([nodeOf('protected'), nodeOf('plain')]);
    await kubectl.ok('create', 'pdb', 'budget', '--selector=app=protected', '--min-available=1');
    const expression = { key: 'topology.kubernetes.io/zone', operator: 'In', values: ['b', 'c'] };
    const nodeSelectorTerms = [{ matchExpressions: [expression] }];
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
    await create('urgent', { ...cpu('4'), priorityClassName: name, affinity: { nodeAffinity } });

    const victim = await eventually('the victim to end', async () => {
      const pod = await get('plain');
      return pod.metadata.deletionTimestamp === undefined ? undefined : pod;
    });
    const { uid } = (await get('urgent')).metadata;
    expect(victim.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')).toMatchObject({
      status: 'True',
      reason: 'PreemptionByScheduler',
      message: 'default-scheduler: preempting to accommodate a higher priority pod',
    });
    expect(victim.metadata.deletionGracePeriodSeconds).toBe(30);
    expect(await eventOf('plain', 'Preempted')).toMatchObject({
      type: 'Normal',
      message: `Preempted by pod ${uid} on node c1`,
      source: { component: 'default-scheduler' },
    });
    await eventually('the nomination', async () =>
      (await get('urgent')).status?.nominatedNodeName === 'c1' ? true : undefined,
    );
    expect(await kubectl.ok('get', 'pod', 'urgent', '-o', 'wide')).toMatch(/Pending.*\bc1\b/);
    expect((await get('protected')).metadata.deletionTimestamp).toBe(undefined);
    expect(await failure('urgent')).toMatch(/^0\/4 nodes are available: 2 Insufficient cpu, 2 node\(s\) didn't match/);
    await kubectl.ok('delete', 'pod', 'plain', '--force', '--grace-period=0');
    expect(await nodeOf('urgent')).toBe('c1');
    const here = { nodeSelector: { 'kubernetes.io/hostname': 'c1' } };
    await create('critical', { ...cpu('4'), ...here, priorityClassName: 'system-cluster-critical' });
    await eventOf('urgent', 'Preempted');
    await kubectl.ok('delete', 'pod', 'urgent', '--force', '--grace-period=0');
    expect(await nodeOf('critical')).toBe('c1');
    await kubectl.ok('delete', 'pdb/budget', `priorityclass/${name}`);
  });

  it('has a scheduler for each profile, with its own plugins and events', async () => {
    await create('load', { ...cpu('1'), nodeSelector: { 'kubernetes.io/hostname': 'a2' } });
    expect(await nodeOf('load')).toBe('a2');
    await create('packed', { ...cpu('1'), schedulerName: 'packer' });
    expect(await nodeOf('packed')).toBe('a2');
    await create('spread', cpu('1'));
    expect(await nodeOf('spread')).not.toBe('a2');
    expect(await eventOf('packed', 'Scheduled')).toMatchObject({ source: { component: 'packer' } });
    await create('foreign', { schedulerName: 'absent' });
    await create('after');
    await nodeOf('after');
    expect((await get('foreign')).status?.conditions ?? []).toEqual([]);
  });
});
