// Which pod goes first when a resource is scarce: what uses more than it requested, then the lower priority, then the
// larger use beyond the request. Also what of a pod's disk use counts on which file system. Pure.

import type { Pod } from '../../client/types.ts';
import { parseQuantity, quantityValue } from '../../lib/quantity.ts';
import { isSidecar } from '../../lib/sidecar.ts';
import { podRequests } from '../model/pod-resources.ts';
import type { Signal } from './thresholds.ts';
import type { DiskLayout, DiskUsage, PodUsage } from './types.ts';

export type DiskPart = 'rootfs' | 'logs' | 'localVolumes';
const ALL_PARTS: readonly DiskPart[] = ['rootfs', 'logs', 'localVolumes'];

/** The parts of a pod that are on the file system of a disk signal. */
export function partsOf(signal: Signal, layout: DiskLayout): readonly DiskPart[] {
  if (layout === 'shared') return ALL_PARTS;
  const onNodefs = signal.startsWith('nodefs.');
  if (layout === 'imagefs') return onNodefs ? ['logs', 'localVolumes'] : ['rootfs'];
  return onNodefs ? ALL_PARTS : [];
}

/** Parts that count against ephemeral-storage limits: writable layers only while they are on nodefs. */
export function limitedParts(layout: DiskLayout): readonly DiskPart[] {
  return layout === 'imagefs' ? ['logs', 'localVolumes'] : ALL_PARTS;
}

function add(a: DiskUsage, b: DiskUsage | undefined): DiskUsage {
  return b === undefined ? a : { bytes: a.bytes + b.bytes, inodes: a.inodes + b.inodes };
}

export function podDiskUsage(usage: PodUsage, parts: readonly DiskPart[]): DiskUsage {
  let sum: DiskUsage = { bytes: 0, inodes: 0 };
  for (const container of usage.containers) {
    if (parts.includes('rootfs')) sum = add(sum, container.rootfs);
    if (parts.includes('logs')) sum = add(sum, container.logs);
  }
  if (parts.includes('localVolumes')) {
    for (const volume of Object.values(usage.volumes)) sum = add(sum, volume);
    sum = add(sum, usage.files);
  }
  return sum;
}

/** Requests of ephemeral-storage over a pod, bytes; init containers run alone, sidecars beside the rest. */
export function ephemeralStorageRequest(pod: Pod): number {
  return ephemeralStorage(pod, 'requests') ?? 0;
}

/** The sum of the limits that are set, bytes; undefined when no container has one. */
export function ephemeralStorageLimit(pod: Pod): number | undefined {
  return ephemeralStorage(pod, 'limits');
}

function ephemeralStorage(pod: Pod, side: 'requests' | 'limits'): number | undefined {
  const of = (container: Pod['spec']['containers'][number]): number | undefined => {
    const { requests, limits } = container.resources ?? {};
    const limit = limits?.['ephemeral-storage'];
    const text = side === 'limits' ? limit : (requests?.['ephemeral-storage'] ?? limit);
    return text === undefined || parseQuantity(text) === undefined ? undefined : quantityValue(text);
  };
  let stated = false;
  const amount = (value: number | undefined): number => {
    if (value !== undefined) stated = true;
    return value ?? 0;
  };
  let sidecars = 0;
  let peak = 0;
  for (const container of pod.spec.initContainers ?? []) {
    const value = amount(of(container));
    if (isSidecar(container)) sidecars += value;
    peak = Math.max(peak, isSidecar(container) ? sidecars : sidecars + value);
  }
  const together = pod.spec.containers.reduce((sum, container) => sum + amount(of(container)), sidecars);
  const overhead = pod.spec.overhead?.['ephemeral-storage'];
  const total = Math.max(together, peak);
  if (!stated) return undefined;
  return overhead === undefined ? total : total + quantityValue(overhead);
}

/** One pod's claim on the scarce resource. `undefined` use: it could not be measured. */
interface Claim {
  readonly pod: Pod;
  readonly used: number | undefined;
  readonly requested: number;
  readonly beyondRequest: boolean;
}

function claimOn(pod: Pod, usage: PodUsage | undefined, signal: Signal, layout: DiskLayout): Claim {
  if (signal === 'memory.available' || signal === 'allocatableMemory.available') {
    const requested = podRequests(pod, { withOverhead: true }).memoryBytes;
    const used = usage?.workingSetBytes;
    return { pod, used, requested, beyondRequest: used !== undefined && used > requested };
  }
  // Nothing is requested of processes, so only priority and number count.
  if (signal === 'pid.available') return { pod, used: usage?.processes, requested: 0, beyondRequest: false };
  const requested = ephemeralStorageRequest(pod);
  if (usage === undefined) return { pod, used: undefined, requested, beyondRequest: false };
  const disk = podDiskUsage(usage, partsOf(signal, layout));
  // No pod can request inodes: using any is using more than requested.
  if (signal.endsWith('.inodesFree')) return { pod, used: disk.inodes, requested, beyondRequest: disk.inodes > 0 };
  return { pod, used: disk.bytes, requested, beyondRequest: disk.bytes > requested };
}

/** Pods in the order in which they are evicted for `signal`. A pod that cannot be measured goes before all others. */
export function rankPods(
  pods: readonly Pod[],
  usageOf: (pod: Pod) => PodUsage | undefined,
  signal: Signal,
  layout: DiskLayout,
): readonly Pod[] {
  const claims = pods.map((pod) => claimOn(pod, usageOf(pod), signal, layout));
  const first = (a: boolean, b: boolean): number => Number(b) - Number(a);
  return claims
    .sort((a, b) => {
      const unmeasured = signal === 'pid.available' ? 0 : first(a.used === undefined, b.used === undefined);
      return (
        unmeasured ||
        first(a.beyondRequest, b.beyondRequest) ||
        (a.pod.spec.priority ?? 0) - (b.pod.spec.priority ?? 0) ||
        first(a.used === undefined, b.used === undefined) ||
        (b.used ?? 0) - b.requested - ((a.used ?? 0) - a.requested)
      );
    })
    .map(({ pod }) => pod);
}
