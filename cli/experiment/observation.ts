// What a world observes: the one list that measures, conditions and expectations read. The same kinds come from every world, so
// that an experiment's file does not know where it runs. Types only.

import type { MonotonicMs } from '../../lib/clock.ts';
import type { Span } from '../../lib/trace.ts';

interface At {
  /** ms since the world was ready. */
  readonly at: MonotonicMs;
}

/** A version of an API object, as a watch of the experiment itself delivered it. */
export interface ObjectObservation extends At {
  readonly type: 'object';
  readonly change: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** Pod, Node, Event, EndpointSlice, …, with metadata, spec and status. */
  readonly object: {
    readonly kind: string;
    readonly metadata: { readonly name: string; readonly namespace?: string };
    readonly [field: string]: unknown;
  };
}

/** A call of the agent, from its trace. A kubelet has none: its calls come from a recording of `nodelet tap`, kind `cri` alone. */
export interface SpanObservation extends At {
  readonly type: 'span';
  readonly span: Span;
}

/** A container's life in the runtime, from the runtime itself (CRI), not from what the agent reports. */
export interface ContainerObservation extends At {
  readonly type: 'container';
  readonly change: 'created' | 'started' | 'exited' | 'removed';
  /** "namespace/name" */
  readonly pod: string;
  readonly container: string;
  readonly attempt: number;
  readonly exitCode?: number;
  readonly reason?: string;
  /** "TERM" or "KILL" where the world saw a signal. */
  readonly signal?: string;
}

/** A number that is read again and again: `memory` of a pod in bytes, `cpu` of the agent in cores, `throttled` in ms, … */
export interface SampleObservation extends At {
  readonly type: 'sample';
  readonly series: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What the experiment itself did: a step began or ended, a process was killed. */
export interface StepObservation extends At {
  readonly type: 'step';
  readonly index: number;
  readonly text: string;
  readonly phase: 'began' | 'ended';
}

export type Observation =
  | ObjectObservation
  | SpanObservation
  | ContainerObservation
  | SampleObservation
  | StepObservation;
