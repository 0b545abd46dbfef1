// Runs grpc probes: Check of grpc.health.v1.Health, on a connection of its own, without TLS. Whatever goes wrong is a
// failure, as for the grpc_health_probe tool.

import { isIPv4, isIPv6 } from 'node:net';
import { type ChannelOptions, credentials, type ServiceError, status } from '@grpc/grpc-js';
import { abortable } from '../../lib/abort.ts';
import { type Clock, plusMs } from '../../lib/clock.ts';
import { cutText, MAX_OUTPUT_BYTES } from '../../lib/cut.ts';
import { goDuration } from '../../lib/go-duration.ts';
import { goQuote, goRpcError, joinHostPort } from '../../lib/go-words.ts';
import { loadProto } from '../../proto/load.ts';
import { userAgent } from '../model/http-action.ts';
import type { ProbeOutcome } from './outcome.ts';
import type { ProbeRunner } from './runners.ts';
import type { GrpcTarget } from './target.ts';

const CHANNEL: ChannelOptions = {
  'grpc.primary_user_agent': userAgent('probe'),
  // A connection per probe, closed with it.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
};

function failure(output: string): ProbeOutcome {
  return { kind: 'failure', output };
}

function outcomeOfError(error: ServiceError, timeoutMs: number): ProbeOutcome {
  // The words of a program in a container.
  const details = cutText(error.details, MAX_OUTPUT_BYTES);
  switch (error.code) {
    case status.UNIMPLEMENTED: {
      const what = 'this server does not implement the grpc health protocol (grpc.health.v1.Health)';
      return failure(`error: ${what}: ${details}`);
    }
    case status.DEADLINE_EXCEEDED:
      return failure(`timeout: health rpc did not complete within ${goDuration(timeoutMs)}`);
    default:
      return failure(`error: health rpc probe failed: ${goRpcError(status[error.code] ?? '', details)}`);
  }
}

function addressOf(host: string, address: string): string {
  return isIPv4(host) ? `ipv4:${address}` : isIPv6(host) ? `ipv6:${address}` : `dns:${address}`;
}

export function createGrpcRunner(clock: Clock): ProbeRunner<GrpcTarget> {
  return ({ host, port, service }, timeoutMs, signal) => {
    const { Health } = loadProto('grpc-health').grpc.health.v1;
    const address = joinHostPort(host, port);
    const client = new Health(addressOf(host, address), credentials.createInsecure(), {
      ...CHANNEL,
      'grpc.default_authority': address,
    });
    const deadline = plusMs(clock.now(), timeoutMs);
    const checked = new Promise<ProbeOutcome>((resolve) => {
      client.waitForReady(deadline, (unreachable) => {
        if (unreachable !== undefined) {
          const within = `within ${goDuration(timeoutMs)}: context deadline exceeded`;
          resolve(failure(`timeout: failed to connect service ${goQuote(address)} ${within}`));
          return;
        }
        client.Check({ service }, { deadline }, (error, response) => {
          if (error !== null) resolve(outcomeOfError(error, timeoutMs));
          else if (response?.status === 'SERVING') resolve({ kind: 'success', output: 'service healthy' });
          else resolve(failure(`service unhealthy (responded with ${goQuote(response?.status ?? 'UNKNOWN')})`));
        });
      });
    });
    return abortable(checked, signal).finally(() => client.close());
  };
}
