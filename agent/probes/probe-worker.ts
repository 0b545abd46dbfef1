// One probe of one running container: runs when it is due, never twice at once, and keeps its result. What the
// result leads to is decided by the pod worker.

import type { Clock, MonotonicMs, Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { TracePod, Tracer } from '../../lib/trace.ts';
import type { ProbeVerdict } from '../ports/probes.ts';
import {
  afterResult,
  endedState,
  initialState,
  type ProbeSettings,
  type ProbeSpec,
  type ProbeState,
  type ProbeType,
  probeSettings,
} from './automaton.ts';
import { MAX_ATTEMPTS, type ProbeOutcome, resultOf } from './outcome.ts';
import { nextRunDelay } from './schedule.ts';
import type { ProbeTarget } from './target.ts';

export interface ProbeWorkerOptions {
  readonly type: ProbeType;
  readonly spec: ProbeSpec;
  /** Already known to have succeeded, from before the agent restarted. */
  readonly carried: boolean;
  /** Monotonic ms of the first run. */
  readonly anchor: MonotonicMs;
  readonly clock: Clock;
  /** Where the waiting is done. */
  readonly timers: Pick<Clock, 'after'>;
  readonly tracer: Tracer;
  /** Pod and container, as spans show them. */
  readonly pod: TracePod;
  readonly container: string;
  /** The current target. Throws when it cannot be resolved. */
  readonly target: () => ProbeTarget;
  readonly ask: (target: ProbeTarget, timeoutMs: number, signal: AbortSignal) => Promise<ProbeOutcome>;
  /** Whether the runtime reports that the container has exited. Never rejects. */
  readonly isGone: () => Promise<boolean>;
  /** Every run that ended, before its result is counted; none that found no container. */
  readonly onOutcome: (outcome: ProbeOutcome) => void;
  readonly onVerdict: (verdict: ProbeVerdict) => void;
}

/** One for all: a new one records its stack. */
const PROBE_ENDED = new Error('the probe ended');

export class ProbeWorker {
  readonly #options: ProbeWorkerOptions;
  readonly #settings: ProbeSettings;
  #state: ProbeState;
  #timer: Timer | undefined;
  #running = false;
  /** Aborted when probing ends, with the run under way. */
  readonly #stopped = new AbortController();
  /** Of the newest run. */
  #spanId = 0;

  constructor(options: ProbeWorkerOptions) {
    this.#options = options;
    this.#settings = probeSettings(options.spec);
    this.#state = initialState(options.type, options.carried);
  }

  get verdict(): ProbeVerdict {
    return this.#state.verdict;
  }

  /** Begins on the probe's own grid: at its anchor, or at the grid's next point when that has passed. */
  start(): void {
    const { anchor, clock } = this.#options;
    const now = clock.monotonic();
    this.#wait(anchor >= now ? anchor - now : nextRunDelay(anchor, this.#settings.periodMs, now, now));
  }

  /** Begins at once, unless its first run is not due yet. */
  startNow(): void {
    const { anchor, clock } = this.#options;
    this.#wait(anchor - clock.monotonic());
  }

  /** Stops probing. A run under way is abandoned, and its result is ignored. */
  stop(): void {
    this.#timer?.cancel();
    this.#stopped.abort(PROBE_ENDED);
  }

  /** The pod is being stopped. */
  podEnds(): void {
    if (this.#options.type === 'readiness') return;
    this.stop();
    this.#state = endedState(this.#options.type, this.#state);
  }

  #wait(ms: number): void {
    if (this.#stopped.signal.aborted || this.#state.onHold || this.#running) return;
    this.#timer?.cancel();
    if (ms <= 0) void this.#run();
    else this.#timer = this.#options.timers.after(ms, () => void this.#run());
  }

  async #run(): Promise<void> {
    const { clock, anchor, onOutcome } = this.#options;
    const begun = clock.monotonic();
    this.#running = true;
    const outcome = await this.#span(this.#stopped.signal);
    // The error of a probe whose container has exited is not reported: the exit follows.
    const gone = outcome.kind === 'error' && !this.#stopped.signal.aborted && (await this.#options.isGone());
    this.#running = false;
    if (this.#stopped.signal.aborted) return;
    if (!gone) {
      onOutcome(outcome);
      this.#count(outcome);
    }
    this.#wait(nextRunDelay(anchor, this.#settings.periodMs, begun, clock.monotonic()));
  }

  #count(outcome: ProbeOutcome): void {
    const result = resultOf(outcome);
    if (result === undefined) return;
    const { type, tracer, pod, onVerdict } = this.#options;
    const before = this.#state.verdict;
    this.#state = afterResult(type, this.#settings, this.#state, result);
    const { verdict } = this.#state;
    if (verdict !== before) tracer.causedBy([this.#spanId], { pod }, () => onVerdict(verdict));
  }

  /** One run, as one span; attempts with an error are repeated at once. Never rejects. */
  #span(signal: AbortSignal): Promise<ProbeOutcome> {
    const { type, tracer, pod, container } = this.#options;
    return tracer.causedBy([], { pod, cause: `${type} probe` }, () =>
      tracer.span('probe', type, { container }, async (span) => {
        this.#spanId = span.id;
        let outcome: ProbeOutcome | undefined;
        for (let attempt = 0; attempt < MAX_ATTEMPTS && !signal.aborted; attempt++) {
          outcome = await this.#attempt(signal);
          if (outcome.kind !== 'error') break;
        }
        outcome ??= { kind: 'error', state: 'unknown', message: 'the probe ended' };
        const output = outcome.kind === 'error' ? outcome.message : outcome.output;
        // A run that was abandoned has no result.
        const result = signal.aborted ? 'abandoned' : outcome.kind;
        span.set({ handler: handlerOf(this.#options.spec), result, output: output.slice(0, 200) });
        return outcome;
      }),
    );
  }

  async #attempt(signal: AbortSignal): Promise<ProbeOutcome> {
    try {
      return await this.#options.ask(this.#options.target(), this.#settings.timeoutMs, signal);
    } catch (error) {
      // An error of the probe itself is no result of the container; the event reports it.
      return { kind: 'error', state: 'unknown', message: errorMessage(error) };
    }
  }
}

function handlerOf(spec: ProbeSpec): string {
  return (['exec', 'httpGet', 'tcpSocket', 'grpc'] as const).find((kind) => spec[kind] !== undefined) ?? 'none';
}
