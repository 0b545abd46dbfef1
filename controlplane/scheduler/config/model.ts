// KubeSchedulerConfiguration as the scheduler uses it: with all defaults, and checked. Types and defaults.

import type { ExtensionPoint } from '../framework/framework.ts';
import { type DefaultPreemptionArgs, PREEMPTION_DEFAULTS } from '../plugins/default-preemption.ts';
import { INTER_POD_AFFINITY_DEFAULTS, type InterPodAffinityArgs } from '../plugins/inter-pod-affinity.ts';
import type { NodeAffinityArgs } from '../plugins/node-affinity.ts';
import { CPU_AND_MEMORY, FIT_DEFAULTS, type NodeResourcesFitArgs } from '../plugins/node-resources-fit.ts';
import { type PodTopologySpreadArgs, SPREAD_DEFAULTS } from '../plugins/pod-topology-spread.ts';
import type { ResourceWeight } from '../plugins/resource-scoring.ts';
import { BIND_TIMEOUT_SECONDS } from '../plugins/volume-binding.ts';

export const DEFAULT_SCHEDULER = 'default-scheduler';

export interface PluginSetting {
  readonly name: string;
  /** Undefined: the plugin's own. */
  readonly weight: number | undefined;
}

export interface PointSettings {
  readonly enabled: readonly PluginSetting[];
  /** "*": all that are enabled by default. */
  readonly disabled: readonly string[];
}

export interface PluginArgs {
  readonly DefaultPreemption: DefaultPreemptionArgs;
  readonly InterPodAffinity: InterPodAffinityArgs;
  readonly NodeAffinity: NodeAffinityArgs;
  readonly NodeResourcesBalancedAllocation: { readonly resources: readonly ResourceWeight[] };
  readonly NodeResourcesFit: NodeResourcesFitArgs;
  readonly PodTopologySpread: PodTopologySpreadArgs;
  readonly VolumeBinding: { readonly bindTimeoutSeconds: number };
}

export interface ProfileSettings {
  readonly schedulerName: string;
  readonly percentageOfNodesToScore: number | undefined;
  readonly plugins: ReadonlyMap<ExtensionPoint | 'multiPoint', PointSettings>;
  readonly args: PluginArgs;
}

export interface SchedulerSettings {
  /** undefined and 0: by the size of the cluster. */
  readonly percentageOfNodesToScore: number | undefined;
  readonly podInitialBackoffSeconds: number;
  readonly podMaxBackoffSeconds: number;
  readonly profiles: readonly ProfileSettings[];
}

export const DEFAULT_ARGS: PluginArgs = {
  DefaultPreemption: PREEMPTION_DEFAULTS,
  InterPodAffinity: INTER_POD_AFFINITY_DEFAULTS,
  NodeAffinity: {},
  NodeResourcesBalancedAllocation: { resources: CPU_AND_MEMORY },
  NodeResourcesFit: FIT_DEFAULTS,
  PodTopologySpread: SPREAD_DEFAULTS,
  VolumeBinding: { bindTimeoutSeconds: BIND_TIMEOUT_SECONDS },
};

export const DEFAULT_SETTINGS: SchedulerSettings = {
  percentageOfNodesToScore: undefined,
  podInitialBackoffSeconds: 1,
  podMaxBackoffSeconds: 10,
  profiles: [
    { schedulerName: DEFAULT_SCHEDULER, percentageOfNodesToScore: undefined, plugins: new Map(), args: DEFAULT_ARGS },
  ],
};
