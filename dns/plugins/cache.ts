// The plugin `cache`: answers and denials are kept for a while. What may be kept, and for how long, is a function of the message;
// how much is kept has bounds. TTLs become less from hit to hit.

import { type Clock, elapsedMs, type MonotonicMs } from '../../lib/clock.ts';
import { isBelow, matchingZone } from '../cluster/query.ts';
import type { CacheSettings, CacheSide } from '../corefile/settings.ts';
import { Flag, type Message, nameAt, Rcode, Type } from '../wire/message.ts';
import type { Handler, Request } from './plugin.ts';

const NAME = 'cache';
/** Of what has no TTL of its own. Seconds. */
const SHORT_TTL = 5;
const LONGEST_TTL = 3600;
/** Of one side together. */
const MAX_BYTES = 32 * 1024 * 1024;

/** As CoreDNS's: what kind of answer it is. */
export type AnswerKind = 'success' | 'nodata' | 'nxdomain' | 'failure' | 'other';

/** Whether the aliases of an answer end at records of the type of the question. */
function answersQuestion({ bytes, question, records }: Message): boolean {
  if (question === undefined) return false;
  const answers = records.filter(({ section }) => section === 'answer');
  const owner = (start: number): string => nameAt(bytes, start).toLowerCase();
  if (question.type === Type.ANY) return answers.length > 0;
  let name = question.name;
  for (let step = 0; step <= answers.length; step++) {
    const own = answers.filter(({ start }) => owner(start) === name);
    if (own.some(({ type }) => type === question.type)) return true;
    const alias = own.find(({ type }) => type === Type.CNAME);
    if (alias === undefined) return false;
    name = nameAt(bytes, alias.dataStart).toLowerCase();
  }
  return false;
}

export function answerKind(message: Message): AnswerKind {
  const { rcode, records, question, flags, opcode } = message;
  if (opcode !== 0 || (flags & Flag.TC) !== 0) return 'other';
  if (question?.type === Type.AXFR || question?.type === Type.IXFR) return 'other';
  const hasSoa = records.some(({ section, type }) => section === 'authority' && type === Type.SOA);
  const hasAnswers = records.some(({ section }) => section === 'answer');
  if (rcode === Rcode.SERVFAIL || rcode === Rcode.NOTIMP) return 'failure';
  if (rcode === Rcode.NXDOMAIN) return hasSoa && !hasAnswers ? 'nxdomain' : 'other';
  if (rcode !== Rcode.NOERROR) return 'other';
  if (!hasAnswers) return hasSoa ? 'nodata' : 'success';
  if (answersQuestion(message)) return 'success';
  // An alias without an end says nothing for long.
  return hasSoa ? 'nodata' : 'other';
}

/** The least TTL of a message, seconds. */
export function leastTtl({ records }: Message): number {
  const ttls = records.flatMap(({ type, ttl }) => (type === Type.OPT ? [] : [ttl]));
  return ttls.length === 0 ? SHORT_TTL : Math.min(LONGEST_TTL, ...ttls);
}

/** How long this message may be kept, and its TTLs from now on: seconds. */
export function keepFor(message: Message, kind: AnswerKind, settings: CacheSettings): number {
  const within = ({ minTtl, maxTtl }: CacheSide, ttl: number): number => Math.min(Math.max(ttl, minTtl), maxTtl);
  if (kind === 'failure') return settings.servfailTtl;
  if (kind === 'nxdomain' || kind === 'nodata') return within(settings.denial, leastTtl(message));
  return within(settings.success, kind === 'success' ? leastTtl(message) : SHORT_TTL);
}

/** The same message with this TTL in each record. */
function withTtl(message: Message, ttl: number, flags = message.flags): Message {
  const bytes = Buffer.from(message.bytes);
  for (const { type, typeStart } of message.records) {
    if (type !== Type.OPT) bytes.writeUInt32BE(ttl, typeStart + 4);
  }
  return { ...message, bytes, flags };
}

interface Entry {
  readonly message: Message;
  readonly storedAt: MonotonicMs;
  /** Seconds. */
  readonly ttl: number;
}

/** One side: the oldest entries give way. */
export class AnswerStore {
  readonly #entries = new Map<string, Entry>();
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #capacity: number;
  readonly #onEvict: () => void;
  #bytes = 0;

  constructor(clock: Pick<Clock, 'monotonic'>, capacity: number, onEvict: () => void) {
    this.#clock = clock;
    this.#capacity = capacity;
    this.#onEvict = onEvict;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** With the seconds that are left; undefined: there is none that is still good. */
  get(key: string): (Entry & { readonly left: number }) | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const left = entry.ttl - Math.floor(elapsedMs(entry.storedAt, this.#clock.monotonic()) / 1000);
    if (left > 0) return { ...entry, left };
    this.#remove(key, entry);
    return undefined;
  }

  put(key: string, message: Message, ttl: number): void {
    const old = this.#entries.get(key);
    if (old !== undefined) this.#remove(key, old);
    this.#entries.set(key, { message, storedAt: this.#clock.monotonic(), ttl });
    this.#bytes += message.bytes.length;
    for (const [oldest, entry] of this.#entries) {
      if (this.#entries.size <= this.#capacity && this.#bytes <= MAX_BYTES) break;
      this.#remove(oldest, entry);
      this.#onEvict();
    }
  }

  #remove(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#bytes -= entry.message.bytes.length;
  }
}

export type CacheSideName = 'success' | 'denial';

/** What the plugin counts. */
export interface CacheCounts {
  request(): void;
  hit(side: CacheSideName): void;
  miss(): void;
  evicted(side: CacheSideName): void;
  entries(side: CacheSideName, count: number): void;
}

function keyOf({ message, question }: Request): string {
  const dnssec = message.edns?.dnssecOk === true ? 1 : 0;
  const unchecked = (message.flags & Flag.CD) === 0 ? 0 : 1;
  return `${dnssec}${unchecked} ${question.type} ${question.class} ${question.name}`;
}

export function cachePlugin(settings: CacheSettings, clock: Clock, counts: CacheCounts, next: Handler): Handler {
  const success = new AnswerStore(clock, settings.success.capacity, () => counts.evicted('success'));
  const denial = new AnswerStore(clock, settings.denial.capacity, () => counts.evicted('denial'));
  const sides = { success, denial };
  return async (request) => {
    const { name } = request.question;
    if (matchingZone(name, settings.zones) === undefined) return next(request);
    const key = keyOf(request);
    counts.request();
    for (const side of ['denial', 'success'] as const) {
      const hit = sides[side].get(key);
      if (hit === undefined) continue;
      counts.hit(side);
      const { message, left, ttl } = hit;
      // Some resolvers drop answers that are not authoritative.
      const aged = withTtl(message, settings.keepTtl ? ttl : left, message.flags | Flag.AA);
      return { kind: 'reply', by: NAME, message: aged };
    }
    counts.miss();
    const result = await next(request);
    if (result.kind === 'failure') return result;
    const kind = answerKind(result.message);
    const ttl = keepFor(result.message, kind, settings);
    const message = withTtl(result.message, ttl);
    const side = kind === 'success' ? 'success' : 'denial';
    const isExcepted = settings[side].except.some((zone) => isBelow(name, zone));
    if (kind !== 'other' && ttl > 0 && !isExcepted) {
      sides[side].put(key, message, ttl);
      counts.entries(side, sides[side].size);
    }
    return { ...result, message };
  };
}
