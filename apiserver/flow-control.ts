// Makes the FlowSchemas and PriorityLevelConfigurations that every cluster has: mandatory ones are put right at each start,
// suggested ones are created, and follow a newer server until an administrator changes them or says otherwise.

import { getOwn } from '../lib/own-property.ts';
import { sameJson } from '../lib/same-json.ts';
import { type DefaultObjects, FLOW_SCHEMAS, PRIORITY_LEVELS } from './kinds/flowcontrol/default-objects.ts';
import type { KubeObject } from './kinds/resource.ts';
import type { Registry, WriteOptions } from './registry/registry.ts';
import { createObject, mutateStored, newObject } from './registry/write.ts';

const GROUP = 'flowcontrol.apiserver.k8s.io';
/** "true": the server may replace the spec. */
const AUTO_UPDATE = 'apf.kubernetes.io/autoupdate-spec';

/** Whether the server may replace the spec of a stored object. Without the annotation it may while the generation is the first. */
export function mayUpdate({ metadata }: Readonly<KubeObject>, mandatory: boolean): boolean {
  const annotation = getOwn(metadata.annotations, AUTO_UPDATE);
  if (mandatory || annotation === 'true') return true;
  return annotation === 'false' ? false : metadata.generation === 1;
}

/** Only inside a decision of the store. `options` are the server's own. */
export function ensureFlowControl(registry: Registry, options: WriteOptions): void {
  // Levels first: schemas refer to them.
  ensureAll(registry, 'prioritylevelconfigurations', PRIORITY_LEVELS, options);
  ensureAll(registry, 'flowschemas', FLOW_SCHEMAS, options);
}

function ensureAll(registry: Registry, plural: string, objects: DefaultObjects<object>, options: WriteOptions): void {
  if (!registry.hasRow(GROUP, plural)) return;
  for (const mandatory of [true, false]) {
    const list = mandatory ? objects.mandatory : objects.suggested;
    for (const [name, spec] of Object.entries(list)) ensureOne(registry, plural, name, spec, mandatory, options);
  }
}

function ensureOne(
  registry: Registry,
  plural: string,
  name: string,
  spec: object,
  mandatory: boolean,
  options: WriteOptions,
): void {
  const row = registry.rowOf(GROUP, plural);
  const stored = registry.find(row, '', name);
  if (stored === undefined) {
    const object = newObject(row, name, { spec: structuredClone(spec) });
    object.metadata.annotations = { [AUTO_UPDATE]: 'true' };
    createObject(registry, row, '', object, options);
    return;
  }
  const replaces = mayUpdate(registry.parse(row, stored), mandatory);
  mutateStored(registry, row, stored, false, (object) => {
    object.metadata.annotations = { ...object.metadata.annotations, [AUTO_UPDATE]: String(replaces) };
    if (!replaces || sameJson(object['spec'], spec)) return;
    object['spec'] = structuredClone(spec);
    object.metadata.generation = (object.metadata.generation ?? 0) + 1;
  });
}
