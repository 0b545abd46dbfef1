// How many requests are served at a time, and for how long: --max-requests-inflight, --max-mutating-requests-inflight and
// --request-timeout. With priority and fairness the first two are one sum, whose parts are the levels'.

import { errorMessage } from '../../lib/errors.ts';
import type { Caller } from '../auth/attributes.ts';
import { MASTERS } from '../auth/authorizer.ts';
import { parseDuration } from '../cel/functions/text.ts';
import { badRequest, StatusError } from '../errors.ts';
import type { Place } from '../flowcontrol/flow-control.ts';
import { OverloadError } from '../flowcontrol/overload.ts';
import { type GateOptions, NO_PLACE, type RequestGate } from './gate.ts';
import type { ApiRequest } from './request.ts';

/** By the names of kube-apiserver's flags. */
export interface RequestLimits {
  /** Of requests that change nothing, at a time. 0: no limit. */
  readonly maxRequestsInflight: number;
  /** Of requests that change something, at a time. 0: no limit. */
  readonly maxMutatingRequestsInflight: number;
  /** Of one request that is no watch, log or stream. ms. */
  readonly requestTimeoutMs: number;
  /** --enable-priority-and-fairness: the limits are shared out by flow schemas and priority levels. */
  readonly priorityAndFairness: boolean;
}

export const DEFAULT_LIMITS: RequestLimits = {
  maxRequestsInflight: 400,
  maxMutatingRequestsInflight: 200,
  requestTimeoutMs: 60_000,
  priorityAndFairness: true,
};

const READING = new Set(['get', 'list', 'watch']);

export function timeoutError(): StatusError {
  return new StatusError(504, 'Timeout', 'Timeout: request did not complete within the allotted timeout', {});
}

export class InFlight implements RequestGate {
  readonly #limits: Pick<RequestLimits, 'maxRequestsInflight' | 'maxMutatingRequestsInflight'>;
  #reading = 0;
  #mutating = 0;

  constructor(limits: Pick<RequestLimits, 'maxRequestsInflight' | 'maxMutatingRequestsInflight'>) {
    this.#limits = limits;
  }

  /** Throws OverloadError when there is no place. */
  enter({ verb }: Pick<ApiRequest, 'verb'>, caller: Caller, { longRunning }: Pick<GateOptions, 'longRunning'>): Place {
    if (longRunning) return NO_PLACE;
    const isReading = READING.has(verb);
    const { maxRequestsInflight, maxMutatingRequestsInflight } = this.#limits;
    const [most, now] = isReading
      ? [maxRequestsInflight, this.#reading]
      : [maxMutatingRequestsInflight, this.#mutating];
    if (most > 0 && now >= most) {
      // They always get an answer, and take no place that others could have.
      if (caller.groups.includes(MASTERS)) return NO_PLACE;
      throw new OverloadError();
    }
    this.#count(isReading, 1);
    let isInside = true;
    const leave = (): void => {
      if (isInside) this.#count(isReading, -1);
      isInside = false;
    };
    return { leave };
  }

  #count(isReading: boolean, by: number): void {
    if (isReading) this.#reading += by;
    else this.#mutating += by;
  }
}

/** How long the request may take, ms: as long as the server allows, or less where the client asks for less. Throws 400. */
export function timeoutOf({ query }: Pick<ApiRequest, 'query'>, most: number): number {
  const wanted = query.get('timeout') ?? '';
  if (wanted === '') return most;
  let ms: number;
  try {
    const duration = parseDuration(wanted);
    ms = Number(duration.seconds) * 1000 + duration.nanos / 1e6;
  } catch (error) {
    throw badRequest(`invalid timeout specified in the request URL - ${errorMessage(error)}`);
  }
  return ms > 0 && ms < most ? ms : most;
}
