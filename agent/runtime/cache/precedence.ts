// Which of two statements about a state counts: the one rule book of the cache. Pure.
//
// - A container goes created → running → exited and never back, so a statement that is further on is taken however old
//   it is, and one that is behind is an answer from before and ignored. An id is never used twice.
// - `unknown` is the runtime's word for "I cannot say" (CONTAINER_UNKNOWN). It is taken, and replaced, by what was
//   requested after the present state was learned; an exit is never unlearned by it.
// - A sandbox is ready until it is not. Either is taken only from what was requested after the present state was
//   learned: a list that began before StopPodSandbox was answered still shows it ready. A runtime may show it as not ready
//   while it is being made: the answer of RunPodSandbox counts more than what was read before that.
// - What a complete list does not show is gone, if it was known to exist before the list began.
// - What is gone stays gone for every answer to a request from before it went.
// - An exit that a stream announced counts until CRI shows the exit itself; then CRI's words replace it.

import { type EpochMs, elapsedMs } from '../../../lib/clock.ts';
import type { ContainerSnapshot, SandboxSnapshot } from '../../ports/runtime.ts';

type ContainerState = ContainerSnapshot['state'];
type SandboxState = SandboxSnapshot['state'];

/** `agree`: the state is known already, and details may be added. */
export type Verdict = 'take' | 'agree' | 'ignore';
/** A verdict that depends on whether the statement was requested after the present state was learned. */
type Rule = Verdict | 'takeIfNewer';

/** By the state that is known, then by the one that is stated. */
export const CONTAINER_RULES: Readonly<Record<ContainerState, Readonly<Record<ContainerState, Rule>>>> = {
  created: { created: 'agree', running: 'take', exited: 'take', unknown: 'takeIfNewer' },
  running: { created: 'ignore', running: 'agree', exited: 'take', unknown: 'takeIfNewer' },
  exited: { created: 'ignore', running: 'ignore', exited: 'agree', unknown: 'ignore' },
  unknown: { created: 'takeIfNewer', running: 'takeIfNewer', exited: 'take', unknown: 'agree' },
};

export const SANDBOX_RULES: Readonly<Record<SandboxState, Readonly<Record<SandboxState, Rule>>>> = {
  ready: { ready: 'agree', notReady: 'takeIfNewer' },
  notReady: { ready: 'takeIfNewer', notReady: 'agree' },
};

function verdictOf(rule: Rule, newer: boolean): Verdict {
  if (rule !== 'takeIfNewer') return rule;
  return newer ? 'take' : 'ignore';
}

/** `newer`: the statement was requested after the known state was learned. */
export function containerVerdict(known: ContainerState, stated: ContainerState, newer: boolean): Verdict {
  return verdictOf(CONTAINER_RULES[known][stated], newer);
}

export function sandboxVerdict(known: SandboxState, stated: SandboxState, newer: boolean): Verdict {
  return verdictOf(SANDBOX_RULES[known][stated], newer);
}

/** A runtime may learn of the OOM kill after the exit itself; until then a SIGKILL's reason is not final. ms. */
const OOM_SETTLE_MS = 2000;
const EXIT_SIGKILL = 137;

/** Whether nothing about a container will change any more. `now` in epoch ms. */
export function isFinal(container: ContainerSnapshot, now: EpochMs): boolean {
  if (container.state !== 'exited') return false;
  if (container.exitCode !== EXIT_SIGKILL || container.reason === 'OOMKilled') return true;
  return elapsedMs(container.finishedAt, now) > OOM_SETTLE_MS;
}
