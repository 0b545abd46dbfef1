// What must hold once everything works and nothing happens any more: every status says what is there, every pod that was
// deleted is gone, and when all are deleted, nothing of any pod is left anywhere.

import { existsSync, lstatSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { isMirrorPod, isStaticPod } from '../../../agent/model/static-pods.ts';
import { STATUS_UNKNOWN } from '../../../agent/pods/container-status.ts';
import { isTerminalPhase } from '../../../agent/pods/phase.ts';
import type { PodUID } from '../../../agent/ports/runtime.ts';
import type { Container, ContainerStatus, Pod } from '../../../client/types.ts';
import { lastWordsOf } from '../../../labs/sim/cri/output.ts';
import type { Instance } from '../../../labs/sim/cri/state.ts';
import type { ProbeKind, Process } from '../../../labs/sim/processes.ts';
import { isSidecar } from '../../../lib/sidecar.ts';
import { resourceDifferences } from './resource-rules.ts';
import type { World } from './world.ts';

type Probe = NonNullable<Container['livenessProbe']>;

/** Whatever is not as it should be, in words. */
export function differences(world: World): string[] {
  const found: string[] = [];
  const wanted = new Set<string>();
  const { memory: pressure } = world.agent?.pressure.conditions() ?? {};
  if (pressure !== world.memory.isShort) found.push(`MemoryPressure is ${pressure}, and it is ${world.memory.isShort}`);
  found.push(...nodeDifferences(world));
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
    if (!wanted.has(uid)) found.push(`something of ${uid} is left, which no source has`);
  }
  return found;
}

/** The Node, compared with the machine. */
function nodeDifferences({ api, memory, runtime, csi }: World): string[] {
  const { node } = api.nodes;
  if (node === undefined) return ['there is no Node'];
  const found: string[] = [];
  const { conditions = [], images = [], volumesInUse = [], nodeInfo } = node.status ?? {};
  const expect = (type: string, wanted: boolean): void => {
    const status = conditions.find((condition) => condition.type === type)?.status;
    if (status !== (wanted ? 'True' : 'False')) found.push(`the Node's ${type} is ${status}, and it is ${wanted}`);
  };
  expect('Ready', true);
  expect('MemoryPressure', memory.isShort);
  expect('DiskPressure', false);
  expect('PIDPressure', false);
  const named = new Set(images.flatMap(({ names = [] }) => names));
  for (const name of runtime.images.held.keys())
    if (!named.has(name)) found.push(`the Node does not name image ${name}`);
  if (images.length !== runtime.images.held.size) found.push(`the Node names ${images.length} images`);
  for (const volume of csi.staged.keys()) {
    if (!volumesInUse.some((name) => name.endsWith(`^${volume}`))) found.push(`${volume} is staged, and not in use`);
  }
  const version = `containerd://${runtime.kind.version.slice(1)}`;
  if (nodeInfo?.containerRuntimeVersion !== version) found.push(`the Node has ${nodeInfo?.containerRuntimeVersion}`);
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

/** Whatever the runtime had forgotten and the agent has not found. */
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
    const who = `${name}/${container.name}`;
    found.push(...containerDifferences(who, statusOf(container), newest));
    if (newest?.process === undefined) continue;
    found.push(...logDifferences(world, who, newest));
    if (isMirrorPod(pod)) continue;
    found.push(...healthDifferences(world, pod, container, statusOf(container), newest.process));
  }
  if (!over && !isMirrorPod(pod)) found.push(...resourceDifferences(world, pod));
  if (!over && isStuck(world, pod, uid)) say('is stuck: nothing runs, and no reason is reported');
  const isReady = (container: Container): boolean => statusOf(container)?.ready === true;
  const allReady = !over && [...containers, ...initContainers.filter(isSidecar)].every(isReady);
  const containersReady = status?.conditions?.find(({ type }) => type === 'ContainersReady')?.status === 'True';
  if (status?.phase === 'Running' && containersReady !== allReady) say(`ContainersReady is ${containersReady}`);
  return found;
}

/** Readiness and startup, compared with what the process answers. */
function healthDifferences(
  { processes }: World,
  pod: Pod,
  container: Container,
  status: ContainerStatus | undefined,
  process: Process,
): string[] {
  const { startupProbe, readinessProbe } = container;
  const isInit = (pod.spec.initContainers ?? []).includes(container) && !isSidecar(container);
  // There is no answer for a pod on the host's network: which of them listens is not simulated.
  if (isInit || status === undefined || pod.spec.hostNetwork === true) return [];
  const isWell = (probe: Probe | undefined, kind: ProbeKind): boolean =>
    probe === undefined || processes.isWell(process, probe.tcpSocket === undefined ? kind : 'liveness');
  const started = isWell(startupProbe, 'startup');
  const ready = started && isWell(readinessProbe, 'readiness');
  const found: string[] = [];
  const who = `${pod.metadata.name}/${container.name}`;
  if (status.started !== started) found.push(`${who}: started is ${status.started}, and it is ${started}`);
  if (status.ready !== ready) found.push(`${who}: ready is ${status.ready}, and it is ${ready}`);
  return found;
}

/** Its log is where its link leads. */
function logDifferences({ disk }: World, who: string, { id, pod, name, logPath }: Instance): string[] {
  const link = join(disk.nodeSettings.containerLogsDir, `${pod.name}_${pod.namespace}_${name}-${id}.log`);
  if (!lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink()) return [`${who}: there is no link to its log`];
  const target = readlinkSync(link);
  return target === logPath && existsSync(target) ? [] : [`${who}: the link to its log leads to ${target}`];
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
  // One that never started is no restart: the container before it may have ended for good meanwhile.
  const started = alive || end !== undefined;
  if (started && status !== undefined && status.restartCount < restartCount) {
    found.push(`${who}: restartCount is ${status.restartCount}, not ${restartCount}`);
  }
  // The kubelet's word for one that was held up in the end; the truth is then in its last state.
  const { terminated } = status?.state ?? {};
  const ended = terminated?.reason === STATUS_UNKNOWN ? status?.lastState?.terminated : terminated;
  if (end !== undefined && ended?.containerID === `containerd://${id}` && ended.exitCode !== end.exitCode) {
    found.push(`${who}: exit code is ${ended.exitCode}, not ${end.exitCode}`);
  }
  // What was never started has no words.
  if (end !== undefined && end.reason !== 'StartError' && ended?.containerID === `containerd://${id}`) {
    if (ended.message !== lastWordsOf(id)) found.push(`${who}: message is ${ended.message}`);
  }
  return found;
}
