// What accompanies one request from its head to the end of its response: its audit record, and its place among those that
// are served at a time.

import { TLSSocket } from 'node:tls';
import { type Clock, type EpochMs, elapsedMs, type MonotonicMs } from '../../lib/clock.ts';
import { type HttpRequest, socketOf } from '../../lib/http-message.ts';
import type { Audit, RequestAudit } from '../audit/audit.ts';
import type { Attributes, Caller } from '../auth/attributes.ts';
import type { RequestGate } from './gate.ts';
import type { ApiRequest } from './request.ts';

export interface VisitParts {
  readonly message: HttpRequest;
  readonly parsed: ApiRequest;
  /** Of a request for a resource. */
  readonly attributes: Attributes | undefined;
  readonly auditId: string;
  readonly longRunning: boolean;
  readonly audit: Audit | undefined;
  readonly gate: RequestGate;
  readonly clock: Clock;
}

export class Visit {
  readonly #parts: VisitParts;
  readonly #received: EpochMs;
  readonly #began: MonotonicMs;
  #leave: () => void = () => undefined;
  #isKnown = false;
  /** Undefined where the policy wants no events. */
  audit: RequestAudit | undefined;
  /** Called with how long it has waited for its place, ms. */
  onWaited: (ms: number) => void = () => undefined;
  /** Sets a header of the response. */
  setHeader: (name: string, value: string) => void = () => undefined;

  constructor(parts: VisitParts) {
    this.#parts = parts;
    this.#received = parts.clock.now();
    this.#began = parts.clock.monotonic();
  }

  get longRunning(): boolean {
    return this.#parts.longRunning;
  }

  /** How long it has taken so far, ms. */
  elapsed(): number {
    return elapsedMs(this.#began, this.#parts.clock.monotonic());
  }

  async waits(place: Promise<void>): Promise<void> {
    const began = this.elapsed();
    try {
      await place;
    } finally {
      this.onWaited(this.elapsed() - began);
    }
  }

  /** It is known who calls; in whose name is not decided yet. */
  authenticated(caller: Caller): void {
    this.#isKnown = true;
    this.#begin(caller);
    this.audit?.received();
  }

  /**
   * Takes a place among the requests that are served. Where it has to wait for one, the promise resolves when it has it, or
   * rejects with OverloadError. Throws OverloadError.
   */
  enter(caller: Caller, timeoutMs: number): Promise<void> | undefined {
    const { gate, parsed, longRunning } = this.#parts;
    const place = gate.enter(parsed, caller, { longRunning, timeoutMs, setHeader: this.setHeader });
    this.#leave = () => place.leave();
    return place.ready;
  }

  /** It goes on, but takes no place any more: a watch that has sent its first events. */
  leavePlace(): void {
    this.#leave();
  }

  /** It was refused before it was served. */
  refused(): void {
    if (this.#isKnown) return;
    this.#begin(undefined);
    this.audit?.unauthenticated(failedAuthentication(this.#parts.message));
  }

  /** The response is over; `code` is undefined when none began. Idempotent. */
  end(code: number | undefined): void {
    this.#leave();
    this.audit?.complete(code);
  }

  #begin(user: Caller | undefined): void {
    const { audit, message, parsed, attributes, auditId, longRunning } = this.#parts;
    const version = parsed.kind === 'resource' ? parsed.version : '';
    const resource =
      attributes === undefined
        ? undefined
        : {
            group: attributes.group,
            resource: attributes.resource,
            subresource: attributes.subresource,
            namespace: attributes.namespace,
            name: attributes.name,
          };
    const request = { verb: parsed.verb, path: parsed.path, resource };
    this.audit = audit?.begin({ auditId, message, request, version, longRunning, received: this.#received }, user);
  }
}

/** Upstream's words for what was tried. */
function failedAuthentication(message: HttpRequest): string {
  const { authorization = '' } = message.headers;
  const socket = socketOf(message);
  const methods = [
    ...(/^basic /i.test(authorization) ? ['basic'] : []),
    ...(/^bearer /i.test(authorization) ? ['bearer'] : []),
    ...(socket instanceof TLSSocket && socket.getPeerX509Certificate() !== undefined ? ['x509'] : []),
  ];
  if (methods.length === 0) return 'Authentication failed, no credentials provided';
  return `Authentication failed, attempted: ${methods.join(', ')}`;
}
