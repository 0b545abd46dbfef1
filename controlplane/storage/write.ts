// Writes storage objects: merge patches with the resourceVersion they were decided on, so that no concurrent change is
// lost; finalizers are added and removed the same way. A conflict is thrown: the key is requeued and decided again.

import { isConflict, isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import type { StoredMeta } from '../../client/types.ts';
import type { ControllerContext } from '../runtime.ts';

type Client = ControllerContext['client'];

interface Written {
  readonly metadata: StoredMeta;
}

export interface KindPath {
  readonly apiVersion: string;
  readonly plural: string;
}

export const VOLUMES: KindPath = { apiVersion: 'v1', plural: 'persistentvolumes' };
export const CLAIMS: KindPath = { apiVersion: 'v1', plural: 'persistentvolumeclaims' };
export const ATTACHMENTS: KindPath = { apiVersion: 'storage.k8s.io/v1', plural: 'volumeattachments' };
export const CAPACITIES: KindPath = { apiVersion: 'storage.k8s.io/v1', plural: 'csistoragecapacities' };

export function pathOf(kind: KindPath, { metadata }: Written, subresource?: string): string {
  return resourcePath(kind.apiVersion, kind.plural, {
    ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
    name: metadata.name,
    ...(subresource === undefined ? {} : { subresource }),
  });
}

/** Patches `object` as it was read: 409 when it has changed since. `change.metadata` is merged with the version. */
export function patchAsRead<T extends Written>(
  client: Client,
  kind: KindPath,
  object: T,
  change: { readonly metadata?: object; readonly [field: string]: unknown },
  subresource?: string,
): Promise<T> {
  const { resourceVersion, uid } = object.metadata;
  const body = { ...change, metadata: { ...change.metadata, resourceVersion, uid } };
  return client.patch<T>(pathOf(kind, object, subresource), body, 'merge');
}

export function hasFinalizer({ metadata }: Written, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) ?? false;
}

export async function addFinalizer<T extends Written>(
  client: Client,
  kind: KindPath,
  object: T,
  finalizer: string,
): Promise<T> {
  if (hasFinalizer(object, finalizer)) return object;
  const finalizers = [...(object.metadata.finalizers ?? []), finalizer];
  return await patchAsRead(client, kind, object, { metadata: { finalizers } });
}

/** Takes it off; an object that is gone has none. */
export async function removeFinalizer<T extends Written>(
  client: Client,
  kind: KindPath,
  object: T,
  finalizer: string,
): Promise<void> {
  if (!hasFinalizer(object, finalizer)) return;
  const finalizers = (object.metadata.finalizers ?? []).filter((one) => one !== finalizer);
  try {
    await patchAsRead(client, kind, object, { metadata: { finalizers: finalizers.length === 0 ? null : finalizers } });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** How often a write that conflicts with concurrent writes is tried. */
const RELEASE_ATTEMPTS = 5;

/** Takes it off whatever the object has become since it was read. Throws the last conflict when there is no end of them. */
export async function releaseFinalizer<T extends Written>(
  client: Client,
  kind: KindPath,
  { metadata }: T,
  finalizer: string,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const now = await client.get<T>(pathOf(kind, { metadata }));
      if (now.metadata.uid === metadata.uid) await removeFinalizer(client, kind, now, finalizer);
      return;
    } catch (error) {
      if (isNotFound(error)) return;
      if (!isConflict(error) || attempt === RELEASE_ATTEMPTS) throw error;
    }
  }
}

/** Deletes this very object; one that is gone already is fine. */
export async function deleteAsRead(client: Client, kind: KindPath, object: Written): Promise<void> {
  try {
    await client.delete(pathOf(kind, object), { preconditions: { uid: object.metadata.uid } });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
