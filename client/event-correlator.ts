// Decides what becomes of an event before it is sent: a new object, one more count on an earlier one, or nothing. The
// rules and figures are those of client-go's EventCorrelator: spam filter, aggregation of similar events, counting of
// equal ones. No I/O and no clock; the state is bounded.

import { createHash } from 'node:crypto';
import type { EpochMs } from '../lib/clock.ts';
import type { Event } from './types.ts';

/** An event as we make it: everything that identifies it is there. */
export type OutgoingEvent = Event & {
  metadata: { name: string; namespace: string };
  count: number;
  firstTimestamp: string;
  lastTimestamp: string;
};

export type Correlation =
  | { readonly kind: 'drop' }
  | { readonly kind: 'create'; readonly key: string; readonly event: OutgoingEvent }
  | {
      readonly kind: 'patch';
      readonly key: string;
      readonly event: OutgoingEvent;
      readonly patch: { readonly count: number; readonly lastTimestamp: string; readonly message?: string };
    };

/** The maximum of objects, keys and buckets that are kept. */
const CACHE_SIZE = 4096;
/** More different messages than this for one object and reason within the interval are folded together. */
const MAX_SIMILAR_EVENTS = 10;
const SIMILAR_INTERVAL_MS = 600_000;
/** Events of one object: 25 at once, then one every 5 minutes. */
const SPAM_BURST = 25;
const SPAM_REFILL_MS = 300_000;

/** An LRU map. */
class Recent<V> {
  readonly #entries = new Map<string, V>();
  get(key: string): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }
  set(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= CACHE_SIZE) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }
}

interface Observation {
  readonly name: string;
  readonly count: number;
  readonly firstTimestamp: string;
}

export class EventCorrelator {
  readonly #observed = new Recent<Observation>();
  readonly #similar = new Recent<{ readonly messages: ReadonlySet<string>; readonly last: number }>();
  readonly #buckets = new Recent<{ readonly tokens: number; readonly at: EpochMs }>();

  /** `now` in epoch ms. Counts the event, whether or not it is then dropped. */
  correlate(event: OutgoingEvent, now: EpochMs): Correlation {
    const { key, event: candidate } = this.#aggregate(event, now);
    const earlier = this.#observed.get(key);
    const counted: OutgoingEvent =
      earlier === undefined
        ? candidate
        : {
            ...candidate,
            metadata: { ...candidate.metadata, name: earlier.name },
            count: earlier.count + 1,
            firstTimestamp: earlier.firstTimestamp,
          };
    this.#observed.set(key, {
      name: counted.metadata.name,
      count: counted.count,
      firstTimestamp: counted.firstTimestamp,
    });
    if (!this.#takeToken(spamKey(event), now)) return { kind: 'drop' };
    if (counted.count <= 1) return { kind: 'create', key, event: counted };
    const { count, lastTimestamp, message } = counted;
    return {
      kind: 'patch',
      key,
      event: counted,
      patch: { count, lastTimestamp, ...(message === undefined ? {} : { message }) },
    };
  }

  /** Past ten different messages, one event is recorded for all of its kind, under a key without the message. */
  #aggregate(event: OutgoingEvent, now: EpochMs): { key: string; event: OutgoingEvent } {
    const similarKey = aggregateKey(event);
    const known = this.#similar.get(similarKey);
    const messages = new Set(known !== undefined && now - known.last <= SIMILAR_INTERVAL_MS ? known.messages : []);
    messages.add(messageKey(event));
    const many = messages.size >= MAX_SIMILAR_EVENTS;
    if (many) {
      // The set stays at the limit instead of growing.
      for (const message of messages) {
        messages.delete(message);
        break;
      }
    }
    this.#similar.set(similarKey, { messages, last: now });
    if (!many) return { key: fullKey(event), event };
    return {
      key: similarKey,
      event: { ...event, message: `(combined from similar events): ${event.message ?? ''}` },
    };
  }

  #takeToken(key: string, now: EpochMs): boolean {
    const bucket = this.#buckets.get(key) ?? { tokens: SPAM_BURST, at: now };
    const refilled = Math.min(SPAM_BURST, bucket.tokens + Math.max(0, now - bucket.at) / SPAM_REFILL_MS);
    const granted = refilled >= 1;
    this.#buckets.set(key, { tokens: granted ? refilled - 1 : refilled, at: now });
    return granted;
  }
}

function join(...parts: readonly (string | undefined)[]): string {
  return JSON.stringify(parts.map((part) => part ?? ''));
}

function spamKey({ source, involvedObject: object }: OutgoingEvent): string {
  return join(
    source?.component,
    source?.host,
    object.kind,
    object.namespace,
    object.name,
    object.uid,
    object.apiVersion,
  );
}

/** The identity of a message: the digest of a long one. */
function messageKey({ message = '' }: OutgoingEvent): string {
  return message.length <= 256 ? message : createHash('sha256').update(message).digest('base64');
}

function aggregateKey(event: OutgoingEvent): string {
  return join(spamKey(event), event.type, event.reason, event.reportingComponent, event.reportingInstance);
}

function fullKey(event: OutgoingEvent): string {
  return join(spamKey(event), event.involvedObject.fieldPath, event.type, event.reason, messageKey(event));
}
