// The flags of `nodelet apiserver` about HTTP/2, by kube-apiserver's names.

import type { Command } from 'commander';
import type { Http2ServingOptions } from '../../apiserver/options.ts';
import { UserError } from '../../lib/errors.ts';

export interface Http2Flags {
  readonly http2MaxStreamsPerConnection: number;
  readonly disableHttp2Serving: boolean;
  readonly goawayChance: number;
}

/** What clients of kube-apiserver get without the flag. */
const DEFAULT_STREAMS = 100;
/** As upstream: one request in fifty. */
const MAX_GOAWAY_CHANCE = 0.02;
const STREAMS_FLAG = '--http2-max-streams-per-connection';

function streams(text: string): number {
  const count = Number(text);
  if (!/^\d{1,9}$/.test(text)) throw new UserError(`${STREAMS_FLAG}: "${text}" is no number of streams`);
  return count;
}

function chance(text: string): number {
  const value = Number(text);
  if (!/^[\d.]+$/.test(text) || Number.isNaN(value) || value > MAX_GOAWAY_CHANCE) {
    throw new UserError(`--goaway-chance can not be less than 0 or greater than 0.02: "${text}"`);
  }
  return value;
}

export function addHttp2Flags(command: Command): void {
  command
    .option(
      `${STREAMS_FLAG} <count>`,
      `most concurrent streams of a client’s connection; 0 is ${DEFAULT_STREAMS}`,
      streams,
      0,
    )
    .option('--disable-http2-serving', 'serve HTTP/1.1 only', false)
    .option(
      '--goaway-chance <fraction>',
      'fraction of requests after which an HTTP/2 client is sent GOAWAY, to reconnect through a load balancer; at most 0.02',
      chance,
      0,
    );
}

export function http2Options({ http2MaxStreamsPerConnection, ...flags }: Http2Flags): Http2ServingOptions {
  return {
    isDisabled: flags.disableHttp2Serving,
    maxStreams: http2MaxStreamsPerConnection === 0 ? DEFAULT_STREAMS : http2MaxStreamsPerConnection,
    goawayChance: flags.goawayChance,
  };
}
