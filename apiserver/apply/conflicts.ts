// The refusal of an apply that would change what others manage: 409, with a cause for each field. Pure.

import { StatusError } from '../errors.ts';
import type { Entry } from './entries.ts';
import { shownPath } from './path-element.ts';

export interface FieldConflict {
  readonly entry: Entry | undefined;
  readonly path: readonly string[];
}

/** `"kubectl" with subresource "scale" using apps/v1`. */
function shownManager(entry: Entry | undefined): string {
  if (entry === undefined) return '""';
  const { manager, subresource, operation, apiVersion } = entry;
  const name = `${JSON.stringify(manager)}${subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`}`;
  return operation === 'Update' ? `${name} using ${apiVersion}` : name;
}

export function conflictStatus(conflicts: readonly FieldConflict[]): StatusError {
  const causes = conflicts.map(({ entry, path }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${shownManager(entry)}`,
    field: shownPath(path),
  }));
  return new StatusError(409, 'Conflict', messageOf(conflicts), { causes });
}

function messageOf(conflicts: readonly FieldConflict[]): string {
  const [first] = conflicts;
  if (conflicts.length === 1 && first !== undefined) {
    return `Apply failed with 1 conflict: conflict with ${shownManager(first.entry)}: ${shownPath(first.path)}`;
  }
  const byManager = new Map<string, string[]>();
  for (const { entry, path } of conflicts) {
    const paths = byManager.get(shownManager(entry)) ?? [];
    paths.push(`- ${shownPath(path)}`);
    byManager.set(shownManager(entry), paths);
  }
  const lines = [...byManager].sort(([a], [b]) => (a < b ? -1 : 1));
  const list = lines.flatMap(([manager, paths]) => [`conflicts with ${manager}:`, ...paths]);
  return `Apply failed with ${conflicts.length} conflicts: ${list.join('\n')}`;
}
