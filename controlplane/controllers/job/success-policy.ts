// Whether an Indexed job has succeeded before all of its indexes have, by the rules of its successPolicy. Pure.

import type { SuccessPolicy } from 'kubernetes-types/batch/v1';
import { countCommon, countIndexes, type Indexes, parseIndexes } from './indexes.ts';

/** What the condition says when a rule is met; undefined while none is. */
export function metSuccessPolicy(
  policy: SuccessPolicy | undefined,
  completions: number,
  succeeded: Indexes,
): string | undefined {
  if (succeeded.length === 0) return undefined;
  const met = (policy?.rules ?? []).findIndex(({ succeededIndexes, succeededCount }) => {
    if (succeededIndexes === undefined) {
      return succeededCount !== undefined && countIndexes(succeeded) >= succeededCount;
    }
    const wanted = parseIndexes(succeededIndexes, completions);
    if (wanted.length === 0) return false;
    const common = countCommon(wanted, succeeded);
    return common === countIndexes(wanted) || (succeededCount !== undefined && common >= succeededCount);
  });
  return met < 0 ? undefined : `Matched rules at index ${met}`;
}
