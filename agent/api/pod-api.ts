// Writes of the pod workers, as requests to the API server. Pods are identified by uid: a pod that was
// deleted and made again under the same name is another pod, and never touched.

import type { ApiClient } from '../../client/api.ts';
import { isConflict, isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Pod } from '../../client/types.ts';
import type { PodApi, WriteOutcome } from '../ports/api.ts';

export function createPodApi(client: Pick<ApiClient, 'get' | 'patch' | 'delete'>): PodApi {
  const path = (pod: Pod, subresource?: string): string =>
    resourcePath('v1', 'pods', {
      namespace: pod.metadata.namespace,
      name: pod.metadata.name,
      ...(subresource === undefined ? {} : { subresource }),
    });

  const get = async (namespace: string, name: string): Promise<Pod | undefined> => {
    try {
      return await client.get<Pod>(resourcePath('v1', 'pods', { namespace, name }));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };

  /** A 409 means that something changed; only a GET shows whether it is another pod now. */
  const orGone = async <T>(pod: Pod, write: () => Promise<T>): Promise<WriteOutcome<T>> => {
    try {
      return { kind: 'ok', value: await write() };
    } catch (error) {
      if (isNotFound(error)) return { kind: 'gone' };
      if (!isConflict(error)) throw error;
      const current = await get(pod.metadata.namespace, pod.metadata.name);
      if (current?.metadata.uid === pod.metadata.uid) throw error;
      return { kind: 'gone' };
    }
  };

  return {
    get,
    patchStatus: (pod, patch) =>
      orGone(pod, () =>
        client.patch<Pod>(path(pod, 'status'), { metadata: { uid: pod.metadata.uid }, status: patch }, 'strategic'),
      ),
    finalizeDelete: (pod) =>
      orGone(pod, async () => {
        await client.delete(path(pod), { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid } });
        return null;
      }),
  };
}
