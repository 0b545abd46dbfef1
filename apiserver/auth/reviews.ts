// The reviews: objects that are questions about identity and permission, answered at once and never stored
// (authentication.k8s.io and authorization.k8s.io, v1).

import { aggregate } from '../../lib/aggregate.ts';
import type { EpochMs } from '../../lib/clock.ts';
import { getOwn } from '../../lib/own-property.ts';
import { badRequest, invalid, StatusError } from '../errors.ts';
import type { ObjectLookup } from '../kinds/resource.ts';
import { isObject, type JsonObject, shown } from '../patch/json-value.ts';
import type { Caller } from '../registry/registry.ts';
import { type FieldRequirement, parseFieldSelector } from '../registry/selectors.ts';
import type { Authorizer } from './authorizer.ts';
import type { BearerTokens } from './bearer-tokens.ts';
import { type ServiceAccountTokens, TokenError } from './tokens.ts';

export interface ReviewParts {
  /** Issues tokens. */
  readonly tokens: ServiceAccountTokens;
  /** Checks them. */
  readonly bearers: BearerTokens;
  readonly authorizer: Authorizer;
  readonly lookup: ObjectLookup;
  /** Epoch ms. */
  readonly now: () => EpochMs;
}

type Review = (body: JsonObject, caller: Caller, parts: ReviewParts, namespace: string) => JsonObject;

const AUTHENTICATION = 'authentication.k8s.io';
const AUTHORIZATION = 'authorization.k8s.io';

const REVIEWS: Readonly<Record<string, { readonly kind: string; readonly review: Review }>> = {
  [`${AUTHENTICATION}/v1/tokenreviews`]: { kind: 'TokenReview', review: tokenReview },
  [`${AUTHENTICATION}/v1/selfsubjectreviews`]: { kind: 'SelfSubjectReview', review: selfSubjectReview },
  [`${AUTHORIZATION}/v1/subjectaccessreviews`]: { kind: 'SubjectAccessReview', review: subjectAccessReview },
  [`${AUTHORIZATION}/v1/localsubjectaccessreviews`]: { kind: 'LocalSubjectAccessReview', review: localAccessReview },
  [`${AUTHORIZATION}/v1/selfsubjectaccessreviews`]: { kind: 'SelfSubjectAccessReview', review: selfAccessReview },
  [`${AUTHORIZATION}/v1/selfsubjectrulesreviews`]: { kind: 'SelfSubjectRulesReview', review: selfRulesReview },
};

/** The kind of a review; undefined for a resource that is none. */
export function reviewKind(group: string, version: string, plural: string): string | undefined {
  return getOwn(REVIEWS, `${group}/${version}/${plural}`)?.kind;
}

/** Waits for what the check of a token in the review needs. */
export async function prepareReview(body: unknown, { bearers, now }: ReviewParts): Promise<void> {
  const token = isObject(body) ? text(object(body['spec'])['token']) : '';
  if (token !== '') await bearers.prepare(token, now());
}

