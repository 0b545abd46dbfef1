// One watch on everything below the prefix, for as long as the store is open: broken streams are opened again where the cache
// is, at the next endpoint. Hands on whole revisions in order.

import type { Clock, Timer } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { Event__Output } from '../../../proto/gen/etcdserverpb/Event.ts';
import type { KeyValue__Output } from '../../../proto/gen/etcdserverpb/KeyValue.ts';
import type { WatchResponse__Output } from '../../../proto/gen/etcdserverpb/WatchResponse.ts';
import { prefixEnd } from '../keys.ts';
import type { EtcdClient, WatchStream } from './client.ts';

export interface KeyEvent {
  readonly kv: KeyValue__Output;
  readonly deleted: boolean;
}

export interface WatcherOptions {
  readonly client: EtcdClient;
  readonly prefix: string;
  /** What has been handed on. */
  readonly revision: () => number;
  readonly changed: (revision: number, events: readonly KeyEvent[]) => void;
  /** Nothing below the prefix changed up to here. */
  readonly advanced: (revision: number) => void;
  /** The changes since `revision` are compacted: everything has to be listed. */
  readonly compacted: () => Promise<void>;
  readonly clock: Clock;
  readonly log: (line: string) => void;
}

const RETRY_MS = 500;

export class Watcher {
  readonly #options: WatcherOptions;
  #stream: WatchStream | undefined;
  #retry: Timer | undefined;
  #stopped = false;
  #failing = false;
  /** Parts of a response that does not fit in one message. */
  #fragments: Event__Output[] = [];

  constructor(options: WatcherOptions) {
    this.#options = options;
  }

  start(): void {
    const { client, prefix, revision } = this.#options;
    if (this.#stopped) return;
    const stream = client.watch();
    this.#stream = stream;
    this.#fragments = [];
    stream.on('data', (response: WatchResponse__Output) => {
      if (this.#stream === stream) this.#received(response);
    });
    stream.on('error', (error) => this.#ended(stream, errorMessage(error)));
    stream.on('end', () => this.#ended(stream, 'the stream ended'));
    stream.write({
      create_request: {
        key: Buffer.from(prefix),
        range_end: prefixEnd(prefix),
        start_revision: revision() + 1,
        progress_notify: true,
        fragment: true,
      },
    });
  }

  /** Requests how far the watch is; the reply comes to `advanced`. */
  requestProgress(): void {
    this.#stream?.write({ progress_request: {} });
  }

  #received(response: WatchResponse__Output): void {
    if (this.#failing) {
      this.#failing = false;
      this.#options.log('the watch on etcd is open again');
    }
    if (response.canceled) {
      this.#canceled(response);
      return;
    }
    this.#fragments.push(...response.events);
    if (response.fragment) return;
    const events = this.#fragments;
    this.#fragments = [];
    const { changed, advanced, revision } = this.#options;
    if (events.length === 0) {
      // The reply to its creation has etcd's revision, which the watch need not have reached.
      if (!response.created) advanced(Number(response.header?.revision ?? 0));
      return;
    }
    for (const [at, group] of byRevision(events)) if (at > revision()) changed(at, group);
  }

  #canceled({ compact_revision, cancel_reason }: WatchResponse__Output): void {
    const stream = this.#stream;
    this.#stream = undefined;
    stream?.cancel();
    const { compacted, log } = this.#options;
    if (Number(compact_revision) === 0) {
      this.#again(cancel_reason);
      return;
    }
    log(`etcd compacted changes that were not read: everything is listed again`);
    compacted().then(
      () => this.start(),
      (error) => this.#again(errorMessage(error)),
    );
  }

  #ended(stream: WatchStream, why: string): void {
    if (this.#stream !== stream) return;
    this.#stream = undefined;
    this.#options.client.nextEndpoint();
    this.#again(why);
  }

  #again(why: string): void {
    if (this.#stopped) return;
    if (!this.#failing) this.#options.log(`the watch on etcd ended, and is opened again: ${why}`);
    this.#failing = true;
    this.#retry = this.#options.clock.after(RETRY_MS, () => this.start());
  }

  stop(): void {
    this.#stopped = true;
    this.#retry?.cancel();
    const stream = this.#stream;
    this.#stream = undefined;
    stream?.cancel();
  }
}

function byRevision(events: readonly Event__Output[]): Map<number, KeyEvent[]> {
  const groups = new Map<number, KeyEvent[]>();
  for (const { kv, type } of events) {
    if (kv === null) continue;
    const revision = Number(kv.mod_revision);
    const group = groups.get(revision) ?? [];
    groups.set(revision, group);
    group.push({ kv, deleted: type === 'DELETE' });
  }
  return groups;
}
