// Objects, lists and tables as response text. Stored objects are already JSON, so the plain forms are put together from
// text without parsing anything. Pure.

import type { EpochMs } from '../../lib/clock.ts';
import { StatusError } from '../errors.ts';
import { age } from '../kinds/columns.ts';
import type { KubeObject, ResourceKind, ResourceStrategy } from '../kinds/resource.ts';
import type { ListPage } from '../registry/list.ts';
import { apiVersionOf, type View } from '../registry/registry.ts';
import { parseObject } from '../storage/change.ts';
import type { Form } from './negotiate.ts';

/** What of the object a table row carries along. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

type Table = NonNullable<ResourceStrategy['table']>;

const DEFAULT_TABLE: Table = {
  columns: [
    { name: 'Name', type: 'string', format: 'name', description: 'Name must be unique within a namespace.' },
    { name: 'Age', type: 'string', description: 'When the object was created.' },
  ],
  row: (object, now) => [object.metadata.name ?? '', age(object.metadata.creationTimestamp, now)],
};

function columnDefinitions(table: Table): Record<string, unknown>[] {
  return table.columns.map(({ name, type, format = '', description = '', priority = 0 }) => ({
    name,
    type,
    format,
    description,
    priority,
  }));
}

function partial(object: Readonly<KubeObject>, version: string): Record<string, unknown> {
  return { kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${version}`, metadata: object.metadata };
}

export interface RenderOptions {
  readonly form: Form;
  readonly includeObject: IncludeObject;
  /** Epoch ms, for ages. */
  readonly now: EpochMs;
}

function tableRow(table: Table, object: Readonly<KubeObject>, options: RenderOptions): Record<string, unknown> {
  const cells = table.row(object, options.now);
  if (options.includeObject === 'None') return { cells, object: null };
  return { cells, object: options.includeObject === 'Object' ? object : partial(object, options.form.version) };
}

/** All of a table but its rows. */
function tableHead(
  row: ResourceKind,
  metadata: Record<string, unknown>,
  options: RenderOptions,
  header: boolean,
): Record<string, unknown> {
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${options.form.version}`,
    metadata,
    columnDefinitions: header ? columnDefinitions(row.strategy.table ?? DEFAULT_TABLE) : null,
  };
}

/** One object as JSON text. `header`: whether a table includes its columns (once per watch). */
export function renderObject(row: ResourceKind, view: View, options: RenderOptions, header = true): string {
  switch (options.form.as) {
    case 'partials':
      throw noList(row);
    case 'object':
      return view.text;
    case 'partial':
      return JSON.stringify(partial(view.object, options.form.version));
    case 'table': {
      const { resourceVersion } = view.object.metadata;
      const rows = [tableRow(row.strategy.table ?? DEFAULT_TABLE, view.object, options)];
      return JSON.stringify({ ...tableHead(row, { resourceVersion }, options, header), rows });
    }
  }
}

/** What an object of the row is called in a refusal: Go's type. */
function typeOf(row: ResourceKind, suffix: '' | 'List'): string {
  return row.custom === undefined ? `*${row.version}.${row.kind}${suffix}` : `*unstructured.Unstructured${suffix}`;
}

function noList(row: ResourceKind): StatusError {
  const why = `but the requested object is not a list (${typeOf(row, '')})`;
  return new StatusError(406, 'NotAcceptable', `you requested PartialObjectMetadataList, ${why}`);
}

/** The object of a BOOKMARK: nothing but a revision, in the form of the watch. A table has a row for it. */
export function renderBookmark(
  row: ResourceKind,
  revision: number,
  initialEventsEnd: boolean,
  options: RenderOptions,
  header = true,
): string {
  const { form, includeObject } = options;
  const metadata = {
    resourceVersion: String(revision),
    ...(initialEventsEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
  };
  const object: KubeObject = { kind: row.kind, apiVersion: apiVersionOf(row), metadata };
  if (form.as === 'object') return JSON.stringify(object);
  if (form.as === 'partials') throw noList(row);
  if (form.as === 'partial') return JSON.stringify(partial(object, form.version));
  // The annotation is shown though no objects are: clients wait for it.
  const shown = initialEventsEnd && includeObject === 'None' ? 'Metadata' : includeObject;
  const { resourceVersion } = metadata;
  const rows = [tableRow(row.strategy.table ?? DEFAULT_TABLE, object, { ...options, includeObject: shown })];
  return JSON.stringify({ ...tableHead(row, { resourceVersion }, options, header), rows });
}

/** A list as JSON text. */
export function renderList(row: ResourceKind, page: ListPage, options: RenderOptions): string {
  const { head, tail } = listFrame(row, page, options);
  return `${head}${renderItems(row, page.items, options)}${tail}`;
}

/** Items of a list, or rows of a table, with commas between. */
export function renderItems(row: ResourceKind, views: readonly View[], options: RenderOptions): string {
  const { form } = options;
  if (form.as === 'object') {
    if (row.custom !== undefined) return views.map(({ text }) => text).join(',');
    const type = `{"kind":"${row.kind}","apiVersion":"${apiVersionOf(row)}",`;
    return views.map(({ text }) => withoutType(text, type)).join(',');
  }
  const table = row.strategy.table ?? DEFAULT_TABLE;
  return views
    .map(({ object }) =>
      JSON.stringify(form.as === 'table' ? tableRow(table, object, options) : partial(object, form.version)),
    )
    .join(',');
}

/**
 * As in upstream's lists of Go types, an item of a built-in kind does not repeat what the list says it is. `type`: how the text of such an
 * object usually begins.
 */
function withoutType(text: string, type: string): string {
  if (text.startsWith(type)) return `{${text.slice(type.length)}`;
  const { kind, apiVersion, ...item } = parseObject(text);
  return JSON.stringify(item);
}

/** What is before the items of a list and behind them. */
export function listFrame(
  row: ResourceKind,
  page: Omit<ListPage, 'items'>,
  options: RenderOptions,
): { readonly head: string; readonly tail: string } {
  const metadata = {
    resourceVersion: String(page.revision),
    ...(page.continueToken === undefined ? {} : { continue: page.continueToken }),
    ...(page.remaining === undefined ? {} : { remainingItemCount: page.remaining }),
  };
  const { version } = options.form;
  if (options.form.as === 'table') {
    const head = JSON.stringify(tableHead(row, metadata, options, true));
    return { head: `${head.slice(0, -1)},"rows":[`, tail: ']}' };
  }
  if (options.form.as === 'partial') {
    const why = `but the requested object is a list (${typeOf(row, 'List')})`;
    throw new StatusError(406, 'NotAcceptable', `you requested PartialObjectMetadata, ${why}`);
  }
  const isPartial = options.form.as === 'partials';
  const kind = isPartial ? 'PartialObjectMetadataList' : (row.listKind ?? `${row.kind}List`);
  const apiVersion = isPartial ? `meta.k8s.io/${version}` : apiVersionOf(row);
  const head = JSON.stringify({ kind, apiVersion, metadata });
  return { head: `${head.slice(0, -1)},"items":[`, tail: ']}' };
}
