// Watches: which events a watcher receives, and in which order: of the objects that its selectors match. One that begins
// to match is ADDED for it, one that no longer does is DELETED. A watch sends the stored objects, then the changes since, in
// parts and no faster than its sink takes them, then follows the writes; one that falls behind reads the store again
// from its revision. Never writes to a connection: http/watch.ts does.

import { expired } from '../errors.ts';
import { type KubeObject, Pending, type ResourceKind } from '../kinds/resource.ts';
import { type Change, lastState } from '../storage/change.ts';
import { CompactedError } from '../storage/object-store.ts';
import { type ObjectPage, parseResourceVersion, readObjects } from './list.ts';
import { checkWatchOptions } from './list-options.ts';
import { type Registry, View } from './registry.ts';
import type { Selection } from './selectors.ts';

export interface WatchOptions {
  readonly namespace?: string;
  readonly selection: Selection;
  readonly resourceVersion: string;
  readonly resourceVersionMatch: string;
  readonly allowBookmarks: boolean;
  /** Absent: by resourceVersion ('' and '0' start with the stored objects). */
  readonly sendInitialEvents?: boolean;
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly revision: number;
  readonly view: () => View;
  /** Where an encoding of this event can be shared with other watchers that see it the same way. */
  readonly change?: Change;
}

export interface WatchSink {
  event(event: WatchEvent): void;
  /** `initialEventsEnd`: everything that was there at the start has been sent. */
  bookmark(revision: number, initialEventsEnd: boolean): void;
  /** Whether so much is unread that no more should be sent. */
  isFull(): boolean;
  /** Calls back once, when there is room again. */
  whenDrained(resume: () => void): void;
  /** The watch cannot go on, as when the history it needs is gone. Nothing follows. */
  failed(error: unknown): void;
}

export interface Watch {
  /** Ends it. Idempotent. */
  stop(): void;
  /** Everything up to here has been sent, for a bookmark; undefined before the initial objects are complete. */
  position(): number | undefined;
}

/** What is read and sent in one turn of the event loop, in bytes of JSON. */
const PART_BYTES = 256 * 1024;

/** What one change is to a watcher with this selection, or undefined when it is none of its business. */
export function seenBy(
  selection: Selection,
  change: Change,
  convert: (object: Readonly<KubeObject>) => Readonly<KubeObject>,
): WatchEvent['type'] | undefined {
  const { type } = change.record;
  if (selection.name !== undefined && selection.name !== change.record.name) return undefined;
  if (selection.everything) return type;
  const before = change.previous !== undefined && selection.matches(convert(change.previous));
  if (type === 'DELETED') return before ? 'DELETED' : undefined;
  const after = selection.matches(convert(change.object));
  if (after) return before ? 'MODIFIED' : 'ADDED';
  return before ? 'DELETED' : undefined;
}

/** The view a watcher gets: after the change, or what it last saw with the new revision when the object left its sight. */
function viewOf(row: ResourceKind, change: Change, type: WatchEvent['type']): View {
  const { record, previous } = change;
  const left = type === 'DELETED' && record.type !== 'DELETED' && previous !== undefined;
  if (!left && row.storedAs === undefined) return new View(record.text, change.object);
  const seen: Readonly<KubeObject> = left ? previous : change.object;
  const copy = row.storedAs === undefined ? seen : row.storedAs.fromStored(structuredClone(seen));
  const object = left ? lastState(copy, record.revision) : copy;
  return new View(JSON.stringify(object), object);
}

/**
 * Starts a watch. The first part is sent in this turn, what happens later in the writers' turns. Throws 400, 422, or 410 when
 * the history since `resourceVersion` is gone.
 */
export function startWatch(registry: Registry, row: ResourceKind, options: WatchOptions, sink: WatchSink): Watch {
  checkWatchOptions(options);
  const wanted = parseResourceVersion(options.resourceVersion);
  const fromState = options.sendInitialEvents ?? (wanted === undefined || wanted === 0);
  const start = fromState || wanted === undefined ? registry.store.revision : wanted;
  const watch = new RunningWatch(registry, row, options, sink, start, fromState);
  try {
    watch.proceed();
  } catch (error) {
    watch.stop();
    throw asStatus(error);
  }
  return watch;
}

/** 410 for history that is gone. */
function asStatus(error: unknown): unknown {
  return error instanceof CompactedError ? expired(error.message) : error;
}

class RunningWatch implements Watch {
  readonly #registry: Registry;
  readonly #row: ResourceKind;
  readonly #options: WatchOptions;
  readonly #namespace: string | undefined;
  readonly #sink: WatchSink;
  readonly #resource: string;
  /** Changes up to here have been sent, or are none of this watch's business. */
  #seen: number;
  /** Where it began to follow the writes. One revision may have several changes. */
  #from = 0;
  /** Present while the objects at `#seen` are being sent: where the next part begins. */
  #initial: { readonly after: ObjectPage['after'] } | undefined;
  /** Present while it follows the writes. */
  #unsubscribe: (() => void) | undefined;
  #stopped = false;
  readonly #deliver = (change: Change): void => this.#follow(change);

  constructor(
    registry: Registry,
    row: ResourceKind,
    options: WatchOptions,
    sink: WatchSink,
    start: number,
    fromState: boolean,
  ) {
    this.#registry = registry;
    this.#row = row;
    this.#options = options;
    this.#namespace = row.namespaced ? options.namespace : undefined;
    this.#sink = sink;
    this.#resource = registry.resource(row);
    this.#seen = start;
    this.#initial = fromState ? { after: undefined } : undefined;
  }

