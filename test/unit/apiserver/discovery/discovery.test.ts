import { describe, expect, it } from 'vitest';
import { discovery } from '../../../../apiserver/discovery/index.ts';
import { RESOURCE_KINDS } from '../../../../apiserver/kinds/index.ts';
import { definitions } from '../../../../apiserver/schema/definitions.ts';

const serve = discovery(RESOURCE_KINDS, '127.0.0.1:6443');

function get(path: string, accept = 'application/json') {
  const document = serve(path, accept, new URLSearchParams());
  if (document === undefined) throw new Error(`${path} is not served`);
  return { ...document, json: JSON.parse(String(document.body)) };
}

describe('plain discovery', () => {
  it('/api names v1 and where the server is', () => {
    expect(get('/api').json).toEqual({
      kind: 'APIVersions',
      versions: ['v1'],
      serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: '127.0.0.1:6443' }],
    });
  });

  it('/apis lists each group once, with its preferred version, and without the core', () => {
    const names = get('/apis').json.groups.map((group: { name: string }) => group.name);
    expect(names).toContain('coordination.k8s.io');
    expect(names).not.toContain('');
    expect(new Set(names).size).toBe(names.length);
    expect(get('/apis/events.k8s.io').json).toMatchObject({
      kind: 'APIGroup',
      preferredVersion: { groupVersion: 'events.k8s.io/v1', version: 'v1' },
    });
  });

  // The hashes are kube-apiserver 1.34.2's.
  it.each([
    ['/api/v1', 'pods', 'xPOwRZ+Yhw8='],
    ['/apis/autoscaling/v1', 'horizontalpodautoscalers', 'qwQve8ut294='],
    ['/apis/autoscaling/v2', 'horizontalpodautoscalers', 'qwQve8ut294='],
    ['/apis/events.k8s.io/v1', 'events', 'r2yiGXH7wu8='],
    ['/api/v1', 'pods/status', undefined],
    ['/api/v1', 'componentstatuses', undefined],
    ['/apis/metrics.k8s.io/v1beta1', 'pods', undefined],
    ['/apis/authorization.k8s.io/v1', 'subjectaccessreviews', undefined],
  ])('%s shows in which version %s are stored', (path, name, hash) => {
    const { resources } = get(path).json;
    const found = resources.find((one: { name: string }) => one.name === name);
    expect(found).toBeDefined();
    expect(found.storageVersionHash).toBe(hash);
  });

  it('/api/v1 lists resources with verbs, short names and subresources', () => {
    const { resources } = get('/api/v1').json;
    const named = (name: string) => resources.find((one: { name: string }) => one.name === name);
    expect(named('pods')).toMatchObject({ kind: 'Pod', namespaced: true, shortNames: ['po'], categories: ['all'] });
    expect(named('pods').verbs).toContain('deletecollection');
    expect(named('namespaces').verbs).not.toContain('deletecollection');
    expect(named('bindings').verbs).toEqual(['create']);
    expect(named('pods/eviction')).toMatchObject({
      kind: 'Eviction',
      group: 'policy',
      version: 'v1',
      verbs: ['create'],
    });
    expect(named('pods/log')).toMatchObject({ kind: 'Pod', verbs: ['get'] });
  });

  it.each([
    '/apis/nothing',
    '/apis/nothing/v1',
    '/api/v2',
    '/openapi/v4',
    '/openapi/v3/apis/nothing/v1',
    '/openapi/v3/other/v1',
    '/',
  ])('%s is no document', (path) => {
    expect(serve(path, 'application/json', new URLSearchParams())).toBeUndefined();
  });
});

