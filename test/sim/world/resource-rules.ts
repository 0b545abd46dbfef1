// The rules about resources: what a running container has is what its spec requests, and the pod's cgroup is as large, once
// a resize has had time to be applied. A resize may wait only for what the node lacks, and then its status says so.

import { isMirrorPod } from '../../../agent/model/static-pods.ts';
import { isTerminalPhase } from '../../../agent/pods/phase.ts';
import type { PodUID } from '../../../agent/ports/runtime.ts';
import type { Container, Pod } from '../../../client/types.ts';
import type { Instance } from '../../../labs/sim/cri/state.ts';
import { ALLOCATABLE } from '../../../labs/sim/node-facts.ts';
import { cpuOfPod, cpuRequest, figure, lasting } from '../../../labs/sim/pod-cpu.ts';
import { quantityMilli } from '../../../lib/quantity.ts';
import type { World } from './world.ts';

/** How long a resize may take that fits on the node: another start that is under way, calls, the status. ms. */
const RESIZE_MS = 90_000;
const PERIOD_US = 100_000;

/** Whatever is not as the spec of the pod has it, in words. */
export function resourceDifferences(world: World, pod: Pod): string[] {
  const { name, uid } = pod.metadata;
  const conditions = pod.status?.conditions ?? [];
  const pending = conditions.find(({ type }) => type === 'PodResizePending');
  if (pending !== undefined) return pendingDifferences(world, pod, pending.reason);
  const found: string[] = [];
  if (conditions.some(({ type }) => type === 'PodResizeInProgress')) found.push(`the resize of ${name} is in progress`);
  const instances = world.runtime.state.pods.get(uid as PodUID)?.instances ?? [];
  for (const container of lasting(pod)) {
    const newest = instances.find((instance) => instance.name === container.name);
    if (newest?.process !== undefined && newest.shown === 'running') {
      found.push(...containerDifferences(`${name}/${container.name}`, container, newest));
    }
  }
  // As long as nothing runs in it, it may have the size of before.
  const cpu = world.cgroups.cpuMilli.get(uid as PodUID);
  if (instances.some(({ process }) => process !== undefined) && cpu !== cpuOfPod(pod)) {
    found.push(`the cgroup of ${name} has ${cpu}m, not ${cpuOfPod(pod)}m`);
  }
  return found;
}

function containerDifferences(who: string, container: Container, { resources }: Instance): string[] {
  const found: string[] = [];
  const compare = (what: string, has: string | undefined, wanted: number): void => {
    // 0 and -1 are no limit.
    const actual = Math.max(0, Number(has ?? 0));
    if (actual !== wanted) found.push(`${who} has ${actual} ${what}, not ${wanted}`);
  };
  const shares = Math.max(2, Math.floor((cpuRequest(container) * 1024) / 1000));
  compare('cpu shares', resources?.cpu_shares, shares);
  compare('µs of cpu quota', resources?.cpu_quota, (figure(container, 'limits', 'cpu') * PERIOD_US) / 1000);
  compare('bytes of memory limit', resources?.memory_limit_in_bytes, figure(container, 'limits', 'memory'));
  return found;
}

/** A resize waits with good reason, or does not. */
function pendingDifferences(world: World, pod: Pod, reason: string | undefined): string[] {
  const room = quantityMilli(ALLOCATABLE.cpu);
  const wanted = cpuOfPod(pod);
  const { name } = pod.metadata;
  if (reason === 'Infeasible') return wanted > room ? [] : [`the resize of ${name} to ${wanted}m is Infeasible`];
  let taken = 0;
  for (const other of world.agent?.pods.activePods() ?? []) {
    if (other.metadata.uid !== pod.metadata.uid) taken += cpuOfPod(other);
  }
  return wanted + taken > room ? [] : [`the resize of ${name} to ${wanted}m is ${reason} beside ${taken}m`];
}

/** A pod was resized: before long its containers and its cgroup show it. */
export function resizeRequested(world: World, pod: Pod): void {
  const { clock, weather, rules, api } = world;
  const { uid } = pod.metadata;
  const resources = JSON.stringify(pod.spec.containers.map((container) => container.resources));
  const since = clock.monotonic();
  clock.after(RESIZE_MS, () => {
    const now = api.podOfUid(uid);
    if (now === undefined || !weather.isFairSince(since) || isMirrorPod(now)) return;
    if (now.metadata.deletionTimestamp !== undefined || isTerminalPhase(now.status?.phase)) return;
    if (JSON.stringify(now.spec.containers.map((container) => container.resources)) !== resources) return;
    for (const what of resourceDifferences(world, now))
      rules.break(`${what}, ${RESIZE_MS / 1000} s after it was resized`);
  });
}
