// From the bytes of a question to those of its answer: what is refused before any plugin sees it, the server block of the name, and
// what is counted and logged afterwards. Knows no socket.

import type { Clock } from '../../lib/clock.ts';
import { elapsedMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { matchingZone } from '../cluster/query.ts';
import type { LogSettings } from '../corefile/settings.ts';
import type { CountedAnswer } from '../metrics.ts';
import { logLine } from '../plugins/log.ts';
import type { Handler, Request, Result } from '../plugins/plugin.ts';
import { finishReply, sizeLimit, type Transport } from '../wire/finish.ts';
import {
  CLASS_IN,
  Flag,
  HEADER_BYTES,
  headerReply,
  type Message,
  MessageError,
  parseMessage,
  type Question,
  Rcode,
} from '../wire/message.ts';
import { rcodeText, typeLabel, typeText } from '../wire/names.ts';
import { makeMessage, questionBytes } from '../wire/records.ts';
import { FailureLog } from './failure-log.ts';

/** Of questions that this server asks itself to answer one. */
const MAX_DEPTH = 10;
/** A question may bring an OPT and a signature. */
const MOST_ADDITIONALS = 2;

/** The plugins for one zone. */
export interface Chain {
  readonly handle: Handler;
  /** Whether failures are logged. */
  readonly errors: boolean;
  readonly logs: readonly LogSettings[];
}

export interface AnswererParts {
  /** "dns://address:port", for the metrics. */
  readonly server: string;
  readonly local: string;
  /** By zone. */
  readonly chains: ReadonlyMap<string, Chain>;
  readonly clock: Clock;
  readonly log: (level: 'info' | 'error', message: string) => void;
  readonly counts: { answered(answer: CountedAnswer): void; panicked(): void };
}

interface Client {
  readonly transport: Transport;
  readonly address: string;
  readonly port: number;
}

/** What is wrong with a message by its header alone; 'drop' for one that gets no answer. */
function headerFault(bytes: Buffer): number | 'drop' | undefined {
  if (bytes.length < HEADER_BYTES) return 'drop';
  const flags = bytes.readUInt16BE(2);
  // An answer to an answer would go back and forth.
  if ((flags & Flag.QR) !== 0) return 'drop';
  if (((flags >> 11) & 15) !== 0) return Rcode.NOTIMP;
  const [questions, answers, authorities, additionals = 0] = [4, 6, 8, 10].map((place) => bytes.readUInt16BE(place));
  const isOdd = questions !== 1 || answers !== 0 || (authorities ?? 0) > 1 || additionals > MOST_ADDITIONALS;
  return isOdd ? Rcode.FORMERR : undefined;
}

function readQuery(bytes: Buffer): Message | undefined {
  try {
    return parseMessage(bytes);
  } catch (error) {
    if (error instanceof MessageError) return undefined;
    throw error;
  }
}

export class Answerer {
  readonly #parts: AnswererParts;
  readonly #failures: FailureLog;

  constructor(parts: AnswererParts) {
    this.#parts = parts;
    this.#failures = new FailureLog(parts.clock, (line) => parts.log('error', line));
  }

  #zoneOf(name: string): string | undefined {
    return matchingZone(name, [...this.#parts.chains.keys()]);
  }

  /** Undefined: there is none. Never rejects. */
  async answer(bytes: Buffer, client: Client): Promise<Buffer | undefined> {
    try {
      return await this.#answer(bytes, client);
    } catch (error) {
      this.#panicked(`a message of ${bytes.length} bytes`, error);
      return undefined;
    }
  }

  async #answer(bytes: Buffer, client: Client): Promise<Buffer | undefined> {
    const fault = headerFault(bytes);
    if (fault === 'drop') return undefined;
    if (fault !== undefined) return headerReply(bytes, fault);
    const message = readQuery(bytes);
    const question = message?.question;
    if (message === undefined || question === undefined) return headerReply(bytes, Rcode.FORMERR);
    const started = this.#parts.clock.monotonic();
    const request: Request = { message, question, transport: client.transport, client, depth: 0 };
    const zone = question.class === CLASS_IN ? this.#zoneOf(question.name) : undefined;
    const result = await this.#result(request, zone);
    const rcode = result.kind === 'failure' ? result.rcode : result.message.rcode;
    const reply = result.kind === 'reply' ? result.message : emptyMessage(request);
    const finished = finishReply(message, reply, { transport: client.transport, rcode });
    const ms = elapsedMs(started, this.#parts.clock.monotonic());
    this.#count(request, zone, result, { rcode, size: finished.length, ms });
    if (zone !== undefined) this.#write(request, zone, result, finished, ms);
    return finished;
  }

  /** A question of a plugin, through all of the server blocks. */
  readonly resolve = async (request: Request): Promise<Result> => {
    if (request.depth > MAX_DEPTH) return { kind: 'failure', by: '', rcode: Rcode.SERVFAIL, error: 'too many lookups' };
    const zone = this.#zoneOf(request.question.name);
    const chain = zone === undefined ? undefined : this.#parts.chains.get(zone);
    return chain === undefined ? { kind: 'failure', by: '', rcode: Rcode.REFUSED } : chain.handle(request);
  };

  async #result(request: Request, zone: string | undefined): Promise<Result> {
    if ((request.message.edns?.version ?? 0) !== 0) return { kind: 'failure', by: '', rcode: Rcode.BADVERS };
    const chain = zone === undefined ? undefined : this.#parts.chains.get(zone);
    if (chain === undefined) return { kind: 'failure', by: '', rcode: Rcode.REFUSED };
    try {
      return await chain.handle(request);
    } catch (error) {
      this.#panicked(describe(request.question), error);
      return { kind: 'failure', by: '', rcode: Rcode.SERVFAIL, error: errorMessage(error) };
    }
  }

  /** One message that this server cannot handle must not take the others with it. */
  #panicked(what: string, error: unknown): void {
    this.#parts.counts.panicked();
    this.#parts.log('error', `${what}: ${error instanceof Error ? error.stack : error}`);
  }

  #count(
    { message, question, transport, client }: Request,
    zone: string | undefined,
    { by }: Result,
    { rcode, size, ms }: { readonly rcode: number; readonly size: number; readonly ms: number },
  ): void {
    this.#parts.counts.answered({
      server: this.#parts.server,
      zone,
      transport,
      family: client.address.includes(':') ? '2' : '1',
      type: typeLabel(question.type),
      limit: sizeLimit(message, transport),
      dnssecOk: message.edns?.dnssecOk ?? false,
      size,
      rcode,
      plugin: by,
      ms,
    });
  }

  #write(request: Request, zone: string, result: Result, finished: Buffer, durationMs: number): void {
    const { chains, log, local } = this.#parts;
    const { errors = false, logs = [] } = chains.get(zone) ?? {};
    if (errors && result.kind === 'failure' && result.error !== undefined) {
      const { rcode, error } = result;
      this.#failures.add(() => `plugin/errors: ${rcodeText(rcode)} ${describe(request.question)}: ${error}`);
    }
    if (logs.length === 0) return;
    const reply = parseMessage(finished);
    for (const settings of logs) {
      const line = logLine(settings, { request, reply, local, durationMs });
      if (line !== undefined) log('info', line);
    }
  }
}

function describe({ name, type }: Question): string {
  return `${name}. ${typeText(type)}`;
}

function emptyMessage({ message }: Request): Message {
  const none = { rcode: 0, authoritative: false, answers: [], authorities: [], additionals: [] };
  return makeMessage(questionBytes(message), none);
}
