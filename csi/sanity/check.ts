// One check of the sanity suite: a sentence, the part of the CSI specification it is from, what the driver has to be able to
// do for it to apply, and the code that finds out. A check that does not return has failed.

import { type Abilities, isMet, type Need } from './abilities.ts';
import type { Bench } from './bench.ts';

export interface Check {
  /** The RPC. */
  readonly section: string;
  /** What holds, as a sentence. */
  readonly name: string;
  readonly needs: readonly Need[];
  readonly run: (bench: Bench) => Promise<void>;
}

/** Needs that are not met; empty when the check applies. Pure. */
export function unmet(check: Check, abilities: Abilities): readonly Need[] {
  return check.needs.filter((need) => !isMet(need, abilities));
}

/** Checks of one RPC that share what they need. */
export function section(
  name: string,
  needs: readonly Need[],
  checks: Readonly<
    Record<
      string,
      | ((bench: Bench) => Promise<void>)
      | { readonly needs: readonly Need[]; readonly run: (bench: Bench) => Promise<void> }
    >
  >,
): readonly Check[] {
  return Object.entries(checks).map(([sentence, each]) =>
    typeof each === 'function'
      ? { section: name, name: sentence, needs, run: each }
      : { section: name, name: sentence, needs: [...needs, ...each.needs], run: each.run },
  );
}
