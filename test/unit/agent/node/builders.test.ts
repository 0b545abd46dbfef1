// What the agent says of its node: capacity, conditions, status, registration and lease.

import type { NodeStatus } from 'kubernetes-types/core/v1';
import { describe, expect, it } from 'vitest';
import { allocatableOf, capacityOf } from '../../../../agent/node/capacity.ts';
import {
  type NodeHealth,
  nextConditions,
  notReadyBecause,
  transitionEvent,
} from '../../../../agent/node/conditions.ts';
import { leaseFor } from '../../../../agent/node/lease.ts';
import { adoptionPatch, newNode } from '../../../../agent/node/register.ts';
import {
  covers,
  imageList,
  nextStatus,
  type StatusFacts,
  type StatusPace,
  statusChanged,
  statusDelayMs,
  statusPatch,
  wasCompared,
} from '../../../../agent/node/status.ts';
import type { RuntimeImage } from '../../../../agent/ports/runtime.ts';
import { epochMs, monotonicMs } from '../../../../lib/clock.ts';
import { config, facts, GOOD, NO_PRESSURE, statusInput } from './fixtures.ts';

const MI = 1024 * 1024;

describe('capacity', () => {
  it('is what the machine has', () => {
    expect(capacityOf(facts(), config())).toEqual({
      cpu: '2',
      memory: '4Gi',
      pods: '110',
      'ephemeral-storage': '20Gi',
      'hugepages-2Mi': '0',
    });
  });

  it.each([
    [0, 110, '110'],
    [10, 110, '20'],
    [100, 110, '110'],
  ])('podsPerCore %d and maxPods %d allow %s pods', (podsPerCore, maxPods, pods) => {
    expect(capacityOf(facts(), config({ podsPerCore, maxPods }))['pods']).toBe(pods);
  });

  it('keeps extended resources, and drops huge pages that are gone', () => {
    const known = { 'example.com/gpu': '2', 'hugepages-1Gi': '1Gi', cpu: '64' };
    const capacity = capacityOf(facts(), config(), known);
    expect(capacity).toMatchObject({ 'example.com/gpu': '2', cpu: '2' });
    expect(capacity).not.toHaveProperty('hugepages-1Gi');
  });

  it.each<[string, Parameters<typeof config>[0], Record<string, string>]>([
    ['nothing reserved', { evictionHard: {} }, { cpu: '2', memory: '4Gi', 'ephemeral-storage': '20Gi', pods: '110' }],
    [
      'reservations add up',
      {
        evictionHard: {},
        kubeReserved: { cpu: '100m', memory: '1Gi' },
        systemReserved: { cpu: '250m', memory: '512Mi', 'ephemeral-storage': '1Gi' },
      },
      { cpu: '1650m', memory: '2560Mi', 'ephemeral-storage': '19Gi' },
    ],
    ['hard eviction by quantity', { evictionHard: { 'memory.available': '100Mi' } }, { memory: '3996Mi' }],
    [
      'hard eviction by percentage',
      { evictionHard: { 'memory.available': '25%', 'nodefs.available': '10%' } },
      { memory: '3Gi', 'ephemeral-storage': '18Gi' },
    ],
    ['imagefs does not count', { evictionHard: { 'imagefs.available': '50%' } }, { 'ephemeral-storage': '20Gi' }],
    ['never below zero', { evictionHard: {}, kubeReserved: { cpu: '5' } }, { cpu: '0' }],
  ])('allocatable with %s', (_what, overrides, expected) => {
    const cfg = config(overrides);
    expect(allocatableOf(capacityOf(facts(), cfg), cfg)).toMatchObject(expected);
  });

  it('memory in huge pages is not allocatable as memory', () => {
    const cfg = config({ evictionHard: {} });
    const capacity = capacityOf(facts({ hugepages: { '2Mi': 1024 * MI } }), cfg);
    expect(allocatableOf(capacity, cfg)).toMatchObject({ memory: '3Gi', 'hugepages-2Mi': '1Gi' });
  });
});

