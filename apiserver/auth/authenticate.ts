// Authentication: a client certificate of the lab's CA, else a service account token, else anonymous (undefined). An
// invalid credential is 401, never anonymous. Authorization is authorize.ts.

import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { certificateTime } from '../../lib/certificate-time.ts';
import type { EpochMs } from '../../lib/clock.ts';
import { unauthorized } from '../errors.ts';
import type { ObjectLookup } from '../kinds/resource.ts';
import type { Caller } from '../registry/registry.ts';
import { ISSUER, type ServiceAccountTokens, TokenError } from './tokens.ts';

export const ANONYMOUS: Caller = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

function listOf(value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === 'string' ? [value] : value;
}

export class Authenticator {
  readonly #tokens: ServiceAccountTokens;
  readonly #lookup: ObjectLookup;
  /** A connection's certificate does not change, reading it is not free; that it has not ended is for every request. */
  readonly #byConnection = new WeakMap<TLSSocket, Certified | null>();

  constructor(tokens: ServiceAccountTokens, lookup: ObjectLookup) {
    this.#tokens = tokens;
    this.#lookup = lookup;
  }

  /** The caller, or undefined for one that shows no credential. `now` is epoch ms. Throws 401 for a bad credential. */
  authenticate(request: IncomingMessage, now: EpochMs): Caller | undefined {
    const { socket } = request;
    const certified = socket instanceof TLSSocket ? this.#certificate(socket) : null;
    if (certified !== null) {
      if (now > certified.validTo) throw unauthorized();
      return certified.caller;
    }
    const { authorization } = request.headers;
    if (authorization === undefined) return undefined;
    const match = /^bearer +(\S+)$/i.exec(authorization.trim());
    const token = match?.[1];
    if (token === undefined) throw unauthorized();
    try {
      return this.#tokens.check(token, [ISSUER], this.#lookup, now).caller;
    } catch (error) {
      if (error instanceof TokenError) throw unauthorized();
      throw error;
    }
  }

  #certificate(socket: TLSSocket): Certified | null {
    let certified = this.#byConnection.get(socket);
    if (certified === undefined) {
      certified = certificateCaller(socket);
      this.#byConnection.set(socket, certified);
    }
    return certified;
  }
}

/** A certificate's identity, and when it ends, epoch ms. */
interface Certified {
  readonly caller: Caller;
  readonly validTo: EpochMs;
}

/** Common name and organizations are user and groups. Throws 401 for a certificate that does not verify. */
function certificateCaller(socket: TLSSocket): Certified | null {
  const certificate = socket.getPeerCertificate();
  // Node returns an empty object when the client sent none.
  const subject: { CN?: string | string[]; O?: string | string[] } | undefined = certificate.subject;
  if (subject === undefined) return null;
  if (!socket.authorized) throw unauthorized();
  const [name] = listOf(subject.CN);
  if (name === undefined) throw unauthorized();
  const caller = { name, groups: [...listOf(subject.O), 'system:authenticated'] };
  return { caller, validTo: certificateTime(certificate.valid_to) };
}
