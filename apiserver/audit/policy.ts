// An audit policy (audit.k8s.io/v1): its types, and which of its rules applies to a request. Pure; reading its file is
// load.ts.

export const LEVELS = ['None', 'Metadata', 'Request', 'RequestResponse'] as const;
export type Level = (typeof LEVELS)[number];

export const STAGES = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'] as const;
export type Stage = (typeof STAGES)[number];

export interface GroupResources {
  /** '' is the core group. */
  readonly group: string;
  /** "pods", "pods/log", "pods/*", or one subresource of everything, "*"; empty: everything of the group. */
  readonly resources: readonly string[];
  readonly resourceNames: readonly string[];
}

/** A rule as its file has it, its values not validated. An empty list restricts nothing. */
export interface PolicyRule {
  readonly level: string;
  readonly users: readonly string[];
  readonly userGroups: readonly string[];
  readonly verbs: readonly string[];
  readonly resources: readonly GroupResources[];
  /** '' is for what is in no namespace. */
  readonly namespaces: readonly string[];
  readonly nonResourceURLs: readonly string[];
  readonly omitStages: readonly string[];
  readonly omitManagedFields?: boolean;
}

export interface Policy {
  readonly rules: readonly PolicyRule[];
  readonly omitStages: readonly string[];
  readonly omitManagedFields: boolean;
}

/** A request as rules see it. */
export interface AuditedRequest {
  /** Undefined: the caller was not authenticated. */
  readonly user: { readonly name: string; readonly groups: readonly string[] } | undefined;
  readonly verb: string;
  readonly path: string;
  /** Undefined for a path that is no resource's. */
  readonly resource:
    | {
        readonly group: string;
        readonly resource: string;
        readonly subresource: string;
        readonly namespace: string;
        readonly name: string;
      }
    | undefined;
}

export interface Verdict {
  readonly level: Level;
  readonly omitStages: readonly string[];
  readonly omitManagedFields: boolean;
}

const LEVEL_OF: ReadonlyMap<string, Level> = new Map(LEVELS.map((level) => [level, level]));

/** Whether `level` is `least` or more. Pure. */
export function atLeast(level: Level, least: Level): boolean {
  return LEVELS.indexOf(level) >= LEVELS.indexOf(least);
}

/** What the first rule that matches says; None where none does. Pure. */
export function evaluate(policy: Policy, request: AuditedRequest): Verdict {
  const rule = policy.rules.find((one) => matches(one, request));
  const { omitStages, omitManagedFields } = policy;
  if (rule === undefined) return { level: 'None', omitStages, omitManagedFields };
  return {
    level: LEVEL_OF.get(rule.level) ?? 'None',
    omitStages: [...omitStages, ...rule.omitStages],
    omitManagedFields: rule.omitManagedFields ?? omitManagedFields,
  };
}

const allows = (list: readonly string[], value: string): boolean => list.length === 0 || list.includes(value);

function matches(rule: PolicyRule, { user, verb, path, resource }: AuditedRequest): boolean {
  if (rule.users.length > 0 && (user === undefined || !rule.users.includes(user.name))) return false;
  if (rule.userGroups.length > 0 && !(user?.groups ?? []).some((group) => rule.userGroups.includes(group)))
    return false;
  if (!allows(rule.verbs, verb)) return false;
  if (rule.namespaces.length > 0 || rule.resources.length > 0) {
    if (resource === undefined || !allows(rule.namespaces, resource.namespace)) return false;
    return rule.resources.length === 0 || rule.resources.some((one) => matchesResource(one, resource));
  }
  if (rule.nonResourceURLs.length === 0) return true;
  return resource === undefined && rule.nonResourceURLs.some((pattern) => matchesPath(pattern, path));
}

function matchesPath(pattern: string, path: string): boolean {
  if (pattern === '*' || pattern === path) return true;
  return pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1));
}

function matchesResource(rule: GroupResources, request: NonNullable<AuditedRequest['resource']>): boolean {
  const { group, resource, subresource, name } = request;
  if (rule.group !== group) return false;
  if (rule.resources.length === 0) return true;
  if (!allows(rule.resourceNames, name)) return false;
  const whole = subresource === '' ? resource : `${resource}/${subresource}`;
  const names = ['*', whole, `${resource}/*`, ...(subresource === '' ? [] : [`*/${subresource}`])];
  return rule.resources.some((one) => names.includes(one));
}
