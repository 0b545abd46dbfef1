// Requests of the largest kinds that are still read: at the limits of apiserver/limits.ts, or as many bytes as a body may
// have. What each occupies the API server's event loop with is measured by the bodies campaign.

import type { HttpInput } from './server.ts';

const list = <T>(n: number, of: (index: number) => T): T[] => Array.from({ length: n }, (_, index) => of(index));
const named = (n: number, value: string): Record<string, string> =>
  Object.fromEntries(list(n, (index) => [`key-${index}`, value]));

const JSON_TYPE = 'application/json';
const CORE = '/api/v1/namespaces/default';

function create(plural: string, object: object, path = `${CORE}/${plural}`): HttpInput {
  return { method: 'POST', path: `${path}?dryRun=All`, contentType: JSON_TYPE, body: JSON.stringify(object) };
}

function configMap(data: Record<string, string>): object {
  return { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'large' }, data };
}

function pod(spec: object, container: object = {}): object {
  const containers = [{ name: 'main', image: 'busybox:stable', ...container }];
  return { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'large' }, spec: { containers, ...spec } };
}

function patch(kind: string, path: string, body: unknown): HttpInput {
  return {
    method: 'PATCH',
    path: `${path}?dryRun=All`,
    contentType: `application/${kind}+json`,
    body: JSON.stringify(body),
  };
}

const env = (n: number): object[] => list(n, (index) => ({ name: `N${index}`, value: 'v' }));

/** By what is large in it. The ConfigMap `patched` has to be there. */
export const LARGEST: ReadonlyMap<string, HttpInput> = new Map<string, HttpInput>([
  ['ConfigMap, 16,000 keys', create('configmaps', configMap(named(16_000, 'v')))],
  ['ConfigMap, one value of 1.4 MB', create('configmaps', configMap({ a: 'x'.repeat(1_000_000) }))],
  ['ConfigMap, a body of 3 MB', create('configmaps', configMap({ a: 'x'.repeat(3_000_000) }))],
  [
    'ConfigMap in YAML, 16,000 keys',
    {
      method: 'POST',
      path: `${CORE}/configmaps?dryRun=All`,
      contentType: 'application/yaml',
      body: `kind: ConfigMap\napiVersion: v1\nmetadata: {name: large}\ndata:\n${list(16_000, (i) => `  key-${i}: v`).join('\n')}\n`,
    },
  ],
  [
    'Secret, 1 MB in base64',
    create('secrets', {
      kind: 'Secret',
      apiVersion: 'v1',
      metadata: { name: 'large' },
      data: { a: 'AAAA'.repeat(250_000) },
    }),
  ],
  [
    'annotations, 16,000 keys',
    create('configmaps', {
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: { name: 'large', annotations: named(16_000, 'v') },
    }),
  ],
  [
    'labels, 16,000 wrong ones',
    create('configmaps', {
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: { name: 'large', labels: named(16_000, '-') },
    }),
  ],
  [
    'finalizers, 30,000',
    create('configmaps', {
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: { name: 'large', finalizers: list(30_000, (i) => `a.example/f${i}`) },
    }),
  ],
  ['Pod, 7,500 variables', create('pods', pod({}, { env: env(7500) }))],
  ['Pod, 4,000 containers', create('pods', pod({ containers: list(4000, (i) => ({ name: `c${i}`, image: 'a' })) }))],
  [
    'Pod, 4,000 volumes and mounts of two',
    create(
      'pods',
      pod(
        { volumes: list(4000, (i) => ({ name: `v${i}`, emptyDir: {} })) },
        { volumeMounts: list(2, (i) => ({ name: `v${i}`, mountPath: `/m${i}` })) },
      ),
    ),
  ],
  [
    'Pod, 3,500 mounts',
    create(
      'pods',
      pod(
        { volumes: [{ name: 'v', emptyDir: {} }] },
        { volumeMounts: list(3500, (i) => ({ name: 'v', mountPath: `/m${i}` })) },
      ),
    ),
  ],
  [
    'Pod, 8,000 tolerations',
    create('pods', pod({ tolerations: list(8000, (i) => ({ key: `k${i}`, operator: 'Exists' })) })),
  ],
  [
    'EndpointSlice, 1,000 endpoints',
    create(
      'endpointslices',
      {
        kind: 'EndpointSlice',
        apiVersion: 'discovery.k8s.io/v1',
        metadata: { name: 'large' },
        addressType: 'IPv4',
        endpoints: list(1000, (i) => ({ addresses: [`10.1.${i >> 8}.${i & 255}`], conditions: { ready: true } })),
      },
      '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices',
    ),
  ],
  [
    'Node, 5,000 images',
    create(
      'nodes',
      {
        kind: 'Node',
        apiVersion: 'v1',
        metadata: { name: 'large' },
        status: { images: list(5000, (i) => ({ names: [`a.example/image-${i}:latest`], sizeBytes: 1 })) },
      },
      '/api/v1/nodes',
    ),
  ],
  [
    'access review, a user of 3 MB',
    create(
      'subjectaccessreviews',
      {
        kind: 'SubjectAccessReview',
        apiVersion: 'authorization.k8s.io/v1',
        spec: { user: 'u'.repeat(3_000_000), resourceAttributes: { verb: 'get', resource: 'pods' } },
      },
      '/apis/authorization.k8s.io/v1/subjectaccessreviews',
    ),
  ],
  [
    'token review, a token of 3 MB',
    create(
      'tokenreviews',
      {
        kind: 'TokenReview',
        apiVersion: 'authentication.k8s.io/v1',
        spec: { token: `${'a'.repeat(1_500_000)}.${'b'.repeat(1_400_000)}.c` },
      },
      '/apis/authentication.k8s.io/v1/tokenreviews',
    ),
  ],
  ['merge patch, 16,000 keys', patch('merge-patch', `${CORE}/configmaps/patched`, { data: named(16_000, 'w') })],
  [
    'strategic merge patch, 16,000 keys',
    patch('strategic-merge-patch', `${CORE}/configmaps/patched`, { data: named(16_000, 'w') }),
  ],
  [
    'JSON patch, 10,000 additions',
    patch(
      'json-patch',
      `${CORE}/configmaps/patched`,
      list(10_000, (i) => ({ op: 'add', path: `/data/k${i}`, value: 'v' })),
    ),
  ],
  [
    'JSON patch, 10,000 tests',
    patch(
      'json-patch',
      `${CORE}/configmaps/patched`,
      list(10_000, () => ({ op: 'test', path: '/data/kept', value: 'yes' })),
    ),
  ],
  [
    'nesting of 1.5 million levels',
    { method: 'POST', path: `${CORE}/configmaps`, contentType: JSON_TYPE, body: '['.repeat(3_000_000) },
  ],
  [
    'nesting of 120 levels, 32,000 values',
    create('configmaps', {
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: { name: 'large' },
      data: { a: list(250, () => list(120, () => 0).reduce<unknown>((inner) => [inner], 0)) },
    }),
  ],
  [
    'equal keys, 16,000',
    {
      method: 'POST',
      path: `${CORE}/configmaps`,
      contentType: JSON_TYPE,
      body: `{"data":{${list(16_000, () => '"a":"b"').join()}}}`,
    },
  ],
]);
