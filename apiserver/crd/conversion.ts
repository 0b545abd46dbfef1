// Converts the objects of one definition by its webhook: several to a call, each object once for all who wait for it, and what
// was converted lately from memory. Knows neither rows nor schemas.

import { createHash, randomUUID } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { nextTurn } from '../../lib/turns.ts';
import { StatusError } from '../errors.ts';
import type { KubeObject } from '../kinds/resource.ts';
import { parseObject } from '../storage/change.ts';
import {
  ConversionFailure,
  conversionReview,
  convertedObjects,
  type FailureType,
  reviewVersion,
  shownKind,
  withMetadataOf,
} from './conversion-review.ts';
import type { WebhookClientConfig } from './types.ts';

/** Of one call. */
const MAX_OBJECTS = 256;
const MAX_BYTES = 512 * 1024;
/** Characters of all definitions' converted objects. */
const MAX_CACHED = 32 * 1024 * 1024;

/** One call of a webhook, for the metrics. */
export interface ConversionFigures {
  readonly definition: string;
  readonly from: string;
  readonly to: string;
  readonly seconds: number;
  /** '' for a success. */
  readonly failure: FailureType | '';
}

export interface ConversionParts {
  readonly clock: Clock;
  /** The answer to a review as parsed JSON. Rejects with an Error whose message says why there is none. */
  readonly call: (config: WebhookClientConfig, review: unknown) => Promise<unknown>;
  readonly observe: (figures: ConversionFigures) => void;
}

/** Converted objects as JSON, the least recently used go first. */
export class ConvertedObjects {
  readonly #texts = new Map<string, string>();
  readonly #max: number;
  #size = 0;

  constructor(max = MAX_CACHED) {
    this.#max = max;
  }

  get(key: string): string | undefined {
    const text = this.#texts.get(key);
    if (text === undefined) return undefined;
    this.#texts.delete(key);
    this.#texts.set(key, text);
    return text;
  }

  set(key: string, text: string): void {
    this.#size += text.length - (this.#texts.get(key)?.length ?? 0);
    this.#texts.delete(key);
    this.#texts.set(key, text);
    for (const [oldest, { length }] of this.#texts) {
      if (this.#size <= this.#max) return;
      this.#texts.delete(oldest);
      this.#size -= length;
    }
  }
}

interface Wanted {
  readonly object: KubeObject;
  readonly key: string;
  readonly bytes: number;
}

export interface ConversionWebhook {
  readonly clientConfig?: WebhookClientConfig;
  readonly conversionReviewVersions?: readonly string[];
}

export class VersionConverter {
  readonly #definition: string;
  readonly #webhook: ConversionWebhook;
  readonly #parts: ConversionParts;
  readonly #cache: ConvertedObjects;
  readonly #pending = new Map<string, Promise<ReadonlyMap<string, string>>>();
  readonly #id: string;

  /** `id` differs between definitions of one name. */
  constructor(
    definition: string,
    id: string,
    webhook: ConversionWebhook,
    parts: ConversionParts,
    cache: ConvertedObjects,
  ) {
    this.#definition = definition;
    this.#webhook = webhook;
    this.#parts = parts;
    this.#cache = cache;
    this.#id = `${definition} ${id} ${JSON.stringify(webhook)}`;
  }

  /** From memory; undefined where the webhook has to be called. */
  known(object: KubeObject, apiVersion: string): KubeObject | undefined {
    const text = this.#cache.get(this.#wanted(object, apiVersion).key);
    return text === undefined ? undefined : withMetadataOf(object, parseObject(text));
  }

  /** The objects in another version, in their order. Rejects with StatusError 500. */
  async convert(objects: readonly KubeObject[], apiVersion: string): Promise<KubeObject[]> {
    const wanted = objects.map((object) => this.#wanted(object, apiVersion));
    const texts = new Map<string, string>();
    const missing = new Map<string, Wanted>();
    for (const one of wanted) {
      const text = this.#cache.get(one.key);
      if (text !== undefined) texts.set(one.key, text);
      else missing.set(one.key, one);
    }
    for (const batch of batches(missing.values())) {
      await this.#convertBatch(batch, apiVersion, texts);
    }
    return wanted.map(({ object, key }) => withMetadataOf(object, parseObject(texts.get(key) ?? 'null')));
  }

  /** What the converted object depends on, as far as a webhook may know it. */
  #wanted(object: KubeObject, apiVersion: string): Wanted {
    const { resourceVersion: _version, managedFields: _fields, ...metadata } = object.metadata;
    const text = JSON.stringify({ ...object, metadata });
    const key = createHash('sha256').update(`${this.#id} ${apiVersion} `).update(text).digest('base64');
    return { object, key, bytes: text.length };
  }

  async #convertBatch(batch: readonly Wanted[], apiVersion: string, texts: Map<string, string>): Promise<void> {
    const fresh = batch.filter(({ key }) => !this.#pending.has(key));
    const others = new Set(batch.flatMap(({ key }) => this.#pending.get(key) ?? []));
    if (fresh.length > 0) {
      const call = this.#call(fresh, apiVersion).finally(() => {
        for (const { key } of fresh) this.#pending.delete(key);
      });
      for (const { key } of fresh) this.#pending.set(key, call);
      others.add(call);
    }
    for (const results of await Promise.all(others)) {
      for (const { key } of batch) {
        const text = results.get(key);
        if (text !== undefined) texts.set(key, text);
      }
    }
    await nextTurn();
  }

  async #call(batch: readonly Wanted[], apiVersion: string): Promise<ReadonlyMap<string, string>> {
    const { conversionReviewVersions = [] } = this.#webhook;
    const objects = batch.map(({ object }) => object);
    const version = reviewVersion(conversionReviewVersions);
    const uid = randomUUID();
    const began = this.#parts.clock.monotonic();
    const observe = (failure: FailureType | ''): void => {
      const seconds = (this.#parts.clock.monotonic() - began) / 1000;
      const from = objects[0]?.apiVersion.split('/')[1] ?? '';
      const to = apiVersion.split('/')[1] ?? '';
      this.#parts.observe({ definition: this.#definition, from, to, seconds, failure });
    };
    try {
      const body = await this.#post(conversionReview(version, uid, objects, apiVersion), objects);
      const converted = convertedObjects(body, version, uid, objects, apiVersion);
      const results = new Map<string, string>();
      for (const [index, { key }] of batch.entries()) {
        const text = JSON.stringify(converted[index]);
        results.set(key, text);
        this.#cache.set(key, text);
      }
      observe('');
      return results;
    } catch (error) {
      if (!(error instanceof ConversionFailure)) throw error;
      observe(error.type);
      throw new StatusError(500, '', error.message);
    }
  }

  async #post(review: unknown, [first]: readonly KubeObject[]): Promise<unknown> {
    try {
      return await this.#parts.call(this.#webhook.clientConfig ?? {}, review);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const of = first === undefined ? '' : shownKind(first);
      const message = `conversion webhook for ${of} failed: ${error.message}`;
      throw new ConversionFailure('conversion_webhook_call_failure', message);
    }
  }
}

function* batches(wanted: Iterable<Wanted>): Iterable<Wanted[]> {
  let batch: Wanted[] = [];
  let bytes = 0;
  for (const one of wanted) {
    if (batch.length === MAX_OBJECTS || (batch.length > 0 && bytes + one.bytes > MAX_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(one);
    bytes += one.bytes;
  }
  if (batch.length > 0) yield batch;
}
