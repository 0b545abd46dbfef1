// What an experiment runs in: a simulated node in virtual time, a lab, or a virtual machine. The runner knows this interface
// alone; a world knows nothing of expectations. Types only.

import type { MonotonicMs } from '../../lib/clock.ts';
import type { ExperimentStep, WorldSpec } from './model.ts';
import type { Observation } from './observation.ts';

export type WorldKind = 'sim' | 'lab' | 'vm';

/** A step that changes the world; `wait` and `sleep` are the runner's own. */
export type WorldStep = Exclude<ExperimentStep, { readonly wait: unknown } | { readonly sleep: unknown }>;

export interface World {
  readonly kind: WorldKind;
  /** Since the world was ready, ms: virtual or real. */
  now(): MonotonicMs;
  /**
   * What this world cannot do of an experiment, one line each, before anything is started. A run that would need it is refused:
   * a step without effect would make the result wrong.
   */
  cannot(spec: WorldSpec, steps: readonly WorldStep[]): readonly string[];
  start(spec: WorldSpec, signal: AbortSignal): Promise<void>;
  /** Rejects with UserError where the step cannot be done; the message names the step. */
  perform(step: WorldStep): Promise<void>;
  /** Lets time pass. */
  sleep(ms: number): Promise<void>;
  /** Resolves when something new was observed, or after `limitMs` of the world's time; true when something was. */
  changed(limitMs: number): Promise<boolean>;
  /** All that has been observed, oldest first; the array grows. */
  readonly observations: readonly Observation[];
  /** Files worth keeping beside the report (spans, recordings of CRI calls, logs): name in the result's folder to text. */
  recordings(): Promise<ReadonlyMap<string, string>>;
  /** Removes everything that the world has made; may be called at any time, and twice. */
  close(): Promise<void>;
}
