// Watches: what a watcher is told, and in which order. A watcher sees the objects its selectors match; one that comes
// to match is ADDED for it, one that no longer does is DELETED. Never writes to a connection: http/watch.ts does.

import { badRequest, expired } from '../http/errors.ts';
import type { KubeObject, ResourceKind } from '../kinds/resource.ts';
import type { Change } from '../storage/change.ts';
import { CompactedError } from '../storage/store.ts';
import { listObjects, parseResourceVersion } from './list.ts';
import { type Registry, View } from './registry.ts';
import type { Selection } from './selectors.ts';

export interface WatchOptions {
  readonly namespace?: string;
  readonly selection: Selection;
  readonly resourceVersion: string;
  readonly resourceVersionMatch: string;
  readonly allowBookmarks: boolean;
  /** Absent: as resourceVersion says ('' and '0' start with what there is). */
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
}

/** Checks the combination of parameters as the API does. Throws 400. */
function checkOptions(options: WatchOptions): void {
  const { sendInitialEvents, resourceVersionMatch: match, allowBookmarks } = options;
  if (sendInitialEvents === undefined) {
    if (match !== '') throw badRequest('resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch');
    return;
  }
  if (match !== 'NotOlderThan') {
    throw badRequest(
      'resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    );
  }
  if (sendInitialEvents && !allowBookmarks) {
    throw badRequest('allowWatchBookmarks: Forbidden: sendInitialEvents requires setting allowWatchBookmarks to true');
  }
}

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
  const { record } = change;
  const left = type === 'DELETED' && record.type !== 'DELETED' && change.previous !== undefined;
  if (!left && row.storedAs === undefined) return new View(record.text, change.object);
  const seen: KubeObject = left ? { ...change.previous, metadata: { ...change.previous.metadata } } : change.object;
  if (left) seen.metadata.resourceVersion = String(record.revision);
  const object = row.storedAs === undefined ? seen : row.storedAs.fromStored(structuredClone(seen));
  return new View(JSON.stringify(object), object);
}

/**
 * Starts a watch: tells `sink` what has been (in this turn), then what happens (in the writers' turns) until the
 * returned function is called. Throws 400, or 410 when the history since `resourceVersion` is gone.
 */
export function startWatch(registry: Registry, row: ResourceKind, options: WatchOptions, sink: WatchSink): () => void {
  checkOptions(options);
  const { store } = registry;
  const { selection } = options;
  const namespace = row.namespaced ? options.namespace : undefined;
  const { storedAs } = row;
  const convert = (object: Readonly<KubeObject>): Readonly<KubeObject> =>
    storedAs === undefined ? object : storedAs.fromStored(structuredClone(object));
  const resource = registry.resource(row);
  const wanted = parseResourceVersion(options.resourceVersion);
  const fromState = options.sendInitialEvents ?? (wanted === undefined || wanted === 0);
  let seen = fromState || wanted === undefined ? store.revision : wanted;
  const deliver = (change: Change): void => {
    const { record } = change;
    // A watch that starts in the future waits until the store gets there.
    if (record.revision <= seen || (namespace !== undefined && record.namespace !== namespace)) return;
    seen = record.revision;
    const type = seenBy(selection, change, convert);
    if (type !== undefined) sink.event({ type, revision: seen, view: () => viewOf(row, change, type), change });
  };
  if (fromState) {
    const page = listObjects(registry, row, {
      ...(namespace === undefined ? {} : { namespace }),
      selection,
      limit: 0,
      continueToken: '',
      resourceVersion: '',
      resourceVersionMatch: '',
    });
    for (const view of page.items) sink.event({ type: 'ADDED', revision: page.revision, view: () => view });
    if (options.sendInitialEvents === true) sink.bookmark(page.revision, true);
  } else if (seen < store.revision) {
    for (const change of replay(registry, seen, resource, namespace)) deliver(change);
  }
  return store.subscribe(resource, deliver);
}

function replay(registry: Registry, from: number, resource: string, namespace: string | undefined): Change[] {
  try {
    return registry.store.since(from, resource, namespace);
  } catch (error) {
    if (error instanceof CompactedError) throw expired(error.message);
    throw error;
  }
}
