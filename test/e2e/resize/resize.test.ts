// Resizing a running pod with stock kubectl: the kernel's own figures change under a running process, a restart only
// where the pod asks for one, and a resize that does not fit is reported and waits.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Node, Pod } from '../../../client/types.ts';
import { quantityMilli } from '../../../lib/quantity.ts';
import {
  apply,
  condition,
  container,
  deletePods,
  eventually,
  eventWhen,
  FOREVER,
  getPod,
  gone,
  isReady,
  podWhen,
  ready,
  shellPod,
} from '../agent/harness.ts';
import { startLab, type TestLab } from '../support/lab.ts';

let lab: TestLab;
/** Millicores that pods may have here. */
let cores: number;

beforeAll(async () => {
  lab = await startLab({ kills: true });
  const node = await lab.client.get<Node>(`/api/v1/nodes/${lab.nodeName}`);
  cores = quantityMilli(node.status?.allocatable?.['cpu'] ?? '0');
});
afterAll(() => lab?.stop());

const V1 = existsSync('/sys/fs/cgroup/memory/cgroup.procs');
const MiB = 1024 ** 2;

function readFirst(...paths: string[]): string {
  const found = paths.find((path) => existsSync(path));
  if (found === undefined) throw new Error(`none of ${paths.join(', ')}`);
  return readFileSync(found, 'utf8').trim();
}

/** The kernel's figures of the pod's cgroup, or of a container's below it. */
function kernel(pod: Pod, id = ''): { shares: number; quota: string; memory: number } {
  const below = join(lab.paths.cgroupRoot, 'kubepods', 'burstable', `pod${pod.metadata.uid}`, id);
  if (V1) {
    const cpu = join('/sys/fs/cgroup/cpu', below);
    return {
      shares: Number(readFirst(join(cpu, 'cpu.shares'))),
      quota: readFirst(join(cpu, 'cpu.cfs_quota_us')),
      memory: Number(readFirst(join('/sys/fs/cgroup/memory', below, 'memory.limit_in_bytes'))),
    };
  }
  const directory = join('/sys/fs/cgroup', below);
  return {
    shares: Number(readFirst(join(directory, 'cpu.weight'))),
    quota: readFirst(join(directory, 'cpu.max')).split(' ')[0] ?? '',
    memory: Number(readFirst(join(directory, 'memory.max'))),
  };
}

const idOf = (pod: Pod): string => (container(pod).containerID ?? '').replace('containerd://', '');

function sized(name: string, cpu: string, memory: string, more: object = {}): object {
  const resources = { requests: { cpu, memory }, limits: { cpu: '1', memory } };
  return shellPod(name, FOREVER, {}, { resources, ...more });
}

function resize(name: string, resources: object) {
  const patch = JSON.stringify({ spec: { containers: [{ name: 'main', resources }] } });
  return lab.tryKubectl(['patch', 'pod', name, '--subresource', 'resize', '--patch', patch]);
}

const settled = (name: string, what: string, accept: (pod: Pod) => boolean): Promise<Pod> =>
  podWhen(lab, name, what, (pod) => {
    const { metadata, status } = pod;
    const seen = status?.observedGeneration === metadata.generation;
    return seen && accept(pod) && condition(pod, 'PodResizeInProgress') === undefined;
  });

/** Kills the agent; the lab's supervisor starts another. */
async function killAgent(): Promise<void> {
  const old = await eventually('the agent to run', () => lab.lab.pid('agent'));
  process.kill(old, 'SIGKILL');
  await eventually('another agent', () => {
    const next = lab.lab.pid('agent');
    return next !== undefined && next !== old ? true : undefined;
  });
}

async function remove(...names: string[]): Promise<void> {
  await deletePods(lab, [...names], { graceSeconds: 1, wait: false });
  await Promise.all(names.map((name) => gone(lab, name)));
}

