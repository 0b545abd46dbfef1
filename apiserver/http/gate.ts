// Where a request waits until it may be served: with priority and fairness in the queue of its flow, else at the limits of
// in-flight.ts.

import type { Caller } from '../auth/attributes.ts';
import type { FlowControl, Place } from '../flowcontrol/flow-control.ts';
import type { FlowRequest } from '../flowcontrol/match.ts';
import type { Widths } from '../flowcontrol/widths.ts';
import type { ApiRequest } from './request.ts';

export interface GateOptions {
  /** A watch, a log, a stream. */
  readonly longRunning: boolean;
  /** How long the request may take, ms. */
  readonly timeoutMs: number;
  /** Sets a header of the response. */
  readonly setHeader: (name: string, value: string) => void;
}

export interface RequestGate {
  /** Throws OverloadError for a request that is refused at once. */
  enter(request: ApiRequest, caller: Caller, options: GateOptions): Place;
}

export const NO_PLACE: Place = { leave: () => undefined };

export function isWatch(request: ApiRequest): boolean {
  return request.kind === 'resource' && request.verb === 'watch' && request.subresource === '';
}

function flowRequestOf(request: ApiRequest, { name: user, groups }: Caller): FlowRequest {
  const { verb, path } = request;
  if (request.kind === 'path') return { user, groups, verb, path };
  return { user, groups, verb, path, resource: request };
}

/** Priority and fairness. Of long-running requests only watches are limited, until they have sent their first events. */
export class FlowGate implements RequestGate {
  readonly #flow: FlowControl;
  readonly #widths: Widths;

  constructor(flow: FlowControl, widths: Widths) {
    this.#flow = flow;
    this.#widths = widths;
  }

  enter(request: ApiRequest, caller: Caller, { longRunning, timeoutMs, setHeader }: GateOptions): Place {
    const watches = isWatch(request);
    if (longRunning && !watches) return NO_PLACE;
    return this.#flow.enter(flowRequestOf(request, caller), {
      seats: request.kind === 'resource' ? this.#widths.seatsOf(request) : 1,
      isWatch: watches,
      // As upstream: a quarter of the time it has.
      waitMs: timeoutMs / 4,
      classified: (schema, level) => {
        // UIDs and no names, so that clients learn nothing of how they are ranked.
        setHeader('X-Kubernetes-PF-FlowSchema-UID', schema);
        setHeader('X-Kubernetes-PF-PriorityLevel-UID', level);
      },
    });
  }
}
