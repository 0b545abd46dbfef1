// What a rule concludes, and the answer that is made of it. Types only.

import type { EpochMs } from '../../lib/clock.ts';
import type { Facts, Gap, Kind } from './facts.ts';

/** The call at the end of a chain. */
export interface FailedCall {
  /** In the field's words: "PullImage", "GET configmaps/settings", "ADD bridge". */
  readonly name: string;
  /** Who was called: "the container runtime", "the API server". */
  readonly to: string;
  /** With what: an image, a name, options. */
  readonly with?: string;
  /** What came back, in its own words. */
  readonly answer?: string;
}

/** One link of the chain from the symptom to the cause. */
export interface Cause {
  readonly text: string;
  readonly call?: FailedCall;
  /** Of something that lasts, or that has happened `count` times: when it began. */
  readonly since?: EpochMs;
  /** Of something that happened once. */
  readonly at?: EpochMs;
  /** How often it has happened. */
  readonly count?: number;
  /** When it is tried again. */
  readonly next?: EpochMs;
}

/** Something to type: it mends or proves the cause. */
export interface Command {
  readonly command: string;
  readonly why: string;
}

export interface Finding {
  /** One sentence, without the object's name in front and without a full stop. */
  readonly verdict: string;
  /** From the symptom to the cause. */
  readonly chain: readonly Cause[];
  readonly commands: readonly Command[];
  /** Output of the container, kernel stacks: shown as they are. */
  readonly details?: readonly Detail[];
  /**
   * `ready`: nothing is wrong. `waiting`: it goes on by itself. `broken`: a person or another program has to act.
   * `ended`: the last state.
   */
  readonly state: State;
}

export type State = 'ready' | 'waiting' | 'broken' | 'ended';

export interface Detail {
  readonly title: string;
  readonly lines: readonly string[];
}

export interface Rule<F extends Facts = Facts> {
  /** Also the name of its file. */
  readonly name: string;
  /** Pure. Undefined: this is not what is wrong. */
  readonly find: (facts: F) => Finding | undefined;
}

/**
 * Rules that are applied to each part of an object by itself (a container, a volume): several parts may have something wrong,
 * each for a reason of its own.
 */
export interface EachPart<F extends Facts = Facts> {
  /** Facts in which only one of the parts is there; for each part. Pure. */
  readonly each: (facts: F) => readonly F[];
  readonly rules: readonly Rule<F>[];
}

/** The first entry that knows something speaks for the others, which put the same in more general words. */
export type RuleGroup<F extends Facts = Facts> = readonly (Rule<F> | EachPart<F>)[];

export interface NamedFinding extends Finding {
  readonly rule: string;
  /** It is about one part of the object: the rule is of an EachPart. */
  readonly ofPart?: true;
}

export interface Target {
  readonly kind: Kind;
  /** '' for nodes. */
  readonly namespace: string;
  readonly name: string;
}

/** The whole answer; `-o json` prints it (render-json.ts). */
export interface Explanation {
  readonly target: Target;
  readonly at: EpochMs;
  readonly finding: NamedFinding;
  /** What is wrong besides. */
  readonly others: readonly NamedFinding[];
  readonly fine: readonly string[];
  readonly gaps: readonly Gap[];
}
