// What must hold once everything works and nothing happens any more: every status says what is there, every pod that was
// deleted is gone, and when all are deleted, nothing of any pod is left anywhere.

import { isMirrorPod, isStaticPod } from '../../../agent/model/static-pods.ts';
import { STATUS_UNKNOWN } from '../../../agent/pods/container-status.ts';
import { isTerminalPhase } from '../../../agent/pods/phase.ts';
import type { PodUID } from '../../../agent/ports/runtime.ts';
import type { Container, ContainerStatus, Pod } from '../../../client/types.ts';
import { isSidecar } from '../../../lib/sidecar.ts';
import type { Instance } from './cri/state.ts';
import type { World } from './world.ts';

/** Whatever is not as it should be, in words. */
export function differences(world: World): string[] {
  const found: string[] = [];
  const wanted = new Set<string>();
  for (const pod of world.api.pods.values()) {
    if (isMirrorPod(pod)) continue;
    wanted.add(pod.metadata.uid);
    if (pod.metadata.deletionTimestamp !== undefined) found.push(`${pod.metadata.name} is still being deleted`);
    else found.push(...podDifferences(world, pod, pod.metadata.uid as PodUID));
  }
  for (const pod of world.agent?.pods.listPods() ?? []) {
    if (!isStaticPod(pod)) continue;
    wanted.add(pod.metadata.uid);
    const mirror = world.api.podNamed(pod.metadata.name);
    if (mirror === undefined) found.push(`${pod.metadata.name} has no mirror`);
    else found.push(...podDifferences(world, mirror, pod.metadata.uid as PodUID));
  }
  for (const uid of [...world.runtime.state.pods.keys(), ...world.volumes.onDisk(), ...world.cgroups.pods]) {
    if (!wanted.has(uid)) found.push(`something of ${uid} is left, which nobody wants`);
  }
  return found;
}

/** Whatever of any pod is left on a node that is to have none. */
export function leftovers({ api, runtime, volumes, cgroups, network, disk }: World): string[] {
  return [
    ...[...api.pods.values()].map((pod) => `object ${pod.metadata.name}`),
    ...[...runtime.state.sandboxes()].map(({ id }) => id),
    ...[...runtime.state.instances()].map(({ id }) => id),
    ...volumes.leftovers(),
    ...[...cgroups.pods].map((uid) => `cgroup of ${uid}`),
    ...[...network.leases].flatMap(([address, holder]) =>
      network.abandoned.has(holder) ? [] : [`address ${address} of ${holder}`],
    ),
    ...disk.leftovers(),
  ];
}

/** Whatever the runtime had forgotten and an agent that has just been started has not found. */
export function forgotten({ network, disk }: World): string[] {
  return [
    ...[...network.leases].map(([address, holder]) => `address ${address} of ${holder}`),
    ...disk.attachments().map((name) => `attachment ${name}`),
  ];
}

function podDifferences(world: World, pod: Pod, uid: PodUID): string[] {
  const { name } = pod.metadata;
  const found: string[] = [];
  const say = (what: string): void => void found.push(`${name}: ${what}`);
  const { status } = pod;
  const record = world.runtime.state.pods.get(uid);
  const over = isTerminalPhase(status?.phase);
  if (over && record?.instances.some(({ process }) => process !== undefined))
    say(`runs although it is ${status?.phase}`);
  if (over && record?.sandboxes.some(({ state }) => state === 'ready')) say('has ended, and has a sandbox');
  if (over && (world.volumes.has(uid) || world.cgroups.pods.has(uid))) say('has ended, and keeps what it had');
  const sandbox = record?.sandboxes.find(({ state }) => state === 'ready');
  const address = sandbox?.ips[0];
  if (!over && address !== undefined && status?.podIP !== address) say(`podIP is ${status?.podIP}, not ${address}`);
  const { containers, initContainers = [] } = pod.spec;
  const statusOf = (container: Container): ContainerStatus | undefined =>
    [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].find(
      (each) => each.name === container.name,
    );
  for (const container of [...containers, ...initContainers]) {
    const newest = record?.instances.find(({ name: of }) => of === container.name);
    found.push(...containerDifferences(`${name}/${container.name}`, statusOf(container), newest));
  }
  if (!over && isStuck(world, pod, uid)) say('is stuck: nothing runs, and nothing is said to hold it up');
  const isReady = (container: Container): boolean => statusOf(container)?.ready === true;
  const allReady = !over && [...containers, ...initContainers.filter(isSidecar)].every(isReady);
  const containersReady = status?.conditions?.find(({ type }) => type === 'ContainersReady')?.status === 'True';
  if (status?.phase === 'Running' && containersReady !== allReady) say(`ContainersReady is ${containersReady}`);
  return found;
}

/** Reasons that say only that something is going to happen. */
const SOON: ReadonlySet<string | undefined> = new Set(['ContainerCreating', 'PodInitializing', undefined]);

/** Whether a pod that could run does not, without saying what it waits for. */
function isStuck(world: World, pod: Pod, uid: PodUID): boolean {
  const record = world.runtime.state.pods.get(uid);
  if (record?.instances.some(({ process }) => process !== undefined)) return false;
  // One that lacks a ConfigMap, or a volume that another pod has to itself, waits with good reason.
  if (!world.volumes.areUp({ ...pod, metadata: { ...pod.metadata, uid } })) return false;
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  const all = [...containerStatuses, ...initContainerStatuses];
  return all.every(({ state }) => state?.terminated === undefined && SOON.has(state?.waiting?.reason));
}

function containerDifferences(
  who: string,
  status: ContainerStatus | undefined,
  newest: Instance | undefined,
): string[] {
  const found: string[] = [];
  const alive = newest?.process !== undefined;
  const running = status?.state?.running !== undefined;
  if (running !== alive) found.push(`${who}: status says running ${running}, and it is ${alive}`);
  if (newest === undefined) return found;
  const { id, restartCount, end } = newest;
  if (alive && status?.containerID !== `containerd://${id}`) {
    found.push(`${who}: status names ${status?.containerID}, and it is ${id}`);
  }
  if (status !== undefined && status.restartCount < restartCount) {
    found.push(`${who}: restartCount is ${status.restartCount}, not ${restartCount}`);
  }
  // The kubelet's word for one that was held up in the end; the truth is then in its last state.
  const { terminated } = status?.state ?? {};
  const ended = terminated?.reason === STATUS_UNKNOWN ? status?.lastState?.terminated : terminated;
  if (end !== undefined && ended?.containerID === `containerd://${id}` && ended.exitCode !== end.exitCode) {
    found.push(`${who}: exit code is ${ended.exitCode}, not ${end.exitCode}`);
  }
  return found;
}
