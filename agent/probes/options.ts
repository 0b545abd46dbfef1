// What the probes are built from. Types only.

import type { Clock } from '../../lib/clock.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { EventRecorder } from '../ports/api.ts';
import type { PodProbes } from '../ports/probes.ts';
import type { ContainerRuntime } from '../ports/runtime.ts';
import type { ProbeRunners } from './runners.ts';

export interface PodProbesOptions {
  readonly runtime: Pick<ContainerRuntime, 'execSync' | 'observePod'>;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly tracer: Tracer;
  /** Addresses of the node, primary first: where pods in its network are probed. */
  readonly hostIPs: () => readonly string[];
  /** From 0 up to, not including, 1; spreads first runs after an agent restart. Math.random by default. */
  readonly random?: () => number;
  /** Replaces the runners of probes, by kind of handler. */
  readonly runners?: Partial<ProbeRunners>;
}

export interface RunningPodProbes extends PodProbes {
  /** Ends every probe. */
  close(): void;
}
