// What upstream's conformance tests ask of single kinds beyond their lifecycle: types of Services, what is immutable, what a
// pod gets and how it counts its generations, classes, tokens, reviews, policies. docs/conformance.md says which test is which.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { at } from '../../support/api-server.ts';
import { Client, type Fields } from './client.ts';

let client: Client;
beforeAll(async () => {
  client = await Client.start();
});
afterAll(() => client.stop());

const pathOf = (namespace: string, plural: string, root = '/api/v1'): string =>
  `${root}/namespaces/${namespace}/${plural}`;
const object = (apiVersion: string, kind: string, name: string, fields: Fields = {}): object => ({
  ...{ apiVersion, kind, metadata: { name } },
  ...fields,
});
const CONTAINERS = [{ name: 'c', image: 'image' }];
const pod = (name: string, spec: Fields = {}): object =>
  object('v1', 'Pod', name, { spec: { containers: CONTAINERS, ...spec } });

describe('a Service', () => {
  it('gets and loses its cluster IP and node ports with its type', async () => {
    const services = pathOf(await client.namespace('service-types'), 'services');
    const ports = [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 9376 }];
    const become = async (name: string, spec: Fields): Promise<unknown> => {
      const stored = await client.get(`${services}/${name}`);
      return at(await client.update(`${services}/${name}`, { ...Object(stored), spec }), 'spec');
    };
    const external = { type: 'ExternalName', externalName: 'backend.example.com' };
    const created = await client.create(services, object('v1', 'Service', 'a', { spec: { type: 'ClusterIP', ports } }));
    const address = at(created, 'spec', 'clusterIP');
    expect(address).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
    expect(at(await become('a', external), 'clusterIP')).toBeUndefined();
    // The address is free again.
    await client.create(services, object('v1', 'Service', 'same', { spec: { clusterIP: address, ports } }));
    expect(await become('a', { type: 'ClusterIP', ports })).toMatchObject({ clusterIP: expect.stringMatching(/^\d/) });
    await become('a', external);
    const nodePort = at(await become('a', { type: 'NodePort', ports }), 'ports', 0, 'nodePort');
    expect(nodePort).toBeGreaterThanOrEqual(30000);
    const released = await become('a', external);
    expect([at(released, 'clusterIP'), at(released, 'ports')]).toEqual([undefined, undefined]);
    const taken = { type: 'NodePort', ports: [{ ...ports[0], nodePort }] };
    await client.create(services, object('v1', 'Service', 'port', { spec: taken }));
  });

  it('named kubernetes is there for the API server, with endpoints and slices that lead to it', async () => {
    const spec = at(await client.get('/api/v1/namespaces/default/services/kubernetes'), 'spec');
    expect(at(spec, 'ports')).toEqual([expect.objectContaining({ name: 'https', port: 443, protocol: 'TCP' })]);
    expect(await client.names('/api/v1/services')).toContain('kubernetes');
    const endpoints = await client.get('/api/v1/namespaces/default/endpoints/kubernetes');
    const { port } = client.stand.server;
    expect(at(endpoints, 'subsets', 0, 'ports', 0)).toMatchObject({ name: 'https', port });
    const selected = 'labelSelector=kubernetes.io%2Fservice-name%3Dkubernetes';
    const slices = await client.get(`${pathOf('default', 'endpointslices', '/apis/discovery.k8s.io/v1')}?${selected}`);
    expect(at(slices, 'items', 0)).toMatchObject({
      endpoints: [{ addresses: [at(endpoints, 'subsets', 0, 'addresses', 0, 'ip')] }],
      ports: [{ name: 'https', port }],
    });
  });
});

describe.each([
  ['ConfigMap', 'configmaps', 'value-1', 'value-2'],
  ['Secret', 'secrets', 'dmFsdWUtMQ==', 'dmFsdWUtMg=='],
] as const)('a %s', (kind, plural, first, second) => {
  it('has no empty key, and never changes once it is immutable', async () => {
    const place = pathOf(await client.namespace(`immutable-${plural}`), plural);
    expect(await client.refusal('POST', place, object('v1', kind, 'empty-key', { data: { '': first } }))).toEqual([
      422,
      'Invalid',
    ]);
    await client.create(place, object('v1', kind, 'one', { data: { key: first } }));
    const path = `${place}/one`;
    await client.patch(path, { data: { key: second } });
    await client.patch(path, { immutable: true });
    expect(await client.refusal('PATCH', path, { data: { key: first } }, 'merge')).toEqual([422, 'Invalid']);
    expect(await client.refusal('PATCH', path, { immutable: false }, 'merge')).toEqual([422, 'Invalid']);
    await client.patch(path, { metadata: { labels: { changed: 'yes' } } });
    expect(at(await client.get(path), 'data', 'key')).toBe(second);
    await client.delete(path);
  });
});

