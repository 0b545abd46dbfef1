// Lists: which objects, as of which revision, and the token that leads to the next page of the same revision. Never
// renders anything.

import { badRequest, expired, type StatusError, tooLargeResourceVersion } from '../errors.ts';
import type { ResourceKind } from '../kinds/resource.ts';
import { shown } from '../patch/json-value.ts';
import { CompactedError, type StoredObject } from '../storage/object-store.ts';
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
}

export interface ListPage {
  readonly revision: number;
  readonly items: readonly View[];
  readonly continueToken?: string;
  /** Known only when every object matches. */
  readonly remaining?: number;
}

/** A resourceVersion parameter as a number; undefined when it is not set. Throws 400. */
export function parseResourceVersion(text: string): number | undefined {
  if (text === '') return undefined;
  const value = Number(text);
  if (!/^\d{1,20}$/.test(text) || value >= 2 ** 64) {
    throw badRequest(`Invalid value: "${shown(text)}": resourceVersion must be a number`);
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
  const wanted = parseResourceVersion(options.resourceVersion);
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

/** The objects that may be in the list, in order; read lazily. Throws CompactedError. */
function candidates(
  registry: Registry,
  row: ResourceKind,
  options: ListOptions,
  revision: number,
  token: ContinueToken | undefined,
): Iterable<StoredObject> {
  const { store } = registry;
  const namespace = row.namespaced ? options.namespace : '';
  const { name } = options.selection;
  if (name !== undefined && namespace !== undefined && token === undefined && revision === store.revision) {
    const found = registry.find(row, namespace, name);
    return found === undefined ? [] : [found];
  }
  const known = token === undefined ? indexed(registry, row, options.selection, namespace, revision) : undefined;
  return known ?? store.scanAt(revision, registry.resource(row), namespace, token?.after);
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

/** One page. Throws 400, 410 (the revision is gone) or 504 (it has not been yet). */
export function listObjects(registry: Registry, row: ResourceKind, options: ListOptions): ListPage {
  const list = listOf(row, options);
  const { revision, token } = revisionOf(registry, list, options);
  try {
    return readPage(registry, row, options, revision, token);
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
    for (const one of candidates(registry, row, options, revision, token)) {
      stored.push(one);
      // One more shows that there are more.
      if (options.selection.everything && options.limit > 0 && stored.length > options.limit) break;
    }
    const texts = await webhook.fromStored(stored.map(({ text }) => text));
    const views = new Map(stored.map((one, index) => [one, new View(texts[index] ?? '')]));
    return pageOf(registry, row, options, revision, views);
  } catch (error) {
    if (!(error instanceof CompactedError)) throw error;
    throw token === undefined ? expired(error.message) : continueExpired(registry, list, token);
  }
}

/** Reads no object beyond the page and the one that shows that there are more. */
function readPage(
  registry: Registry,
  row: ResourceKind,
  options: ListOptions,
  revision: number,
  token: ContinueToken | undefined,
): ListPage {
  function* views(): Iterable<[StoredObject, View]> {
    for (const one of candidates(registry, row, options, revision, token)) yield [one, registry.view(row, one)];
  }
  return pageOf(registry, row, options, revision, views());
}

function pageOf(
  registry: Registry,
  row: ResourceKind,
  options: ListOptions,
  revision: number,
  views: Iterable<readonly [StoredObject, View]>,
): ListPage {
  const { everything } = options.selection;
  const items: View[] = [];
  let before: StoredObject | undefined;
  for (const [one, view] of views) {
    if (!everything && !options.selection.matches(view.object)) {
      before = one;
      continue;
    }
    if (options.limit > 0 && items.length === options.limit) {
      const after = before ?? one;
      const namespace = row.namespaced ? options.namespace : '';
      const remaining = (): number => registry.store.countAt(revision, registry.resource(row), namespace, after);
      return {
        revision,
        items,
        continueToken: registry.continueTokens.encode(listOf(row, options), { revision, after }),
        ...(everything ? { remaining: remaining() } : {}),
      };
    }
    items.push(view);
    before = one;
  }
  return { revision, items };
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
