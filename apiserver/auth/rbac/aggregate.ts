// The rules of aggregated ClusterRoles (admin, edit, view): the union of those of the ClusterRoles that their selectors match.
// A controller of kube-controller-manager does this in a cluster; the server does it itself, as without one these roles would
// be empty. It also gives the controllers of the lab their rules for the groups of custom resources.

import { errorMessage } from '../../../lib/errors.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { sameJson } from '../../../lib/same-json.ts';
import type { KubeObject } from '../../kinds/resource.ts';
import { isObject, type JsonObject } from '../../patch/json-value.ts';
import type { Registry } from '../../registry/registry.ts';
import { mutateStored } from '../../registry/write.ts';
import { CUSTOM_RESOURCES_ROLE, customResourceRules, RBAC_GROUP } from './defaults.ts';

const listOf = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);
const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];

function meets(requirement: JsonObject, labels: Readonly<Record<string, string>>): boolean {
  const { key, operator } = requirement;
  const value = typeof key === 'string' ? getOwn(labels, key) : undefined;
  const values = texts(requirement['values']);
  if (operator === 'Exists') return value !== undefined;
  if (operator === 'DoesNotExist') return value === undefined;
  const among = value !== undefined && values.includes(value);
  return operator === 'In' ? among : operator === 'NotIn' && !among;
}

/** Whether a meta/v1 LabelSelector matches the labels; an empty one matches all. */
function selects(selector: JsonObject, labels: Readonly<Record<string, string>>): boolean {
  const exact = Object.entries(isObject(selector['matchLabels']) ? selector['matchLabels'] : {});
  return (
    exact.every(([key, value]) => getOwn(labels, key) === value) &&
    listOf(selector['matchExpressions']).every((requirement) => meets(requirement, labels))
  );
}

function selectorsOf(role: Readonly<KubeObject>): JsonObject[] {
  return isObject(role['aggregationRule']) ? listOf(role['aggregationRule']['clusterRoleSelectors']) : [];
}

/** The rules that an aggregated role has to have, or undefined for one that is not aggregated. Pure. */
export function aggregatedRules(
  role: Readonly<KubeObject>,
  all: readonly Readonly<KubeObject>[],
): readonly JsonObject[] | undefined {
  const selectors = selectorsOf(role);
  if (selectors.length === 0) return undefined;
  const rules: JsonObject[] = [];
  const sorted = [...all].sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1));
  for (const selector of selectors) {
    for (const other of sorted) {
      if (other.metadata.name === role.metadata.name || !selects(selector, other.metadata.labels ?? {})) continue;
      // As the controller of the control plane has it, so that neither changes what the other wrote.
      for (const rule of listOf(other['rules'])) if (!rules.some((known) => sameJson(known, rule))) rules.push(rule);
    }
  }
  return rules;
}

/** Roles that are part of each other in a circle would pass their rules on for ever. */
const MAX_ROUNDS = 16;

/** Writes the rules of each aggregated role that has others. Returns whether there were any. */
function aggregateOnce(registry: Registry): boolean {
  const row = registry.rowOf(RBAC_GROUP, 'clusterroles');
  const all = registry.lookup.list(RBAC_GROUP, 'clusterroles');
  let wrote = false;
  for (const role of all) {
    const rules = aggregatedRules(role, all);
    if (rules === undefined || sameJson(rules, listOf(role['rules']))) continue;
    const stored = registry.find(row, '', role.metadata.name ?? '');
    if (stored === undefined) continue;
    mutateStored(registry, row, stored, false, (object) => {
      object['rules'] = rules;
    });
    wrote = true;
  }
  return wrote;
}

const CUSTOM = 'apiextensions.k8s.io';

/** Sets the rules of the role for custom resources to the groups that there are. */
function followGroups(registry: Registry): void {
  const groups = registry.lookup.list(CUSTOM, 'customresourcedefinitions').flatMap((definition) => {
    const group = isObject(definition['spec']) ? definition['spec']['group'] : undefined;
    return typeof group === 'string' ? [group] : [];
  });
  const row = registry.rowOf(RBAC_GROUP, 'clusterroles');
  const stored = registry.find(row, '', CUSTOM_RESOURCES_ROLE);
  const rules = customResourceRules(groups);
  if (stored === undefined || sameJson(registry.parse(row, stored)['rules'] ?? [], rules)) return;
  mutateStored(registry, row, stored, false, (object) => {
    object['rules'] = rules;
  });
}

/** Resolves to whether the roles are what they should be; one may be part of another. */
async function aggregate(registry: Registry): Promise<boolean> {
  await registry.store.commit(() => followGroups(registry));
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (!(await registry.store.commit(() => aggregateOnce(registry)))) return true;
  }
  return false;
}

/** Aggregates now, and after each change of a ClusterRole or of the custom resources. Resolves to what stops it. */
export async function startAggregation(registry: Registry, log: (line: string) => void): Promise<() => void> {
  if (!registry.hasRow(RBAC_GROUP, 'clusterroles')) return () => undefined;
  await aggregate(registry);
  let state: 'idle' | 'scheduled' | 'running' | 'changed' | 'stopped' = 'idle';
  const run = async (): Promise<void> => {
    if (state === 'stopped') return;
    state = 'running';
    let settled = false;
    try {
      settled = await aggregate(registry);
    } catch (error) {
      log(`aggregated ClusterRoles are not up to date: ${errorMessage(error)}`);
    }
    // What has changed meanwhile was written here, or by someone else.
    const again = isChanged() && settled;
    if (!isStopped()) state = 'idle';
    if (again) soon();
  };
  const isChanged = (): boolean => state === 'changed';
  const isStopped = (): boolean => state === 'stopped';
  // Not within the write that causes it: the store is in the middle of one.
  const soon = (): void => {
    if (state === 'running') state = 'changed';
    if (state !== 'idle') return;
    state = 'scheduled';
    setImmediate(() => void run());
  };
  const stops = [`${RBAC_GROUP}/clusterroles`, `${CUSTOM}/customresourcedefinitions`].map((resource) =>
    registry.store.subscribe(resource, soon),
  );
  return () => {
    state = 'stopped';
    for (const stop of stops) stop();
  };
}
