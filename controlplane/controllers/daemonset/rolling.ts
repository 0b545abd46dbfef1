// One step of a daemon set's rolling update. Without surge old pods go, as long as no more nodes than maxUnavailable are without a pod
// that serves, and manage.ts has new ones made in their place; with surge new pods come beside the old ones first. Pure.

import type { Pod } from '../../../client/types.ts';
import { scaledValue } from '../shared/scaled-value.ts';
import { type Changes, type Facts, isAvailable, isTerminating, maxSurge } from './manage.ts';
import { isUpdated, placementOn } from './placement.ts';

interface NodePods {
  readonly node: string;
  /** A pod belongs there. */
  readonly wanted: boolean;
  readonly current: Pod | undefined;
  readonly old: Pod | undefined;
  /** More than one of a kind: manage.ts puts that right first. */
  readonly unclear: boolean;
}

function nodesWithPods(facts: Facts): { readonly all: readonly NodePods[]; readonly desired: number } {
  const { set, nodes, pods, hash } = facts;
  const wanted = new Set(nodes.filter((node) => placementOn(set, node).run).map(({ metadata }) => metadata.name));
  const all = [...new Set([...pods.keys(), ...wanted])].sort().map((node): NodePods => {
    const present = (pods.get(node) ?? []).filter((pod) => !isTerminating(pod));
    const current = present.filter((pod) => isUpdated(set, pod, hash));
    const old = present.filter((pod) => !isUpdated(set, pod, hash));
    const unclear = current.length > 1 || old.length > 1;
    return { node, wanted: wanted.has(node), current: current[0], old: old[0], unclear };
  });
  return { all, desired: wanted.size };
}

/** Pods to delete, and nodes that get a new pod beside their old one. */
export function rollingStep(facts: Facts): Changes {
  const { set } = facts;
  const { all, desired } = nodesWithPods(facts);
  const surge = maxSurge(set, desired);
  if (surge > 0) return withSurge(facts, all, desired, surge);
  const { rollingUpdate } = set.spec.updateStrategy ?? {};
  // Neither of the two would be no way forward.
  const missing = scaledValue(rollingUpdate?.maxUnavailable, desired, Math.ceil) || 1;
  return withoutSurge(facts, all, missing);
}

function withoutSurge(facts: Facts, all: readonly NodePods[], maxUnavailable: number): Changes {
  let unavailable = 0;
  const useless: Pod[] = [];
  const candidates: Pod[] = [];
  for (const { current, old, unclear } of all) {
    const only = unclear || (current !== undefined && old !== undefined) ? undefined : (current ?? old);
    const serves = only !== undefined && isAvailable(only, facts);
    if (!serves) unavailable++;
    if (only === undefined || only !== old) continue;
    if (serves) candidates.push(old);
    else useless.push(old);
  }
  const allowed = Math.max(0, maxUnavailable - unavailable);
  return { create: [], remove: [...useless, ...candidates.slice(0, allowed)] };
}

function withSurge(facts: Facts, all: readonly NodePods[], desired: number, surge: number): Changes {
  let surging = 0;
  let available = 0;
  const remove: Pod[] = [];
  /** They serve where they no longer belong. */
  const misplaced: Pod[] = [];
  const replacements: string[] = [];
  const candidates: string[] = [];
  for (const { node, wanted, current, old, unclear } of all) {
    if (unclear) {
      surging++;
      continue;
    }
    const serving = old ?? current;
    if (serving !== undefined && isAvailable(serving, facts)) available++;
    if (old === undefined) continue;
    const oldServes = isAvailable(old, facts);
    if (current !== undefined) {
      if (isAvailable(current, facts)) remove.push(old);
      else surging++;
    } else if (!wanted) (oldServes ? misplaced : remove).push(old);
    else if (oldServes) candidates.push(node);
    else replacements.push(node);
  }
  // Of those that serve elsewhere one goes for each pod that serves where it belongs.
  const spare = Math.max(0, available - desired);
  const create = [...replacements, ...candidates.slice(0, Math.max(0, surge - surging))];
  return { create, remove: [...remove, ...misplaced.slice(0, spare)] };
}