describe('aggregated discovery', () => {
  const accept = (version: string): string =>
    `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;

  it.each(['v2', 'v2beta1'])('comes as %s to those who ask for it', (version) => {
    const { json, contentType } = get('/apis', `${accept(version)},application/json`);
    expect(contentType).toBe(accept(version));
    expect(json).toMatchObject({ kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${version}` });
  });

  it('comes in the form that was asked for first', () => {
    expect(get('/api', `${accept('v2')},${accept('v2beta1')},application/json`).json.apiVersion).toBe(
      'apidiscovery.k8s.io/v2',
    );
    expect(get('/api', `application/json,${accept('v2')}`).json.kind).toBe('APIVersions');
  });

  it('says what plain discovery says', () => {
    const [core] = get('/api', accept('v2')).json.items;
    const names = core.versions[0].resources.map((one: { resource: string }) => one.resource).sort();
    const plain = get('/api/v1').json.resources.map((one: { name: string }) => one.name);
    expect(names).toEqual(plain.filter((name: string) => !name.includes('/')).sort());
    const pods = core.versions[0].resources.find((one: { resource: string }) => one.resource === 'pods');
    expect(pods).toMatchObject({ scope: 'Namespaced', singularResource: 'pod', responseKind: { kind: 'Pod' } });
    expect(pods.subresources.map((one: { subresource: string }) => one.subresource)).toContain('status');
  });
});

/** Every `$ref` in a document. */
function references(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' && typeof inner === 'string' ? [inner] : references(inner),
  );
}

describe('OpenAPI', () => {
  it('the index of v3 leads to documents that are there', () => {
    const { paths } = get('/openapi/v3').json;
    expect(Object.keys(paths)).toContain('apis/coordination.k8s.io/v1');
    for (const { serverRelativeURL } of Object.values<{ serverRelativeURL: string }>(paths)) {
      expect(get(new URL(serverRelativeURL, 'https://host').pathname).json.openapi).toBe('3.0.0');
    }
  });

  it('no reference leads nowhere, in v3 and in v2', () => {
    for (const path of ['/openapi/v3/api/v1', '/openapi/v3/apis/events.k8s.io/v1', '/openapi/v2']) {
      const { json } = get(path);
      const known = json.definitions ?? json.components.schemas;
      const missing = references(json).filter((reference) => !((reference.split('/').at(-1) ?? '') in known));
      expect(missing).toEqual([]);
    }
  });

  it('a patch says its kind and that it takes fieldValidation and dryRun', () => {
    const patch = get('/openapi/v3/api/v1').json.paths['/api/v1/namespaces/{namespace}/pods/{name}'].patch;
    expect(patch['x-kubernetes-group-version-kind']).toEqual({ group: '', version: 'v1', kind: 'Pod' });
    expect(patch.parameters.map((one: { name: string }) => one.name)).toEqual(
      expect.arrayContaining(['dryRun', 'fieldValidation']),
    );
  });

  it('lists carry how they merge, and fields what they are', () => {
    const { schemas } = get('/openapi/v3/api/v1').json.components;
    const spec = schemas['io.k8s.api.core.v1.PodSpec'];
    expect(spec.required).toEqual(['containers']);
    expect(spec.properties.containers).toMatchObject({
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-patch-merge-key': 'name',
      'x-kubernetes-patch-strategy': 'merge',
    });
    expect(spec.properties.tolerations['x-kubernetes-list-type']).toBe('atomic');
    expect(spec.properties.restartPolicy.enum).toEqual(['Always', 'Never', 'OnFailure']);
    expect(spec.properties.containers.description).toContain('List of containers belonging to the pod');
  });

  it('clients that take only the protobuf form of v2 get its head and its definitions', () => {
    const type = 'application/com.github.proto-openapi.spec.v2';
    const document = serve('/openapi/v2', `${type}@v1.0+protobuf`, new URLSearchParams());
    expect(document).toMatchObject({ status: 200, contentType: `${type}.v1.0+protobuf` });
    const body = Buffer.from(document?.body ?? '');
    expect(body.subarray(0, 5)).toEqual(Buffer.from([0x0a, 3, ...Buffer.from('2.0')]));
    expect(body.includes('io.k8s.api.apps.v1.DeploymentSpec')).toBe(true);
    expect(body.includes('#/definitions/io.k8s.api.core.v1.PodTemplateSpec')).toBe(true);
    expect(serve('/openapi/v2', 'text/html', new URLSearchParams())?.status).toBe(406);
  });
});

it('every definition that the schema refers to is in it', () => {
  const all = definitions();
  const missing = Object.values(all)
    .flatMap((one) => Object.values(one.fields))
    .flatMap((type) => (type.includes('#') ? [type.slice(type.indexOf('#') + 1)] : []))
    .filter((name) => all[name] === undefined);
  expect(missing).toEqual([]);
  for (const row of RESOURCE_KINDS) expect(all[row.schema], row.kind).toBeDefined();
});
