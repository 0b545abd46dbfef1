// The threshold automaton of one probe: results in, verdict out. Follows the kubelet's prober worker. Pure.

import type { Container } from '../../client/types.ts';
import type { ProbeVerdict } from '../ports/probes.ts';

export type ProbeSpec = NonNullable<Container['livenessProbe']>;
export type ProbeType = 'startup' | 'liveness' | 'readiness';

/** The order in which the probes of a container are evaluated. */
export const PROBE_TYPES: readonly ProbeType[] = ['startup', 'liveness', 'readiness'];

/** A probe's figures, with the API's defaults where a manifest that no server has seen leaves them out. */
export interface ProbeSettings {
  readonly initialDelayMs: number;
  readonly periodMs: number;
  readonly timeoutMs: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
}

/** A figure of 0 or less is one that was not given. */
function valueOrDefault(value: number | undefined, otherwise: number): number {
  return value === undefined || value <= 0 ? otherwise : value;
}

export function probeSettings(probe: ProbeSpec): ProbeSettings {
  return {
    initialDelayMs: valueOrDefault(probe.initialDelaySeconds, 0) * 1000,
    periodMs: valueOrDefault(probe.periodSeconds, 10) * 1000,
    timeoutMs: valueOrDefault(probe.timeoutSeconds, 1) * 1000,
    successThreshold: valueOrDefault(probe.successThreshold, 1),
    failureThreshold: valueOrDefault(probe.failureThreshold, 3),
  };
}

/** The result of one run. A run with an error has none. */
export type ProbeResult = 'success' | 'failure';

export interface ProbeState {
  readonly verdict: ProbeVerdict;
  /** The last result, and how often in a row it came. */
  readonly last: ProbeResult | undefined;
  readonly run: number;
  /** No more probes of this container: it is to be restarted, or it has started. */
  readonly onHold: boolean;
}

/**
 * Before the first run a container is alive, not ready, and not known to have started. What was reported of the same
 * container before the agent restarted stays in force: `carried`.
 */
export function initialState(type: ProbeType, carried: boolean): ProbeState {
  const fresh: ProbeVerdict = type === 'liveness' ? 'success' : type === 'readiness' ? 'failure' : undefined;
  return {
    verdict: carried ? 'success' : fresh,
    last: undefined,
    run: 0,
    onHold: carried && type === 'startup',
  };
}

/** The state after a run. A threshold that is not reached leaves the verdict as it was. */
export function afterResult(
  type: ProbeType,
  settings: Pick<ProbeSettings, 'successThreshold' | 'failureThreshold'>,
  state: ProbeState,
  result: ProbeResult,
): ProbeState {
  const run = state.last === result ? state.run + 1 : 1;
  const threshold = result === 'success' ? settings.successThreshold : settings.failureThreshold;
  if (run < threshold) return { ...state, last: result, run };
  const onHold = type === 'startup' || (type === 'liveness' && result === 'failure');
  return { verdict: result, last: result, run: onHold ? 0 : run, onHold };
}

/** The pod terminates: liveness and startup are not probed any more and must not delay it. */
export function endedState(type: ProbeType, state: ProbeState): ProbeState {
  return type === 'readiness' ? state : { ...state, verdict: 'success', onHold: true };
}
