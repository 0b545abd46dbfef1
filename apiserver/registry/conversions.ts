// Objects in the version of a row where a webhook converts them: what is read and written is converted first, so that the
// decision itself takes one turn. Knows no webhook.

import { converting, type Steps } from '../admission/steps.ts';
import type { KubeObject, ResourceKind } from '../kinds/resource.ts';
import type { StoredObject } from '../storage/object-store.ts';
import { apiVersionOf, type Registry } from './registry.ts';

/** The stored object as it is now, convertible to the row's form in this turn; undefined when there is none. */
export function* readable(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
): Steps<StoredObject | undefined> {
  if (row.storedAs?.webhook === undefined) return registry.find(row, namespace, name);
  return yield* converting(() => {
    const stored = registry.find(row, namespace, name);
    if (stored !== undefined) registry.parse(row, stored);
    return stored;
  });
}

/** Has the object converted to the form in which it is stored, so that it can be written in one turn. */
export function* storable({ storedAs }: ResourceKind, object: KubeObject, dryRun: boolean): Steps<void> {
  const webhook = storedAs?.webhook;
  if (webhook !== undefined && !dryRun) yield () => webhook.toStored(object);
}

/** A copy of an object of one version of a resource in another one. Throws Pending. */
export function inVersion(object: KubeObject, from: ResourceKind, to: ResourceKind): KubeObject {
  const copy = structuredClone(object);
  // A webhook converts between any two versions, in one call.
  const isDirect = to.storedAs?.webhook !== undefined;
  const stored = from.storedAs === undefined || isDirect ? copy : from.storedAs.toStored(copy);
  const shown = to.storedAs === undefined ? stored : to.storedAs.fromStored(stored);
  return { ...shown, apiVersion: apiVersionOf(to), kind: to.kind };
}
