// What an authorizer is, for those who ask one. Deciding is authorize.ts.

import type { Attributes, Caller } from './attributes.ts';
import type { PolicyRule, RoleRef } from './rbac/rules.ts';

/** Who may everything, whatever the authorizers say. */
export const MASTERS = 'system:masters';

export interface Decision {
  readonly allowed: boolean;
  /** Why, in the words of the authorizer that decided; those of all of them, a line each, where none allowed it. */
  readonly reason: string;
}

/** The rules of a caller in a namespace, as far as they can be listed. */
export interface CallerRules {
  readonly rules: readonly PolicyRule[];
  /** Whether the caller may more than the rules express. */
  readonly incomplete: boolean;
  readonly problems: readonly string[];
}

export interface Authorizer {
  /** Whether the caller may do this with the resource. */
  authorize(caller: Caller, attributes: Attributes): Decision;
  /** Whether the caller may do this with a path that is no resource's. `verb` is the method in lower case. */
  authorizePath(caller: Caller, verb: string, path: string): Decision;
  rulesFor(caller: Caller, namespace: string): CallerRules;
  /** The rules of a role; `namespace` is that of the binding. Undefined: there is no such role. */
  rulesOfRole(ref: RoleRef, namespace: string): readonly PolicyRule[] | undefined;
}

/** Refuses everyone but system:masters; for a registry that was given no other. */
export const NO_AUTHORIZER: Authorizer = {
  authorize: ({ groups }) => ({ allowed: groups.includes(MASTERS), reason: '' }),
  authorizePath: ({ groups }) => ({ allowed: groups.includes(MASTERS), reason: '' }),
  rulesFor: () => ({ rules: [], incomplete: false, problems: [] }),
  rulesOfRole: () => undefined,
};
