// Port of the pod workers toward probes: the probe results of each container. Types only; agent/probes
// implements it, and where there are no probes `noProbes` in agent/pods stands in.

import type { Pod } from '../../client/types.ts';
import type { ContainerId, PodSnapshot, PodUID } from './runtime.ts';

/** `undefined` is "no verdict yet", which is also what a container without that probe has. */
export type ProbeVerdict = 'success' | 'failure' | undefined;

/** The newest verdict of each probe, by container instance. */
export interface ProbeResults {
  liveness(id: ContainerId): ProbeVerdict;
  readiness(id: ContainerId): ProbeVerdict;
  startup(id: ContainerId): ProbeVerdict;
}

/** What a worker is woken by, for the trace. */
export type ProbeCause = `${'liveness' | 'readiness' | 'startup'} probe ${'succeeded' | 'failed'}`;

export interface PodProbes {
  readonly results: ProbeResults;
  /** A worker has seen its pod: probes of containers that run begin, those of containers that do not are dropped. */
  podObserved(pod: Pod, snapshot: PodSnapshot): void;
  /** The pod is being stopped: liveness and startup probes end, readiness goes on until the container is dead. */
  podTerminating(pod: Pod): void;
  podRemoved(uid: PodUID): void;
  /** Calls back whenever a verdict of the pod changed, with the cause in words; returns the function that ends it. */
  subscribe(listener: (uid: PodUID, cause: ProbeCause) => void): () => void;
}
