// Which FlowSchema a request belongs to, and which flow of it: API Priority and Fairness' classification
// (k8s.io/apiserver/pkg/util/flowcontrol/rule.go). Pure.

import type { FlowSchemaSpec } from 'kubernetes-types/flowcontrol/v1';
import type { Loose } from '../kinds/shapes.ts';

export type SchemaSpec = Loose<FlowSchemaSpec>;
type Rules = NonNullable<SchemaSpec['rules']>[number];
type Subject = NonNullable<Rules['subjects']>[number];
type ResourceRule = NonNullable<Rules['resourceRules']>[number];
type PathRule = NonNullable<Rules['nonResourceRules']>[number];

/** What a request is classified by. */
export interface FlowRequest {
  readonly user: string;
  readonly groups: readonly string[];
  /** A resource's verb, or of a path the method in lower case. */
  readonly verb: string;
  readonly path: string;
  /** Absent for a path that is no resource's. */
  readonly resource?: {
    readonly group: string;
    readonly version: string;
    readonly resource: string;
    readonly subresource: string;
    readonly namespace: string;
    readonly name: string;
  };
}

const ACCOUNT = 'system:serviceaccount:';

/** `wildcard` stands in a list alone: validation sees to that. */
function has(list: readonly string[] = [], value: string, wildcard = '*'): boolean {
  return (list.length === 1 && list[0] === wildcard) || list.includes(value);
}

function matchesSubject({ kind, user, group, serviceAccount }: Subject, request: FlowRequest): boolean {
  if (kind === 'User') return user !== undefined && (user.name === '*' || user.name === request.user);
  if (kind === 'Group') return group !== undefined && (group.name === '*' || request.groups.includes(group.name ?? ''));
  if (kind !== 'ServiceAccount' || serviceAccount === undefined) return false;
  const { namespace = '', name = '' } = serviceAccount;
  const prefix = `${ACCOUNT}${namespace}:`;
  return name === '*' ? request.user.startsWith(prefix) : request.user === prefix + name;
}

function matchesResource(rule: ResourceRule, verb: string, resource: NonNullable<FlowRequest['resource']>): boolean {
  const full = resource.subresource === '' ? resource.resource : `${resource.resource}/${resource.subresource}`;
  if (!has(rule.verbs, verb) || !has(rule.resources, full) || !has(rule.apiGroups, resource.group)) return false;
  return resource.namespace === '' ? rule.clusterScope === true : has(rule.namespaces, resource.namespace);
}

function matchesPath({ verbs, nonResourceURLs = [] }: PathRule, { verb, path }: FlowRequest): boolean {
  if (!has(verbs, verb)) return false;
  return nonResourceURLs.some((url) => {
    if (url === '*' || url === path) return true;
    const prefix = url.endsWith('*') ? url.slice(0, -1) : url;
    return path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`);
  });
}

function matchesRule(
  { subjects = [], resourceRules = [], nonResourceRules = [] }: Rules,
  request: FlowRequest,
): boolean {
  if (!subjects.some((subject) => matchesSubject(subject, request))) return false;
  const { resource, verb } = request;
  if (resource === undefined) return nonResourceRules.some((rule) => matchesPath(rule, request));
  return resourceRules.some((rule) => matchesResource(rule, verb, resource));
}

/** Whether one of the schema's rules is about the request. */
export function matchesSchema({ rules = [] }: SchemaSpec, request: FlowRequest): boolean {
  return rules.some((rule) => matchesRule(rule, request));
}

/** What distinguishes the request's flow from the other flows of its schema. */
export function distinguisherOf({ distinguisherMethod }: SchemaSpec, request: FlowRequest): string {
  if (distinguisherMethod?.type === 'ByUser') return request.user;
  if (distinguisherMethod?.type === 'ByNamespace') return request.resource?.namespace ?? '';
  return '';
}
