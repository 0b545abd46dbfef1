// The namespaced kinds that the server has, from discovery. Groups that cannot be discovered are reported, so that
// a failed discovery is not taken for an empty group.

import type { ApiClient } from '../../client/api.ts';
import { errorMessage } from '../../lib/errors.ts';

export interface NamespacedResource {
  /** "v1", "apps/v1". */
  readonly apiVersion: string;
  readonly plural: string;
  readonly verbs: readonly string[];
}

interface ResourceList {
  readonly resources?: readonly {
    readonly name: string;
    readonly namespaced: boolean;
    readonly verbs?: readonly string[];
  }[];
}
interface GroupList {
  readonly groups?: readonly { readonly preferredVersion?: { readonly groupVersion: string } }[];
}

/** Kinds of one group version whose objects can be listed and deleted in a namespace. */
export function deletable(apiVersion: string, list: ResourceList): NamespacedResource[] {
  return (list.resources ?? [])
    .filter((resource) => resource.namespaced && !resource.name.includes('/'))
    .map((resource) => ({ apiVersion, plural: resource.name, verbs: resource.verbs ?? [] }))
    .filter(({ verbs }) => verbs.includes('list') && (verbs.includes('delete') || verbs.includes('deletecollection')));
}

export async function discoverNamespaced(
  client: Pick<ApiClient, 'get'>,
): Promise<{ readonly resources: readonly NamespacedResource[]; readonly failures: readonly string[] }> {
  const groups = await client.get<GroupList>('/apis');
  const versions = ['v1', ...(groups.groups ?? []).flatMap((group) => group.preferredVersion?.groupVersion ?? [])];
  const failures: string[] = [];
  const found = await Promise.all(
    versions.map(async (apiVersion) => {
      const path = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
      try {
        return deletable(apiVersion, await client.get<ResourceList>(path));
      } catch (error) {
        failures.push(`${apiVersion}: ${errorMessage(error)}`);
        return [];
      }
    }),
  );
  return { resources: found.flat(), failures };
}
