// Pieces of the tables that kubectl get prints: columns, ages, and the words for nothing. Ages are counted at request
// time, as the real server does.

import { type EpochMs, elapsedMs } from '../../lib/clock.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { KubeObject, ResourceKind, TableColumn } from './resource.ts';

export type Cell = string | number | boolean | null;

export const NAME_COLUMN: TableColumn = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name must be unique within a namespace.',
};
export const AGE_COLUMN: TableColumn = {
  name: 'Age',
  type: 'string',
  description: 'CreationTimestamp is a timestamp representing the server time when this object was created.',
};

export function text(name: string, description: string, priority = 0): TableColumn {
  return { name, type: 'string', description, priority };
}

/** A table of Name, the given columns, and Age. */
export function namedTable(
  columns: readonly TableColumn[],
  cells: (object: KubeObject, now: EpochMs) => readonly Cell[],
  wide: { columns: readonly TableColumn[]; cells: (object: KubeObject) => readonly Cell[] } = {
    columns: [],
    cells: () => [],
  },
): NonNullable<ResourceKind['strategy']['table']> {
  return {
    columns: [NAME_COLUMN, ...columns, AGE_COLUMN, ...wide.columns],
    row: (object, now) => [
      object.metadata.name ?? '',
      ...cells(object, now),
      age(object.metadata.creationTimestamp, now),
      ...wide.cells(object),
    ],
  };
}

/** Time since an RFC 3339 timestamp, `<unknown>` when there is none. */
export function age(timestamp: string | undefined, now: EpochMs): string {
  const from = parseRfc3339(timestamp);
  return from === undefined ? '<unknown>' : humanDuration(elapsedMs(from, now));
}

/** Milliseconds in the two largest units, as kubectl prints ages: "95s", "3m20s", "2d4h". */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.trunc(ms / 60_000);
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`;
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.trunc(ms / 3_600_000);
  if (hours < 8) return minutes % 60 === 0 ? `${hours}h` : `${hours}h${minutes % 60}m`;
  if (hours < 48) return `${hours}h`;
  const days = Math.trunc(hours / 24);
  if (hours < 24 * 8) return hours % 24 === 0 ? `${days}d` : `${days}d${hours % 24}h`;
  if (hours < 24 * 365 * 2) return `${days}d`;
  const years = Math.trunc(hours / 24 / 365);
  if (hours < 24 * 365 * 8) return days % 365 === 0 ? `${years}y` : `${years}y${days % 365}d`;
  return `${years}y`;
}