  stop(): void {
    this.#stopped = true;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }

  position(): number | undefined {
    if (this.#initial !== undefined) return undefined;
    return this.#unsubscribe === undefined ? this.#seen : Math.max(this.#seen, this.#registry.store.revision);
  }

  /** Reads and sends parts until it has caught up. Other work runs between two of them. */
  proceed(): void {
    if (this.#stopped) return;
    let caughtUp: boolean;
    try {
      caughtUp = this.#initial === undefined ? this.#sendChanges() : this.#sendObjects(this.#initial.after);
    } catch (error) {
      if (!(error instanceof Pending)) throw error;
      this.#convert(error);
      return;
    }
    if (this.#stopped) return;
    // Nothing was written since the last part was read: from here on every write comes by itself.
    if (caughtUp) {
      this.#from = this.#seen;
      // Fields are read from what is stored.
      const required = this.#row.storedAs === undefined ? this.#options.selection.required : undefined;
      this.#unsubscribe = this.#registry.fanOut.subscribe(this.#resource, required, this.#deliver);
    } else this.#later();
  }

  /** The next part, as soon as the sink takes it. Its failure ends this watch alone. */
  #later(): void {
    const resume = (): void => {
      try {
        this.proceed();
      } catch (error) {
        this.stop();
        this.#sink.failed(asStatus(error));
      }
    };
    if (this.#sink.isFull()) this.#sink.whenDrained(resume);
    else setImmediate(resume);
  }

  /** Has the next part converted, of which nothing has been sent yet, and goes on with it. */
  #convert(pending: Pending): void {
    const done = pending.ready().then(() => this.#row.storedAs?.webhook?.fromStored(this.#partTexts()));
    done.then(
      () => this.#later(),
      (error: unknown) => {
        if (this.#stopped) return;
        this.stop();
        this.#sink.failed(asStatus(error));
      },
    );
  }

  #partTexts(): string[] {
    const { store } = this.#registry;
    const texts: string[] = [];
    if (this.#initial === undefined) {
      const { changes } = store.since(this.#seen, this.#resource, this.#namespace, PART_BYTES);
      for (const { record } of changes) {
        texts.push(record.text, ...(record.previousText === undefined ? [] : [record.previousText]));
      }
      return texts;
    }
    let bytes = 0;
    for (const { text } of store.scanAt(this.#seen, this.#resource, this.#namespace, this.#initial.after)) {
      texts.push(text);
      bytes += text.length;
      if (bytes >= PART_BYTES) break;
    }
    return texts;
  }

  /** Returns whether it has caught up. */
  #sendObjects(after: ObjectPage['after']): boolean {
    const { namespace, selection, sendInitialEvents } = this.#options;
    const of = { ...(namespace === undefined ? {} : { namespace }), selection };
    const page = readObjects(this.#registry, this.#row, of, this.#seen, after, PART_BYTES);
    // A part is sent as a whole: what has to be converted first shows before that.
    if (this.#isConverted) for (const view of page.items) view.object;
    for (const view of page.items) this.#sink.event({ type: 'ADDED', revision: this.#seen, view: () => view });
    if (page.after !== undefined) {
      this.#initial = { after: page.after };
      return false;
    }
    this.#initial = undefined;
    if (sendInitialEvents === true && this.#options.allowBookmarks) this.#sink.bookmark(this.#seen, true);
    return this.#seen === this.#registry.store.revision;
  }

  /** Returns whether it has caught up. */
  #sendChanges(): boolean {
    const { store } = this.#registry;
    // A watch that starts in the future waits until the store gets there.
    if (this.#seen >= store.revision) return true;
    const { changes, reached } = store.since(this.#seen, this.#resource, this.#namespace, PART_BYTES);
    const events = changes.flatMap((change) => this.#eventOf(change) ?? []);
    if (this.#isConverted) for (const { view } of events) view();
    for (const event of events) this.#sink.event(event);
    this.#seen = reached;
    return reached >= store.revision;
  }

  #follow(change: Change): void {
    const { record } = change;
    if (record.revision <= this.#from) return;
    // The client reads more slowly than objects change. Later events stay in the store until it has read the rest.
    // So do those that a webhook has to convert.
    if (record.revision > this.#seen && (this.#isConverted || this.#sink.isFull())) {
      this.#unsubscribe?.();
      this.#unsubscribe = undefined;
      // What was written before it is sent, or does not concern this watch.
      this.#seen = Math.max(this.#seen, record.revision - 1);
      this.#later();
      return;
    }
    if (this.#namespace === undefined || record.namespace === this.#namespace) {
      const event = this.#eventOf(change);
      if (event !== undefined) this.#sink.event(event);
    }
    this.#seen = record.revision;
  }

  get #isConverted(): boolean {
    return this.#row.storedAs?.webhook !== undefined;
  }

  /** What the change is to this watch; undefined for nothing. */
  #eventOf(change: Change): WatchEvent | undefined {
    const row = this.#row;
    const { storedAs } = row;
    const convert = (object: Readonly<KubeObject>): Readonly<KubeObject> =>
      storedAs === undefined ? object : storedAs.fromStored(structuredClone(object));
    const type = seenBy(this.#options.selection, change, convert);
    if (type === undefined) return undefined;
    return { type, revision: change.record.revision, view: () => viewOf(row, change, type), change };
  }
}
