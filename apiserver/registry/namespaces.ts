// The end of a namespace: one that is deleted stays until its finalizers are gone. Emptying it is a controller's work,
// outside this server; what may be written into it is the admission plugin NamespaceLifecycle's.

import type { KubeObject, ResourceKind } from '../kinds/resource.ts';
import { isObject } from '../patch/json-value.ts';

export function isNamespace(row: Pick<ResourceKind, 'group' | 'plural'>): boolean {
  return row.group === '' && row.plural === 'namespaces';
}

/** spec.finalizers of a namespace. */
function specFinalizers(object: KubeObject): readonly unknown[] {
  const spec = object['spec'];
  const finalizers = isObject(spec) ? spec['finalizers'] : undefined;
  return Array.isArray(finalizers) ? finalizers : [];
}

/** Whether finalizers of the object, for a namespace also spec.finalizers, prevent its removal. */
export function hasFinalizers(row: ResourceKind, object: KubeObject): boolean {
  if ((object.metadata.finalizers ?? []).length > 0) return true;
  return isNamespace(row) && specFinalizers(object).length > 0;
}

/** status.phase of one that is going; in place. */
export function markTerminating(object: KubeObject): void {
  const status = isObject(object['status']) ? object['status'] : {};
  object['status'] = { ...status, phase: 'Terminating' };
}
