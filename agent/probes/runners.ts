// The seam between deciding and probing: one runner per kind of handler. Types, and the choice among them.

import type { HttpGetRequest } from '../../lib/http-get.ts';
import type { ProbeOutcome } from './outcome.ts';
import type { ExecTarget, GrpcTarget, ProbeTarget, TcpTarget } from './target.ts';

/**
 * Probes once. Resolves also when the container is unhealthy or the probe fails; rejects only with the signal's reason, or
 * with an unexpected error.
 */
export type ProbeRunner<Target> = (target: Target, timeoutMs: number, signal: AbortSignal) => Promise<ProbeOutcome>;

export interface ProbeRunners {
  readonly exec: ProbeRunner<ExecTarget>;
  readonly httpGet: ProbeRunner<HttpGetRequest>;
  readonly tcpSocket: ProbeRunner<TcpTarget>;
  readonly grpc: ProbeRunner<GrpcTarget>;
}

export function runTarget(
  runners: ProbeRunners,
  target: ProbeTarget,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<ProbeOutcome> {
  switch (target.kind) {
    case 'exec':
      return runners.exec(target, timeoutMs, signal);
    case 'httpGet':
      return runners.httpGet(target.request, timeoutMs, signal);
    case 'tcpSocket':
      return runners.tcpSocket(target, timeoutMs, signal);
    default:
      return runners.grpc(target, timeoutMs, signal);
  }
}
