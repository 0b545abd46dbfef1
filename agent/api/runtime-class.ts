// Which handler of the runtime a RuntimeClass names. Read when a sandbox is made: classes are few, and pods that have
// one as well.

import type { RuntimeClass } from 'kubernetes-types/node/v1';
import type { ApiClient } from '../../client/api.ts';
import { isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Stored } from '../../client/types.ts';
import { errorMessage } from '../../lib/errors.ts';

/** Rejects with the kubelet's message when there is no such class, or it cannot be read. */
export async function runtimeHandlerOf(client: Pick<ApiClient, 'get'>, name: string): Promise<string> {
  try {
    const path = resourcePath('node.k8s.io/v1', 'runtimeclasses', { name });
    return (await client.get<Stored<RuntimeClass>>(path)).handler;
  } catch (error) {
    const why = isNotFound(error)
      ? `runtimeclass.node.k8s.io "${name}" not found`
      : `failed to lookup RuntimeClass ${name}: ${errorMessage(error)}`;
    throw new Error(why, { cause: error });
  }
}
