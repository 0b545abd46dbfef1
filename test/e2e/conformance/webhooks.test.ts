// Admission webhooks as upstream's conformance tests use them: against a real HTTPS server, with configurations that come,
// change and go.

import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { at } from '../../support/api-server.ts';
import { type RecordedRequest, TestServer } from '../../support/https-server.ts';
import { makeCa } from '../../support/tls.ts';
import { Client, type Fields } from './client.ts';

let client: Client;
let hooks: TestServer;
let caBundle: string;
/** Reviews that are never answered. */
const unanswered: ServerResponse[] = [];

const toPatch = (...operations: object[]): object => ({
  ...{ allowed: true, patchType: 'JSONPatch' },
  patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
});
const add = (path: string, value: unknown): object => ({ op: 'add', path, value });

/** What the webhook of each path decides. */
const DECISIONS: Readonly<Record<string, (request: unknown) => object>> = {
  '/deny': () => ({ allowed: false, status: { message: 'this webhook denies all requests' } }),
  '/deny-offending': (request) => {
    const data = at(request, 'object', 'data') ?? at(request, 'oldObject', 'data') ?? {};
    const offends =
      at(data, 'webhook-e2e-test') === 'webhook-disallow' ||
      at(request, 'object', 'metadata', 'name') === 'disallowed-pod';
    return { allowed: !offends, status: { message: 'the object contains unwanted content' } };
  },
  '/add-first': (request) =>
    at(request, 'object', 'data', 'mutation-start') === undefined
      ? { allowed: true }
      : toPatch(add('/data/mutation-stage-1', 'yes')),
  '/add-second': (request) =>
    at(request, 'object', 'data', 'mutation-stage-1') === undefined
      ? { allowed: true }
      : toPatch(add('/data/mutation-stage-2', 'yes')),
  '/add-init-container': () =>
    toPatch(
      add('/spec/initContainers', [
        { image: 'webhook-added-image', name: 'webhook-added-init-container', resources: {} },
      ]),
    ),
  '/add-label': () => toPatch(add('/metadata/labels', { mutated: 'yes' })),
};

function answer({ body, url }: RecordedRequest, response: ServerResponse): void {
  const request = at(JSON.parse(body), 'request');
  const decide = DECISIONS[url.pathname];
  if (decide === undefined) {
    unanswered.push(response);
    return;
  }
  response.setHeader('content-type', 'application/json');
  const reply = { uid: at(request, 'uid'), ...decide(request) };
  response.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: reply }));
}

beforeAll(async () => {
  const ca = await makeCa();
  caBundle = Buffer.from(ca.cert).toString('base64');
  hooks = await TestServer.start(await ca.server(['127.0.0.1']), ca.cert, answer);
  // Node's five seconds may be over just when a connection is used again.
  hooks.server.keepAliveTimeout = 0;
  client = await Client.start();
});
afterAll(async () => {
  await client.stop();
  await hooks[Symbol.asyncDispose]();
});

const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1';
type Kind = 'Mutating' | 'Validating';
const placeOf = (kind: Kind): string => `${CONFIGURATIONS}/${kind.toLowerCase()}webhookconfigurations`;
const RULE = { operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] };

