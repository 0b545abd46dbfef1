// While scheduling is gated, a pod may still be narrowed to fewer nodes: by its node selector and its required node affinity.

import { getOwn } from '../../../lib/own-property.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { invalid } from '../field-errors.ts';
import type { FieldError } from '../resource.ts';
import type { PodSpec } from '../shapes.ts';

type NodeAffinity = NonNullable<NonNullable<PodSpec['affinity']>['nodeAffinity']>;
type Terms = NonNullable<
  NonNullable<NodeAffinity['requiredDuringSchedulingIgnoredDuringExecution']>['nodeSelectorTerms']
>;

/** What is wrong with the change. In `spec`, both are set to what they were, so that the rest can be compared. */
export function validateNarrowing(spec: PodSpec, before: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  if (!sameJson(spec.nodeSelector, before.nodeSelector)) {
    for (const [key, value] of Object.entries(before.nodeSelector ?? {})) {
      if (getOwn(spec.nodeSelector, key) === value) continue;
      errors.push(
        invalid(
          'spec.nodeSelector',
          spec.nodeSelector ?? null,
          'only additions to spec.nodeSelector are allowed (no mutations or deletions)',
        ),
      );
      break;
    }
    spec.nodeSelector = before.nodeSelector;
  }
  const [now, old] = [spec.affinity?.nodeAffinity, before.affinity?.nodeAffinity];
  if (sameJson(now, old)) return errors;
  errors.push(...validateAffinity(now ?? {}, old ?? {}));
  const { nodeAffinity: _, ...others } = spec.affinity ?? {};
  const affinity = { ...others, ...(old === undefined ? {} : { nodeAffinity: old }) };
  if (before.affinity === undefined && Object.keys(affinity).length === 0) delete spec.affinity;
  else spec.affinity = affinity;
  return errors;
}

const AFFINITY = 'spec.affinity.nodeAffinity';
const TERMS = `${AFFINITY}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`;

function validateAffinity(now: NodeAffinity, old: NodeAffinity): FieldError[] {
  const terms = (affinity: NodeAffinity): Terms =>
    affinity.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const [after, before] = [terms(now), terms(old)];
  // Without terms before, anything narrows.
  if (before.length === 0) return [];
  if (after.length !== before.length)
    return [invalid(TERMS, after, 'no additions/deletions to non-empty NodeSelectorTerms list are allowed')];
  return after.flatMap((term, index) => {
    const was = before[index] ?? {};
    const keeps = (['matchExpressions', 'matchFields'] as const).every((list) =>
      (was[list] ?? []).every((one, place) => sameJson(term[list]?.[place], one)),
    );
    const empty = (was.matchExpressions ?? []).length + (was.matchFields ?? []).length === 0;
    if (empty && (term.matchExpressions ?? []).length + (term.matchFields ?? []).length > 0) {
      return [invalid(`${TERMS}[${index}]`, term, 'only additions are allowed (no mutations or deletions)')];
    }
    return keeps ? [] : [invalid(`${TERMS}[${index}]`, term, 'only additions are allowed (no mutations or deletions)')];
  });
}
