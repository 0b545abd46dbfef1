// What the control plane learns of the server's kinds: the same from aggregated discovery as from a request for each version.

import { describe, expect, it } from 'vitest';
import { discovery } from '../../../apiserver/discovery/index.ts';
import { RESOURCE_KINDS } from '../../../apiserver/kinds/index.ts';
import type { RequestOptions } from '../../../client/api.ts';
import type { Query } from '../../../client/paths.ts';
import { type DiscoveredResource, discover } from '../../../controlplane/discovery.ts';
import { apiError, FakeClient } from '../../support/fake-client.ts';

const VERBS = ['list', 'delete'];
const APPS = { groupVersion: 'apps/v1' };
const PLAIN: readonly (readonly [string, object])[] = [
  [
    '/apis',
    {
      kind: 'APIGroupList',
      groups: [
        { versions: [APPS], preferredVersion: APPS },
        {
          versions: [{ groupVersion: 'example.com/v2' }, { groupVersion: 'example.com/v1' }],
          preferredVersion: { groupVersion: 'example.com/v2' },
        },
      ],
    },
  ],
  ['/api', { kind: 'APIVersions', versions: ['v1'] }],
  [
    '/api/v1',
    {
      resources: [
        { name: 'pods', kind: 'Pod', namespaced: true, verbs: VERBS },
        { name: 'pods/log', kind: 'Pod', namespaced: true, verbs: ['get'] },
        { name: 'nodes', kind: 'Node', namespaced: false, verbs: VERBS },
      ],
    },
  ],
  ['/apis/apps/v1', { resources: [{ name: 'deployments', kind: 'Deployment', namespaced: true, verbs: VERBS }] }],
  ['/apis/example.com/v2', { resources: [{ name: 'cats', kind: 'Cat', namespaced: true, verbs: VERBS }] }],
  [
    '/apis/example.com/v1',
    {
      resources: [
        { name: 'cats', kind: 'Cat', namespaced: true, verbs: VERBS },
        { name: 'dogs', kind: 'Dog', namespaced: false },
      ],
    },
  ],
];

const served = (resource: string, kind: string, scope: string, more: object = { verbs: VERBS }): object => ({
  ...{ resource, scope, responseKind: { group: '', version: '', kind } },
  ...more,
});
const list = (...items: object[]): object => ({ kind: 'APIGroupDiscoveryList', items });
const group = (name: string, ...versions: object[]): object => ({ metadata: { name }, versions });
const CORE = list({
  metadata: {},
  versions: [
    {
      version: 'v1',
      freshness: 'Current',
      resources: [
        served('pods', 'Pod', 'Namespaced', { verbs: VERBS, subresources: [{ subresource: 'log', verbs: ['get'] }] }),
        served('nodes', 'Node', 'Cluster'),
      ],
    },
  ],
});
const cats = (freshness: string): object => ({
  ...{ version: 'v2', freshness },
  resources: [served('cats', 'Cat', 'Namespaced')],
});
const others = (freshness = 'Current'): object =>
  list(
    group('apps', {
      ...{ version: 'v1', freshness: 'Current' },
      resources: [served('deployments', 'Deployment', 'Namespaced')],
    }),
    group('example.com', cats(freshness), {
      ...{ version: 'v1', freshness: 'Current' },
      resources: [served('cats', 'Cat', 'Namespaced'), served('dogs', 'Dog', 'Cluster', {})],
    }),
  );

/** A server, by what it has in the plain form and in the aggregated one. */
class Server extends FakeClient {
  readonly aggregated = new Map<string, unknown>();

  override async get<T>(path: string, query?: Query, options: RequestOptions = {}): Promise<T> {
    const found = options.aggregatedDiscovery === true ? this.aggregated.get(path) : undefined;
    if (found === undefined) return super.get<T>(path, query, options);
    this.reads++;
    return structuredClone(found) as T;
  }
}

function server(aggregated: readonly (readonly [string, object])[] = []): Server {
  const made = new Server();
  for (const [path, body] of PLAIN) made.objects.set(path, body);
  for (const [path, body] of aggregated) made.aggregated.set(path, body);
  return made;
}

const byName = (a: DiscoveredResource, b: DiscoveredResource): number =>
  `${a.apiVersion} ${a.plural}`.localeCompare(`${b.apiVersion} ${b.plural}`);

describe('discovery', () => {
  const resources = [
    { apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true, verbs: VERBS },
    { apiVersion: 'v1', kind: 'Node', plural: 'nodes', namespaced: false, verbs: VERBS },
    { apiVersion: 'apps/v1', kind: 'Deployment', plural: 'deployments', namespaced: true, verbs: VERBS },
    { apiVersion: 'example.com/v2', kind: 'Cat', plural: 'cats', namespaced: true, verbs: VERBS },
    { apiVersion: 'example.com/v1', kind: 'Dog', plural: 'dogs', namespaced: false, verbs: [] },
  ];

  it('takes two requests where the server has the aggregated form', async () => {
    const client = server([
      ['/apis', others()],
      ['/api', CORE],
    ]);
    expect(await discover(client)).toEqual({ resources, failures: [] });
    expect(client.reads).toBe(2);
  });

  it('finds the same in a server without it, version by version', async () => {
    const client = server();
    expect(await discover(client)).toEqual({ resources, failures: [] });
    expect(client.reads).toBe(5);
  });

  it('finds the same where only one of the two paths has it', async () => {
    expect(await discover(server([['/apis', others()]]))).toEqual({ resources, failures: [] });
  });

  it('finds the same both ways in the embedded API server', async () => {
    const serve = discovery(RESOURCE_KINDS, '127.0.0.1:6443');
    const found = async (accept: string) => {
      let requests = 0;
      const client = {
        get: async <T>(path: string): Promise<T> => {
          requests++;
          return JSON.parse(String(serve(path, accept, new URLSearchParams())?.body)) as T;
        },
      };
      return { ...(await discover(client)), requests };
    };
    const aggregated = await found('application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList');
    const plain = await found('application/json');
    expect(aggregated.resources.length).toBeGreaterThan(60);
    expect([...aggregated.resources].sort(byName)).toEqual([...plain.resources].sort(byName));
    expect([aggregated.failures, plain.failures]).toEqual([[], []]);
    expect(aggregated.requests).toBe(2);
    expect(plain.requests).toBeGreaterThan(20);
  });

  it('reports a version that is stale, and takes nothing from it', async () => {
    const client = server([
      ['/apis', others('Stale')],
      ['/api', CORE],
    ]);
    const found = await discover(client);
    expect(found.failures).toEqual(['example.com/v2: stale GroupVersion discovery: example.com/v2']);
    expect(found.resources).toEqual(
      resources.map((each) => (each.plural === 'cats' ? { ...each, apiVersion: 'example.com/v1' } : each)),
    );
  });

  it('reports a version that does not answer, and throws when the groups cannot be had', async () => {
    const client = server();
    client.objects.delete('/apis/apps/v1');
    expect((await discover(client)).failures).toEqual(['apps/v1: NotFound']);
    client.failures.push(apiError(503, 'ServiceUnavailable'));
    await expect(discover(client)).rejects.toThrow('ServiceUnavailable');
  });
});
