// Admission webhooks against a real HTTPS server: who is called with what, what patches, refusals, warnings and failures do.

import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebhookClient } from '../../../../apiserver/admission/webhooks/client.ts';
import { systemClock } from '../../../../lib/clock.ts';
import { type Answer, at, TestApiServer } from '../../../support/api-server.ts';
import { type RecordedRequest, TestServer } from '../../../support/https-server.ts';
import { makeCa } from '../../../support/tls.ts';
import { lookupOf } from '../kinds/support.ts';

type Review = (request: unknown, path: string) => object | undefined;

let stand: TestApiServer;
let hooks: TestServer;
let caBundle: string;
/** How the webhooks answer; undefined: not at all. */
let review: Review = () => ({ allowed: true });

const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1';
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';

function answer({ body, url }: RecordedRequest, response: ServerResponse): void {
  const request = at(JSON.parse(body), 'request');
  const result = review(request, url.pathname);
  if (result === undefined) return;
  response.setHeader('content-type', 'application/json');
  const reply = { uid: at(request, 'uid'), ...result };
  response.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: reply }));
}

beforeAll(async () => {
  const ca = await makeCa();
  caBundle = Buffer.from(ca.cert).toString('base64');
  hooks = await TestServer.start(await ca.server(['127.0.0.1', 'hook.default.svc']), ca.cert, answer);
  stand = await TestApiServer.start();
});
afterAll(async () => {
  await stand.stop();
  await hooks[Symbol.asyncDispose]();
});
afterEach(async () => {
  for (const plural of ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations']) {
    await stand.admit('DELETE', `${CONFIGURATIONS}/${plural}`);
  }
  hooks.requests.length = 0;
  review = () => ({ allowed: true });
});

interface Hook {
  readonly [field: string]: unknown;
}

/** A webhook for configmaps at /<name>. */
const hook = (name: string, more: Hook = {}): Hook => ({
  name: `${name}.example.org`,
  clientConfig: { url: `${hooks.url}/${name}`, caBundle },
  rules: [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
  ...more,
});

function configure(kind: 'Mutating' | 'Validating', ...webhooks: Hook[]): Promise<Answer> {
  const path = `${CONFIGURATIONS}/${kind.toLowerCase()}webhookconfigurations`;
  const body = {
    kind: `${kind}WebhookConfiguration`,
    apiVersion: 'admissionregistration.k8s.io/v1',
    metadata: { name: 'hooks' },
    webhooks,
  };
  return stand.call({ method: 'POST', path, body, as: stand.admin });
}

let count = 0;
const configMap = (more: object = {}): object => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { name: `map-${count++}` },
  ...more,
});
const create = (body: object = configMap(), query = ''): Promise<Answer> =>
  stand.call({ method: 'POST', path: `${CONFIG_MAPS}${query}`, body, as: stand.admin });
const message = ({ json }: Answer): unknown => at(json, 'message');
const patch = (...operations: object[]): object => ({
  allowed: true,
  patchType: 'JSONPatch',
  patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
});
const set = (key: string, value: string): object => ({ op: 'add', path: `/data/${key}`, value });
const called = (): string[] => hooks.requests.map(({ url }) => url.pathname.slice(1));

