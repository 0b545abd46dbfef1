// What a namespace gets on its own: made once, and again when it is gone.

import { isAlreadyExists, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Informers } from '../../informers.ts';
import type { ControllerContext } from '../../runtime.ts';

/** Creates what another replica, or this process a moment ago, may have created already. */
export async function createInNamespace(
  { client }: Pick<ControllerContext, 'client'>,
  { namespaces }: Pick<Informers, 'namespaces'>,
  plural: string,
  namespace: string,
  object: object,
): Promise<void> {
  try {
    await client.create(resourcePath('v1', plural, { namespace }), object);
  } catch (error) {
    if (isAlreadyExists(error)) return;
    // The namespace is gone, or has just begun to go.
    if (isNotFound(error) || namespaces.get(namespace)?.metadata.deletionTimestamp !== undefined) return;
    throw error;
  }
}
