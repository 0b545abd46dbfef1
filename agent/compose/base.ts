// The base of every subsystem: the options, the clock, the trace, the log, a way to run programs, and the signals by
// which subsystems notify each other of changes. Made before all of them.

import type { Pod } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Exec } from '../../lib/exec.ts';
import type { Log } from '../../lib/log.ts';
import { Signal } from '../../lib/signal.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { Trick } from '../../lib/tricks.ts';
import type { AgentOptions } from '../config/options.ts';

export class AgentSignals {
  /** The agent's own Node object at the API server is another version. */
  readonly nodeObjectChanged = new Signal();
  /** Nothing of a pod is left on this node. */
  readonly podGone = new Signal<Pod>();
  /** CNI may have become ready, or stopped being so. */
  readonly networkChanged = new Signal();
}

export interface AgentBase {
  /** With the root directory's links resolved. */
  readonly options: AgentOptions;
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly log: Log;
  /** Runs programs; every caller makes its own trace span. */
  readonly exec: Exec;
  readonly signals: AgentSignals;
  /** Those that are on. */
  readonly tricks: ReadonlySet<Trick>;
}

/** The Kubernetes release whose kubelet nodelet behaves like. */
export const KUBELET_VERSION = 'v1.34.0-nodelet.0.1.0';