describe('a validating webhook', () => {
  it('gets the whole request', async () => {
    await configure('Validating', hook('v', { timeoutSeconds: 7 }));
    const requests: unknown[] = [];
    review = (request) => {
      requests.push(request);
      return { allowed: true };
    };
    const made = await create(configMap({ data: { a: '1' } }), '?dryRun=All');
    expect(made.code).toBe(201);
    expect(requests).toEqual([
      {
        uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
        kind: { group: '', version: 'v1', kind: 'ConfigMap' },
        resource: { group: '', version: 'v1', resource: 'configmaps' },
        requestKind: { group: '', version: 'v1', kind: 'ConfigMap' },
        requestResource: { group: '', version: 'v1', resource: 'configmaps' },
        name: at(made.json, 'metadata', 'name'),
        namespace: 'default',
        operation: 'CREATE',
        userInfo: expect.objectContaining({ username: 'kubernetes-admin' }),
        object: expect.objectContaining({ kind: 'ConfigMap', data: { a: '1' } }),
        oldObject: null,
        dryRun: true,
        options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1', dryRun: ['All'] },
      },
    ]);
    expect(hooks.requests[0]?.url.search).toBe('?timeout=7s');
  });

  it.each<[object, number, string]>([
    [{}, 400, 'admission webhook "v.example.org" denied the request without explanation'],
    [{ status: { message: 'no' } }, 400, 'admission webhook "v.example.org" denied the request: no'],
    [
      { status: { reason: 'Forbidden', code: 403 } },
      403,
      'admission webhook "v.example.org" denied the request: Forbidden',
    ],
    [{ status: { message: 'no', code: 200 } }, 400, 'admission webhook "v.example.org" denied the request: no'],
  ])('refuses with %j', async (response, code, text) => {
    await configure('Validating', hook('v'));
    review = () => ({ allowed: false, ...response });
    const refused = await create();
    expect([refused.code, message(refused)]).toEqual([code, text]);
  });

  it('sees updates and deletions with what was there, and its warnings are shown', async () => {
    const made = await create(configMap({ data: { a: '1' } }));
    const path = `${CONFIG_MAPS}/${String(at(made.json, 'metadata', 'name'))}`;
    await configure('Validating', hook('v'));
    const seen: unknown[] = [];
    review = (request) => {
      seen.push([at(request, 'operation'), at(request, 'oldObject', 'data', 'a'), at(request, 'object', 'data', 'a')]);
      return { allowed: true, warnings: ['careful'] };
    };
    const headers = { 'content-type': 'application/merge-patch+json' };
    const changed = await stand.call({ method: 'PATCH', path, body: { data: { a: '2' } }, as: stand.admin, headers });
    expect([changed.code, changed.warnings]).toEqual([200, ['299 - "careful"']]);
    await stand.admit('DELETE', path);
    expect(seen).toEqual([
      ['UPDATE', '1', '2'],
      ['DELETE', '2', undefined],
    ]);
  });

  it('is called only where its rules and selectors match', async () => {
    const rules = (more: object): Hook => ({
      rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['*'], ...more }],
    });
    await configure(
      'Validating',
      hook('deletions', rules({ operations: ['DELETE'] })),
      hook('other-group', rules({ apiGroups: ['apps'] })),
      hook('cluster', rules({ scope: 'Cluster' })),
      hook('subresources', rules({ resources: ['configmaps/status'] })),
      hook('labels', { objectSelector: { matchLabels: { app: 'web' } } }),
      hook('namespaces', {
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['default'] }],
        },
      }),
      hook('elsewhere', { namespaceSelector: { matchLabels: { team: 'a' } } }),
      hook('all', rules({ scope: 'Namespaced', resources: ['*/*'] })),
    );
    await create();
    expect(called().sort()).toEqual(['all', 'namespaces']);
    hooks.requests.length = 0;
    await create(configMap({ metadata: { name: 'labelled', labels: { app: 'web' } } }));
    expect(called().sort()).toEqual(['all', 'labels', 'namespaces']);
  });

  it('is called only where its match conditions hold', async () => {
    const when = (expression: string, more: Hook = {}): Hook => ({
      matchConditions: [{ name: 'when', expression }],
      ...more,
    });
    await configure(
      'Validating',
      hook('creations', when("request.operation == 'CREATE' && oldObject == null")),
      hook('others', when("object.metadata.name == 'other'")),
      hook('errors', when("object.data.none == 'x'", { failurePolicy: 'Ignore' })),
    );
    expect((await create()).code).toBe(201);
    expect(called()).toEqual(['creations']);
    await stand.admit('DELETE', `${CONFIGURATIONS}/validatingwebhookconfigurations`);
    await configure('Validating', hook('errors', when("object.data.none == 'x'")));
    const refused = await create();
    expect(refused.code).toBe(403);
    expect(message(refused)).toContain("expression 'object.data.none == 'x'' resulted in error: no such key: ");
  });

  it.each<[string, string]>([
    ['no-such-uid', 'expected response.uid='],
    ['patch', 'validating webhook may not return response.patch'],
  ])('that answers wrongly (%s) has failed', async (how, why) => {
    await configure('Validating', hook('v'));
    review = () => (how === 'patch' ? patch(set('a', 'b')) : { uid: 'other', allowed: true });
    const failed = await create();
    expect(failed.code).toBe(500);
    expect(message(failed)).toContain(
      'Internal error occurred: failed calling webhook "v.example.org": received invalid webhook response: ',
    );
    expect(message(failed)).toContain(why);
  });

  it('that cannot be called fails the request, or not, as its policy says', async () => {
    const nowhere = { url: 'https://127.0.0.1:1/x', caBundle };
    await configure('Validating', hook('v', { clientConfig: nowhere }));
    const failed = await create();
    expect(failed.code).toBe(500);
    expect(message(failed)).toContain(
      'failed calling webhook "v.example.org": failed to call webhook: Post "https://127.0.0.1:1/x?timeout=10s": ',
    );
    await stand.admit('DELETE', `${CONFIGURATIONS}/validatingwebhookconfigurations`);
    await configure('Validating', hook('v', { clientConfig: nowhere, failurePolicy: 'Ignore' }));
    expect((await create()).code).toBe(201);
  });

  it('that does not answer is given up after its time', async () => {
    await configure('Validating', hook('v', { timeoutSeconds: 3 }));
    const arrived = Promise.withResolvers<void>();
    review = () => {
      arrived.resolve();
      return undefined;
    };
    const pending = create();
    await arrived.promise;
    stand.clock.elapse(3000);
    expect(message(await pending)).toContain('context deadline exceeded');
  });

  it('needs a certificate of its bundle', async () => {
    const other = await makeCa('other');
    const clientConfig = { url: hooks.url, caBundle: Buffer.from(other.cert).toString('base64') };
    await configure('Validating', hook('v', { clientConfig }));
    expect((await create()).code).toBe(500);
    expect(hooks.requests).toEqual([]);
  });

  it('does not decide about webhooks', async () => {
    const everything = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] };
    await configure('Validating', hook('v', { rules: [everything] }));
    review = () => ({ allowed: false });
    expect((await create()).code).toBe(400);
    await stand.admit('DELETE', `${CONFIGURATIONS}/validatingwebhookconfigurations/hooks`);
    expect((await create()).code).toBe(201);
  });
});