describe('a Pod', () => {
  it('has a class of service by its requests and limits', async () => {
    const pods = pathOf(await client.namespace('pod-qos'), 'pods');
    const resources = { cpu: '100m', memory: '100Mi' };
    const containers = [{ ...CONTAINERS[0], resources: { requests: resources, limits: resources } }];
    expect(at(await client.create(pods, pod('guaranteed', { containers })), 'status', 'qosClass')).toBe('Guaranteed');
  });

  it('may be given a deadline, other labels and an inline CSI volume', async () => {
    const pods = pathOf(await client.namespace('pod-update'), 'pods');
    const volumes = [{ name: 'inline', csi: { driver: 'inline.example.com' } }];
    await client.create(pods, pod('one', { volumes }));
    const path = `${pods}/one`;
    expect(at(await client.get(path), 'spec', 'volumes', 0, 'csi')).toEqual({ driver: 'inline.example.com' });
    expect(at(await client.patch(path, { spec: { activeDeadlineSeconds: 5 } }), 'spec', 'activeDeadlineSeconds')).toBe(
      5,
    );
    const stored = await client.get(path);
    const metadata = { ...Object(at(stored, 'metadata')), labels: { time: 'later' } };
    await client.update(path, { ...Object(stored), metadata });
    expect(await client.names(`${pods}?labelSelector=time%3Dlater`)).toEqual(['one']);
  });

  it('counts its generations from 1, whatever it says, and once more when its deletion begins', async () => {
    const pods = pathOf(await client.namespace('pod-generation'), 'pods');
    const created = pod('one', { nodeName: 'a' });
    const claimed = { ...created, metadata: { name: 'one', generation: 100 } };
    const generation = async (): Promise<unknown> => at(await client.get(`${pods}/one`), 'metadata', 'generation');
    expect(at(await client.create(pods, claimed), 'metadata', 'generation')).toBe(1);
    await client.patch(`${pods}/one`, { metadata: { labels: { a: 'b' } } });
    expect(await generation()).toBe(1);
    await client.patch(`${pods}/one`, { spec: { activeDeadlineSeconds: 600 } });
    expect(await generation()).toBe(2);
    const resize = { spec: { containers: [{ name: 'c', resources: { requests: { cpu: '10m' } } }] } };
    expect(await client.refusal('PATCH', `${pods}/one`, resize, 'strategic')).toEqual([422, 'Invalid']);
    const debug = { spec: { ephemeralContainers: [{ name: 'debug', image: 'image' }] } };
    await client.patch(`${pods}/one/ephemeralcontainers`, debug, 'strategic');
    expect(await generation()).toBe(3);
    await client.patch(`${pods}/one/status`, { status: { observedGeneration: 3 } });
    expect(await generation()).toBe(3);
    await client.delete(`${pods}/one`);
    expect(await generation()).toBe(4);
    expect(at(await client.get(`${pods}/one`), 'metadata', 'deletionGracePeriodSeconds')).toBe(30);
  });

  it('gets ephemeral containers one after the other', async () => {
    const pods = pathOf(await client.namespace('pod-ephemeral'), 'pods');
    await client.create(pods, pod('one', { nodeName: 'a' }));
    const add = async (name: string): Promise<unknown> => {
      const body = { spec: { ephemeralContainers: [{ name, image: 'image', command: ['sleep', '9'], stdin: true }] } };
      return at(
        await client.patch(`${pods}/one/ephemeralcontainers`, body, 'strategic'),
        'spec',
        'ephemeralContainers',
      );
    };
    expect(await add('debugger')).toEqual([expect.objectContaining({ name: 'debugger' })]);
    const both = [expect.objectContaining({ name: 'debugger' }), expect.objectContaining({ name: 'debugger2' })];
    expect(await add('debugger2')).toEqual(expect.arrayContaining(both));
  });

  it('is refused for a RuntimeClass that is not there, or no longer, and gets the overhead of one that is', async () => {
    const pods = pathOf(await client.namespace('pod-runtime'), 'pods');
    const runtimeClassName = 'conformance';
    expect(await client.refusal('POST', pods, pod('none', { runtimeClassName }))).toEqual([403, 'Forbidden']);
    const classes = '/apis/node.k8s.io/v1/runtimeclasses';
    const overhead = { podFixed: { cpu: '10m', memory: '1Mi' } };
    await client.create(
      classes,
      object('node.k8s.io/v1', 'RuntimeClass', runtimeClassName, { handler: 'runc', overhead }),
    );
    const created = await client.create(pods, pod('one', { runtimeClassName }));
    expect(at(created, 'spec', 'overhead')).toEqual(overhead.podFixed);
    await client.delete(`${classes}/${runtimeClassName}`);
    expect(await client.refusal('POST', pods, pod('two', { runtimeClassName }))).toEqual([403, 'Forbidden']);
  });

  it('is kept from eviction by a budget until that allows it', async () => {
    const namespace = await client.namespace('pod-eviction');
    const pods = pathOf(namespace, 'pods');
    const labels = { app: 'budgeted' };
    await client.create(pods, { ...pod('one', { nodeName: 'a' }), metadata: { name: 'one', labels } });
    const ready = { type: 'Ready', status: 'True', lastTransitionTime: '2025-01-01T00:00:00Z' };
    await client.patch(`${pods}/one/status`, { status: { phase: 'Running', conditions: [ready] } });
    const budgets = pathOf(namespace, 'poddisruptionbudgets', '/apis/policy/v1');
    const spec = { minAvailable: 1, selector: { matchLabels: labels } };
    await client.create(budgets, object('policy/v1', 'PodDisruptionBudget', 'budget', { spec }));
    const report = (disruptionsAllowed: number): Promise<unknown> => {
      const counts = { currentHealthy: 1, desiredHealthy: 1 - disruptionsAllowed, expectedPods: 1 };
      return client.patch(`${budgets}/budget/status`, {
        status: { observedGeneration: 1, disruptionsAllowed, ...counts },
      });
    };
    const eviction = object('policy/v1', 'Eviction', 'one');
    await report(0);
    expect(await client.refusal('POST', `${pods}/one/eviction`, eviction)).toEqual([429, 'TooManyRequests']);
    await report(1);
    await client.create(`${pods}/one/eviction`, eviction);
    expect(at(await client.get(`${pods}/one`), 'metadata', 'deletionTimestamp')).toBeDefined();
    expect(at(await client.get(`${budgets}/budget`), 'status', 'disruptionsAllowed')).toBe(0);
  });
});

