// Whose time the critical path is, in sums. Pure.

import type { CriticalPath, Owner } from './model.ts';

/** ms by owner, the largest first. */
export function timeByOwner({ segments }: Pick<CriticalPath, 'segments'>): readonly (readonly [Owner, number])[] {
  const sums = new Map<Owner, number>();
  for (const { owner, start, end } of segments) sums.set(owner, (sums.get(owner) ?? 0) + end - start);
  return [...sums].sort(([, a], [, b]) => b - a);
}
