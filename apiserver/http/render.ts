// Objects, lists and tables as response text. Stored objects are already JSON, so the plain forms are put together from
// text without parsing anything. Pure.

import type { EpochMs } from '../../lib/clock.ts';
import { age } from '../kinds/columns.ts';
import type { KubeObject, ResourceKind, ResourceStrategy } from '../kinds/resource.ts';
import type { ListPage } from '../registry/list.ts';
import { apiVersionOf, type View } from '../registry/registry.ts';
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

function tableText(
  row: ResourceKind,
  objects: readonly Readonly<KubeObject>[],
  metadata: Record<string, unknown>,
  options: RenderOptions,
  header: boolean,
): string {
  const table = row.strategy.table ?? DEFAULT_TABLE;
  return JSON.stringify({
    kind: 'Table',
    apiVersion: `meta.k8s.io/${options.form.version}`,
    metadata,
    columnDefinitions: header ? columnDefinitions(table) : null,
    rows: objects.map((object) => tableRow(table, object, options)),
  });
}

/** One object as JSON text. `header`: whether a table includes its columns (once per watch). */
export function renderObject(row: ResourceKind, view: View, options: RenderOptions, header = true): string {
  switch (options.form.as) {
    case 'object':
      return view.text;
    case 'partial':
      return JSON.stringify(partial(view.object, options.form.version));
    case 'table': {
      const { resourceVersion } = view.object.metadata;
      return tableText(row, [view.object], { resourceVersion }, options, header);
    }
  }
}

/** The object of a BOOKMARK: nothing but a revision, in the form of the watch. */
export function renderBookmark(row: ResourceKind, revision: number, initialEventsEnd: boolean, form: Form): string {
  const metadata = {
    resourceVersion: String(revision),
    ...(initialEventsEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
  };
  if (form.as === 'object') return JSON.stringify({ kind: row.kind, apiVersion: apiVersionOf(row), metadata });
  const apiVersion = `meta.k8s.io/${form.version}`;
  if (form.as === 'partial') return JSON.stringify({ kind: 'PartialObjectMetadata', apiVersion, metadata });
  return JSON.stringify({ kind: 'Table', apiVersion, metadata, columnDefinitions: null, rows: [] });
}

/** A list as JSON text. */
export function renderList(row: ResourceKind, page: ListPage, options: RenderOptions): string {
  const metadata = {
    resourceVersion: String(page.revision),
    ...(page.continueToken === undefined ? {} : { continue: page.continueToken }),
    ...(page.remaining === undefined ? {} : { remainingItemCount: page.remaining }),
  };
  const { version } = options.form;
  if (options.form.as === 'table') {
    return tableText(
      row,
      page.items.map((view) => view.object),
      metadata,
      options,
      true,
    );
  }
  const isPartial = options.form.as === 'partial';
  const kind = isPartial ? 'PartialObjectMetadataList' : (row.listKind ?? `${row.kind}List`);
  const apiVersion = isPartial ? `meta.k8s.io/${version}` : apiVersionOf(row);
  const items = page.items.map((view) => (isPartial ? JSON.stringify(partial(view.object, version)) : view.text));
  return `{"kind":"${kind}","apiVersion":"${apiVersion}","metadata":${JSON.stringify(metadata)},"items":[${items.join(',')}]}`;
}
