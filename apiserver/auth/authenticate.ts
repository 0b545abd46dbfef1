// Authentication: what an authenticating proxy says, else a client certificate, else a bearer token, else anonymous (undefined). An invalid credential is 401,
// never anonymous; a good token counts beside a certificate that does not. Authorization is authorize.ts.

import { TLSSocket } from 'node:tls';
import { certificateTime } from '../../lib/certificate-time.ts';
import { type EpochMs, epochMs } from '../../lib/clock.ts';
import { type HttpRequest, socketOf } from '../../lib/http-message.ts';
import { unauthorized } from '../errors.ts';
import type { Caller } from './attributes.ts';
import type { BearerTokens } from './bearer-tokens.ts';
import type { TrustedCas } from './client-ca.ts';
import type { RequestHeaders } from './request-header.ts';
import { TokenError } from './tokens.ts';

export const ANONYMOUS: Caller = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

function listOf(value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === 'string' ? [value] : value;
}

function tokenIn(authorization = ''): string | undefined {
  return /^bearer +(\S+)$/i.exec(authorization.trim())?.[1];
}

export interface AuthenticatorParts {
  readonly tokens: BearerTokens;
  readonly cas: TrustedCas;
  /** Called with how long the certificate of a request is valid yet, s. */
  readonly onCertificate?: (secondsLeft: number) => void;
  /** Absent without --requestheader-client-ca-file. */
  readonly requestHeaders?: RequestHeaders | undefined;
}

export class Authenticator {
  readonly #tokens: BearerTokens;
  readonly #cas: TrustedCas;
  readonly #onCertificate: (secondsLeft: number) => void;
  readonly #requestHeaders: RequestHeaders | undefined;
  /** A connection's certificate does not change, reading it is not free; that it has not ended is for every request. */
  readonly #byConnection = new WeakMap<TLSSocket, Certified>();

  constructor({ tokens, cas, onCertificate = () => undefined, requestHeaders }: AuthenticatorParts) {
    this.#tokens = tokens;
    this.#cas = cas;
    this.#onCertificate = onCertificate;
    this.#requestHeaders = requestHeaders;
  }

  /** What is to be waited for before `authenticate`; undefined where that is nothing, as it is for nearly every request. */
  prepare(request: HttpRequest, now: EpochMs): Promise<void> | undefined {
    const token = tokenIn(request.headers.authorization);
    return token === undefined ? undefined : this.#tokens.prepare(token, now);
  }

  /** The caller, or undefined for one that shows no credential. `now` is epoch ms. Throws 401 for a bad credential. */
  authenticate(request: HttpRequest, now: EpochMs): Caller | undefined {
    const caller = this.#identify(request, now);
    if (caller !== undefined) this.#requestHeaders?.clear(request);
    return caller;
  }

  #identify(request: HttpRequest, now: EpochMs): Caller | undefined {
    const socket = socketOf(request);
    const certified = socket instanceof TLSSocket ? this.#certificate(socket) : undefined;
    const proxied =
      certified !== undefined && now <= certified.validTo ? this.#requestHeaders?.callerOf(request) : undefined;
    if (proxied !== undefined) return proxied;
    if (certified?.caller !== undefined && now <= certified.validTo) {
      this.#onCertificate((certified.validTo - now) / 1000);
      return certified.caller;
    }
    const { authorization } = request.headers;
    if (authorization !== undefined) return this.#bearer(authorization, now);
    if (certified?.shown === true) throw unauthorized();
    return undefined;
  }

  #bearer(authorization: string, now: EpochMs): Caller {
    const token = tokenIn(authorization);
    if (token === undefined) throw unauthorized();
    try {
      return this.#tokens.check(token, [], now).caller;
    } catch (error) {
      if (error instanceof TokenError) throw unauthorized();
      throw error;
    }
  }

  #certificate(socket: TLSSocket): Certified {
    const known = this.#byConnection.get(socket);
    const { generation } = this.#cas;
    if (known !== undefined && (known.generation === generation || known.caller === undefined)) return known;
    // Those of a proxy are verified by the handshake, too, and authenticate no user by themselves.
    const isSettled = known === undefined && this.#requestHeaders === undefined;
    const certified = { ...certificateCaller(socket, isSettled ? undefined : this.#cas), generation };
    this.#byConnection.set(socket, certified);
    return certified;
  }
}

/** A connection's certificate. */
interface Certified {
  readonly shown: boolean;
  /** Undefined for none, and for one that does not verify. */
  readonly caller: Caller | undefined;
  /** Epoch ms. */
  readonly validTo: EpochMs;
  /** Of the CAs it was checked with. */
  readonly generation: number;
}

/**
 * Common name and organizations are user and groups. The handshake has verified it with the CAs of that moment; `cas`
 * are those since.
 */
function certificateCaller(socket: TLSSocket, cas: TrustedCas | undefined): Omit<Certified, 'generation'> {
  const certificate = socket.getPeerCertificate();
  // Node returns an empty object when the client sent none.
  const subject: { CN?: string | string[]; O?: string | string[] } | undefined = certificate.subject;
  if (subject === undefined) return { shown: false, caller: undefined, validTo: epochMs(0) };
  const validTo = certificateTime(certificate.valid_to);
  const refused = { shown: true, caller: undefined, validTo };
  const [name] = listOf(subject.CN);
  if (!socket.authorized || name === undefined) return refused;
  const peer = cas === undefined ? undefined : socket.getPeerX509Certificate();
  if (cas !== undefined && (peer === undefined || !cas.accepts(peer))) return refused;
  return { shown: true, caller: { name, groups: [...listOf(subject.O), 'system:authenticated'] }, validTo };
}