/** A webhook that concerns one namespace, at the path. */
const hook = (namespace: string, path: string, rule: Fields = {}, more: Fields = {}): Fields => ({
  name: `${path.replaceAll('/', '')}.example.com`,
  clientConfig: { url: `${hooks.url}${path}`, caBundle },
  rules: [{ ...RULE, ...rule }],
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
  // As long as may be: for giving up only.
  ...{ sideEffects: 'None', admissionReviewVersions: ['v1'], timeoutSeconds: 30 },
  ...more,
});
const configuration = (kind: Kind, name: string, webhooks: readonly Fields[], labels: Fields = {}): object => ({
  ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: `${kind}WebhookConfiguration`, metadata: { name, labels } },
  webhooks,
});
async function configure(kind: Kind, name: string, ...webhooks: Fields[]): Promise<string> {
  await client.create(placeOf(kind), configuration(kind, name, webhooks));
  return `${placeOf(kind)}/${name}`;
}
const mapsOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`;
const configMap = (name: string, data: object = {}): object => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data },
});
const pod = (name: string): object => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name } },
  spec: { containers: [{ name: 'c', image: 'image' }] },
});
const messageOf = async (method: string, path: string, body?: unknown): Promise<string> =>
  String(at((await client.send(method, path, body)).json, 'message'));
const DENIED = 'denied the request: this webhook denies all requests';

describe.each(['Mutating', 'Validating'] as const)('%s webhooks', (kind) => {
  const path = kind === 'Mutating' ? '/add-label' : '/deny';
  /** Whether the webhook has had a say about a new object. */
  const acts = async (maps: string, name: string): Promise<boolean> => {
    const { code, json } = await client.send('POST', maps, configMap(name));
    return kind === 'Mutating' ? at(json, 'metadata', 'labels', 'mutated') === 'yes' : code === 400;
  };

  it('are listed by their labels, act, and act no longer once they are deleted as a collection', async () => {
    const namespace = await client.namespace(`hooks-list-${kind.toLowerCase()}`);
    for (let index = 0; index < 10; index++) {
      const body = configuration(kind, `${namespace}-${index}`, [hook(namespace, path)], { list: namespace });
      await client.create(placeOf(kind), body);
    }
    const selected = `${placeOf(kind)}?labelSelector=list%3D${namespace}`;
    expect((await client.names(selected)).length).toBe(10);
    expect(await acts(mapsOf(namespace), 'before')).toBe(true);
    await client.delete(selected);
    expect(await client.names(selected)).toEqual([]);
    expect(await acts(mapsOf(namespace), 'after')).toBe(false);
  });

  it('do what their configuration says after it is updated and patched', async () => {
    const namespace = await client.namespace(`hooks-update-${kind.toLowerCase()}`);
    const stored = await configure(kind, namespace, hook(namespace, path, { operations: ['CREATE'] }));
    expect(await acts(mapsOf(namespace), 'created')).toBe(true);
    const current = await client.get(stored);
    const webhooks = [hook(namespace, path, { operations: ['DELETE'] })];
    if (kind === 'Validating') webhooks[0] = hook(namespace, path, { operations: ['UPDATE'] });
    await client.update(stored, { ...Object(current), webhooks });
    expect(await acts(mapsOf(namespace), 'updated')).toBe(false);
    await client.patch(stored, [{ op: 'replace', path: '/webhooks/0/rules/0/operations', value: ['CREATE'] }], 'json');
    expect(await acts(mapsOf(namespace), 'patched')).toBe(true);
    await client.delete(stored);
  });

  it('have match conditions that are stored and changed, refused where they do not compile, and decide who is reviewed', async () => {
    const namespace = await client.namespace(`hooks-match-${kind.toLowerCase()}`);
    const matchConditions = [{ name: 'expression-1', expression: 'object.metadata.name != "skip-me"' }];
    const stored = await configure(kind, namespace, hook(namespace, path, {}, { matchConditions }));
    expect(at(await client.get(stored), 'webhooks', 0, 'matchConditions')).toEqual(matchConditions);
    expect(await acts(mapsOf(namespace), 'skip-me')).toBe(false);
    expect(await acts(mapsOf(namespace), 'dont-skip-me')).toBe(true);
    const more = [...matchConditions, { name: 'expression-2', expression: 'true' }];
    await client.patch(stored, [{ op: 'replace', path: '/webhooks/0/matchConditions', value: more }], 'json');
    expect(at(await client.get(stored), 'webhooks', 0, 'matchConditions')).toEqual(more);
    await client.delete(stored);
    const invalid = [
      hook(namespace, path, {}, { matchConditions: [{ name: 'invalid', expression: '... [] bad expression' }] }),
    ];
    expect(await messageOf('POST', placeOf(kind), configuration(kind, 'invalid', invalid))).toContain(
      'compilation failed',
    );
  });

  it('have no say about configurations of webhooks', async () => {
    const namespace = await client.namespace(`hooks-self-${kind.toLowerCase()}`);
    const rule = { apiGroups: ['admissionregistration.k8s.io'], apiVersions: ['*'], resources: ['*'] };
    const everywhere = { namespaceSelector: {} };
    const stored = await configure(kind, namespace, hook(namespace, path, rule, everywhere));
    const dummy = await configure(kind, `${namespace}-dummy`, hook(namespace, '/add-label', {}));
    expect(at(await client.get(dummy), 'metadata', 'labels', 'mutated')).toBeUndefined();
    await client.delete(dummy);
    await client.delete(stored);
  });
});

describe('a webhook', () => {
  it('is in discovery', async () => {
    expect(at(await client.get('/apis'), 'groups')).toContainEqual(
      expect.objectContaining({ name: 'admissionregistration.k8s.io' }),
    );
    const resources = at(await client.get(CONFIGURATIONS), 'resources');
    for (const kind of ['Mutating', 'Validating'] as const) {
      const name = `${kind.toLowerCase()}webhookconfigurations`;
      expect(resources).toContainEqual(expect.objectContaining({ name, kind: `${kind}WebhookConfiguration` }));
    }
  });

  it('denies pods and config maps, their updates and patches too, and none of a namespace that it does not select', async () => {
    const namespace = await client.namespace('hooks-deny');
    const other = await client.namespace('hooks-exempt');
    const stored = await configure(
      'Validating',
      namespace,
      hook(namespace, '/deny-offending', { resources: ['pods', 'configmaps'] }),
    );
    const text = 'denied the request: the object contains unwanted content';
    const bad = configMap('bad', { 'webhook-e2e-test': 'webhook-disallow' });
    expect(await messageOf('POST', mapsOf(namespace), bad)).toContain(text);
    expect(await messageOf('POST', `/api/v1/namespaces/${namespace}/pods`, pod('disallowed-pod'))).toContain(text);
    const good = configMap('good', { 'webhook-e2e-test': 'webhook-allow' });
    const created = await client.create(mapsOf(namespace), good);
    const changed = { ...Object(created), data: { 'webhook-e2e-test': 'webhook-disallow' } };
    expect(await messageOf('PUT', `${mapsOf(namespace)}/good`, changed)).toContain(text);
    const patch = { data: { 'webhook-e2e-test': 'webhook-disallow' } };
    await expect(client.patch(`${mapsOf(namespace)}/good`, patch)).rejects.toThrow(text);
    await client.create(mapsOf(other), bad);
    await client.delete(stored);
  });

  it('denies attaching to a pod', async () => {
    const namespace = await client.namespace('hooks-attach');
    const rule = { operations: ['CONNECT'], resources: ['pods/attach'] };
    const stored = await configure('Validating', namespace, hook(namespace, '/deny', rule));
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    await client.create(pods, pod('attached'));
    expect(await messageOf('POST', `${pods}/attached/attach?stdout=true`)).toContain(DENIED);
    await client.delete(stored);
  });

  it('denies definitions of custom resources', async () => {
    const rule = {
      operations: ['CREATE'],
      apiGroups: ['apiextensions.k8s.io'],
      resources: ['customresourcedefinitions'],
    };
    const objectSelector = { matchLabels: { 'crd-webhook': 'deny' } };
    const more = { namespaceSelector: {}, objectSelector };
    const stored = await configure('Validating', 'hooks-crd', hook('none', '/deny', rule, more));
    const body = {
      ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
      metadata: { name: 'denied.hooks.example.com', labels: objectSelector.matchLabels },
      spec: {
        ...{ group: 'hooks.example.com', scope: 'Cluster', names: { plural: 'denied', kind: 'Denied' } },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    };
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    expect(await messageOf('POST', path, body)).toContain(DENIED);
    await client.delete(stored);
  });

  it('of custom resources denies their creation, update and deletion, and mutates them up to their schema', async () => {
    const namespace = await client.namespace('hooks-custom');
    const group = 'custom-hooks.example.com';
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const data = {
      type: 'object',
      properties: { 'mutation-start': { type: 'string' }, 'mutation-stage-1': { type: 'string' } },
    };
    const openAPIV3Schema = { type: 'object', properties: { data } };
    const version = (name: string, storage: boolean): Fields => ({
      name,
      storage,
      served: true,
      schema: { openAPIV3Schema },
    });
    await client.create(definitions, {
      ...{
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: `foos.${group}` },
      },
      spec: {
        ...{ group, scope: 'Namespaced', names: { plural: 'foos', kind: 'Foo' } },
        versions: [version('v1', true), version('v2', false)],
      },
    });
    const foos = `/apis/${group}/v1/namespaces/${namespace}/foos`;
    await expect.poll(async () => (await client.send('GET', foos)).code).toBe(200);
    const foo = (name: string, fields: object): object => ({
      apiVersion: `${group}/v1`,
      kind: 'Foo',
      metadata: { name },
      data: fields,
    });
    const rule = { apiGroups: [group], apiVersions: ['*'], resources: ['foos'] };
    const mutating = await configure(
      'Mutating',
      namespace,
      ...['/add-first', '/add-second'].map((path) =>
        hook(namespace, path, { ...rule, operations: ['CREATE', 'UPDATE'] }),
      ),
    );
    const created = await client.create(foos, foo('one', { 'mutation-start': 'yes' }));
    // The second stage is not in the schema.
    expect(at(created, 'data')).toEqual({ 'mutation-start': 'yes', 'mutation-stage-1': 'yes' });
    await client.patch(`${definitions}/foos.${group}`, {
      spec: { versions: [version('v1', false), version('v2', true)] },
    });
    expect(at(await client.patch(`${foos}/one`, { data: { 'mutation-stage-1': 'patched' } }), 'data')).toMatchObject({
      'mutation-stage-1': 'yes',
    });
    await client.delete(mutating);
    const denying = await configure('Validating', namespace, hook(namespace, '/deny', rule));
    expect(await messageOf('POST', foos, foo('two', {}))).toContain(DENIED);
    expect(await messageOf('PUT', `${foos}/one`, await client.get(`${foos}/one`))).toContain(DENIED);
    expect(await messageOf('DELETE', `${foos}/one`)).toContain(DENIED);
    await client.delete(denying);
    await client.delete(`${foos}/one`);
  });

  it('mutates config maps in turn, and pods, which get defaults after it', async () => {
    const namespace = await client.namespace('hooks-mutate');
    const stored = await configure(
      'Mutating',
      namespace,
      hook(namespace, '/add-first', { operations: ['CREATE'] }),
      hook(namespace, '/add-second', { operations: ['CREATE'] }),
      hook(namespace, '/add-init-container', { operations: ['CREATE'], resources: ['pods'] }),
    );
    const created = await client.create(mapsOf(namespace), configMap('mutated', { 'mutation-start': 'yes' }));
    expect(at(created, 'data')).toEqual({
      'mutation-start': 'yes',
      'mutation-stage-1': 'yes',
      'mutation-stage-2': 'yes',
    });
    const mutated = await client.create(`/api/v1/namespaces/${namespace}/pods`, pod('mutated'));
    expect(at(mutated, 'spec', 'initContainers')).toEqual([
      expect.objectContaining({ name: 'webhook-added-init-container', terminationMessagePolicy: 'File' }),
    ]);
    await client.delete(stored);
  });

  it('that does not answer in its time, or cannot be called, fails the request or not, as its policy says', async () => {
    const namespace = await client.namespace('hooks-late');
    const attempt = async (name: string, ...webhooks: Fields[]): Promise<string> => {
      const stored = await configure('Validating', `${namespace}-${name}`, ...webhooks);
      const { code, json } = await client.send('POST', mapsOf(namespace), configMap(name));
      await client.delete(stored);
      return code === 201 ? 'created' : String(at(json, 'message'));
    };
    const late = (failurePolicy: string): Fields => hook(namespace, '/never', {}, { failurePolicy, timeoutSeconds: 1 });
    expect(await attempt('late', late('Fail'))).toMatch(/context deadline exceeded/);
    expect(await attempt('late-ignored', late('Ignore'))).toBe('created');
    const closed = (failurePolicy: string): Fields =>
      hook(namespace, '/deny', {}, { failurePolicy, clientConfig: { url: `${hooks.url}/deny` } });
    expect(await attempt('closed', closed('Fail'))).toContain('failed calling webhook "deny.example.com"');
    expect(await attempt('closed-ignored', closed('Ignore'))).toBe('created');
    for (const response of unanswered.splice(0)) response.destroy();
  });
});
