// Rules of RBAC: whether one allows a request, whether some cover others (a caller grants no more than they have), and
// how a refusal prints them. Pure; semantics and texts of kube-apiserver (pkg/apis/rbac/v1, component-helpers' Covers).

import type { Attributes } from '../attributes.ts';

/** rbac.authorization.k8s.io/v1 PolicyRule. */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

export interface RoleRef {
  readonly kind: string;
  readonly name: string;
}

const ALL = '*';
const NONE: readonly string[] = [];

function has(list: readonly string[] | undefined, value: string): boolean {
  return list?.includes(value) ?? false;
}

/** "pods" or "pods/log". */
export function fullName({ resource, subresource }: Pick<Attributes, 'resource' | 'subresource'>): string {
  return subresource === '' ? resource : `${resource}/${subresource}`;
}

/** `resource` is the full name. "*" is everything with its subresources, "*\/scale" a subresource of everything. */
function matchesResource(rule: PolicyRule, resource: string, subresource: string): boolean {
  if (has(rule.resources, ALL) || has(rule.resources, resource)) return true;
  return subresource !== '' && has(rule.resources, `*/${subresource}`);
}

/** Whether the rule allows the request for a resource. */
export function ruleAllows(rule: PolicyRule, request: Attributes): boolean {
  const { resourceNames = NONE } = rule;
  return (
    (has(rule.verbs, ALL) || has(rule.verbs, request.verb)) &&
    (has(rule.apiGroups, ALL) || has(rule.apiGroups, request.group)) &&
    matchesResource(rule, fullName(request), request.subresource) &&
    (resourceNames.length === 0 || resourceNames.includes(request.name))
  );
}

function urlCovers(pattern: string, path: string): boolean {
  return pattern === path || (pattern.endsWith(ALL) && path.startsWith(pattern.replace(/\*+$/, '')));
}

/** Whether the rule allows the request for a path that is no resource's. */
export function ruleAllowsPath(rule: PolicyRule, verb: string, path: string): boolean {
  const { nonResourceURLs = NONE } = rule;
  return (has(rule.verbs, ALL) || has(rule.verbs, verb)) && nonResourceURLs.some((pattern) => urlCovers(pattern, path));
}

/** The rule as rules of one verb, one group, one resource and at most one name, or one verb and one URL. */
export function breakDown(rule: PolicyRule): PolicyRule[] {
  const { verbs, apiGroups = NONE, resources = NONE, resourceNames = NONE, nonResourceURLs = NONE } = rule;
  const single: PolicyRule[] = [];
  for (const group of apiGroups) {
    for (const resource of resources) {
      for (const verb of verbs) {
        const one = { verbs: [verb], apiGroups: [group], resources: [resource] };
        if (resourceNames.length === 0) single.push(one);
        else for (const name of resourceNames) single.push({ ...one, resourceNames: [name] });
      }
    }
  }
  for (const url of nonResourceURLs) for (const verb of verbs) single.push({ verbs: [verb], nonResourceURLs: [url] });
  return single;
}

/** Whether `owner` allows all that `one` allows, a rule that was broken down. */
function coversOne(owner: PolicyRule, one: PolicyRule): boolean {
  const [verb = ''] = one.verbs;
  if (!has(owner.verbs, ALL) && !has(owner.verbs, verb)) return false;
  const [url] = one.nonResourceURLs ?? NONE;
  if (url !== undefined) return (owner.nonResourceURLs ?? NONE).some((pattern) => urlCovers(pattern, url));
  const [group = '', resource = '', name] = [one.apiGroups?.[0], one.resources?.[0], one.resourceNames?.[0]];
  if (!has(owner.apiGroups, ALL) && !has(owner.apiGroups, group)) return false;
  if (!matchesResource(owner, resource, resource.slice(resource.indexOf('/') + 1 || resource.length))) return false;
  const { resourceNames = NONE } = owner;
  return resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name));
}

/** What `rules` allow and `owners` do not, broken down; empty when they are covered. */
export function uncovered(owners: readonly PolicyRule[], rules: readonly PolicyRule[]): PolicyRule[] {
  return rules.flatMap(breakDown).filter((one) => !owners.some((owner) => coversOne(owner, one)));
}

/** Rules that were broken down, with the verbs of one resource (and name) put together again. */
export function compact(rules: readonly PolicyRule[]): PolicyRule[] {
  const kept: PolicyRule[] = [];
  const byResource = new Map<string, { verbs: string[] } & PolicyRule>();
  for (const rule of rules) {
    if (rule.nonResourceURLs !== undefined) {
      kept.push(rule);
      continue;
    }
    const key = JSON.stringify([rule.apiGroups, rule.resources, rule.resourceNames ?? NONE]);
    const same = byResource.get(key);
    if (same === undefined) byResource.set(key, { ...rule, verbs: [...rule.verbs] });
    else same.verbs.push(...rule.verbs);
  }
  return [...kept, ...byResource.values()];
}

/** A list as Go's %q prints it: ["a" "b"]. */
export function quotedList(list: readonly string[]): string {
  return `[${list.map((item) => JSON.stringify(item)).join(' ')}]`;
}

/** {APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]} */
export function printRule(rule: PolicyRule): string {
  const parts: readonly (readonly [string, readonly string[] | undefined])[] = [
    ['APIGroups', rule.apiGroups],
    ['Resources', rule.resources],
    ['NonResourceURLs', rule.nonResourceURLs],
    ['ResourceNames', rule.resourceNames],
    ['Verbs', rule.verbs],
  ];
  const shown = parts.flatMap(([name, list]) =>
    list === undefined || list.length === 0 ? [] : [`${name}:${quotedList(list)}`],
  );
  return `{${shown.join(', ')}}`;
}
