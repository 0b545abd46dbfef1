// Authorization: the members of system:masters, then the authorizers in their order (Node, RBAC), the first of which
// that allows a request decides. Only decides; the messages of refusals are here too, because clients match on them.

import { forbidden, forbiddenPath, type StatusError } from '../errors.ts';
import type { ObjectLookup } from '../kinds/resource.ts';
import type { Caller } from '../registry/registry.ts';
import type { Attributes } from './attributes.ts';
import { type Authorizer, type CallerRules, type Decision, MASTERS } from './authorizer.ts';
import { nodeMay, nodeNameOf } from './node.ts';
import { NODE_RULES } from './rbac/defaults.ts';
import type { RbacPolicy } from './rbac/policy.ts';
import { fullName, type PolicyRule, type RoleRef, ruleAllows } from './rbac/rules.ts';

/** The values of --authorization-mode. */
export const AUTHORIZATION_MODES = ['Node', 'RBAC', 'AlwaysAllow', 'AlwaysDeny'] as const;
export type AuthorizationMode = (typeof AUTHORIZATION_MODES)[number];

const YES: Decision = { allowed: true, reason: '' };
const ALWAYS_DENY = 'Everything is forbidden.';
const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
];
const NODE_PROBLEM = 'node authorizer does not support user rule resolution';

export class ChainAuthorizer implements Authorizer {
  readonly #policy: RbacPolicy;
  readonly #lookup: ObjectLookup;
  readonly #modes: readonly AuthorizationMode[];

  constructor(policy: RbacPolicy, lookup: ObjectLookup, modes: readonly AuthorizationMode[] = ['Node', 'RBAC']) {
    this.#policy = policy;
    this.#lookup = lookup;
    this.#modes = modes;
  }

  authorize(caller: Caller, attributes: Attributes): Decision {
    return this.#first(caller, {
      Node: () => authorizeNode(caller, attributes, this.#lookup),
      RBAC: () => this.#policy.authorize(caller, attributes),
    });
  }

  authorizePath(caller: Caller, verb: string, path: string): Decision {
    // What one may read one may look at the head of.
    const method = verb === 'head' ? 'get' : verb;
    return this.#first(caller, {
      Node: () => NO_OPINION,
      RBAC: () => this.#policy.authorizePath(caller, method, path),
    });
  }

  #first(caller: Caller, deciders: Readonly<Record<'Node' | 'RBAC', () => Decision>>): Decision {
    if (caller.groups.includes(MASTERS)) return YES;
    const reasons: string[] = [];
    for (const mode of this.#modes) {
      if (mode === 'AlwaysAllow') return YES;
      const decision = mode === 'AlwaysDeny' ? { allowed: false, reason: ALWAYS_DENY } : deciders[mode]();
      if (decision.allowed) return decision;
      if (decision.reason !== '') reasons.push(decision.reason);
    }
    return { allowed: false, reason: reasons.join('\n') };
  }

  rulesFor(caller: Caller, namespace: string): CallerRules {
    const rules: PolicyRule[] = [];
    const problems: string[] = [];
    if (this.#modes.includes('AlwaysAllow')) rules.push(...EVERYTHING);
    const isNode = this.#modes.includes('Node') && nodeNameOf(caller) !== undefined;
    if (isNode) problems.push(NODE_PROBLEM);
    if (this.#modes.includes('RBAC')) {
      const found = this.#policy.rulesFor(caller, namespace);
      rules.push(...found.rules);
      problems.push(...found.problems);
    }
    return { rules, incomplete: isNode, problems };
  }

  rulesOfRole(ref: RoleRef, namespace: string): readonly PolicyRule[] | undefined {
    const rules = this.#policy.rulesOfRole(ref, namespace);
    return 'problem' in rules ? undefined : rules;
  }
}

const NO_OPINION: Decision = { allowed: false, reason: '' };

/** What depends on the pods of a node is node.ts; what any node may is the role system:node, which is bound to no user. */
function authorizeNode(caller: Caller, attributes: Attributes, lookup: ObjectLookup): Decision {
  const node = nodeNameOf(caller);
  if (node === undefined) return NO_OPINION;
  const verdict = nodeMay(node, attributes, lookup);
  if (verdict === true) return YES;
  if (typeof verdict === 'string') return { allowed: false, reason: verdict };
  return NODE_RULES.some((rule) => ruleAllows(rule, attributes)) ? YES : NO_OPINION;
}

/** Responses are never taken for HTML. */
const sanitized = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** The 403, in the real server's words. */
export function refusal(caller: Caller, attributes: Attributes, decision: Decision): StatusError {
  const { verb, group, namespace, name } = attributes;
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`;
  const why = decision.reason === '' ? '' : `: ${decision.reason}`;
  const message = sanitized(
    `User ${JSON.stringify(caller.name)} cannot ${verb} resource "${fullName(attributes)}" in API group "${group}" ${where}`,
  );
  return forbidden({ group, plural: attributes.resource }, name, `${message}${why}`);
}

export function pathRefusal(caller: Caller, verb: string, path: string, decision: Decision): StatusError {
  return forbiddenPath(sanitized(caller.name), verb, sanitized(path), decision.reason);
}