/** The answered review. Throws 400 for a body that is another kind, 422 for a question that makes no sense. */
export function answerReview(
  group: string,
  version: string,
  plural: string,
  body: unknown,
  caller: Caller,
  parts: ReviewParts,
  namespace = '',
): JsonObject {
  const found = getOwn(REVIEWS, `${group}/${version}/${plural}`);
  if (found === undefined) throw badRequest(`${plural}.${group} is no review`);
  if (!isObject(body)) throw badRequest('the body of the request is not an object');
  if ((body['kind'] ?? found.kind) !== found.kind) {
    throw badRequest(`${shown(body['kind'])} in version "${version}" cannot be handled as a ${found.kind}`);
  }
  const metadata = isObject(body['metadata']) ? body['metadata'] : { creationTimestamp: null };
  const answer = found.review(body, caller, parts, namespace);
  return { kind: found.kind, apiVersion: `${group}/${version}`, metadata, ...answer };
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
const object = (value: unknown): JsonObject => (isObject(value) ? value : {});

function userInfo(caller: Caller): JsonObject {
  return {
    username: caller.name,
    ...(caller.uid === undefined ? {} : { uid: caller.uid }),
    groups: caller.groups,
    ...(caller.extra === undefined ? {} : { extra: caller.extra }),
  };
}

function tokenReview(body: JsonObject, _caller: Caller, { bearers, now }: ReviewParts): JsonObject {
  const spec = object(body['spec']);
  const token = text(spec['token']);
  if (token === '') throw badRequest('token is required for TokenReview in authentication');
  const audiences = texts(spec['audiences']);
  try {
    const checked = bearers.check(token, audiences, now());
    return { spec, status: { authenticated: true, user: userInfo(checked.caller), audiences: checked.audiences } };
  } catch (error) {
    if (!(error instanceof TokenError)) throw error;
    return { spec, status: { authenticated: false, user: {}, error: `invalid bearer token: ${error.message}` } };
  }
}

function selfSubjectReview(_body: JsonObject, caller: Caller): JsonObject {
  return { status: { userInfo: userInfo(caller) } };
}

/**
 * The requirements of a review's fieldSelector (FieldSelectorAttributes). Those that do not say "equal to one value"
 * narrow nothing and are left out, as is a raw selector that cannot be read: the answer is then for no selector.
 */
function selectorOf(selector: JsonObject): readonly FieldRequirement[] {
  if (text(selector['rawSelector']) !== '') {
    try {
      return parseFieldSelector(text(selector['rawSelector']));
    } catch (error) {
      if (error instanceof StatusError) return [];
      throw error;
    }
  }
  const requirements = Array.isArray(selector['requirements']) ? selector['requirements'].filter(isObject) : [];
  return requirements.flatMap(({ key, operator, values }) => {
    const [value, ...others] = texts(values);
    const single = operator === 'In' && value !== undefined && others.length === 0;
    return single ? [{ field: text(key), value, equal: true }] : [];
  });
}

type FieldProblem = readonly [type: 'FieldValueInvalid' | 'FieldValueRequired', field: string, detail: string];

const EXACTLY_ONE = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
const SELECTOR_TWICE = 'may not specified at the same time as requirements';

function selectorProblems(field: string, selector: unknown): FieldProblem[] {
  if (!isObject(selector)) return [];
  const raw = text(selector['rawSelector']);
  const listed = Array.isArray(selector['requirements']) && selector['requirements'].length > 0;
  if (raw !== '' && listed) {
    return [['FieldValueInvalid', `${field}.rawSelector`, `Invalid value: ${JSON.stringify(raw)}: ${SELECTOR_TWICE}`]];
  }
  if (raw !== '' || listed) return [];
  const why = `when ${field} is specified, requirements or rawSelector is required`;
  return [['FieldValueRequired', `${field}.requirements`, `Required value: ${why}`]];
}

/** What is wrong with the attributes that a review names. */
function attributeProblems(spec: JsonObject): FieldProblem[] {
  const [resource, path] = [spec['resourceAttributes'], spec['nonResourceAttributes']];
  const problems: FieldProblem[] = [];
  if (isObject(resource) && isObject(path)) {
    const detail = `Invalid value: ${JSON.stringify(path)}: cannot be specified in combination with resourceAttributes`;
    problems.push(['FieldValueInvalid', 'spec.nonResourceAttributes', detail]);
  }
  if (!isObject(resource) && !isObject(path)) {
    problems.push(['FieldValueInvalid', 'spec.resourceAttributes', `Invalid value: null: ${EXACTLY_ONE}`]);
  }
  return problems;
}

function refuse(kind: string, problems: readonly FieldProblem[]): void {
  if (problems.length === 0) return;
  const errors = problems.map(([type, field, detail]) => ({ type, field, detail }));
  throw invalid({ group: AUTHORIZATION, kind }, '', errors);
}

/** A review is no object: it has no metadata, but for the namespace of a local one. */
function metadataProblems(metadata: JsonObject, allowed: readonly string[]): FieldProblem[] {
  const ignored = ['managedFields', 'creationTimestamp', ...allowed];
  // protobuf sends the zeros of what is not set.
  const isSet = (value: unknown): boolean => value !== '' && value !== 0 && value !== null;
  const others = Object.keys(metadata).filter((field) => !ignored.includes(field) && isSet(getOwn(metadata, field)));
  if (others.length === 0) return [];
  const why = allowed.length === 0 ? 'must be empty' : 'must be empty except for namespace';
  return [['FieldValueInvalid', 'metadata', `Invalid value: ${JSON.stringify(metadata)}: ${why}`]];
}

function bothSelectors(spec: JsonObject): FieldProblem[] {
  const attributes = object(spec['resourceAttributes']);
  return ['fieldSelector', 'labelSelector'].flatMap((name) =>
    selectorProblems(`spec.resourceAttributes.${name}`, getOwn(attributes, name)),
  );
}

/** The decision about what the spec names. */
function accessStatus(spec: JsonObject, caller: Caller, { authorizer }: ReviewParts): JsonObject {
  const path = spec['nonResourceAttributes'];
  const attributes = object(spec['resourceAttributes']);
  const decision = isObject(path)
    ? authorizer.authorizePath(caller, text(path['verb']), text(path['path']))
    : authorizer.authorize(caller, {
        verb: text(attributes['verb']),
        group: text(attributes['group']),
        resource: text(attributes['resource']),
        subresource: text(attributes['subresource']),
        namespace: text(attributes['namespace']),
        name: text(attributes['name']),
        fields: selectorOf(object(attributes['fieldSelector'])),
      });
  return { allowed: decision.allowed, ...(decision.reason === '' ? {} : { reason: decision.reason }) };
}

function subjectOf(spec: JsonObject): Caller {
  const extra = Object.entries(object(spec['extra'])).map(([key, values]) => [key.toLowerCase(), texts(values)]);
  return {
    name: text(spec['user']),
    groups: texts(spec['groups']),
    ...(text(spec['uid']) === '' ? {} : { uid: text(spec['uid']) }),
    ...(extra.length === 0 ? {} : { extra: Object.fromEntries(extra) }),
  };
}

function subjectProblems(spec: JsonObject): FieldProblem[] {
  if (text(spec['user']) !== '' || texts(spec['groups']).length > 0) return [];
  const why = 'at least one of user or group must be specified';
  return [['FieldValueInvalid', 'spec.user', `Invalid value: "": ${why}`]];
}

function subjectAccessReview(body: JsonObject, _caller: Caller, parts: ReviewParts): JsonObject {
  const spec = object(body['spec']);
  refuse('SubjectAccessReview', [
    ...attributeProblems(spec),
    ...subjectProblems(spec),
    ...bothSelectors(spec),
    ...metadataProblems(object(body['metadata']), []),
  ]);
  return { spec, status: accessStatus(spec, subjectOf(spec), parts) };
}

function localAccessReview(body: JsonObject, _caller: Caller, parts: ReviewParts, namespace: string): JsonObject {
  const spec = object(body['spec']);
  const metadata = object(body['metadata']);
  const named = text(metadata['namespace']);
  if (named !== '' && named !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  const attributes = spec['resourceAttributes'];
  const of = isObject(attributes) ? text(attributes['namespace']) : namespace;
  const problems: FieldProblem[] = [];
  if (of !== namespace) {
    const detail = `Invalid value: ${JSON.stringify(of)}: must match metadata.namespace`;
    problems.push(['FieldValueInvalid', 'spec.resourceAttributes.namespace', detail]);
  }
  if (isObject(spec['nonResourceAttributes'])) {
    const detail = `Invalid value: ${JSON.stringify(spec['nonResourceAttributes'])}: disallowed on this kind of request`;
    problems.push(['FieldValueInvalid', 'spec.nonResourceAttributes', detail]);
  }
  refuse('LocalSubjectAccessReview', [
    ...attributeProblems(spec),
    ...subjectProblems(spec),
    ...bothSelectors(spec),
    ...metadataProblems(metadata, ['namespace']),
    ...problems,
  ]);
  return {
    metadata: { ...metadata, namespace },
    spec,
    status: accessStatus(spec, subjectOf(spec), parts),
  };
}

function selfAccessReview(body: JsonObject, caller: Caller, parts: ReviewParts): JsonObject {
  const spec = object(body['spec']);
  refuse('SelfSubjectAccessReview', [
    ...attributeProblems(spec),
    ...bothSelectors(spec),
    ...metadataProblems(object(body['metadata']), []),
  ]);
  return { spec, status: accessStatus(spec, caller, parts) };
}

/** The rules as bindings grant them, in their order; kubectl puts together what it prints. */
function selfRulesReview(body: JsonObject, caller: Caller, { authorizer }: ReviewParts): JsonObject {
  const spec = object(body['spec']);
  const namespace = text(spec['namespace']);
  if (namespace === '') throw badRequest('no namespace on request');
  const { rules, incomplete, problems } = authorizer.rulesFor(caller, namespace);
  const resourceRules = rules.flatMap(({ verbs, apiGroups, resources = [], resourceNames }) =>
    resources.length === 0
      ? []
      : [{ verbs, apiGroups, resources, ...(resourceNames === undefined ? {} : { resourceNames }) }],
  );
  const nonResourceRules = rules.flatMap(({ verbs, nonResourceURLs = [] }) =>
    nonResourceURLs.length === 0 ? [] : [{ verbs, nonResourceURLs }],
  );
  return {
    spec: {},
    status: {
      resourceRules,
      nonResourceRules,
      incomplete,
      ...(problems.length === 0 ? {} : { evaluationError: aggregate(problems) }),
    },
  };
}
