// Which audiences a node may request a pod's tokens for: those that the pod's volumes need, so that a stolen node
// certificate is no key to every service that trusts the cluster's tokens. Pure but for look-ups.
// (ServiceAccountNodeAudienceRestriction of kube-apiserver.)

import { aggregate } from '../../lib/aggregate.ts';
import { notFound } from '../errors.ts';
import type { KubeObject, ObjectLookup } from '../kinds/resource.ts';
import type { Pod, Volume } from '../kinds/shapes.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import type { Caller } from './attributes.ts';
import type { Authorizer } from './authorizer.ts';
import { claimOfVolume } from './pod-references.ts';

function specOf(object: KubeObject): JsonObject {
  return isObject(object['spec']) ? object['spec'] : {};
}

/** The object, or the message of its absence. */
type Found = { readonly object: KubeObject } | { readonly missing: string };

function find(lookup: ObjectLookup, group: string, plural: string, namespace: string, name: string): Found {
  const object = lookup.get(group, plural, namespace, name);
  return object === undefined ? { missing: notFound({ group, plural }, name).message } : { object };
}

/** The CSI driver of a volume, '' for one that has none, or what could not be found on the way to it. */
function driverOf(pod: Pod, volume: Volume, lookup: ObjectLookup): string | { readonly missing: string } {
  if (volume.csi !== undefined) return volume.csi.driver ?? '';
  const claimName = claimOfVolume(pod, volume);
  if (claimName === undefined) return '';
  const claim = find(lookup, '', 'persistentvolumeclaims', pod.metadata.namespace ?? '', claimName);
  if ('missing' in claim) return claim;
  const { volumeName } = specOf(claim.object);
  // Not bound yet: nothing of it can be mounted.
  if (typeof volumeName !== 'string' || volumeName === '') return '';
  const bound = find(lookup, '', 'persistentvolumes', '', volumeName);
  if ('missing' in bound) return bound;
  const { csi } = specOf(bound.object);
  return isObject(csi) && typeof csi['driver'] === 'string' ? csi['driver'] : '';
}

function driverRequests(driver: KubeObject, audience: string): boolean {
  const { tokenRequests } = specOf(driver);
  return (
    Array.isArray(tokenRequests) && tokenRequests.some((one) => isObject(one) && (one['audience'] ?? '') === audience)
  );
}

/** A node's request for a token. */
export interface AudienceRequest {
  readonly caller: Pick<Caller, 'name' | 'groups'>;
  readonly namespace: string;
  /** The service account. */
  readonly account: string;
  readonly audiences: readonly unknown[];
}

export interface AudienceParts {
  readonly lookup: ObjectLookup;
  readonly nodeAudiences: readonly string[];
  readonly authorizer: Authorizer;
}

/** Why the node may not request a token for these audiences; undefined when it may. '' is the API server's own. */
export function missingAudience(
  node: string,
  { caller, namespace, account, audiences }: AudienceRequest,
  pod: Pod,
  { lookup, nodeAudiences, authorizer }: AudienceParts,
): string | undefined {
  if (audiences.length > 1) return 'node may only request 0 or 1 audiences';
  const audience = String(audiences[0] ?? '');
  const problems: string[] = [];
  for (const volume of pod.spec?.volumes ?? []) {
    const projected = (volume.projected?.sources ?? []).some(
      ({ serviceAccountToken }) =>
        serviceAccountToken !== undefined && (serviceAccountToken.audience ?? '') === audience,
    );
    if (projected) return undefined;
    const driver = driverOf(pod, volume, lookup);
    if (driver === '') continue;
    const found = typeof driver === 'string' ? find(lookup, 'storage.k8s.io', 'csidrivers', '', driver) : driver;
    if ('missing' in found) problems.push(found.missing);
    else if (driverRequests(found.object, audience)) return undefined;
  }
  if (nodeAudiences.includes(audience)) return undefined;
  const verb = 'request-serviceaccounts-token-audience';
  const attributes = { verb, group: '', resource: audience, subresource: '', namespace, name: account };
  if (authorizer.authorize(caller, attributes).allowed) return undefined;
  if (problems.length > 0) {
    const why = aggregate(problems);
    return `error validating audience ${JSON.stringify(audience)}: ${why}`;
  }
  return `audience ${JSON.stringify(audience)} not found in pod spec volume, system:node:${node} is not authorized to request tokens for this audience`;
}
