// What the eviction manager is given, and what it offers. Types only.

import type { Pod } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { EventRecorder } from '../ports/api.ts';
import type { PodEnd } from '../ports/pod-end.ts';
import type { NodePressureState } from './pressure-state.ts';
import type { NodeSignals } from './signals.ts';
import type { ThresholdConfig } from './thresholds.ts';
import type { PodUsages } from './types.ts';

/** The part of KubeletConfiguration that eviction goes by. Durations in ms. */
export interface EvictionConfig extends ThresholdConfig {
  readonly evictionPressureTransitionPeriod: number;
  readonly evictionMaxPodGracePeriod: number;
  readonly localStorageCapacityIsolation: boolean;
}

/** The pods, as far as eviction concerns itself with them. */
export interface EvictablePods {
  /** Pods that use resources of the node and have not ended. */
  activePods(): readonly Pod[];
  /** Ends a pod for good; resolves when nothing of it runs any more and what it used is given back. */
  endPod(uid: string, end: PodEnd): Promise<void>;
  /** Removes what pods that have ended left in the runtime. */
  removeEnded(): Promise<void>;
}

export interface EvictionManagerOptions {
  readonly config: EvictionConfig;
  readonly clock: Clock;
  readonly log: Log;
  readonly recorder: EventRecorder;
  readonly nodeName: string;
  readonly pods: EvictablePods;
  readonly readSignals: () => Promise<NodeSignals>;
  readonly readUsage: (pods: readonly Pod[], wanted: { readonly disk: boolean }) => Promise<PodUsages>;
  /** Removes every image that nothing uses. */
  readonly removeUnusedImages: () => Promise<void>;
  /** Updated by every round. */
  readonly pressure: NodePressureState;
}
