// Tables of objects for machines without kubectl: fewer columns than kubectl's, the same words. Pure.

import type { Node, Pod, Service, StoredMeta } from '../../client/types.ts';
import { readyCondition } from '../../labs/exercises/node.ts';
import { podState } from '../../labs/exercises/pods.ts';

export interface Listed {
  readonly metadata: StoredMeta;
}

interface Look {
  readonly wide: boolean;
  readonly labels: boolean;
}

function pairs(record: Readonly<Record<string, string>> | undefined): string {
  const all = Object.entries(record ?? {}).map(([key, value]) => `${key}=${value}`);
  return all.join(',') || '<none>';
}

export function labelsText({ metadata }: Listed): string {
  return pairs(metadata.labels);
}

type Column<T> = readonly [string, (object: T) => string];
interface Columns<T> {
  readonly plain: readonly Column<T>[];
  /** With `-o wide`, besides. */
  readonly wide: readonly Column<T>[];
}

export const NO_COLUMNS: Columns<Listed> = { plain: [], wide: [] };
export const POD_COLUMNS: Columns<Pod> = {
  plain: [['STATUS', podState]],
  wide: [
    ['IP', ({ status }) => status?.podIP ?? '<none>'],
    ['NODE', ({ spec }) => spec.nodeName ?? '<none>'],
  ],
};
export const NODE_COLUMNS: Columns<Node> = {
  plain: [['STATUS', (node) => (readyCondition(node)?.status === 'True' ? 'Ready' : 'NotReady')]],
  wide: [],
};
export const SERVICE_COLUMNS: Columns<Service> = {
  plain: [
    ['CLUSTER-IP', ({ spec }) => spec?.clusterIP ?? '<none>'],
    ['PORTS', ({ spec }) => spec?.ports?.map(({ port }) => port).join(',') ?? '<none>'],
  ],
  wide: [['SELECTOR', ({ spec }) => pairs(spec?.selector)]],
};

/** Lines of a table, with its head. */
export function tableOf<T extends Listed>(own: Columns<T>, objects: readonly T[], { wide, labels }: Look): string {
  if (objects.length === 0) return 'No resources found\n';
  const columns: readonly Column<T>[] = [
    ['NAME', ({ metadata }) => metadata.name],
    ...own.plain,
    ...(wide ? own.wide : []),
    ...(labels ? [['LABELS', labelsText] as const] : []),
  ];
  const rows = [columns.map(([title]) => title), ...objects.map((object) => columns.map(([, cell]) => cell(object)))];
  const widths = columns.map((_, index) => Math.max(...rows.map((row) => (row[index] ?? '').length)));
  const line = (row: readonly string[]): string =>
    row.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join('   ');
  return rows.map((row) => `${line(row).trimEnd()}\n`).join('');
}
