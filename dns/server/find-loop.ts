// How the plugin `loop` finds out: the server sends itself a question that only it knows, and the detector counts how often it comes.

import { sleepUnlessAborted } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { poll } from '../../lib/retry.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { LoopDetector } from '../plugins/loop.ts';
import { Type } from '../wire/message.ts';
import { makeQuery } from '../wire/records.ts';

/** For the question, and for what comes back of it. ms, CoreDNS's. */
const TRY_MS = 30_000;
const PAUSE_MS = 1000;
const WATCH_MS = 2000;
const MAX_ID = 65_536;

interface Parts {
  /** This server as it is written in the span: "dns://127.0.0.1:53". */
  readonly server: string;
  /** Sends a query to this server and resolves with the response. */
  readonly send: (query: Buffer) => Promise<unknown>;
  readonly tracer: Tracer;
  readonly clock: Clock;
  /** 0 ≤ x < 1 */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/** Resolves when a loop would have shown, or when `signal` aborts; the detector is off from then on. Never rejects. */
export async function findLoop(detector: Pick<LoopDetector, 'name' | 'reset' | 'off'>, parts: Parts): Promise<void> {
  const { server, send, tracer, clock, random, signal } = parts;
  const ask = async (): Promise<boolean> => {
    detector.reset();
    const query = makeQuery(Math.floor(random() * MAX_ID), detector.name, Type.HINFO);
    const attributes = { upstream: server, transport: 'udp', question: detector.name, type: 'HINFO' };
    try {
      await tracer.span('dns', 'loop check', attributes, () => send(query));
      return true;
    } catch {
      // No answer yet: upstreams that are away answer nothing either.
      return false;
    }
  };
  try {
    await poll(() => signal.aborted || ask(), { clock, everyMs: PAUSE_MS, limitMs: TRY_MS });
    // What goes round comes back within this time.
    await sleepUnlessAborted(clock, WATCH_MS, signal);
  } finally {
    detector.off();
  }
}
