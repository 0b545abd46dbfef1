// The kinds that the server has, from discovery: each in the version that its group prefers, or in another one where that does not
// have it. Groups that cannot be discovered are reported, so that a failed discovery is not taken for an empty group.

import type { ApiClient } from '../client/api.ts';
import { errorMessage } from '../lib/errors.ts';

export interface DiscoveredResource {
  /** "v1", "apps/v1". */
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

export interface Discovery {
  readonly resources: readonly DiscoveredResource[];
  /** "metrics.k8s.io/v1beta1: why", one for each version of a group without an answer. */
  readonly failures: readonly string[];
}

interface ResourceList {
  readonly resources?: readonly {
    readonly name: string;
    readonly kind: string;
    readonly namespaced: boolean;
    readonly verbs?: readonly string[];
  }[];
}
interface Group {
  readonly preferredVersion?: { readonly groupVersion: string };
  readonly versions?: readonly { readonly groupVersion: string }[];
}
interface GroupList {
  readonly groups?: readonly Group[];
}

/** "apps" of "apps/v1"; '' of "v1". */
export const groupOf = (apiVersion: string): string => (apiVersion.includes('/') ? apiVersion.replace(/\/.*/, '') : '');

/** The resources of one group version, without subresources. */
export function resourcesOf(apiVersion: string, list: ResourceList): DiscoveredResource[] {
  return (list.resources ?? [])
    .filter(({ name }) => !name.includes('/'))
    .map(({ name, kind, namespaced, verbs = [] }) => ({ apiVersion, kind, plural: name, namespaced, verbs }));
}

/** The preferred version first. */
function versionsOf({ preferredVersion, versions = [] }: Group): readonly string[] {
  const names = versions.map(({ groupVersion }) => groupVersion);
  return [...new Set([...(preferredVersion === undefined ? [] : [preferredVersion.groupVersion]), ...names])];
}

/** Throws what the client throws when not even the list of groups can be had. */
export async function discover(client: Pick<ApiClient, 'get'>): Promise<Discovery> {
  const { groups = [] } = await client.get<GroupList>('/apis');
  const failures: string[] = [];
  const read = async (apiVersion: string): Promise<readonly DiscoveredResource[]> => {
    const path = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    try {
      return resourcesOf(apiVersion, await client.get<ResourceList>(path));
    } catch (error) {
      failures.push(`${apiVersion}: ${errorMessage(error)}`);
      return [];
    }
  };
  const found = await Promise.all(
    [['v1'], ...groups.map(versionsOf)].map(async (versions) => {
      const resources = new Map<string, DiscoveredResource>();
      for (const each of (await Promise.all(versions.map(read))).flat()) {
        if (!resources.has(each.plural)) resources.set(each.plural, each);
      }
      return [...resources.values()];
    }),
  );
  return { resources: found.flat(), failures };
}

/** Whether all objects of the kind can be listed and deleted in a namespace. */
export function isEmptied({ namespaced, verbs }: DiscoveredResource): boolean {
  return namespaced && verbs.includes('list') && (verbs.includes('delete') || verbs.includes('deletecollection'));
}
