// serviceaccounts/<name>/token: issues a token for the account, bound to a pod, secret or node when the request has a boundObjectRef
// (authentication.k8s.io/v1 TokenRequest).

import { rfc3339 } from '../../../lib/rfc3339.ts';
import type { BoundObject, ServiceAccountTokens } from '../../auth/tokens.ts';
import { badRequest, conflict, invalid, notFound } from '../../errors.ts';
import type { FieldError } from '../../kinds/resource.ts';
import { isObject, type JsonObject } from '../../patch/json-value.ts';
import type { Registry } from '../registry.ts';

const MIN_SECONDS = 600;
const DEFAULT_SECONDS = 3600;
/** 2^32, the API's maximum. */
const MAX_SECONDS = 4_294_967_296;
const BOUND_PLURALS = { Pod: 'pods', Secret: 'secrets', Node: 'nodes' } as const;

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The TokenRequest with its status. Throws 400, 404, 409 (another uid) or 422. */
export function requestToken(
  registry: Registry,
  tokens: ServiceAccountTokens,
  namespace: string,
  name: string,
  body: unknown,
): JsonObject {
  if (!isObject(body)) throw badRequest('the body of the request is not an object');
  const account = registry.get(registry.rowOf('', 'serviceaccounts'), namespace, name).object;
  const spec = isObject(body['spec']) ? body['spec'] : {};
  const requested = Array.isArray(spec['audiences']) ? spec['audiences'].filter((a) => typeof a === 'string') : [];
  const audiences = requested.length === 0 ? tokens.audiences : requested;
  const seconds = spec['expirationSeconds'] ?? DEFAULT_SECONDS;
  const errors: FieldError[] = [];
  const wrong = (why: string): void => {
    errors.push({
      type: 'FieldValueInvalid',
      field: 'spec.expirationSeconds',
      detail: `Invalid value: ${JSON.stringify(seconds)}: ${why}`,
    });
  };
  if (typeof seconds !== 'number' || !Number.isSafeInteger(seconds)) wrong('must be an integer');
  else if (seconds < MIN_SECONDS) wrong('may not specify a duration less than 10 minutes');
  else if (seconds > MAX_SECONDS) wrong('may not specify a duration larger than 2^32 seconds');
  if (errors.length > 0 || typeof seconds !== 'number') {
    throw invalid({ group: 'authentication.k8s.io', kind: 'TokenRequest' }, '', errors);
  }
  const bound = boundObject(registry, namespace, name, spec['boundObjectRef']);
  const now = registry.clock.now();
  const { token, expiresAt } = tokens.issue(
    {
      namespace,
      serviceAccount: { name, uid: account.metadata.uid ?? '' },
      audiences,
      expirationSeconds: seconds,
      ...bound,
    },
    now,
  );
  const metadata = { name, namespace, creationTimestamp: rfc3339(now) };
  return {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata,
    spec: { ...spec, audiences, expirationSeconds: seconds },
    status: { token, expirationTimestamp: rfc3339(expiresAt) },
  };
}

/** The object that the token is bound to. A pod's token also contains the pod's node. */
function boundObject(
  registry: Registry,
  namespace: string,
  account: string,
  ref: unknown,
): { bound?: BoundObject; node?: { name: string; uid: string } } {
  if (!isObject(ref)) return {};
  const { kind } = ref;
  const name = text(ref['name']);
  if (kind !== 'Pod' && kind !== 'Secret' && kind !== 'Node') {
    throw badRequest(`cannot bind token for serviceaccount "${account}" to object of type ${text(kind)}`);
  }
  const plural = BOUND_PLURALS[kind];
  const object = registry.lookup.get('', plural, kind === 'Node' ? '' : namespace, name);
  const uid = object?.metadata.uid;
  if (object === undefined || uid === undefined) throw notFound({ group: '', plural }, name);
  const requested = text(ref['uid']);
  if (requested !== '' && requested !== uid) {
    const why = `the UID in the bound object reference (${requested}) does not match the UID in record. The object might have been deleted and then recreated`;
    throw conflict({ group: '', plural: 'serviceaccounts/token' }, account, why);
  }
  if (kind !== 'Pod') return { bound: { kind, name, uid } };
  const spec = isObject(object['spec']) ? object['spec'] : {};
  const serviceAccount = text(spec['serviceAccountName']);
  if (serviceAccount !== account) {
    throw badRequest(
      `cannot bind token for serviceaccount "${account}" to pod running with different serviceaccount name.`,
    );
  }
  const nodeName = text(spec['nodeName']);
  const nodeUid = nodeName === '' ? undefined : registry.lookup.get('', 'nodes', '', nodeName)?.metadata.uid;
  return {
    bound: { kind, name, uid },
    ...(nodeUid === undefined ? {} : { node: { name: nodeName, uid: nodeUid } }),
  };
}
