// The life of a namespace, as it bears on every other kind: nothing is created in one that is missing or going, and one
// that is deleted stays until its finalizers are gone. Emptying it is a controller's work, outside this server.

import { forbidden, notFound, StatusError } from '../errors.ts';
import type { KubeObject, ResourceKind } from '../kinds/resource.ts';
import { isObject } from '../patch/json-value.ts';
import type { Registry } from './registry.ts';

const NAMESPACES = { group: '', plural: 'namespaces' } as const;
/** These cannot be deleted. */
const IMMORTAL = new Set(['default', 'kube-system', 'kube-public']);

export function isNamespace(row: Pick<ResourceKind, 'group' | 'plural'>): boolean {
  return row.group === '' && row.plural === 'namespaces';
}

/** Throws 404 for a namespace that is not there, 403 for one that is going. */
export function admitIntoNamespace(registry: Registry, row: ResourceKind, namespace: string, name: string): void {
  const found = registry.lookup.get('', 'namespaces', '', namespace);
  if (found === undefined) throw notFound(NAMESPACES, namespace);
  if (found.metadata.deletionTimestamp === undefined) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const { status } = forbidden(row, name, why);
  throw new StatusError(403, 'Forbidden', status.message ?? why, {
    ...status.details,
    causes: [
      {
        reason: 'NamespaceTerminating',
        message: `namespace ${namespace} is being terminated`,
        field: 'metadata.namespace',
      },
    ],
  });
}

/** Throws 403 for the namespaces that must stay. */
export function admitNamespaceDeletion(row: ResourceKind, name: string): void {
  if (isNamespace(row) && IMMORTAL.has(name)) throw forbidden(row, name, 'this namespace may not be deleted');
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
