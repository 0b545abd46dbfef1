// Pods and figures for the tests of eviction.

import type { DiskUsage, PodUsage } from '../../../../agent/eviction/types.ts';
import type { Pod } from '../../../../client/types.ts';

export const MI = 1024 * 1024;

export type Resources = NonNullable<Pod['spec']['containers'][number]['resources']>;

export interface PodShape {
  readonly priority?: number;
  readonly resources?: Resources;
  readonly annotations?: Record<string, string>;
  readonly tolerations?: NonNullable<Pod['spec']['tolerations']>;
  readonly volumes?: NonNullable<Pod['spec']['volumes']>;
  readonly initContainers?: Pod['spec']['containers'];
  readonly grace?: number;
}

export function makePod(name: string, shape: PodShape = {}): Pod {
  const { priority, resources, annotations, tolerations, volumes, initContainers, grace } = shape;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      resourceVersion: '1',
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec: {
      containers: [{ name: 'c', image: 'busybox', ...(resources === undefined ? {} : { resources }) }],
      ...(initContainers === undefined ? {} : { initContainers }),
      ...(priority === undefined ? {} : { priority }),
      ...(tolerations === undefined ? {} : { tolerations }),
      ...(volumes === undefined ? {} : { volumes }),
      ...(grace === undefined ? {} : { terminationGracePeriodSeconds: grace }),
    },
  };
}

export function disk(mebibytes: number, inodes = 1): DiskUsage {
  return { bytes: mebibytes * MI, inodes };
}

export function usage(part: Partial<PodUsage> = {}): PodUsage {
  return { containers: [], volumes: {}, ...part };
}
