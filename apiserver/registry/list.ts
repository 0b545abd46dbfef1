// Lists: which objects, as of which revision, and the token that leads to the next page of the same revision. Never
// renders anything.

import { badRequest, expired, type StatusError, tooLargeResourceVersion } from '../errors.ts';
import type { ResourceKind } from '../kinds/resource.ts';
import { shown } from '../patch/json-value.ts';
import { CompactedError, type Name, type StoredObject } from '../storage/object-store.ts';
import type { ContinueToken } from './continue.ts';
import { checkListOptions } from './list-options.ts';
import { type ComputedObjects, type Registry, View } from './registry.ts';
import type { Selection } from './selectors.ts';

export interface ListOptions {
  /** Absent for all namespaces and for cluster-scoped kinds. */
  readonly namespace?: string;
  readonly selection: Selection;
  /** 0 is no limit. */
  readonly limit: number;
  readonly continueToken: string;
  readonly resourceVersion: string;
  readonly resourceVersionMatch: string;
  /** Of a watch; with a list it is 422. */
  readonly sendInitialEvents?: boolean;
}

export interface ListPage {
  readonly revision: number;
  readonly items: readonly View[];
  readonly continueToken?: string;
  /** Known only when every object matches. */
  readonly remaining?: number;
}

/** A resourceVersion parameter as a number; undefined when it is not set. Throws 400, whose message begins with `prefix`. */
export function parseResourceVersion(text: string, prefix = ''): number | undefined {
  if (text === '') return undefined;
  const value = Number(text);
  if (!/^\d{1,20}$/.test(text) || value >= 2 ** 64) {
    const value = `"${shown(text)}"`;
    throw badRequest(
      `${prefix}resourceVersion: Invalid value: ${value}: strconv.ParseUint: parsing ${value}: invalid syntax`,
    );
  }
  return value;
}

function continueExpired(registry: Registry, list: string, token: ContinueToken): StatusError {
  const error = expired(
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without ' +
      'the continue parameter, or use the continue token in this response to retrieve the remainder of the results. ' +
      'Continuing with the provided token results in an inconsistent list - objects that were created, modified, or ' +
      'deleted between the time the first chunk was returned and now may show up in the list.',
  );
  error.status.metadata = { continue: registry.continueTokens.encode(list, { revision: -1, after: token.after }) };
  return error;
}

/** Which revision a list shows. */
function revisionOf(
  registry: Registry,
  list: string,
  options: ListOptions,
): { revision: number; token?: ContinueToken } {
  checkListOptions(options);
  const current = registry.store.revision;
  const wanted = parseResourceVersion(options.resourceVersion, 'invalid resource version: ');
  const match = options.resourceVersionMatch;
  if (options.continueToken !== '') {
    if (wanted !== undefined && wanted !== 0) {
      throw badRequest('specifying resource version is not allowed when using continue');
    }
    const token = registry.continueTokens.decode(list, options.continueToken);
    // Of a store that has been put back to an earlier state since.
    if (token.revision > current) throw continueExpired(registry, list, token);
    return { revision: token.revision < 0 ? current : token.revision, token };
  }
  if (wanted !== undefined && wanted > current) throw tooLargeResourceVersion(wanted, current);
  // With a limit and no match rule, a resourceVersion above 0 means exactly that one.
  const exact = match === 'Exact' || (match === '' && options.limit > 0 && wanted !== undefined && wanted > 0);
  return { revision: exact && wanted !== undefined ? wanted : current };
}

/** The objects that may be in the list where no more than these need be read, in order; undefined for all there are. */
function candidates(
  registry: Registry,
  row: ResourceKind,
  { selection, namespace: wanted }: ListOptions,
  revision: number,
): StoredObject[] | undefined {
  if (revision !== registry.store.revision) return undefined;
  const namespace = row.namespaced ? wanted : '';
  const { name } = selection;
  if (name === undefined || namespace === undefined) return indexed(registry, row, selection, namespace, revision);
  const found = registry.find(row, namespace, name);
  return found === undefined ? [] : [found];
}

/** Those of the present objects that an index knows to have a value which the selection requires; undefined without an index. */
function indexed(
  registry: Registry,
  row: ResourceKind,
  { required }: Selection,
  namespace: string | undefined,
  revision: number,
): StoredObject[] | undefined {
  if (required === undefined || revision !== registry.store.revision) return undefined;
  const names = registry.namesWith(row, required, namespace);
  return names?.flatMap((name) => registry.find(row, name.namespace, name.name) ?? []);
}

/** All in one page: a row that is not stored has no revisions. */
export function listComputed(registry: Registry, objects: ComputedObjects, options: ListOptions): ListPage {
  const items = objects
    .list(options.namespace)
    .filter((object) => options.selection.everything || options.selection.matches(object))
    .map((object) => new View(JSON.stringify(object), object));
  return { revision: registry.store.revision, items };
}

/** What a continue token is for: the resource and the namespace. */
function listOf(row: ResourceKind, { namespace = '*' }: ListOptions): string {
  return `${row.group}/${row.plural} ${row.namespaced ? namespace : ''}`;
}

/** One page, read in this turn. Throws 400, 410 (the revision is gone) or 504 (it has not been yet). */
export function listObjects(registry: Registry, row: ResourceKind, options: ListOptions): ListPage {
  return whole(listInParts(registry, row, options, Number.POSITIVE_INFINITY));
}

