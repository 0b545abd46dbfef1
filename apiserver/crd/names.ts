// Which of a definition's names are its own: names are unique within a group, and the first definition to have one keeps it.
// Pure.

import type { EpochMs } from '../../lib/clock.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { validateBundle } from '../kinds/webhook-clients.ts';
import { bundleOf, type Condition, type Definition, type DefinitionStatus, type Names } from './types.ts';

interface Conflict {
  readonly reason: string;
  readonly name: string;
}

function used(others: readonly Definition[], group: string): { resources: Set<string>; kinds: Set<string> } {
  const [resources, kinds] = [new Set<string>(), new Set<string>()];
  for (const { spec, status } of others) {
    if (spec?.group !== group) continue;
    const { plural = '', singular = '', shortNames = [], kind = '', listKind = '' } = status?.acceptedNames ?? {};
    for (const name of [plural, singular, ...shortNames]) resources.add(name);
    for (const name of [kind, listKind]) kinds.add(name);
  }
  for (const set of [resources, kinds]) set.delete('');
  return { resources, kinds };
}

function conflictOf(names: Names, taken: ReturnType<typeof used>): Conflict | undefined {
  const { plural = '', singular = '', shortNames = [], kind = '', listKind = '' } = names;
  if (taken.resources.has(plural)) return { reason: 'PluralConflict', name: plural };
  if (taken.resources.has(singular)) return { reason: 'SingularConflict', name: singular };
  const short = shortNames.find((name) => taken.resources.has(name));
  if (short !== undefined) return { reason: 'ShortNamesConflict', name: short };
  if (taken.kinds.has(kind)) return { reason: 'KindConflict', name: kind };
  return taken.kinds.has(listKind) ? { reason: 'ListKindConflict', name: listKind } : undefined;
}

/** The status with accepted names and the conditions NamesAccepted and Established. */
export function acceptNames(definition: Definition, others: readonly Definition[], now: EpochMs): DefinitionStatus {
  const { spec = {}, status = {} } = definition;
  const names = spec.names ?? {};
  const conflict = conflictOf(names, used(others, spec.group ?? ''));
  const before = new Map((status.conditions ?? []).map((one) => [one.type, one]));
  const set = (wanted: Omit<Condition, 'lastTransitionTime'>): void => {
    const old = before.get(wanted.type);
    const lastTransitionTime = old?.status === wanted.status ? old.lastTransitionTime : rfc3339(now);
    before.set(wanted.type, { ...wanted, lastTransitionTime });
  };
  if (conflict === undefined) {
    set({ type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' });
  } else {
    const message = `${JSON.stringify(conflict.name)} is already in use`;
    set({ type: 'NamesAccepted', status: 'False', reason: conflict.reason, message });
  }
  if (before.get('Established')?.status !== 'True') {
    if (conflict === undefined && validateBundle('', bundleOf(definition)).length > 0) {
      const message = 'The conversion webhook CABundle is invalid';
      set({ type: 'Established', status: 'False', reason: 'InvalidCABundle', message });
    } else if (conflict === undefined) {
      const message = 'the initial names have been accepted';
      set({ type: 'Established', status: 'True', reason: 'InitialNamesAccepted', message });
    } else {
      set({ type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' });
    }
  }
  const acceptedNames = conflict === undefined ? names : (status.acceptedNames ?? { plural: '', kind: '' });
  return { ...status, acceptedNames, conditions: [...before.values()] };
}