describe('a PriorityClass', () => {
  it('changes its description, never its value', async () => {
    const classes = '/apis/scheduling.k8s.io/v1/priorityclasses';
    await client.create(classes, object('scheduling.k8s.io/v1', 'PriorityClass', 'p1', { value: 1 }));
    const patched = await client.patch(`${classes}/p1`, { description: 'patched' });
    expect([at(patched, 'value'), at(patched, 'description')]).toEqual([1, 'patched']);
    expect(await client.refusal('PATCH', `${classes}/p1`, { value: 2 }, 'merge')).toEqual([422, 'Invalid']);
    expect(await client.refusal('PUT', `${classes}/p1`, { ...Object(patched), value: 2 })).toEqual([422, 'Invalid']);
    expect(await client.names(classes)).toEqual(
      expect.arrayContaining(['system-cluster-critical', 'system-node-critical']),
    );
  });
});

describe('a ServiceAccount', () => {
  it('gets a token that a TokenReview knows', async () => {
    const namespace = await client.namespace('tokens');
    const request = { spec: { expirationSeconds: 3600 } };
    const path = pathOf(namespace, 'serviceaccounts/default/token');
    const token = at(
      await client.create(path, object('authentication.k8s.io/v1', 'TokenRequest', 'default', request)),
      'status',
      'token',
    );
    const review = object('authentication.k8s.io/v1', 'TokenReview', '', { spec: { token } });
    const reviewed = await client.create('/apis/authentication.k8s.io/v1/tokenreviews', review);
    expect(at(reviewed, 'status')).toMatchObject({
      authenticated: true,
      user: { username: `system:serviceaccount:${namespace}:default` },
    });
  });

  it('has an issuer that is discovered by its own tokens', async () => {
    const path = pathOf('default', 'serviceaccounts');
    await client.create(path, object('v1', 'ServiceAccount', 'discoverer'));
    const request = object('authentication.k8s.io/v1', 'TokenRequest', 'discoverer', { spec: {} });
    const token = String(at(await client.create(`${path}/discoverer/token`, request), 'status', 'token'));
    const read = async (document: string): Promise<unknown> =>
      (await client.stand.call({ path: document, as: { token } })).json;
    const configuration = await read('/.well-known/openid-configuration');
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    expect(at(configuration, 'issuer')).toBe(at(claims, 'iss'));
    const keys = at(await read('/openid/v1/jwks'), 'keys');
    const header: unknown = JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString());
    expect(keys).toContainEqual(expect.objectContaining({ kid: at(header, 'kid') }));
  });

  it('may what reviews of its access say', async () => {
    const namespace = await client.namespace('reviews');
    const user = `system:serviceaccount:${namespace}:default`;
    const resourceAttributes = { verb: 'list', resource: 'configmaps', namespace };
    const review = async (): Promise<readonly unknown[]> => {
      const spec = { user, resourceAttributes };
      const whole = object('authorization.k8s.io/v1', 'SubjectAccessReview', '', { spec });
      const local = {
        ...object('authorization.k8s.io/v1', 'LocalSubjectAccessReview', '', { spec }),
        metadata: { namespace },
      };
      const root = '/apis/authorization.k8s.io/v1';
      const answers = [
        await client.create(`${root}/subjectaccessreviews`, whole),
        await client.create(pathOf(namespace, 'localsubjectaccessreviews', root), local),
      ];
      return answers.map((answer) => at(answer, 'status', 'allowed'));
    };
    const listed = async (): Promise<number> => {
      const path = pathOf(namespace, 'configmaps');
      const headers = { 'impersonate-user': user };
      return (await client.stand.call({ path, as: client.stand.admin, headers })).code;
    };
    expect([await review(), await listed()]).toEqual([[false, false], 403]);
    const binding = {
      ...object('rbac.authorization.k8s.io/v1', 'RoleBinding', 'view'),
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ kind: 'ServiceAccount', name: 'default', namespace }],
    };
    await client.create(pathOf(namespace, 'rolebindings', '/apis/rbac.authorization.k8s.io/v1'), binding);
    expect([await review(), await listed()]).toEqual([[true, true], 200]);
  });

  it('mounts no token where it or the pod opts out', async () => {
    const namespace = await client.namespace('automount');
    const accounts = pathOf(namespace, 'serviceaccounts');
    await client.create(accounts, object('v1', 'ServiceAccount', 'mount', { automountServiceAccountToken: true }));
    await client.create(accounts, object('v1', 'ServiceAccount', 'nomount', { automountServiceAccountToken: false }));
    const mounts = async (serviceAccountName: string, automountServiceAccountToken?: boolean): Promise<boolean> => {
      const name = `${serviceAccountName}-${automountServiceAccountToken ?? 'default'}`;
      const given = automountServiceAccountToken === undefined ? {} : { automountServiceAccountToken };
      const created = await client.create(pathOf(namespace, 'pods'), pod(name, { serviceAccountName, ...given }));
      const found = at(created, 'spec', 'containers', 0, 'volumeMounts', 0, 'mountPath');
      return found === '/var/run/secrets/kubernetes.io/serviceaccount';
    };
    const table: unknown[] = [];
    for (const account of ['default', 'mount', 'nomount']) {
      table.push([await mounts(account), await mounts(account, true), await mounts(account, false)]);
    }
    expect(table).toEqual([
      [true, true, false],
      [true, true, false],
      [false, true, false],
    ]);
  });
});

