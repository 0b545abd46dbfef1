// What the kubelet API shows of the machine's and the pods' use, and of the agent's own work. Types only.

import type { Pod } from '../../client/types.ts';
import type { PodSnapshot, PodUID } from './runtime.ts';

/** The pods whose figures are shown; PodsAgent has this shape. */
export interface StatsPods {
  listPods(): readonly Pod[];
  snapshotOf(uid: PodUID): PodSnapshot | undefined;
}

/** Pages about what the machine and its pods use. Read anew for each request. */
export interface UsagePages {
  /** /stats/summary (stats/v1alpha1 Summary); `cpuAndMemory`: nothing else, as `?only_cpu_and_memory=true`. */
  summary(cpuAndMemory: boolean): Promise<object>;
  /** /metrics/resource. */
  resource(): Promise<string>;
  /** /metrics/cadvisor. */
  cadvisor(): Promise<string>;
}

/** Pages about what the agent does. */
export interface OwnPages {
  /** /metrics. */
  agent(): Promise<string>;
  /** /metrics/probes. */
  probes(): Promise<string>;
}

/** How many volumes a plugin has, in the volume manager's two states of the world. */
export interface VolumeCount {
  readonly plugin: string;
  readonly state: 'actual_state_of_world' | 'desired_state_of_world';
  readonly count: number;
}
