// /stats/summary: the pods' use of the node (stats/v1alpha1 Summary). Unknown figures
// are absent, never zero. Pure.

import type { EpochMs } from '../../lib/clock.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import type { ContainerStats } from '../ports/runtime.ts';
import type { VolumeStats } from '../ports/volume-stats.ts';
import type { ServedPods } from './options.ts';

function volumeStats({ podUid: _, at, condition, ...figures }: VolumeStats): object {
  return {
    time: rfc3339(at),
    ...figures,
    ...(condition === undefined ? {} : { volumeHealthStats: { abnormal: condition.abnormal } }),
  };
}

function containerStats({ name, workingSetBytes, writableLayer }: ContainerStats, now: EpochMs): object {
  return {
    name,
    ...(workingSetBytes === undefined ? {} : { memory: { time: rfc3339(now), workingSetBytes } }),
    ...(writableLayer === undefined
      ? {}
      : { rootfs: { time: rfc3339(now), usedBytes: writableLayer.bytes, inodesUsed: writableLayer.inodes } }),
  };
}

export interface SummaryInput {
  readonly nodeName: string;
  readonly pods: ServedPods;
  readonly containers: readonly ContainerStats[];
  readonly volumes: readonly VolumeStats[];
  /** Epoch ms. */
  readonly now: EpochMs;
}

export function statsSummary({ nodeName, pods, containers, volumes, now }: SummaryInput): object {
  return {
    node: { nodeName },
    pods: pods.listPods().map((pod) => {
      const { name, namespace, uid } = pod.metadata;
      const startTime = pod.status?.startTime;
      const newest = new Map<string, ContainerStats>();
      for (const stats of containers) {
        if (stats.podUID !== uid) continue;
        if ((newest.get(stats.name)?.restartCount ?? -1) < stats.restartCount) newest.set(stats.name, stats);
      }
      const ofPod = volumes.filter(({ podUid }) => podUid === uid);
      return {
        podRef: { name, namespace, uid },
        ...(startTime === undefined ? {} : { startTime }),
        containers: [...newest.values()].map((stats) => containerStats(stats, now)),
        ...(ofPod.length === 0 ? {} : { volume: ofPod.map(volumeStats) }),
      };
    }),
  };
}