function whole(reading: Generator<readonly View[], ListPage, void>): ListPage {
  const items: View[] = [];
  for (;;) {
    const { done, value } = reading.next();
    if (done === true) return { ...value, items: items.concat(value.items) };
    for (const item of value) items.push(item);
  }
}

/**
 * One page, about `maxBytes` of the stored objects at a time, all of one revision: others may write between two of them.
 * Yields what is read, and returns the page with the rest. Throws what `listObjects` throws.
 */
export function* listInParts(
  registry: Registry,
  row: ResourceKind,
  options: ListOptions,
  maxBytes: number,
): Generator<readonly View[], ListPage, void> {
  const list = listOf(row, options);
  const { revision, token } = revisionOf(registry, list, options);
  try {
    const known = token === undefined ? candidates(registry, row, options, revision) : undefined;
    const viewOf = (one: StoredObject): View => registry.view(row, one);
    return yield* readPage(registry, row, options, revision, token?.after, { known, viewOf, maxBytes });
  } catch (error) {
    if (!(error instanceof CompactedError)) throw error;
    throw token === undefined ? expired(error.message) : continueExpired(registry, list, token);
  }
}

/** The same where a webhook may have to convert the objects: it gets many of them together. */
export async function listWhenConverted(
  registry: Registry,
  row: ResourceKind,
  options: ListOptions,
): Promise<ListPage> {
  const webhook = row.storedAs?.webhook;
  if (webhook === undefined) return listObjects(registry, row, options);
  const list = listOf(row, options);
  const { revision, token } = revisionOf(registry, list, options);
  try {
    const stored: StoredObject[] = [];
    const found = token === undefined ? candidates(registry, row, options, revision) : undefined;
    const namespace = row.namespaced ? options.namespace : '';
    for (const one of found ?? registry.store.scanAt(revision, registry.resource(row), namespace, token?.after)) {
      stored.push(one);
      // One more shows that there are more.
      if (options.selection.everything && options.limit > 0 && stored.length > options.limit) break;
    }
    const texts = await webhook.fromStored(stored.map(({ text }) => text));
    const views = new Map(stored.map((one, index) => [one, new View(texts[index] ?? '')]));
    const viewOf = (one: StoredObject): View => views.get(one) ?? registry.view(row, one);
    return whole(readPage(registry, row, options, revision, token?.after, { known: stored, viewOf }));
  } catch (error) {
    if (!(error instanceof CompactedError)) throw error;
    throw token === undefined ? expired(error.message) : continueExpired(registry, list, token);
  }
}

interface PageSource {
  /** All objects that may be in the page; undefined: those of the store. */
  readonly known: readonly StoredObject[] | undefined;
  readonly viewOf: (one: StoredObject) => View;
  /** Of the store's, at a time. */
  readonly maxBytes?: number;
}

/** Reads no object beyond the page and the one that shows that there are more. */
function* readPage(
  registry: Registry,
  row: ResourceKind,
  options: ListOptions,
  revision: number,
  begin: Name | undefined,
  { known, viewOf, maxBytes = Number.POSITIVE_INFINITY }: PageSource,
): Generator<readonly View[], ListPage, void> {
  const { everything } = options.selection;
  const namespace = row.namespaced ? options.namespace : '';
  const resource = registry.resource(row);
  let items: View[] = [];
  let count = 0;
  for (let after = begin; ; ) {
    let bytes = 0;
    let last: StoredObject | undefined;
    for (const one of known ?? registry.store.scanAt(revision, resource, namespace, after)) {
      const view = viewOf(one);
      if (everything || options.selection.matches(view.object)) {
        if (options.limit > 0 && count === options.limit) {
          const end = { namespace: (after ?? one).namespace, name: (after ?? one).name };
          const remaining = everything ? { remaining: registry.store.countAt(revision, resource, namespace, end) } : {};
          const continueToken = registry.continueTokens.encode(listOf(row, options), { revision, after: end });
          return { revision, items, continueToken, ...remaining };
        }
        items.push(view);
        count++;
      }
      after = one;
      bytes += one.text.length;
      if (known === undefined && bytes >= maxBytes) {
        last = one;
        break;
      }
    }
    if (last === undefined) return { revision, items };
    yield items;
    items = [];
  }
}

/** Objects of one revision that match, a part at a time: for a watch, which sends what there is first. */
export interface ObjectPage {
  readonly items: readonly View[];
  /** Where the next part begins; undefined after the last. */
  readonly after?: { readonly namespace: string; readonly name: string };
}

/** About `maxBytes` of the objects at `revision` after `after`. Throws CompactedError. */
export function readObjects(
  registry: Registry,
  row: ResourceKind,
  options: Pick<ListOptions, 'namespace' | 'selection'>,
  revision: number,
  after: ObjectPage['after'],
  maxBytes: number,
): ObjectPage {
  const items: View[] = [];
  let bytes = 0;
  const namespace = row.namespaced ? options.namespace : '';
  const { everything, name } = options.selection;
  const known = after === undefined ? indexed(registry, row, options.selection, namespace, revision) : undefined;
  if (known !== undefined) {
    const views = known.map((one) => registry.view(row, one));
    return { items: views.filter((view) => options.selection.matches(view.object)) };
  }
  for (const one of registry.store.scanAt(revision, registry.resource(row), namespace, after)) {
    // Objects that do not match take time, too.
    bytes += one.text.length;
    if (name === undefined || name === one.name) {
      const view = registry.view(row, one);
      if (everything || options.selection.matches(view.object)) items.push(view);
    }
    if (bytes >= maxBytes) return { items, after: { namespace: one.namespace, name: one.name } };
  }
  return { items };
}
