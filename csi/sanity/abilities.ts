// The driver's capabilities and the kind of the run, and whether a check applies to them. Pure; knows no check.

/**
 * What a driver has to announce ("controller:CLONE_VOLUME") or the run has to use ("mount", "block", a second node id)
 * for a check to apply. "!controller:…" requires its absence.
 */
export type Need =
  | `${'' | '!'}${'plugin' | 'controller' | 'node'}:${string}`
  | 'mount'
  | 'block'
  | 'second node'
  | 'few volumes';

/** The facts about the driver before the first check. */
export interface Abilities {
  readonly plugin: ReadonlySet<string>;
  readonly controller: ReadonlySet<string>;
  readonly node: ReadonlySet<string>;
  readonly accessType: 'mount' | 'block';
  readonly secondNode: boolean;
  /** max_volumes_per_node is small enough to be tried. */
  readonly fewVolumes: boolean;
}

/** Whether a driver and a run meet one need. */
export function isMet(need: Need, abilities: Abilities): boolean {
  if (need === 'mount' || need === 'block') return abilities.accessType === need;
  if (need === 'second node') return abilities.secondNode;
  if (need === 'few volumes') return abilities.fewVolumes;
  const [, not = '', service = '', capability = ''] = /^(!?)(plugin|controller|node):(.+)$/.exec(need) ?? [];
  const set =
    service === 'plugin' ? abilities.plugin : service === 'controller' ? abilities.controller : abilities.node;
  return set.has(capability) !== (not === '!');
}