describe('a ValidatingAdmissionPolicy', () => {
  it('validates Deployments, by variables too', async () => {
    const namespace = await client.namespace('policies');
    const root = '/apis/admissionregistration.k8s.io/v1';
    const rule = {
      operations: ['CREATE', 'UPDATE'],
      apiGroups: ['apps'],
      apiVersions: ['v1'],
      resources: ['deployments'],
    };
    const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
    const spec = {
      matchConstraints: { resourceRules: [rule], namespaceSelector },
      variables: [
        { name: 'replicas', expression: 'object.spec.replicas' },
        { name: 'oddReplicas', expression: 'variables.replicas % 2 == 1' },
      ],
      validations: [
        { expression: 'variables.replicas > 1', message: 'too few replicas' },
        { expression: 'variables.oddReplicas', messageExpression: "'not odd: ' + string(variables.replicas)" },
      ],
    };
    await client.create(
      `${root}/validatingadmissionpolicies`,
      object('admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicy', 'odd.example.com', { spec }),
    );
    await client.create(
      `${root}/validatingadmissionpolicybindings`,
      object('admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicyBinding', 'odd.example.com', {
        spec: { policyName: 'odd.example.com', validationActions: ['Deny'] },
      }),
    );
    const deploy = async (name: string, replicas: number): Promise<string> => {
      const template = { metadata: { labels: { a: 'b' } }, spec: { containers: CONTAINERS } };
      const body = object('apps/v1', 'Deployment', name, {
        spec: { replicas, selector: { matchLabels: { a: 'b' } }, template },
      });
      const { code, json } = await client.send('POST', pathOf(namespace, 'deployments', '/apis/apps/v1'), body);
      return code === 201 ? 'created' : String(at(json, 'message'));
    };
    expect(await deploy('one', 1)).toContain('denied request: too few replicas');
    expect(await deploy('four', 4)).toContain('denied request: not odd: 4');
    expect(await deploy('three', 3)).toBe('created');
  });
});
