// Discovery is kube-apiserver 1.34's: resources, short names, verbs, categories and subresources, the order of groups and
// their versions; and plain and aggregated discovery are the same facts in two forms.

import { describe, expect, it } from 'vitest';
import { discovery } from '../../../../apiserver/discovery/index.ts';
import { RESOURCE_KINDS } from '../../../../apiserver/kinds/index.ts';
import { at } from '../../../support/api-server.ts';
import {
  BEYOND_UPSTREAM,
  GROUPS_BEYOND_UPSTREAM,
  UPSTREAM_GROUPS,
  UPSTREAM_RESOURCES,
  UPSTREAM_SUBRESOURCES,
  type UpstreamResource,
} from '../../../support/upstream-resources.ts';

const serve = discovery(RESOURCE_KINDS, '127.0.0.1:6443');
const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

function get(path: string, accept = 'application/json'): unknown {
  const document = serve(path, accept, new URLSearchParams());
  if (document === undefined) throw new Error(`${path} is not served`);
  return JSON.parse(String(document.body));
}

const items = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const strings = (value: unknown): readonly string[] => items(value).map(String);

interface Resource extends UpstreamResource {
  readonly singular: string;
  /** Of the response: a group and version where they are not the resource's. */
  readonly response: string;
}

/** What plain discovery says about a group and version, subresources included. */
function plain(apiVersion: string): readonly Resource[] {
  const root = apiVersion.includes('/') ? '/apis' : '/api';
  return items(at(get(`${root}/${apiVersion}`), 'resources')).map((each) => {
    const [group, version] = [at(each, 'group'), at(each, 'version')];
    return {
      name: String(at(each, 'name')),
      singular: String(at(each, 'singularName')),
      shortNames: strings(at(each, 'shortNames')),
      apiVersion,
      namespaced: at(each, 'namespaced') === true,
      kind: String(at(each, 'kind')),
      verbs: strings(at(each, 'verbs')),
      categories: strings(at(each, 'categories')),
      response: version === undefined ? apiVersion : `${String(group)}/${String(version)}`,
    };
  });
}

/** The same of aggregated discovery. */
function aggregated(apiVersion: string): readonly Resource[] {
  const [group = '', wanted = ''] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
  const groups = items(at(get(group === '' ? '/api' : '/apis', AGGREGATED), 'items'));
  const found = groups.find((one) => (at(one, 'metadata', 'name') ?? '') === group);
  const version = items(at(found, 'versions')).find((one) => at(one, 'version') === wanted);
  const responseOf = (each: unknown): string => {
    const [responseGroup, responseVersion] = [
      at(each, 'responseKind', 'group'),
      at(each, 'responseKind', 'version'),
    ].map(String);
    return responseGroup === '' ? String(responseVersion) : `${responseGroup}/${responseVersion}`;
  };
  return items(at(version, 'resources')).flatMap((each) => {
    const name = String(at(each, 'resource'));
    const namespaced = at(each, 'scope') === 'Namespaced';
    const common = { apiVersion, namespaced };
    const own: Resource = {
      ...common,
      name,
      singular: String(at(each, 'singularResource')),
      shortNames: strings(at(each, 'shortNames')),
      kind: String(at(each, 'responseKind', 'kind')),
      verbs: strings(at(each, 'verbs')),
      categories: strings(at(each, 'categories')),
      response: responseOf(each),
    };
    const below = items(at(each, 'subresources')).map((one) => ({
      ...common,
      name: `${name}/${String(at(one, 'subresource'))}`,
      singular: '',
      shortNames: [],
      kind: String(at(one, 'responseKind', 'kind')),
      verbs: strings(at(one, 'verbs')),
      categories: [],
      response: responseOf(one),
    }));
    return [own, ...below];
  });
}

const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : 1);
const groupVersions = [
  'v1',
  ...UPSTREAM_GROUPS.flatMap(([group, versions]) => versions.map((one) => `${group}/${one}`)),
];
const beyond = [...new Set(BEYOND_UPSTREAM.map(({ apiVersion }) => apiVersion))];

describe('discovery', () => {
  it('has the groups of kube-apiserver in its order, with their preferred versions', () => {
    const seen = items(at(get('/apis'), 'groups')).map((group) => ({
      name: at(group, 'name'),
      versions: items(at(group, 'versions')).map((version) => at(version, 'groupVersion')),
      preferred: at(group, 'preferredVersion', 'groupVersion'),
    }));
    const others = GROUPS_BEYOND_UPSTREAM.map((name) => [name, []] as const);
    const expected = [...UPSTREAM_GROUPS, ...others].map(([name, versions]) => {
      const more = beyond.filter((one) => one.startsWith(name));
      const all = [...versions.map((version) => `${name}/${version}`), ...more];
      return { name, versions: all, preferred: all[0] };
    });
    expect(seen).toEqual(expected);
  });

  it('has them in the same order in its aggregated form', () => {
    const names = items(at(get('/apis', AGGREGATED), 'items')).map((group) => at(group, 'metadata', 'name'));
    expect(names).toEqual([...UPSTREAM_GROUPS.map(([name]) => name), ...GROUPS_BEYOND_UPSTREAM]);
    const groups = items(at(get('/apis'), 'groups')).map((group) => at(group, 'name'));
    expect(names).toEqual(groups);
  });

  it.each(groupVersions.filter((one) => one !== 'autoscaling/v1'))('has the resources of %s', (apiVersion) => {
    const seen = plain(apiVersion)
      .filter(({ name }) => !name.includes('/'))
      .map(({ singular: _, response: __, ...rest }) => rest);
    expect(seen.toSorted(byName)).toEqual(UPSTREAM_RESOURCES.filter((one) => one.apiVersion === apiVersion));
  });

  it.each(groupVersions)('has the subresources of %s', (apiVersion) => {
    const seen = plain(apiVersion).filter(({ name }) => name.includes('/'));
    const table = Object.fromEntries(seen.map(({ name, verbs }) => [name, verbs.join()]));
    expect(table).toEqual(UPSTREAM_SUBRESOURCES[apiVersion] ?? {});
  });

  it.each([...groupVersions, ...beyond])('says the same of %s in both forms', (apiVersion) => {
    expect(aggregated(apiVersion).toSorted(byName)).toEqual(plain(apiVersion).toSorted(byName));
  });

  it('has nothing else', () => {
    const known = new Set(
      [...UPSTREAM_RESOURCES, ...BEYOND_UPSTREAM].map(({ apiVersion, name }) => `${apiVersion}/${name}`),
    );
    const rest = RESOURCE_KINDS.map(
      ({ group, version, plural }) => `${group === '' ? '' : `${group}/`}${version}/${plural}`,
    );
    expect(rest.filter((name) => !known.has(name))).toEqual(['autoscaling/v1/horizontalpodautoscalers']);
  });
});
