// One check of the sanity suite: a sentence, the part of the CSI specification it is from, what the driver has to be able to
// do for it to apply, and the code that finds out. A check that does not return has failed.

import type { Bench } from './bench.ts';

/**
 * What a driver has to announce ("controller:CLONE_VOLUME") or the run has to be about ("mount", "block", a second node id)
 * for a check to apply. "!controller:…" stands for its absence.
 */
export type Need =
  | `${'' | '!'}${'plugin' | 'controller' | 'node'}:${string}`
  | 'mount'
  | 'block'
  | 'second node'
  | 'few volumes';

export interface Check {
  /** The RPC. */
  readonly section: string;
  /** What holds, as a sentence. */
  readonly name: string;
  readonly needs: readonly Need[];
  readonly run: (bench: Bench) => Promise<void>;
}

/** What a run knows about the driver before the first check. */
export interface Abilities {
  readonly plugin: ReadonlySet<string>;
  readonly controller: ReadonlySet<string>;
  readonly node: ReadonlySet<string>;
  readonly accessType: 'mount' | 'block';
  readonly secondNode: boolean;
  /** max_volumes_per_node is small enough to be tried. */
  readonly fewVolumes: boolean;
}

/** Needs that are not met; empty when the check applies. Pure. */
export function unmet(check: Check, abilities: Abilities): readonly Need[] {
  return check.needs.filter((need) => !isMet(need, abilities));
}

function isMet(need: Need, abilities: Abilities): boolean {
  if (need === 'mount' || need === 'block') return abilities.accessType === need;
  if (need === 'second node') return abilities.secondNode;
  if (need === 'few volumes') return abilities.fewVolumes;
  const [, not = '', service = '', capability = ''] = /^(!?)(plugin|controller|node):(.+)$/.exec(need) ?? [];
  const set =
    service === 'plugin' ? abilities.plugin : service === 'controller' ? abilities.controller : abilities.node;
  return set.has(capability) !== (not === '!');
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
