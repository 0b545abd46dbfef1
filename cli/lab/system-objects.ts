// Objects that a lab makes once, in kube-system or beside it, for the programs that it starts. Those that exist stay, since a user may have
// changed them.

import { ApiClient } from '../../client/api.ts';
import { isForbidden, isNotFound, isTransient } from '../../client/errors.ts';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Clock } from '../../lib/clock.ts';
import { retry, steadyPauses } from '../../lib/retry.ts';
import { Tracer } from '../../lib/trace.ts';

const NAMESPACE = 'kube-system';
/** Between two tries to reach the API server. ms */
const AGAIN_MS = 200;

export interface SystemObject {
  readonly apiVersion: string;
  readonly plural: string;
  readonly name: string;
  readonly object: object;
  readonly namespaced: boolean;
}

/** Pure. */
export function systemObject(
  apiVersion: string,
  kind: string,
  plural: string,
  name: string,
  body: object,
  namespaced = true,
): SystemObject {
  const at = namespaced ? { namespace: NAMESPACE } : {};
  const { metadata = {}, ...rest } = body as { metadata?: object };
  return {
    apiVersion,
    plural,
    name,
    namespaced,
    object: { apiVersion, kind, metadata: { name, ...at, ...metadata }, ...rest },
  };
}

/** Makes what is not there; resolves with what was. */
export async function makeObjects(
  client: ApiClient,
  objects: readonly SystemObject[],
): Promise<readonly SystemObject[]> {
  const existed: SystemObject[] = [];
  for (const each of objects) {
    const path = resourcePath(each.apiVersion, each.plural, each.namespaced ? { namespace: NAMESPACE } : {});
    // Reads first: a Service that is there is not refused as such, but for its address, which is taken, by itself.
    if (await exists(client, `${path}/${each.name}`)) existed.push(each);
    else await client.create(path, each.object);
  }
  return existed;
}

async function exists(client: ApiClient, path: string): Promise<boolean> {
  try {
    await client.get(path);
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** Does `work` once the API server answers. Rejects with what it refuses. */
export async function whenServed(
  kubeconfig: string,
  work: (client: ApiClient) => Promise<unknown>,
  options: { readonly clock: Clock; readonly limitMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const access = await loadKubeconfig(kubeconfig);
  const client = new ApiClient(access, { tracer: new Tracer(), clock: options.clock, userAgent: 'nodelet-up' });
  try {
    await retry(() => work(client), {
      ...options,
      policy: steadyPauses(AGAIN_MS),
      // Namespaces and roles are made when the server has started.
      mends: (error) => isTransient(error) || isNotFound(error) || isForbidden(error),
    });
  } finally {
    client.close();
  }
}
