// The reviews: objects that are questions about identity and permission, answered at once and never stored
// (authentication.k8s.io and authorization.k8s.io, v1).

import type { EpochMs } from '../../lib/clock.ts';
import { getOwn } from '../../lib/own-property.ts';
import { badRequest, invalid, StatusError } from '../errors.ts';
import type { ObjectLookup } from '../kinds/resource.ts';
import { isObject, type JsonObject, shown } from '../patch/json-value.ts';
import type { Caller } from '../registry/registry.ts';
import { type FieldRequirement, parseFieldSelector } from '../registry/selectors.ts';
import { authorize, authorizePath, rulesOf } from './authorize.ts';
import { nodeNameOf } from './node.ts';
import type { Rule } from './rules.ts';
import { ISSUER, type ServiceAccountTokens, TokenError } from './tokens.ts';

export interface ReviewParts {
  readonly tokens: ServiceAccountTokens;
  readonly lookup: ObjectLookup;
  /** Epoch ms. */
  readonly now: () => EpochMs;
}

type Review = (body: JsonObject, caller: Caller, parts: ReviewParts) => JsonObject;

const AUTHENTICATION = 'authentication.k8s.io';
const AUTHORIZATION = 'authorization.k8s.io';

const REVIEWS: Readonly<Record<string, { readonly kind: string; readonly review: Review }>> = {
  [`${AUTHENTICATION}/v1/tokenreviews`]: { kind: 'TokenReview', review: tokenReview },
  [`${AUTHENTICATION}/v1/selfsubjectreviews`]: { kind: 'SelfSubjectReview', review: selfSubjectReview },
  [`${AUTHORIZATION}/v1/subjectaccessreviews`]: { kind: 'SubjectAccessReview', review: subjectAccessReview },
  [`${AUTHORIZATION}/v1/localsubjectaccessreviews`]: { kind: 'LocalSubjectAccessReview', review: subjectAccessReview },
  [`${AUTHORIZATION}/v1/selfsubjectaccessreviews`]: { kind: 'SelfSubjectAccessReview', review: selfAccessReview },
  [`${AUTHORIZATION}/v1/selfsubjectrulesreviews`]: { kind: 'SelfSubjectRulesReview', review: selfRulesReview },
};

/** Whether a resource is a review. */
export function isReview(group: string, version: string, plural: string): boolean {
  return Object.hasOwn(REVIEWS, `${group}/${version}/${plural}`);
}

/** The answered review. Throws 400 for a body that is another kind, 422 for a question that makes no sense. */
export function answerReview(
  group: string,
  version: string,
  plural: string,
  body: unknown,
  caller: Caller,
  parts: ReviewParts,
): JsonObject {
  const found = getOwn(REVIEWS, `${group}/${version}/${plural}`);
  if (found === undefined) throw badRequest(`${plural}.${group} is no review`);
  if (!isObject(body)) throw badRequest('the body of the request is not an object');
  if ((body['kind'] ?? found.kind) !== found.kind) {
    throw badRequest(`${shown(body['kind'])} in version "${version}" cannot be handled as a ${found.kind}`);
  }
  const metadata = isObject(body['metadata']) ? body['metadata'] : { creationTimestamp: null };
  const answer = found.review(body, caller, parts);
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

function tokenReview(body: JsonObject, _caller: Caller, { tokens, lookup, now }: ReviewParts): JsonObject {
  const spec = object(body['spec']);
  const token = text(spec['token']);
  if (token === '') {
    throw invalid({ group: AUTHENTICATION, kind: 'TokenReview' }, '', [
      { type: 'FieldValueRequired', field: 'spec.token', detail: 'Required value' },
    ]);
  }
  const audiences = texts(spec['audiences']);
  try {
    const checked = tokens.check(token, audiences.length === 0 ? [ISSUER] : audiences, lookup, now());
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

/** status of an access review of `caller`. Throws 422 when the spec has no attributes. */
function accessStatus(kind: string, spec: JsonObject, caller: Caller, lookup: ObjectLookup): JsonObject {
  const resource = spec['resourceAttributes'];
  const path = spec['nonResourceAttributes'];
  if (isObject(resource) === isObject(path)) {
    throw invalid({ group: AUTHORIZATION, kind }, '', [
      {
        type: 'FieldValueInvalid',
        field: 'spec.resourceAttributes',
        detail: 'Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified',
      },
    ]);
  }
  const attributes = object(resource);
  const decision = isObject(path)
    ? authorizePath(caller, text(path['verb']), text(path['path']))
    : authorize(
        caller,
        {
          verb: text(attributes['verb']),
          group: text(attributes['group']),
          resource: text(attributes['resource']),
          subresource: text(attributes['subresource']),
          namespace: text(attributes['namespace']),
          name: text(attributes['name']),
          fields: selectorOf(object(attributes['fieldSelector'])),
        },
        lookup,
      );
  return { allowed: decision.allowed, ...(decision.reason === '' ? {} : { reason: decision.reason }) };
}

function subjectAccessReview(body: JsonObject, _caller: Caller, { lookup }: ReviewParts): JsonObject {
  const spec = object(body['spec']);
  const name = text(spec['user']);
  const groups = texts(spec['groups']);
  const kind = text(body['kind']) || 'SubjectAccessReview';
  if (name === '' && groups.length === 0) {
    throw invalid({ group: AUTHORIZATION, kind }, '', [
      {
        type: 'FieldValueInvalid',
        field: 'spec.user',
        detail: 'Invalid value: "": at least one of user or group must be specified',
      },
    ]);
  }
  return { spec, status: accessStatus(kind, spec, { name, groups }, lookup) };
}

function selfAccessReview(body: JsonObject, caller: Caller, { lookup }: ReviewParts): JsonObject {
  const spec = object(body['spec']);
  return { spec, status: accessStatus('SelfSubjectAccessReview', spec, caller, lookup) };
}

const EVERYTHING: Rule = { groups: ['*'], resources: ['*'], verbs: ['*'] };

function selfRulesReview(body: JsonObject, caller: Caller): JsonObject {
  const spec = object(body['spec']);
  const namespace = text(spec['namespace']);
  const all = caller.groups.includes('system:masters');
  const rules = [...(all ? [EVERYTHING] : []), ...rulesOf(caller)];
  const here = rules.filter((rule) => rule.namespace === undefined || rule.namespace === namespace);
  return {
    spec,
    status: {
      resourceRules: here.map((rule) => ({
        verbs: rule.verbs,
        apiGroups: rule.groups,
        resources: rule.resources,
        ...(rule.names === undefined ? {} : { resourceNames: rule.names }),
      })),
      nonResourceRules: [
        all
          ? { verbs: ['*'], nonResourceURLs: ['*'] }
          : {
              verbs: ['get'],
              nonResourceURLs: [
                '/api',
                '/api/*',
                '/apis',
                '/apis/*',
                '/healthz',
                '/livez',
                '/openapi',
                '/openapi/*',
                '/readyz',
                '/version',
                '/version/',
              ],
            },
      ],
      // Kubelets may also read what their pods refer to, which cannot be written as rules.
      incomplete: nodeNameOf(caller) !== undefined,
    },
  };
}
