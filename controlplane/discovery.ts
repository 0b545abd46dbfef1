// The kinds that the server has, from discovery: each in the version that its group prefers, or in another one where that does not
// have it. Groups that cannot be discovered are reported, so that a failed discovery is not taken for an empty group.
// From a server with aggregated discovery (KEP-3352) this takes two requests, from another one for each version of a group.

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
  readonly kind?: string;
  readonly groups?: readonly Group[];
}
/** apidiscovery.k8s.io/v2 */
interface AggregatedGroup {
  readonly metadata?: { readonly name?: string };
  /** The preferred one first. */
  readonly versions?: readonly {
    readonly version: string;
    readonly freshness?: string;
    readonly resources?: readonly {
      readonly resource: string;
      readonly responseKind?: { readonly kind?: string };
      readonly scope?: string;
      readonly verbs?: readonly string[];
    }[];
  }[];
}
interface AggregatedList {
  readonly kind: 'APIGroupDiscoveryList';
  readonly items?: readonly AggregatedGroup[];
}

const isAggregated = (list: GroupList | AggregatedList): list is AggregatedList =>
  list.kind === 'APIGroupDiscoveryList';

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

/** Of one group: each kind in the first version that has it. */
function firstOfEach(versions: readonly (readonly DiscoveredResource[])[]): DiscoveredResource[] {
  const resources = new Map<string, DiscoveredResource>();
  for (const each of versions.flat()) if (!resources.has(each.plural)) resources.set(each.plural, each);
  return [...resources.values()];
}

/** Throws what the client throws when not even the list of groups can be had. */
export async function discover(client: Pick<ApiClient, 'get'>): Promise<Discovery> {
  const groups = await client.get<GroupList | AggregatedList>('/apis', undefined, { aggregatedDiscovery: true });
  if (!isAggregated(groups)) return discoverEach(client, [['v1'], ...(groups.groups ?? []).map(versionsOf)]);
  const core = await client.get<GroupList | AggregatedList>('/api', undefined, { aggregatedDiscovery: true });
  const others = aggregatedResources(groups.items ?? []);
  const first = isAggregated(core) ? aggregatedResources(core.items ?? []) : await discoverEach(client, [['v1']]);
  return {
    resources: [...first.resources, ...others.resources],
    failures: [...first.failures, ...others.failures],
  };
}

/** A version whose server does not answer is there with what it last had, and marked: it counts as a failure, as in client-go. */
function aggregatedResources(groups: readonly AggregatedGroup[]): Discovery {
  const failures: string[] = [];
  const resources = groups.flatMap(({ metadata, versions = [] }) =>
    firstOfEach(
      versions.map(({ version, freshness, resources: served = [] }) => {
        const apiVersion = [metadata?.name ?? '', version].filter((part) => part !== '').join('/');
        if (freshness !== 'Stale') {
          return served.map(({ resource, responseKind, scope, verbs = [] }) => {
            const kind = responseKind?.kind ?? '';
            return { apiVersion, kind, plural: resource, namespaced: scope === 'Namespaced', verbs };
          });
        }
        failures.push(`${apiVersion}: stale GroupVersion discovery: ${apiVersion}`);
        return [];
      }),
    ),
  );
  return { resources, failures };
}

/** `groups`: the versions of each, the preferred one first. */
async function discoverEach(
  client: Pick<ApiClient, 'get'>,
  groups: readonly (readonly string[])[],
): Promise<Discovery> {
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
  const found = await Promise.all(groups.map(async (versions) => firstOfEach(await Promise.all(versions.map(read)))));
  return { resources: found.flat(), failures };
}

/** Whether all objects of the kind can be listed and deleted in a namespace. */
export function isEmptied({ namespaced, verbs }: DiscoveredResource): boolean {
  return namespaced && verbs.includes('list') && (verbs.includes('delete') || verbs.includes('deletecollection'));
}
