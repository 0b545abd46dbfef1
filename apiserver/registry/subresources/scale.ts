// <kind>/<name>/scale: spec.replicas and status.replicas of any kind that has them, as an autoscaling/v1 Scale.

import { getOwn } from '../../../lib/own-property.ts';
import { type Steps, waiting } from '../../admission/steps.ts';
import { badRequest, conflict, invalid, MODIFIED } from '../../errors.ts';
import type { KubeObject, ResourceKind } from '../../kinds/resource.ts';
import { selectorText } from '../../kinds/shared/selectors.ts';
import { isObject, type JsonObject, shown } from '../../patch/json-value.ts';
import { admitRequest } from '../admit.ts';
import type { Registry, View, WriteOptions } from '../registry.ts';
import { mainRules, updateObject } from '../write.ts';

function part(object: Readonly<KubeObject>, field: string): JsonObject {
  const value = getOwn(object, field);
  return isObject(value) ? value : {};
}

/** Of a label selector, or of the plain labels that a ReplicationController selects by. */
function textOf(selector: unknown): string {
  if (!isObject(selector)) return '';
  const { matchLabels, matchExpressions } = selector;
  if (!isObject(matchLabels) && !Array.isArray(matchExpressions))
    return selectorText({ matchLabels: labelsOf(selector) });
  const expressions = Array.isArray(matchExpressions) ? matchExpressions.filter(isObject) : [];
  return selectorText({
    matchLabels: labelsOf(matchLabels),
    matchExpressions: expressions.map(({ key, operator, values }) => ({
      key: shown(key),
      operator: shown(operator),
      values: Array.isArray(values) ? values.map(shown) : [],
    })),
  });
}

function labelsOf(value: unknown): { [key: string]: string } {
  return Object.fromEntries(Object.entries(isObject(value) ? value : {}).map(([key, text]) => [key, shown(text)]));
}

/** The Scale of an object. */
export function scaleOf(object: Readonly<KubeObject>): JsonObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const spec = part(object, 'spec');
  const replicas = spec['replicas'] ?? 1;
  const selector = textOf(spec['selector']);
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: part(object, 'status')['replicas'] ?? 0, ...(selector === '' ? {} : { selector }) },
  };
}

const SCALE = { group: 'autoscaling', version: 'v1', kind: 'Scale' } as const;

/** A Scale as admission sees it. */
function scaleObject(scale: JsonObject): KubeObject {
  const metadata = isObject(scale['metadata']) ? scale['metadata'] : {};
  return { ...scale, kind: 'Scale', apiVersion: 'autoscaling/v1', metadata };
}

/** Sets spec.replicas from a Scale and returns the object. Throws 400, 403, 404, 409 or 422. */
export function updateScale(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  scale: unknown,
  options: WriteOptions,
): Promise<View> {
  if (!isObject(scale)) throw badRequest('the body of the request is not an object');
  return waiting(scaleSteps(registry, row, namespace, name, scaleObject(scale), options));
}

function* scaleSteps(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  scale: KubeObject,
  options: WriteOptions,
): Steps<View> {
  const old = scaleObject(scaleOf(registry.parse(row, registry.need(row, namespace, name))));
  const place = { namespace, name, subresource: 'scale', kind: SCALE, object: scale, old };
  yield* admitRequest(registry, row, 'UPDATE', place, options);
  const replicas = part(scale, 'spec')['replicas'] ?? 0;
  if (typeof replicas !== 'number' || !Number.isSafeInteger(replicas) || replicas < 0) {
    const detail = `Invalid value: ${JSON.stringify(replicas)}: must be greater than or equal to 0`;
    throw invalid(SCALE, name, [{ type: 'FieldValueInvalid', field: 'spec.replicas', detail }]);
  }
  const object = registry.parse(row, registry.need(row, namespace, name));
  const { resourceVersion: version, uid } = scale.metadata;
  if (uid !== undefined && uid !== '' && uid !== object.metadata.uid) {
    const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${object.metadata.uid}`;
    throw conflict({ group: row.group, plural: `${row.plural}/scale` }, name, why);
  }
  if (typeof version === 'string' && version !== '' && version !== object.metadata.resourceVersion) {
    throw conflict(row, name, MODIFIED);
  }
  object['spec'] = { ...part(object, 'spec'), replicas };
  return updateObject(registry, row, namespace, name, object, { ...options, admitted: true }, mainRules(row));
}
