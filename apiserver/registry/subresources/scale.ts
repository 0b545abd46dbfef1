// <kind>/<name>/scale: spec.replicas and status.replicas of any kind that has them, as an autoscaling/v1 Scale.

import { getOwn } from '../../../lib/own-property.ts';
import { badRequest, conflict, invalid, MODIFIED } from '../../errors.ts';
import type { KubeObject, ResourceKind } from '../../kinds/resource.ts';
import { isObject, type JsonObject, shown } from '../../patch/json-value.ts';
import type { Registry, View, WriteOptions } from '../registry.ts';
import { mainRules, updateObject } from '../write.ts';

function part(object: Readonly<KubeObject>, field: string): JsonObject {
  const value = getOwn(object, field);
  return isObject(value) ? value : {};
}

function selectorText(selector: unknown): string {
  const labels = isObject(selector) && isObject(selector['matchLabels']) ? selector['matchLabels'] : selector;
  if (!isObject(labels)) return '';
  return Object.entries(labels)
    .filter(([, value]) => typeof value === 'string')
    .map(([key, value]) => `${key}=${shown(value)}`)
    .join(',');
}

/** The Scale of an object. */
export function scaleOf(object: Readonly<KubeObject>): JsonObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const spec = part(object, 'spec');
  const replicas = spec['replicas'] ?? 1;
  const selector = selectorText(spec['selector']);
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: part(object, 'status')['replicas'] ?? 0, ...(selector === '' ? {} : { selector }) },
  };
}

/** Sets spec.replicas from a Scale and returns the object. Throws 400, 404, 409 or 422. */
export function updateScale(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  scale: unknown,
  options: WriteOptions,
): View {
  if (!isObject(scale)) throw badRequest('the body of the request is not an object');
  const spec = isObject(scale['spec']) ? scale['spec'] : {};
  const replicas = spec['replicas'] ?? 0;
  if (typeof replicas !== 'number' || !Number.isSafeInteger(replicas) || replicas < 0) {
    const detail = `Invalid value: ${JSON.stringify(replicas)}: must be greater than or equal to 0`;
    throw invalid({ group: 'autoscaling', kind: 'Scale' }, name, [
      { type: 'FieldValueInvalid', field: 'spec.replicas', detail },
    ]);
  }
  const object = registry.parse(row, registry.need(row, namespace, name));
  const version = isObject(scale['metadata']) ? scale['metadata']['resourceVersion'] : undefined;
  if (typeof version === 'string' && version !== '' && version !== object.metadata.resourceVersion) {
    throw conflict(row, name, MODIFIED);
  }
  object['spec'] = { ...part(object, 'spec'), replicas };
  return updateObject(registry, row, namespace, name, object, options, mainRules(row));
}