describe('conditions', () => {
  const bad = (reason: string, message: string) => ({ ok: false, reason, message });
  const cni = bad('NetworkPluginNotReady', 'Network plugin returns error: cni plugin not initialized');
  it.each<[string, NodeHealth, string[]]>([
    ['all well', { runtime: GOOD, networks: [GOOD, GOOD] }, []],
    [
      'no answer of the runtime',
      { runtimeDown: 'container runtime is down: refused', networks: [GOOD] },
      ['container runtime is down: refused'],
    ],
    [
      'runtime not ready',
      { runtime: bad('X', 'y'), networks: [GOOD] },
      ['container runtime not ready: RuntimeReady=false reason:X message:y'],
    ],
    [
      'network not ready',
      { runtime: GOOD, networks: [GOOD, cni] },
      [`container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:${cni.message}`],
    ],
    [
      'the runtime speaks before us about the network',
      { runtime: GOOD, networks: [bad('A', 'a'), cni] },
      ['container runtime network not ready: NetworkReady=false reason:A message:a'],
    ],
  ])('%s', (_what, health, reasons) => {
    expect(notReadyBecause(health)).toEqual(reasons);
  });

  const at = '2026-01-01T00:01:00Z';
  const before = '2026-01-01T00:00:00Z';
  const ready = (health: NodeHealth, known: NodeStatus['conditions'] = []) =>
    nextConditions(known, health, NO_PRESSURE, at).find(({ type }) => type === 'Ready');

  it('a healthy node has the four conditions of the kubelet', () => {
    expect(nextConditions([], { runtime: GOOD, networks: [GOOD] }, NO_PRESSURE, at)).toEqual(
      [
        ['MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'],
        ['DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'],
        ['PIDPressure', 'False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'],
        ['Ready', 'True', 'KubeletReady', 'kubelet is posting ready status'],
      ].map(([type, status, reason, message]) => ({
        type,
        status,
        reason,
        message,
        lastHeartbeatTime: at,
        lastTransitionTime: at,
      })),
    );
  });

  it('pressure is reported with its own reasons', () => {
    const conditions = nextConditions([], { networks: [] }, { memory: true, disk: true, pid: true }, at);
    expect(conditions.slice(0, 3).map(({ status, reason }) => [status, reason])).toEqual([
      ['True', 'KubeletHasInsufficientMemory'],
      ['True', 'KubeletHasDiskPressure'],
      ['True', 'KubeletHasInsufficientPID'],
    ]);
  });

  it('several reasons are one list, one reason stands alone', () => {
    const one = ready({ runtime: GOOD, networks: [cni] });
    expect(one).toMatchObject({
      status: 'False',
      reason: 'KubeletNotReady',
      message: expect.stringMatching(/^container runtime network/),
    });
    const two = ready({ runtimeDown: 'container runtime is down: x', networks: [cni] });
    expect(two?.message).toMatch(/^\[container runtime is down: x, container runtime network not ready: .*\]$/);
  });

  it('the transition time moves with the status only, the heartbeat always', () => {
    const known = [
      { type: 'Ready', status: 'True', reason: 'Other', lastTransitionTime: before, lastHeartbeatTime: before },
    ];
    expect(ready({ runtime: GOOD, networks: [] }, known)).toMatchObject({
      lastTransitionTime: before,
      lastHeartbeatTime: at,
      reason: 'KubeletReady',
    });
    expect(ready({ runtime: GOOD, networks: [cni] }, known)).toMatchObject({
      lastTransitionTime: at,
      lastHeartbeatTime: at,
    });
  });

  it.each([
    ['Ready', 'True', 'KubeletReady', 'NodeReady'],
    ['Ready', 'False', 'KubeletNotReady', 'NodeNotReady'],
    ['MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'NodeHasSufficientMemory'],
    ['DiskPressure', 'True', 'KubeletHasDiskPressure', 'NodeHasDiskPressure'],
  ])('%s=%s is recorded as an event', (type, status, reason, event) => {
    expect(transitionEvent({ type, status, reason }, 'n')).toEqual({
      reason: event,
      message: `Node n status is now: ${event}`,
    });
  });
});

describe('status', () => {
  const image = (id: string, sizeBytes: number, tags = 1): RuntimeImage => ({
    id,
    repoTags: Array.from({ length: tags }, (_, i) => `${id}:${i}`),
    repoDigests: [`${id}@sha256:1`],
    sizeBytes,
    pinned: false,
  });

  it('says what the runtime is and what the node runs', () => {
    const status = nextStatus(undefined, statusInput());
    expect(status.nodeInfo).toEqual({
      machineID: 'machine',
      systemUUID: 'uuid',
      bootID: 'boot',
      kernelVersion: '6.1.0',
      osImage: 'Debian GNU/Linux 12 (bookworm)',
      containerRuntimeVersion: 'containerd://1.6.20',
      kubeletVersion: 'v1.34.0',
      kubeProxyVersion: '',
      operatingSystem: 'linux',
      architecture: 'amd64',
    });
    expect(status.daemonEndpoints).toEqual({ kubeletEndpoint: { Port: 10250 } });
    expect(status).not.toHaveProperty('runtimeHandlers');
  });

  it('reports handlers and features where the runtime reports them', () => {
    const runtimeStatus = {
      runtimeReady: GOOD,
      networkReady: GOOD,
      handlers: [{ name: 'runc', recursiveReadOnlyMounts: true, userNamespaces: false }],
      features: { supplementalGroupsPolicy: true },
    };
    expect(nextStatus(undefined, statusInput({ runtimeStatus }))).toMatchObject({
      runtimeHandlers: [{ name: 'runc', features: { recursiveReadOnlyMounts: true, userNamespaces: false } }],
      features: { supplementalGroupsPolicy: true },
    });
  });

  it('keeps the last known version of a runtime that does not answer', () => {
    const known = nextStatus(undefined, statusInput());
    const next = nextStatus(known, statusInput({ runtimeVersion: undefined }));
    expect(next.nodeInfo?.containerRuntimeVersion).toBe('containerd://1.6.20');
  });

  it('lists at most 50 images, largest first, with five names each', () => {
    const images = Array.from({ length: 60 }, (_, i) => image(`i${i}`, i, 8));
    const list = imageList(images, 50);
    expect([list.length, list[0]?.sizeBytes, list[49]?.sizeBytes, list[0]?.names?.length]).toEqual([50, 59, 10, 5]);
    expect(imageList(images, -1).length).toBe(60);
    expect(imageList([image('a', 1)], 50)).toEqual([{ names: ['a@sha256:1', 'a:0'], sizeBytes: 1 }]);
  });

  const compared = (overrides: Partial<StatusFacts> = {}): { readonly facts: StatusFacts } => {
    const { now: _now, ...facts } = statusInput(overrides);
    return { facts };
  };

  it.each<[string, Partial<StatusFacts>, boolean]>([
    ['nothing differs', {}, true],
    [
      'the same is said by other objects',
      { pressure: { ...NO_PRESSURE }, health: { runtime: { ...GOOD }, networks: [GOOD] } },
      true,
    ],
    ['memory is short', { pressure: { ...NO_PRESSURE, memory: true } }, false],
    ['the runtime is down', { health: { runtimeDown: 'no answer', networks: [GOOD] } }, false],
    ['there is another image', { images: [image('a', 1)] }, false],
    ['a volume is used', { volumesInUse: ['kubernetes.io/csi/d^v'] }, false],
    [
      'the runtime has another version',
      { runtimeVersion: { name: 'containerd', version: '9', apiVersion: 'v1' } },
      false,
    ],
  ])('is not compared again where its facts are what they were: %s', (_what, overrides, expected) => {
    const status = nextStatus(undefined, statusInput());
    const before = { status, ...compared() };
    expect(wasCompared(before, status, compared(overrides).facts)).toBe(expected);
    // Another object is another version of the Node: it was written meanwhile.
    expect(wasCompared(before, { ...status }, compared(overrides).facts)).toBe(false);
    expect(wasCompared(undefined, status, compared(overrides).facts)).toBe(false);
  });

  it('has not changed when only heartbeats differ', () => {
    const known = nextStatus(undefined, statusInput());
    expect(statusChanged(known, nextStatus(known, statusInput({ now: '2026-01-01T09:00:00Z' })))).toBe(false);
  });

  it('has not changed when the server reorders keys, leaves out what is empty, or adds what others say', () => {
    const known: NodeStatus = structuredClone(nextStatus(undefined, statusInput()));
    delete known.images;
    const { nodeInfo } = known;
    if (nodeInfo !== undefined) {
      const { machineID, ...others } = nodeInfo;
      known.nodeInfo = { ...others, machineID };
    }
    known.phase = 'Running';
    known.conditions?.push({ type: 'NetworkUnavailable', status: 'False' });
    expect(statusChanged(known, nextStatus(known, statusInput()))).toBe(false);
  });

  it.each<[string, Parameters<typeof statusInput>[0]]>([
    ['a condition', { health: { networks: [{ ok: false, reason: 'A', message: 'b' }] } }],
    ['an address', { nodeIPs: ['10.0.0.6'] }],
    ['an image', { images: [image('new', 5)] }],
    ['the version of the runtime', { runtimeVersion: { name: 'containerd', version: 'v2.0.0', apiVersion: 'v1' } }],
    ['a reservation', { config: config({ kubeReserved: { cpu: '1' } }) }],
  ])('has changed with %s', (_what, overrides) => {
    const known = nextStatus(undefined, statusInput());
    expect(statusChanged(known, nextStatus(known, statusInput(overrides)))).toBe(true);
  });

  it('has changed when someone else has declared the node Unknown', () => {
    const known = nextStatus(undefined, statusInput());
    const conditions = known.conditions?.map((condition) => ({ ...condition, status: 'Unknown' }));
    expect(statusChanged({ ...known, conditions: conditions ?? [] }, nextStatus(known, statusInput()))).toBe(true);
  });

  it.each<[string, Partial<StatusPace>, number]>([
    ['for the rest of nodeStatusUpdateFrequency', {}, 7_000],
    ['no longer once the one before is that old', { now: monotonicMs(11_000) }, 0],
    ['not when the one before is older still', { now: monotonicMs(90_000) }, 0],
    ['not when something waits for it', { urgent: true }, 0],
    ['not before this run has told the node as ready', { reportedReady: false }, 0],
    ['not when none was written yet', { reportedAt: undefined }, 0],
  ])('is held back %s', (_when, pace, ms) => {
    const [reportedAt, now] = [monotonicMs(1_000), monotonicMs(4_000)];
    const young = { urgent: false, reportedReady: true, reportedAt, now, updateFrequency: 10_000 };
    expect(statusDelayMs({ ...young, ...pace })).toBe(ms);
  });

  it('is written as a patch that replaces addresses and removes resources that are gone', () => {
    const known: NodeStatus = {
      ...nextStatus(undefined, statusInput()),
      capacity: { cpu: '2', 'hugepages-1Gi': '1Gi' },
    };
    const patch = statusPatch(known, nextStatus(known, statusInput()));
    expect(patch).toMatchObject({
      status: {
        capacity: { cpu: '2', 'hugepages-1Gi': null },
        addresses: [{ type: 'InternalIP' }, { type: 'Hostname' }, { $patch: 'replace' }],
      },
    });
  });

  it.each([
    [{ a: 1, b: 2 }, { a: 1 }, true],
    [{ a: 1 }, { a: 2 }, false],
    [{}, { a: '' }, true],
    [{}, { a: 0 }, false],
    [{ a: [1, 2] }, { a: [1] }, false],
    [{ a: [{ x: 1, y: 2 }] }, { a: [{ x: 1 }] }, true],
    [undefined, { a: [] }, true],
  ])('covers(%j, %j) is %s', (present, wanted, expected) => {
    expect(covers(present, wanted)).toBe(expected);
  });
});

describe('registration', () => {
  const input = {
    nodeName: 'n',
    nodeLabels: { disk: 'ssd' },
    facts: facts(),
    config: config({
      registerWithTaints: [{ key: 'a', value: '', effect: 'NoSchedule', timeAdded: undefined }],
      providerID: 'lab://n',
    }),
  };
  const status = nextStatus(undefined, statusInput());

  it('makes a Node with the labels, annotations and taints of a kubelet', () => {
    expect(newNode(input, status)).toEqual({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name: 'n',
        labels: {
          'beta.kubernetes.io/arch': 'amd64',
          'beta.kubernetes.io/os': 'linux',
          'kubernetes.io/arch': 'amd64',
          'kubernetes.io/hostname': 'n',
          'kubernetes.io/os': 'linux',
          disk: 'ssd',
        },
        annotations: { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' },
      },
      spec: { taints: [{ key: 'a', effect: 'NoSchedule' }], providerID: 'lab://n' },
      status,
    });
  });

  it('adopts its own Node without touching it', () => {
    const stored = {
      ...newNode(input, status),
      metadata: { ...newNode(input, status).metadata, uid: 'u', resourceVersion: '1' },
    };
    expect(adoptionPatch(stored, input)).toBeUndefined();
  });

  it('sets default labels and annotation right on a Node that someone else made, and nothing more', () => {
    const stored = {
      metadata: { name: 'n', uid: 'u', resourceVersion: '1', labels: { 'kubernetes.io/arch': 'arm64' } },
    };
    expect(adoptionPatch(stored, { ...input, config: config() })).toEqual({
      metadata: {
        labels: {
          'beta.kubernetes.io/arch': 'amd64',
          'beta.kubernetes.io/os': 'linux',
          'kubernetes.io/arch': 'amd64',
          'kubernetes.io/hostname': 'n',
          'kubernetes.io/os': 'linux',
        },
        annotations: { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' },
      },
    });
  });
});

describe('leaseFor', () => {
  it('belongs to the Node and is dated to the microsecond', () => {
    expect(leaseFor('n', 'node-uid', 40, epochMs(Date.parse('2026-01-01T00:00:00.123Z')))).toEqual({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        name: 'n',
        namespace: 'kube-node-lease',
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'node-uid' }],
      },
      spec: { holderIdentity: 'n', leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:00.123000Z' },
    });
  });
  it('keeps what the stored one carries', () => {
    const known = {
      metadata: { name: 'n', uid: 'l', resourceVersion: '5', labels: { a: 'b' } },
      spec: { leaseTransitions: 3 },
    };
    expect(leaseFor('n', 'u', 40, epochMs(0), known)).toMatchObject({
      metadata: { resourceVersion: '5', labels: { a: 'b' } },
      spec: { leaseTransitions: 3 },
    });
  });
});
