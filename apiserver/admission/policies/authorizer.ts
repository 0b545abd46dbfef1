// `authorizer` in the expressions of policies and match conditions: what the caller of a request, or a service account, may do
// (k8s.io/apiserver/pkg/cel/library, authz.go).

import type { Caller, FieldRequirement } from '../../auth/attributes.ts';
import type { Authorizer, Decision } from '../../auth/authorizer.ts';
import { charge } from '../../cel/budget.ts';
import type { celEnvironment } from '../../cel/cel.ts';
import { StatusError } from '../../errors.ts';
import { parseFieldSelector } from '../../registry/selectors.ts';
import type { AdmissionAttributes } from '../plugin.ts';

type Environment = ReturnType<typeof celEnvironment>;

/** One decision of an authorizer. */
const CHECK = 2000;

const AUTHORIZER = 'kubernetes.authorization.Authorizer';
const PATH = 'kubernetes.authorization.PathCheck';
const GROUP = 'kubernetes.authorization.GroupCheck';
const RESOURCE = 'kubernetes.authorization.ResourceCheck';
const DECISION = 'kubernetes.authorization.Decision';

interface Place {
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** Of a field selector. */
  readonly fields?: readonly FieldRequirement[];
}

/** Who is asked about, and who decides. */
interface Subject {
  readonly caller: Caller;
  readonly authorizer: Authorizer;
}

class Allowed {
  readonly decision: Decision;
  constructor(decision: Decision) {
    this.decision = decision;
  }
}

class PathCheck {
  readonly subject: Subject;
  readonly path: string;
  constructor(subject: Subject, path: string) {
    this.subject = subject;
    this.path = path;
  }
}

class GroupCheck {
  readonly subject: Subject;
  readonly group: string;
  constructor(subject: Subject, group: string) {
    this.subject = subject;
    this.group = group;
  }
}

class ResourceCheck {
  readonly subject: Subject;
  readonly place: Place;
  constructor(subject: Subject, place: Place) {
    this.subject = subject;
    this.place = place;
  }
}

class Authorization {
  readonly subject: Subject;
  readonly requestResource: ResourceCheck;
  constructor(subject: Subject, place: Place) {
    this.subject = subject;
    this.requestResource = new ResourceCheck(subject, place);
  }
}

function required(what: string, text: string): string {
  if (text.trim() === '') throw new RangeError(`${what} must not be empty`);
  return text;
}

function serviceAccount(of: Authorization, namespace: string, name: string): Authorization {
  const caller: Caller = {
    name: `system:serviceaccount:${required('namespace', namespace)}:${required('name', name)}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
  };
  return new Authorization({ caller, authorizer: of.subject.authorizer }, of.requestResource.place);
}

function checkPath({ subject, path }: PathCheck, verb: string): Allowed {
  charge(CHECK);
  return new Allowed(subject.authorizer.authorizePath(subject.caller, verb, path));
}

function checkResource({ subject, place }: ResourceCheck, verb: string): Allowed {
  charge(CHECK);
  return new Allowed(subject.authorizer.authorize(subject.caller, { verb, ...place }));
}

/** One that cannot be parsed narrows nothing, as in an access review. */
function fieldsOf(selector: string): readonly FieldRequirement[] {
  try {
    return parseFieldSelector(selector);
  } catch (error) {
    if (error instanceof StatusError) return [];
    throw error;
  }
}

/** Registers the types and functions; the variable itself is the environment's. */
export function registerAuthorizer(env: Environment): void {
  const at = (check: ResourceCheck, more: Partial<Place>): ResourceCheck =>
    new ResourceCheck(check.subject, { ...check.place, ...more });
  env
    .registerType(DECISION, Allowed)
    .registerType(PATH, PathCheck)
    .registerType(GROUP, GroupCheck)
    .registerType(RESOURCE, ResourceCheck)
    .registerType(AUTHORIZER, { ctor: Authorization, fields: { requestResource: RESOURCE } })
    .registerFunction(
      `${AUTHORIZER}.path(string): ${PATH}`,
      ({ subject }: Authorization, path: string) => new PathCheck(subject, required('path', path)),
    )
    .registerFunction(
      `${AUTHORIZER}.group(string): ${GROUP}`,
      ({ subject }: Authorization, group: string) => new GroupCheck(subject, group),
    )
    .registerFunction(`${AUTHORIZER}.serviceAccount(string, string): ${AUTHORIZER}`, serviceAccount)
    .registerFunction(
      `${GROUP}.resource(string): ${RESOURCE}`,
      ({ subject, group }: GroupCheck, resource: string) =>
        new ResourceCheck(subject, {
          group,
          resource: required('resource', resource),
          subresource: '',
          namespace: '',
          name: '',
        }),
    )
    .registerFunction(`${RESOURCE}.subresource(string): ${RESOURCE}`, (check: ResourceCheck, subresource: string) =>
      at(check, { subresource }),
    )
    .registerFunction(`${RESOURCE}.namespace(string): ${RESOURCE}`, (check: ResourceCheck, namespace: string) =>
      at(check, { namespace }),
    )
    .registerFunction(`${RESOURCE}.name(string): ${RESOURCE}`, (check: ResourceCheck, name: string) =>
      at(check, { name }),
    )
    .registerFunction(`${RESOURCE}.fieldSelector(string): ${RESOURCE}`, (check: ResourceCheck, selector: string) =>
      at(check, { fields: fieldsOf(selector) }),
    )
    // No authorizer here decides by labels: what may be done with all may be done with some.
    .registerFunction(`${RESOURCE}.labelSelector(string): ${RESOURCE}`, (check: ResourceCheck) => check)
    .registerFunction(`${PATH}.check(string): ${DECISION}`, checkPath)
    .registerFunction(`${RESOURCE}.check(string): ${DECISION}`, checkResource)
    .registerFunction(`${DECISION}.allowed(): bool`, ({ decision }: Allowed) => decision.allowed)
    .registerFunction(`${DECISION}.reason(): string`, ({ decision }: Allowed) => decision.reason)
    // What the authorizers of this server read is in memory: they decide, or have no opinion.
    .registerFunction(`${DECISION}.errored(): bool`, () => false)
    .registerFunction(`${DECISION}.error(): string`, () => '');
}

export const AUTHORIZER_TYPE = AUTHORIZER;

/** The variable's value for a request. */
export function authorizerOf(
  attributes: Pick<AdmissionAttributes, 'authorizer' | 'user' | 'resource' | 'namespace' | 'name'>,
): Authorization {
  const { authorizer, user, resource, namespace, name } = attributes;
  const { group, plural, subresource } = resource;
  return new Authorization({ caller: user, authorizer }, { group, resource: plural, subresource, namespace, name });
}