describe('a pod that is resized with kubectl', () => {
  test('gets more, and then less, without a restart; the kernel and the status agree at each step', async () => {
    await apply(lab, sized('grows', '100m', '64Mi'));
    const before = await podWhen(
      lab,
      'grows',
      'Ready and sized',
      (pod) =>
        isReady(pod) && container(pod).resources !== undefined && container(pod).allocatedResources !== undefined,
    );
    expect(container(before)).toMatchObject({
      allocatedResources: { cpu: '100m', memory: '64Mi' },
      resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '1', memory: '64Mi' } },
    });
    const id = idOf(before);
    expect(kernel(before, id)).toMatchObject({ quota: '100000', memory: 64 * MiB });

    const up = await resize('grows', {
      requests: { cpu: '200m', memory: '128Mi' },
      limits: { cpu: '1500m', memory: '128Mi' },
    });
    expect(up.stderr).toBe('');
    const grown = await settled('grows', 'grown', (pod) => container(pod).resources?.limits?.['memory'] === '128Mi');
    expect(container(grown)).toMatchObject({
      restartCount: 0,
      allocatedResources: { cpu: '200m', memory: '128Mi' },
      resources: { requests: { cpu: '200m', memory: '128Mi' }, limits: { cpu: '1500m', memory: '128Mi' } },
    });
    expect(idOf(grown)).toBe(id);
    expect(kernel(grown, id)).toMatchObject({ quota: '150000', memory: 128 * MiB });
    expect(kernel(grown)).toMatchObject({ quota: '150000', memory: 128 * MiB });
    expect(grown.status?.observedGeneration).toBe(grown.metadata.generation);
    await eventWhen(lab, 'grows', 'ResizeStarted', /^Pod resize started: \{"containers":\[\{"name":"main"/);
    await eventWhen(lab, 'grows', 'ResizeCompleted', /^Pod resize completed: /);

    expect((await resize('grows', { requests: { cpu: '50m' }, limits: { cpu: '500m' } })).stderr).toBe('');
    const shrunk = await settled('grows', 'shrunk', (pod) => container(pod).resources?.limits?.['cpu'] === '500m');
    expect(container(shrunk).restartCount).toBe(0);
    expect(kernel(shrunk, id)).toMatchObject({ quota: '50000', memory: 128 * MiB });
    expect(kernel(shrunk)).toMatchObject({ quota: '50000', memory: 128 * MiB });
    await remove('grows');
  });

  test('whose policy requires a restart for memory is restarted for memory, and not for cpu', async () => {
    const resizePolicy = [{ resourceName: 'memory', restartPolicy: 'RestartContainer' }];
    await apply(lab, sized('restarts', '100m', '64Mi', { resizePolicy }));
    const before = await ready(lab, 'restarts');
    await resize('restarts', { limits: { cpu: '2' } });
    const faster = await settled('restarts', 'faster', (pod) => container(pod).resources?.limits?.['cpu'] === '2');
    expect(container(faster).restartCount).toBe(0);
    const down = await resize('restarts', { requests: { memory: '32Mi' }, limits: { memory: '32Mi' } });
    expect(down.stderr).toBe('');
    const smaller = await settled(
      'restarts',
      'restarted',
      (pod) => container(pod).restartCount === 1 && container(pod).state?.running !== undefined,
    );
    expect(idOf(smaller)).not.toBe(idOf(before));
    expect(kernel(smaller, idOf(smaller)).memory).toBe(32 * MiB);
    await eventWhen(lab, 'restarts', 'Killing', /^Container main resize requires restart$/);
    await remove('restarts');
  });

  test('is refused by the API server, in its words, what cannot be', async () => {
    await apply(lab, sized('refused', '100m', '64Mi'));
    await ready(lab, 'refused');
    const rows: [object, string][] = [
      [{ requests: { cpu: '1', memory: '64Mi' } }, 'Pod QOS Class may not change as a result of resizing'],
      [{ requests: { 'ephemeral-storage': '1Gi' } }, 'only cpu and memory resources are mutable'],
      [{ requests: { cpu: '5' } }, 'must be less than or equal to cpu limit of 1'],
    ];
    for (const [resources, words] of rows) {
      const answer = await resize('refused', resources);
      expect(answer.code).toBe(1);
      expect(answer.stderr).toContain(words);
    }
    expect((await getPod(lab, 'refused')).metadata.generation).toBe(1);
    await remove('refused');
  });
});

describe('a resize for which there is no room', () => {
  test('is Deferred until another pod goes, also across a restart of the agent; Infeasible when it never can be', async () => {
    const half = `${Math.floor(cores * 0.4)}m`;
    const more = `${Math.floor(cores * 0.7)}m`;
    const limits = { cpu: `${cores * 3}m` };
    const resources = { requests: { cpu: half }, limits };
    await apply(lab, shellPod('wants', FOREVER, {}, { resources }), shellPod('holds', FOREVER, {}, { resources }));
    await ready(lab, 'holds');
    const before = await ready(lab, 'wants');
    await resize('wants', { requests: { cpu: more } });
    const waits = await podWhen(lab, 'wants', 'deferred', (pod) => condition(pod, 'PodResizePending') !== undefined);
    expect(condition(waits, 'PodResizePending')).toMatchObject({ status: 'True', reason: 'Deferred' });
    expect(condition(waits, 'PodResizePending')?.message).toMatch(
      /^Node didn't have enough resource: cpu, requested: \d+, used: \d+, capacity: \d+$/,
    );
    expect(container(waits)).toMatchObject({
      allocatedResources: { cpu: half },
      resources: { requests: { cpu: half } },
    });
    await eventWhen(
      lab,
      'wants',
      'ResizeDeferred',
      /^Pod resize Deferred: .*"error":"Node didn't have enough resource/,
    );

    await resize('wants', { requests: { cpu: `${cores * 2}m` } });
    const never = await podWhen(
      lab,
      'wants',
      'infeasible',
      (pod) => condition(pod, 'PodResizePending')?.reason === 'Infeasible',
    );
    expect(condition(never, 'PodResizePending')?.message).toMatch(
      /^Node didn't have enough capacity: cpu, requested: /,
    );

    await resize('wants', { requests: { cpu: more } });
    await podWhen(lab, 'wants', 'deferred', (pod) => condition(pod, 'PodResizePending')?.reason === 'Deferred');
    await killAgent();
    await remove('holds');
    const granted = await settled('wants', 'granted', (pod) => container(pod).resources?.requests?.['cpu'] === more);
    expect(condition(granted, 'PodResizePending')).toBeUndefined();
    expect(container(granted).restartCount).toBe(0);
    expect(idOf(granted)).toBe(idOf(before));
    await remove('wants');
  });
});
