// Authorization: the rules of rules.ts, and the node authorizer for kubelets. Only decides; the messages of refusals are
// here too, because clients match on them.

import { forbidden, forbiddenPath, type StatusError } from '../errors.ts';
import type { ObjectLookup } from '../kinds/resource.ts';
import type { Caller } from '../registry/registry.ts';
import type { Attributes } from './attributes.ts';
import { nodeMay, nodeNameOf } from './node.ts';
import { BASIC_USER, CONTROLLER_MANAGER, covers, NODE, type Rule, SCHEDULER } from './rules.ts';

export interface Decision {
  readonly allowed: boolean;
  readonly reason: string;
}

const HEALTH = new Set(['/healthz', '/livez', '/readyz', '/version', '/version/']);
const DISCOVERY = ['/api', '/apis', '/openapi', '/.well-known', '/healthz', '/livez', '/readyz', '/version'];
const YES: Decision = { allowed: true, reason: '' };
const NO: Decision = { allowed: false, reason: '' };

/** The rules that hold for a caller who is not of system:masters. */
export function rulesOf(caller: Caller): Rule[] {
  const rules: Rule[] = [];
  if (caller.groups.includes('system:authenticated')) rules.push(...BASIC_USER);
  if (caller.name === 'system:kube-scheduler') rules.push(...SCHEDULER);
  if (caller.name === 'system:kube-controller-manager') rules.push(...CONTROLLER_MANAGER);
  if ((nodeNameOf(caller) ?? '') !== '') rules.push(...NODE);
  return rules;
}

/** Whether the caller may do this with the resource. */
export function authorize(caller: Caller, attributes: Attributes, lookup: ObjectLookup): Decision {
  if (caller.groups.includes('system:masters')) return YES;
  const node = nodeNameOf(caller);
  if (node !== undefined) {
    const verdict = nodeMay(node, attributes, lookup);
    if (verdict === true) return YES;
    if (typeof verdict === 'string') return { allowed: false, reason: verdict };
  }
  const resource = fullName(attributes);
  return rulesOf(caller).some((rule) => covers(rule, { ...attributes, resource })) ? YES : NO;
}

/** Whether the caller may do this with a path that is no resource's. Without a caller only health and version. */
export function authorizePath(caller: Caller | undefined, verb: string, path: string): Decision {
  const reads = verb === 'get' || verb === 'head';
  if (reads && HEALTH.has(path)) return YES;
  if (caller === undefined) return NO;
  if (caller.groups.includes('system:masters')) return YES;
  const discovery = DISCOVERY.some((root) => path === root || path.startsWith(`${root}/`));
  return reads && discovery && caller.groups.includes('system:authenticated') ? YES : NO;
}

export function fullName({ resource, subresource }: Attributes): string {
  return subresource === '' ? resource : `${resource}/${subresource}`;
}

/** The 403, in the real server's words. */
export function refusal(caller: Caller, attributes: Attributes, decision: Decision): StatusError {
  const { verb, group, namespace, name } = attributes;
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  const why = decision.reason === '' ? '' : `: ${decision.reason}`;
  const message = `User "${caller.name}" cannot ${verb} resource "${fullName(attributes)}" in API group "${group}" ${where}${why}`;
  return forbidden({ group, plural: attributes.resource }, name, message);
}

export function pathRefusal(caller: Caller, verb: string, path: string): StatusError {
  return forbiddenPath(caller.name, verb, path);
}
