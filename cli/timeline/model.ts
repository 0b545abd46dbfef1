// What a timeline is: lanes with bars, arrows of cause, marks, and the critical path from create to Ready. Types and the lanes'
// names; build.ts makes one, and every output format reads it.

import type { Pod } from '../../client/types.ts';
import type { EpochMs } from '../../lib/clock.ts';
import type { Span } from '../../lib/trace.ts';

/** In the order from top to bottom. */
export const LANES = [
  ['api', 'API server'],
  ['scheduler', 'Scheduler'],
  ['worker', 'Pod worker'],
  ['volumes', 'Volumes'],
  ['cgroup', 'Cgroups'],
  ['cri', 'CRI'],
  ['cni', 'CNI'],
  ['kernel', 'Kernel (netlink)'],
  ['probes', 'Probes and hooks'],
  ['containers', 'Containers'],
] as const;

export type LaneId = (typeof LANES)[number][0];

/** A version of the pod's object, as a watch delivered it or as it was read once. */
export interface ObjectVersion {
  /** When a watch delivered it; undefined for an object that was read later. */
  readonly at: EpochMs | undefined;
  readonly object: Pod;
}

/** What a timeline is built from, whatever it was read from. */
export interface Evidence {
  /** Of the run: "nodelet", a file's name. */
  readonly source: string;
  readonly spans: readonly Span[];
  readonly objects: readonly ObjectVersion[];
  /** What was lost or could not be read, one line each. */
  readonly problems: readonly string[];
}

export interface Bar {
  /** Unique in its timeline. */
  readonly id: string;
  readonly lane: LaneId;
  /** Below the lane's first row, where bars overlap. */
  readonly row: number;
  readonly name: string;
  /** ms since the timeline's origin; `end` equals `start` for what happened in one moment. */
  readonly start: number;
  readonly end: number;
  readonly outcome: 'ok' | 'error' | 'open';
  readonly error?: string;
  /** "namespace/name" */
  readonly pod?: string;
  /** Why it happened, in words. */
  readonly cause?: string;
  /** The bar that it ran inside. */
  readonly parent?: string;
  /** Attributes: what was called with what, what was decided from which facts. */
  readonly facts: readonly (readonly [name: string, value: string])[];
}

/** `from` caused `to`. */
export interface Arrow {
  readonly from: string;
  readonly to: string;
  /** `recorded`: in the trace. `inferred`: by ids and order of time, since the two ends do not know each other. */
  readonly kind: 'recorded' | 'inferred';
}

export interface Mark {
  readonly name: string;
  /** ms since the origin. */
  readonly offset: number;
  /** How much earlier or later it may have been, ms: API objects have times in whole seconds. */
  readonly uncertainMs: number;
}

/** Whose time it is. */
export type Owner =
  | 'API server'
  | 'scheduler'
  | 'agent'
  | 'runtime'
  | 'CNI'
  | 'kernel'
  | 'volumes'
  | 'probe'
  | 'waiting';

/** A piece of the critical path: within a bar, or a gap between two. */
export interface Segment {
  readonly start: number;
  readonly end: number;
  /** The bar; undefined for a gap. */
  readonly bar?: string;
  readonly owner: Owner;
  /** "waiting for the API server: PATCH pods/status" */
  readonly text: string;
}

export interface CriticalPath {
  /** What it leads from and to: "created", "Ready". */
  readonly from: string;
  readonly to: string;
  readonly start: number;
  readonly end: number;
  /** Without a hole, in the order of time. */
  readonly segments: readonly Segment[];
}

export interface Lane {
  readonly id: LaneId;
  readonly title: string;
  readonly rows: number;
}

export interface Timeline {
  readonly title: string;
  readonly source: string;
  /** Epoch ms of 0. */
  readonly origin: EpochMs;
  /** ms since the origin. */
  readonly end: number;
  readonly lanes: readonly Lane[];
  /** By start. */
  readonly bars: readonly Bar[];
  readonly arrows: readonly Arrow[];
  readonly marks: readonly Mark[];
  readonly critical: CriticalPath | undefined;
  readonly problems: readonly string[];
}

/** "6.2 ms", "1.25 s" */
export function durationText(ms: number): string {
  if (Math.abs(ms) >= 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (Math.abs(ms) >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return Math.abs(ms) >= 100 ? `${ms.toFixed(0)} ms` : `${ms.toFixed(1)} ms`;
}

/** "demo/web, nodelet: 208 ms from created to Ready". */
export function summaryText({ title, source, critical }: Timeline): string {
  if (critical === undefined) return `${title}, ${source}`;
  return `${title}, ${source}: ${durationText(critical.end - critical.start)} from ${critical.from} to ${critical.to}`;
}
