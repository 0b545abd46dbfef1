// One change of one object, as the history keeps it and as every watcher shares it: parsed and encoded at most once,
// however many watch. Never written to: watchers of all kinds read the same objects.

import type { KubeObject } from '../kinds/resource.ts';

export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED';

export interface ChangeRecord {
  readonly type: ChangeType;
  readonly revision: number;
  /** "<group>/<plural>" */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  /** JSON of the object after the change; for DELETED its last stored state, with the revision of the deletion. */
  readonly text: string;
  /** JSON of the object before it, with the revision it then had. */
  readonly previousText?: string;
}

export class Change {
  readonly record: ChangeRecord;
  #object: KubeObject | undefined;
  #previous: KubeObject | undefined;
  readonly #encoded = new Map<string, Buffer>();

  /** `object` and `previous` are what the texts say, where the writer has them at hand. */
  constructor(record: ChangeRecord, object?: KubeObject, previous?: KubeObject) {
    this.record = record;
    this.#object = object;
    this.#previous = previous;
  }

  /** The object after the change. Read only. */
  get object(): Readonly<KubeObject> {
    this.#object ??= parseObject(this.record.text);
    return this.#object;
  }

  /** The object before the change; undefined for one that was not there. Read only. */
  get previous(): Readonly<KubeObject> | undefined {
    if (this.#previous === undefined && this.record.previousText !== undefined) {
      this.#previous = parseObject(this.record.previousText);
    }
    return this.#previous;
  }

  /** The result of `encode` for this change, computed once per `key` and shared by all watchers with that key. */
  encoded(key: string, encode: () => string | Buffer): Buffer {
    let bytes = this.#encoded.get(key);
    if (bytes === undefined) {
      const made = encode();
      bytes = typeof made === 'string' ? Buffer.from(made) : made;
      this.#encoded.set(key, bytes);
    }
    return bytes;
  }
}

/** Reads back what the store wrote. */
export function parseObject(text: string): KubeObject {
  return JSON.parse(text);
}

/** An object as its deletion at `revision` shows it: as it was last stored, with that revision. */
export function lastState(previous: Readonly<KubeObject>, revision: number): KubeObject {
  return { ...previous, metadata: { ...previous.metadata, resourceVersion: String(revision) } };
}