describe('a mutating webhook', () => {
  it('changes the object, which is decoded and defaulted anew', async () => {
    await configure('Mutating', hook('m'));
    review = () => patch({ op: 'add', path: '/data', value: { a: 'b' } }, { op: 'add', path: '/nonsense', value: 1 });
    const made = await create();
    expect([at(made.json, 'data'), at(made.json, 'nonsense')]).toEqual([{ a: 'b' }, undefined]);
  });

  it('sees what those before it did, and validating ones see all of it', async () => {
    await configure('Mutating', hook('first'), hook('second'));
    await configure('Validating', hook('last'));
    const seen: string[] = [];
    review = (request, path) => {
      seen.push(`${path} ${JSON.stringify(at(request, 'object', 'data'))}`);
      return path === '/last' ? { allowed: true } : patch(set(path.slice(1), 'x'));
    };
    await create(configMap({ data: { a: '1' } }));
    expect(seen).toEqual([
      '/first {"a":"1"}',
      '/second {"a":"1","first":"x"}',
      '/last {"a":"1","first":"x","second":"x"}',
    ]);
  });

  it('is called again when it asks for it and another has changed the object since', async () => {
    await configure('Mutating', hook('first', { reinvocationPolicy: 'IfNeeded' }), hook('second'));
    review = (_request, path) => patch(set(path.slice(1), 'x'));
    await create(configMap({ data: { a: '1' } }));
    expect(called()).toEqual(['first', 'second', 'first']);
  });

  it('sees and changes an object in the version that its rule names', async () => {
    const autoscalers = (version: string): string =>
      `/apis/autoscaling/${version}/namespaces/default/horizontalpodautoscalers`;
    const rules = [
      {
        operations: ['CREATE'],
        apiGroups: ['autoscaling'],
        apiVersions: ['v1'],
        resources: ['horizontalpodautoscalers'],
      },
    ];
    await configure('Mutating', hook('v1', { rules }), hook('exact', { rules, matchPolicy: 'Exact' }));
    const seen: unknown[] = [];
    review = (request) => {
      seen.push([
        at(request, 'object', 'apiVersion'),
        at(request, 'object', 'spec', 'targetCPUUtilizationPercentage'),
        at(request, 'resource', 'version'),
        at(request, 'requestResource', 'version'),
      ]);
      return patch({ op: 'replace', path: '/spec/targetCPUUtilizationPercentage', value: 70 });
    };
    const target = { type: 'Utilization', averageUtilization: 50 };
    const made = await stand.admit('POST', autoscalers('v2'), {
      kind: 'HorizontalPodAutoscaler',
      apiVersion: 'autoscaling/v2',
      metadata: { name: 'web' },
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
        maxReplicas: 3,
        metrics: [{ type: 'Resource', resource: { name: 'cpu', target } }],
      },
    });
    expect(seen).toEqual([['autoscaling/v1', 50, 'v1', 'v2']]);
    expect(at(made, 'spec', 'metrics', 0, 'resource', 'target', 'averageUtilization')).toBe(70);
  });

  it('whose patch does not apply has failed', async () => {
    await configure('Mutating', hook('m', { failurePolicy: 'Ignore' }));
    review = () => patch({ op: 'remove', path: '/data/none' });
    expect((await create()).code).toBe(500);
  });

  it('cannot be called in a dry run when that has effects', async () => {
    await configure('Mutating', hook('m', { sideEffects: 'NoneOnDryRun' }));
    expect((await create(configMap(), '?dryRun=All')).code).toBe(201);
    expect(called()).toEqual(['m']);
  });

  it('gets defaults', async () => {
    const { json } = await configure('Mutating', hook('m'));
    expect(at(json, 'webhooks', 0)).toMatchObject({
      failurePolicy: 'Fail',
      matchPolicy: 'Equivalent',
      namespaceSelector: {},
      objectSelector: {},
      reinvocationPolicy: 'Never',
      timeoutSeconds: 10,
      rules: [{ scope: '*' }],
    });
  });
});

