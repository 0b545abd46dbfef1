// Subresources of pods that change the pod: binding, ephemeral containers. Eviction is eviction.ts, logs and streams proxy/.

import { getOwn } from '../../../lib/own-property.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { badRequest, conflict } from '../../errors.ts';
import type { FieldError, KubeObject } from '../../kinds/resource.ts';
import { isObject, type JsonObject, shown } from '../../patch/json-value.ts';
import type { Registry, WriteOptions } from '../registry.ts';
import { keepAllBut, mutateStored, type UpdateRules } from '../write.ts';

const BINDING = { group: '', plural: 'pods/binding' } as const;

function specOf(pod: KubeObject): JsonObject {
  const spec = pod['spec'];
  return isObject(spec) ? spec : {};
}

/** Binds a pod to the node that a v1 Binding names. Throws 400, 404, or 409 for one that is bound or going. */
export function bindPod(
  registry: Registry,
  namespace: string,
  name: string,
  body: unknown,
  options: WriteOptions,
): void {
  if (!isObject(body)) throw badRequest('the body of the request is not an object');
  const target = isObject(body['target']) ? body['target'] : {};
  const node = target['name'];
  if (target['kind'] !== undefined && target['kind'] !== '' && target['kind'] !== 'Node') {
    throw badRequest(`target.kind: Unsupported value: "${shown(target['kind'])}": supported values: "Node", "<empty>"`);
  }
  if (typeof node !== 'string' || node === '') throw badRequest('target.name: Required value');
  const row = registry.rowOf('', 'pods');
  const stored = registry.need(row, namespace, name);
  const pod = registry.parse(row, stored);
  const metadata = isObject(body['metadata']) ? body['metadata'] : {};
  const uid = metadata['uid'];
  if (typeof uid === 'string' && uid !== '' && uid !== pod.metadata.uid) {
    const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${pod.metadata.uid}`;
    throw conflict(BINDING, name, why);
  }
  if (pod.metadata.deletionTimestamp !== undefined) {
    throw conflict(BINDING, name, `pod ${name} is being deleted, cannot be assigned to a host`);
  }
  const bound = specOf(pod)['nodeName'];
  if (typeof bound === 'string' && bound !== '') {
    throw conflict(BINDING, name, `pod ${name} is already assigned to node "${bound}"`);
  }
  const gates = specOf(pod)['schedulingGates'];
  if (Array.isArray(gates) && gates.length > 0) {
    throw conflict(BINDING, name, `pod ${name} has non-empty .spec.schedulingGates`);
  }
  const annotations = isObject(metadata['annotations']) ? metadata['annotations'] : {};
  mutateStored(registry, row, stored, options.dryRun, (object) => {
    specOf(object)['nodeName'] = node;
    const added = Object.entries(annotations).map(([key, value]) => [key, shown(value)] as const);
    if (added.length > 0)
      object.metadata.annotations = { ...object.metadata.annotations, ...Object.fromEntries(added) };
    setScheduled(object, rfc3339(registry.clock.now()));
  });
}

/** The PodScheduled condition, True since `now`. */
function setScheduled(pod: KubeObject, now: string): void {
  const status = isObject(pod['status']) ? pod['status'] : {};
  const conditions = Array.isArray(status['conditions']) ? status['conditions'].filter(isObject) : [];
  const others = conditions.filter((condition) => condition['type'] !== 'PodScheduled');
  const scheduled = { type: 'PodScheduled', status: 'True', lastProbeTime: null, lastTransitionTime: now };
  pod['status'] = { ...status, conditions: [...others, scheduled] };
}

function listAt(pod: KubeObject, field: string): JsonObject[] {
  const list = getOwn(specOf(pod), field);
  return Array.isArray(list) ? list.filter(isObject) : [];
}

function forbidden(field: string, why: string): FieldError {
  return { type: 'FieldValueForbidden', field, detail: `Forbidden: ${why}` };
}

/** Ephemeral containers can be added; those that are there stay as they are. */
export const ephemeralContainersRules: UpdateRules = {
  subresource: 'ephemeralcontainers',
  prepare: (object, old) => {
    const list = specOf(object)['ephemeralContainers'];
    keepAllBut(object, old, 'spec');
    object.metadata = { ...old.metadata };
    object['spec'] = { ...specOf(old), ...(list === undefined ? {} : { ephemeralContainers: list }) };
  },
  validate: (object, old) => {
    const field = 'spec.ephemeralContainers';
    const before = listAt(old, 'ephemeralContainers');
    const after = listAt(object, 'ephemeralContainers');
    const errors: FieldError[] = [];
    for (const container of before) {
      const same = after.find((other) => other['name'] === container['name']);
      if (same === undefined) {
        errors.push(forbidden(field, `existing ephemeral containers "${shown(container['name'])}" may not be removed`));
      } else if (!sameJson(same, container)) {
        errors.push(forbidden(field, `existing ephemeral containers "${shown(container['name'])}" may not be changed`));
      }
    }
    const taken = new Set([...listAt(object, 'containers'), ...listAt(object, 'initContainers')].map((c) => c['name']));
    for (const [index, container] of after.entries()) {
      const { name, image } = container;
      const at = `${field}[${index}]`;
      if (typeof name !== 'string' || name === '') {
        errors.push({ type: 'FieldValueRequired', field: `${at}.name`, detail: 'Required value' });
      } else if (taken.has(name)) {
        errors.push({
          type: 'FieldValueDuplicate',
          field: `${at}.name`,
          detail: `Duplicate value: ${JSON.stringify(name)}`,
        });
      }
      taken.add(name);
      if (typeof image !== 'string' || image === '') {
        errors.push({ type: 'FieldValueRequired', field: `${at}.image`, detail: 'Required value' });
      }
    }
    return errors;
  },
};
