// Discovery of groups and resources, plain and aggregated: kubectl's first requests. Plain objects built
// from the resource table; serving them is index.ts.

import { createHash } from 'node:crypto';
import { getOwn } from '../../lib/own-property.ts';
import { prioritiesOf } from '../aggregation/priorities.ts';
import type { ResourceKind } from '../kinds/resource.ts';
import type { RemoteVersion } from '../kinds/rows.ts';

const STANDARD_VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

interface Served {
  readonly kind: string;
  readonly verbs: readonly string[];
  /** Where the body's kind belongs to another group than the resource. */
  readonly group?: string;
  readonly version?: string;
}

/** Subresources whose body is not the object itself, or that support fewer verbs than get, patch and update. */
const SUBRESOURCES: Readonly<Record<string, Served>> = {
  'pods/attach': { kind: 'PodAttachOptions', verbs: ['create', 'get'] },
  'pods/binding': { kind: 'Binding', verbs: ['create'] },
  'pods/eviction': { kind: 'Eviction', verbs: ['create'], group: 'policy', version: 'v1' },
  'pods/exec': { kind: 'PodExecOptions', verbs: ['create', 'get'] },
  'pods/log': { kind: 'Pod', verbs: ['get'] },
  'pods/portforward': { kind: 'PodPortForwardOptions', verbs: ['create', 'get'] },
  'pods/proxy': { kind: 'PodProxyOptions', verbs: ['create', 'delete', 'get', 'patch', 'update'] },
  'nodes/proxy': { kind: 'NodeProxyOptions', verbs: ['create', 'delete', 'get', 'patch', 'update'] },
  'services/proxy': { kind: 'ServiceProxyOptions', verbs: ['create', 'delete', 'get', 'patch', 'update'] },
  'namespaces/finalize': { kind: 'Namespace', verbs: ['update'] },
  'serviceaccounts/token': {
    kind: 'TokenRequest',
    verbs: ['create'],
    group: 'authentication.k8s.io',
    version: 'v1',
  },
};

/** A resource that answers a question and is never stored; the core serves it without a row. */
export interface Review {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

function review(group: string, kind: string, namespaced = false): Review {
  return { group, version: 'v1', kind, plural: `${kind.toLowerCase()}s`, namespaced };
}

export const REVIEWS: readonly Review[] = [
  review('authentication.k8s.io', 'SelfSubjectReview'),
  review('authentication.k8s.io', 'TokenReview'),
  review('authorization.k8s.io', 'LocalSubjectAccessReview', true),
  review('authorization.k8s.io', 'SelfSubjectAccessReview'),
  review('authorization.k8s.io', 'SelfSubjectRulesReview'),
  review('authorization.k8s.io', 'SubjectAccessReview'),
];

export function verbsOf(row: ResourceKind): readonly string[] {
  return row.verbs ?? STANDARD_VERBS;
}

const SCALE: Served = { kind: 'Scale', verbs: ['get', 'patch', 'update'], group: 'autoscaling', version: 'v1' };

export function subresourceOf(row: ResourceKind, subresource: string): Served {
  if (subresource === 'scale') return SCALE;
  return getOwn(SUBRESOURCES, `${row.plural}/${subresource}`) ?? { kind: row.kind, verbs: ['get', 'patch', 'update'] };
}

/** "v1", "coordination.k8s.io/v1". */
export function groupVersion(row: { readonly group: string; readonly version: string }): string {
  return row.group === '' ? row.version : `${row.group}/${row.version}`;
}

/** kube-apiserver has its group of APIServices before all others, and the others by the priorities of its aggregator. */
function rank(group: string): number {
  return group === 'apiregistration.k8s.io' ? Number.MAX_SAFE_INTEGER : prioritiesOf(group, '').groupPriorityMinimum;
}

/**
 * Group → versions: groups in the order in which clients see them, by name where they have one priority; versions in that of
 * the table, of which the first is preferred.
 */
export function groupsOf(
  kinds: readonly ResourceKind[],
  remote: readonly RemoteVersion[] = [],
): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const { group, version } of [...kinds, ...REVIEWS, ...remote]) {
    const versions = groups.get(group);
    if (versions === undefined) groups.set(group, [version]);
    else if (!versions.includes(version)) versions.push(version);
  }
  return new Map([...groups].toSorted(([a], [b]) => rank(b) - rank(a) || (a < b ? -1 : 1)));
}

export function apiVersions(serverAddress: string): object {
  return {
    kind: 'APIVersions',
    versions: ['v1'],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
  };
}

export function apiGroup(name: string, versions: readonly string[]): object {
  const list = versions.map((version) => ({ groupVersion: `${name}/${version}`, version }));
  return { name, versions: list, preferredVersion: list[0] };
}