describe('a configuration', () => {
  it.each<[Hook, string]>([
    [
      { name: 'short' },
      'webhooks[0].name: Invalid value: "short": should be a domain with at least three segments separated by dots',
    ],
    [{ sideEffects: undefined }, 'webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun'],
    [
      { sideEffects: 'Some' },
      'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
    ],
    [
      { timeoutSeconds: 31 },
      'webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds',
    ],
    [
      { admissionReviewVersions: ['v2'] },
      'webhooks[0].admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1',
    ],
    [{ clientConfig: {} }, 'webhooks[0].clientConfig: Required value: exactly one of url or service is required'],
    [
      { clientConfig: { url: 'http://a' } },
      'webhooks[0].clientConfig.url: Invalid value: "http": \'https\' is the only allowed URL scheme; desired format: https://host[/path]',
    ],
    [
      { clientConfig: { service: { name: 'a', namespace: 'b', path: '/a//b' } } },
      'webhooks[0].clientConfig.service.path: Invalid value: "/a//b": segment[1] may not be empty',
    ],
    [
      { rules: [{ operations: ['*', 'CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }] },
      'webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify other operations',
    ],
    [
      { matchConditions: [{ name: 'a', expression: '1 + 1' }] },
      'webhooks[0].matchConditions[0].expression: Invalid value: "1 + 1": must evaluate to bool but got int',
    ],
  ])('with %j is refused', async (more, why) => {
    const refused = await configure('Validating', hook('v', more));
    expect([refused.code, message(refused)]).toEqual([
      422,
      `ValidatingWebhookConfiguration.admissionregistration.k8s.io "hooks" is invalid: ${why}`,
    ]);
  });
});

describe('a webhook behind a service', () => {
  it('is called at an endpoint of it, under the service’s name', async () => {
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'hook', namespace: 'default' },
      spec: { ports: [{ name: 'https', port: 443 }] },
    };
    const slice = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'hook-1', namespace: 'default', labels: { 'kubernetes.io/service-name': 'hook' } },
      ports: [{ name: 'https', port: hooks.port }],
      endpoints: [
        { addresses: ['127.0.0.1'], conditions: { ready: true } },
        { addresses: ['192.0.2.1'], conditions: { ready: false } },
      ],
    };
    const clientConfig = { service: { name: 'hook', namespace: 'default', path: '/in', port: 443 }, caBundle };
    const client = new WebhookClient(systemClock);
    const call = (...objects: Parameters<typeof lookupOf>): Promise<unknown> =>
      client.call({ clientConfig }, { request: { uid: '1' } }, lookupOf(...objects));
    const stored = { group: '', plural: 'services', object: service };
    const answered = await call(stored, { group: 'discovery.k8s.io', plural: 'endpointslices', object: slice });
    expect(at(answered, 'response', 'allowed')).toBe(true);
    expect(called()).toEqual(['in']);
    const post = 'Post "https://hook.default.svc:443/in?timeout=10s": ';
    await expect(call(stored)).rejects.toThrow(`${post}no endpoints available for service "hook"`);
    await expect(call()).rejects.toThrow(`${post}service "hook" not found`);
  });
});
