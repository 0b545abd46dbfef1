// The parameter objects of a policy for one request (k8s.io/apiserver/pkg/admission/plugin/policy/generic, CollectParams).
// Pure.

import { matchesLabelSelector } from '../../../client/selectors.ts';
import type { bindingOf, policyOf } from '../../kinds/admission-policies.ts';
import type { KubeObject, ObjectLookup } from '../../kinds/resource.ts';
import { selectorOf } from '../webhooks/match.ts';

/** Where objects of a kind are found. */
export interface ParamResource {
  readonly group: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

/** Of "v1" and "ConfigMap"; undefined where there is no such kind. */
export type FindKind = (apiVersion: string, kind: string) => ParamResource | undefined;

/** The parameters cannot be had, which is a failure of the policy. */
export class ParamError extends Error {
  override name = 'ParamError';
}

type ParamKind = NonNullable<ReturnType<typeof policyOf>['spec']>['paramKind'];
type ParamRef = NonNullable<ReturnType<typeof bindingOf>['spec']>['paramRef'];

/** One undefined where the policy takes none, or the binding gives none. Throws ParamError. */
export function collectParams(
  paramKind: ParamKind,
  paramRef: ParamRef,
  requestNamespace: string,
  findKind: FindKind,
  lookup: ObjectLookup,
): readonly (KubeObject | undefined)[] {
  if (paramKind === undefined || paramRef === undefined) return [undefined];
  const { apiVersion = '', kind = '' } = paramKind;
  const resource = findKind(apiVersion, kind);
  if (resource === undefined) throw new ParamError(`paramKind kind \`${apiVersion}, Kind=${kind}\` not known`);
  const { name = '', namespace = '', selector, parameterNotFoundAction } = paramRef;
  if (namespace !== '' && !resource.namespaced) {
    throw new ParamError('paramRef.namespace must not be provided for a cluster-scoped `paramKind`');
  }
  const place = resource.namespaced ? namespace || requestNamespace : '';
  if (resource.namespaced && place === '') {
    throw new ParamError('cannot use namespaced paramRef in policy binding that matches cluster-scoped resources');
  }
  const { group, plural } = resource;
  const found =
    name === ''
      ? [...lookup.each(group, plural, place)].filter(({ metadata }) =>
          matchesLabelSelector(selectorOf(selector), metadata.labels ?? {}),
        )
      : [lookup.get(group, plural, place, name)].flatMap((object) => object ?? []);
  if (found.length === 0 && parameterNotFoundAction === 'Deny') {
    throw new ParamError('no params found for policy binding with `Deny` parameterNotFoundAction');
  }
  return found;
}