export function apiGroupList(kinds: readonly ResourceKind[], remote: readonly RemoteVersion[] = []): object {
  const groups = [...groupsOf(kinds, remote)].filter(([name]) => name !== '');
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(([name, versions]) => apiGroup(name, versions)) };
}

/** Undefined when nothing of this group and version is served. */
export function apiResourceList(kinds: readonly ResourceKind[], group: string, version: string): object | undefined {
  const rows = kinds.filter((row) => row.group === group && row.version === version);
  const reviews = REVIEWS.filter((one) => one.group === group && one.version === version);
  if (rows.length === 0 && reviews.length === 0) return undefined;
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: groupVersion({ group, version }),
    resources: [...rows.flatMap((row) => resources(row, kinds)), ...reviews.map(reviewResource)],
  };
}

function reviewResource(one: Review): object {
  return {
    name: one.plural,
    singularName: one.kind.toLowerCase(),
    namespaced: one.namespaced,
    kind: one.kind,
    verbs: ['create'],
  };
}

/** By which clients see that a resource is stored in another version than before, as upstream's; none for what is not stored. */
function storageVersionHash(row: ResourceKind, kinds: readonly ResourceKind[]): object {
  const { storedAs } = row;
  const stored =
    storedAs === undefined
      ? row
      : kinds.find(
          (one) => one.group === storedAs.group && one.plural === storedAs.plural && one.storedAs === undefined,
        );
  if (stored === undefined || stored.computed !== undefined || !verbsOf(row).includes('watch')) return {};
  const kind = `${stored.group}/${stored.version}/${stored.kind}`;
  return { storageVersionHash: createHash('sha256').update(kind).digest().subarray(0, 8).toString('base64') };
}

function resources(row: ResourceKind, kinds: readonly ResourceKind[]): object[] {
  return [
    {
      name: row.plural,
      singularName: row.singular,
      namespaced: row.namespaced,
      kind: row.kind,
      verbs: verbsOf(row),
      ...(row.shortNames === undefined ? {} : { shortNames: row.shortNames }),
      ...(row.categories === undefined ? {} : { categories: row.categories }),
      ...storageVersionHash(row, kinds),
    },
    ...[...row.subresources].sort().map((name) => {
      const served = subresourceOf(row, name);
      return {
        name: `${row.plural}/${name}`,
        singularName: '',
        namespaced: row.namespaced,
        ...(served.group === undefined ? {} : { group: served.group, version: served.version }),
        kind: served.kind,
        verbs: served.verbs,
      };
    }),
  ];
}

/** Everything of the core group (`legacy`) or of all other groups in one document. */
export function groupDiscoveryList(
  kinds: readonly ResourceKind[],
  apiVersion: 'v2' | 'v2beta1',
  legacy: boolean,
  remote: readonly RemoteVersion[] = [],
): object {
  const elsewhere = (group: string, version: string): RemoteVersion | undefined =>
    remote.find((one) => one.group === group && one.version === version);
  const groups = [...groupsOf(kinds, remote)].filter(([name]) => (name === '') === legacy);
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${apiVersion}`,
    metadata: {},
    items: groups.map(([group, versions]) => ({
      metadata: { ...(group === '' ? {} : { name: group }), creationTimestamp: null },
      versions: versions.map((version) => ({
        version,
        resources: [
          ...kinds.filter((row) => row.group === group && row.version === version).map(aggregated),
          ...REVIEWS.filter((one) => one.group === group && one.version === version).map(aggregatedReview),
          ...(elsewhere(group, version)?.resources ?? []),
        ],
        freshness: elsewhere(group, version)?.isCurrent === false ? 'Stale' : 'Current',
      })),
    })),
  };
}

function aggregated(row: ResourceKind): object {
  const { group, version } = row;
  return {
    resource: row.plural,
    responseKind: { group, version, kind: row.kind },
    scope: row.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: row.singular,
    verbs: verbsOf(row),
    ...(row.shortNames === undefined ? {} : { shortNames: row.shortNames }),
    ...(row.categories === undefined ? {} : { categories: row.categories }),
    ...(row.subresources.length === 0
      ? {}
      : {
          subresources: [...row.subresources].sort().map((name) => {
            const served = subresourceOf(row, name);
            return {
              subresource: name,
              responseKind: { group: served.group ?? group, version: served.version ?? version, kind: served.kind },
              verbs: served.verbs,
            };
          }),
        }),
  };
}

function aggregatedReview(one: Review): object {
  return {
    resource: one.plural,
    responseKind: { group: one.group, version: one.version, kind: one.kind },
    scope: one.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: one.kind.toLowerCase(),
    verbs: ['create'],
  };
}
