// The outcome of one run of a probe, and its event. Types and pure rules.

import type { ProbeResult, ProbeType } from './automaton.ts';

/** How often a run with an error is tried at once. */
export const MAX_ATTEMPTS = 3;

export type ProbeOutcome =
  | { readonly kind: 'success'; readonly output: string }
  /** It counts as a success, with a ProbeWarning event. */
  | { readonly kind: 'warning'; readonly output: string }
  | { readonly kind: 'failure'; readonly output: string }
  /** The probe itself went wrong, so that nothing is known about the container. */
  | { readonly kind: 'error'; readonly state: 'unknown' | 'failure'; readonly message: string };

/** The result to count, or undefined when there is none. */
export function resultOf(outcome: ProbeOutcome): ProbeResult | undefined {
  if (outcome.kind === 'error') return undefined;
  return outcome.kind === 'failure' ? 'failure' : 'success';
}

const NAMES: Readonly<Record<ProbeType, string>> = { startup: 'Startup', liveness: 'Liveness', readiness: 'Readiness' };

export interface ProbeEvent {
  readonly reason: 'Unhealthy' | 'ProbeWarning';
  readonly message: string;
}

/** The event about a run, in the kubelet's words; a success has none. */
export function probeEvent(type: ProbeType, outcome: ProbeOutcome): ProbeEvent | undefined {
  const name = NAMES[type];
  switch (outcome.kind) {
    case 'success':
      return undefined;
    case 'warning':
      return { reason: 'ProbeWarning', message: `${name} probe warning: ${outcome.output}` };
    case 'failure':
      return { reason: 'Unhealthy', message: `${name} probe failed: ${outcome.output}` };
    default:
      return {
        reason: 'Unhealthy',
        message: `${name} probe errored and resulted in ${outcome.state} state: ${outcome.message}`,
      };
  }
}
