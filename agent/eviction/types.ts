// What eviction measures, in plain figures: the node's signals and what each pod uses. Types only.

import type { Signal } from './thresholds.ts';

/** Bytes, inodes or processes. */
export interface Observation {
  readonly available: number;
  readonly capacity: number;
}

/** A signal that could not be measured is absent, and no threshold on it is met. */
export type Observations = Readonly<Partial<Record<Signal, Observation>>>;

export interface DiskUsage {
  readonly bytes: number;
  readonly inodes: number;
}

export interface ContainerUsage {
  readonly name: string;
  /** Bytes; absent where unknown. */
  readonly workingSetBytes?: number | undefined;
  /** The writable layer; absent where the runtime does not report it. */
  readonly rootfs?: DiskUsage | undefined;
  readonly logs?: DiskUsage | undefined;
}

/** What one pod uses. Parts that were not measured are absent. */
export interface PodUsage {
  readonly workingSetBytes?: number | undefined;
  /** Tasks in the pod's cgroup. */
  readonly processes?: number | undefined;
  readonly containers: readonly ContainerUsage[];
  /** By volume name: emptyDirs on disk and ConfigMaps, which is what counts as local ephemeral storage. */
  readonly volumes: Readonly<Record<string, DiskUsage>>;
  /** The pod's own files: /etc/hosts. */
  readonly files?: DiskUsage | undefined;
}

/** By pod uid. Pods without an entry could not be measured. */
export type PodUsages = ReadonlyMap<string, PodUsage>;

/** How the node's disks are cut: everything on one, images and writable layers apart, or images alone apart. */
export type DiskLayout = 'shared' | 'imagefs' | 'splitImagefs';
