// JavaScript's official client (@kubernetes/client-node) against `nodelet apiserver`: informers, watches, patches, apply,
// custom objects, leases, errors, and the streams of a kubelet that is a stand-in.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Duplex, PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import {
  ApiException,
  ApiextensionsV1Api,
  CoordinationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  Exec,
  Health,
  KubeConfig,
  KubernetesObjectApi,
  Log,
  makeInformer,
  PatchStrategy,
  PortForward,
  setHeaderOptions,
  type V1ConfigMap,
  V1MicroTime,
  type V1Pod,
  type V1Status,
  Watch,
} from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { execOk } from '../../../lib/exec.ts';
import { dataFrame, FrameReader, synReply } from '../../../lib/spdy-frames.ts';
import { ApiServerProcess, NODELET } from '../../support/api-server-process.ts';

const root = mkdtempSync(join(tmpdir(), 'nodelet-client-node-'));
const server = new ApiServerProcess(root);
const config = new KubeConfig();
const namespace = 'default';
let core: CoreV1Api;
let kubelet: Server;

const pod = (name: string, labels: Record<string, string> = {}): V1Pod => ({
  metadata: { name, labels },
  spec: { nodeName: 'n1', containers: [{ name: 'main', image: 'nginx', ports: [{ containerPort: 80 }] }] },
});
const map = (name: string, data: Record<string, string>): V1ConfigMap => ({ metadata: { name }, data });

/** What a call is refused with. */
async function refusal(call: Promise<unknown>): Promise<V1Status> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof ApiException)) throw error;
    const body: V1Status = typeof error.body === 'string' ? JSON.parse(error.body) : error.body;
    expect(body.code).toBe(error.code);
    return body;
  }
  throw new Error('it was accepted');
}

beforeAll(async () => {
  await server.start();
  config.loadFromFile(server.kubeconfig);
  core = config.makeApiClient(CoreV1Api);
  await core.createNamespacedServiceAccount({ namespace, body: { metadata: { name: 'default' } } });
  kubelet = await startKubelet();
});
afterAll(async () => {
  kubelet.closeAllConnections();
  kubelet.close();
  await server.stop();
  rmSync(root, { recursive: true });
});

// ---------------------------------------------------------------- a kubelet

/** Its log is two lines; exec returns what it reads in capitals, port-forward what it reads behind the port. */
async function startKubelet(): Promise<Server> {
  const [cert, key] = ['apiserver.crt', 'apiserver.key'].map((file) => readFileSync(join(root, 'pki', file)));
  const made = createServer({ cert, key });
  made.on('request', (request, response) => {
    const known = request.url?.startsWith('/containerLogs/default/web/main') === true;
    response.writeHead(known ? 200 : 404, { 'content-type': 'text/plain' }).end('line 1\nline 2\n');
  });
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => [...offered][0] ?? false });
  made.on('upgrade', (request, socket, head) => {
    if (request.headers.upgrade === 'SPDY/3.1') serveExec(socket);
    else sockets.handleUpgrade(request, socket, head, servePort);
  });
  await new Promise<void>((resolve) => made.listen(0, '127.0.0.1', resolve));
  const address = made.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  await core.createNode({ body: { metadata: { name: 'n1' } } });
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
  };
  await core.patchNodeStatus(
    { name: 'n1', body: { status } },
    setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch),
  );
  return made;
}

const bytesOf = (data: WebSocket.RawData): Buffer => (Buffer.isBuffer(data) ? data : Buffer.from(String(data)));

/** The streams of a command over SPDY, in the order in which they are opened: the status, stdin, stdout. */
function serveExec(socket: Duplex): void {
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
  const reader = new FrameReader();
  const streams: number[] = [];
  socket.on('data', (chunk: Buffer) => {
    for (const frame of reader.push(chunk)) {
      if (frame.kind === 'syn-stream') {
        streams.push(frame.stream);
        socket.write(synReply(frame.stream, frame.stream === 1));
      }
      const [status = 0, input, output = 0] = streams;
      if (frame.kind !== 'data' || frame.stream !== input) continue;
      socket.write(dataFrame(output, Buffer.from(frame.data.toString().toUpperCase()), frame.fin));
      if (frame.fin) socket.write(dataFrame(status, Buffer.from('{"metadata":{},"status":"Success"}'), true));
    }
  });
}

/** v4.channel.k8s.io: both channels of a port begin with its number. */
function servePort(connection: WebSocket): void {
  for (const channel of [0, 1]) connection.send(Buffer.from([channel, 80, 0]));
  connection.on('message', (data) => {
    const [, ...rest] = bytesOf(data);
    connection.send(Buffer.concat([Buffer.from([0]), Buffer.from(`80 got ${Buffer.from(rest).toString()}`)]));
  });
}

describe('streams', () => {
  beforeAll(async () => {
    await core.createNamespacedPod({ namespace, body: pod('web') });
  });

  it('logs come through, and a container that is not there is refused', async () => {
    const output = new PassThrough();
    await new Log(config).log(namespace, 'web', 'main', output, { tailLines: 2 });
    expect(await text(output)).toBe('line 1\nline 2\n');
    const none = new Log(config).log(namespace, 'web', 'other', new PassThrough(), {});
    await expect(none).rejects.toMatchObject({ code: 400 });
  });

  it('exec has standard input, output and the status', async () => {
    const [output, ended] = [new PassThrough(), Promise.withResolvers<V1Status>()];
    const input = Readable.from(['hello']);
    await new Exec(config).exec(namespace, 'web', 'main', ['cat'], output, null, input, false, ended.resolve);
    expect(await text(output)).toBe('HELLO');
    expect(await ended.promise).toMatchObject({ status: 'Success' });
  });

  it('port-forward goes both ways', async () => {
    const [output, input] = [new PassThrough(), new PassThrough()];
    const socket = await new PortForward(config).portForward(namespace, 'web', [80], output, null, input);
    input.write('ping');
    let seen = '';
    for await (const chunk of output) {
      seen += String(chunk);
      if (seen.length >= '80 got ping'.length) break;
    }
    expect(seen).toBe('80 got ping');
    if (typeof socket !== 'function') socket.close();
  });
});

describe('writes', () => {
  it.each([
    [PatchStrategy.JsonPatch, [{ op: 'replace', path: '/data/a', value: '2' }], { a: '2', b: '1' }],
    [PatchStrategy.MergePatch, { data: { a: '3', b: null } }, { a: '3' }],
    [PatchStrategy.StrategicMergePatch, { data: { c: '4' } }, { a: '1', b: '1', c: '4' }],
  ])('%s', async (type, body, data) => {
    const name = `patched-${String(type).length}`;
    await core.createNamespacedConfigMap({ namespace, body: map(name, { a: '1', b: '1' }) });
    const patched = await core.patchNamespacedConfigMap(
      { name, namespace, body },
      setHeaderOptions('Content-Type', type),
    );
    expect(patched.data).toEqual(data);
  });

  it('server-side apply: owners, a conflict with its causes, and force', async () => {
    const options = setHeaderOptions('Content-Type', PatchStrategy.ServerSideApply);
    const body = (value: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', ...map('applied', { key: value }) });
    const as = (fieldManager: string, value: string, force = false) =>
      core.patchNamespacedConfigMap({ name: 'applied', namespace, body: body(value), fieldManager, force }, options);
    await as('first', 'a');
    const conflict = await refusal(as('second', 'b'));
    expect(conflict).toMatchObject({ code: 409, reason: 'Conflict' });
    expect(conflict.details?.causes?.[0]).toMatchObject({ reason: 'FieldManagerConflict', field: '.data.key' });
    const { data, metadata } = await as('second', 'b', true);
    expect(data).toEqual({ key: 'b' });
    expect(metadata?.managedFields?.map(({ manager, operation }) => [manager, operation])).toEqual([
      ['second', 'Apply'],
    ]);
  });

  it('objects of any kind by what they say of themselves', async () => {
    const client = KubernetesObjectApi.makeApiClient(config);
    const about = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'any', namespace } };
    const labels = { app: 'any' };
    const template = { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'nginx' }] } };
    const created = await client.create({ ...about, spec: { selector: { matchLabels: labels }, template } });
    expect(created).toMatchObject({ spec: { replicas: 1 } });
    await client.patch(
      { ...about, spec: { replicas: 3 } },
      undefined,
      undefined,
      undefined,
      undefined,
      PatchStrategy.MergePatch,
    );
    expect(await client.read(about)).toMatchObject({ spec: { replicas: 3 } });
    expect((await client.list('apps/v1', 'Deployment', namespace)).items).toHaveLength(1);
    await client.delete(about);
    expect(await refusal(client.read(about))).toMatchObject({ code: 404, reason: 'NotFound' });
  });

  it('refusals are Statuses with their causes', async () => {
    const create = (body: V1Pod) => refusal(core.createNamespacedPod({ namespace, body }));
    await core.createNamespacedConfigMap({ namespace, body: map('twice', {}) });
    const twice = await refusal(core.createNamespacedConfigMap({ namespace, body: map('twice', {}) }));
    expect(twice).toMatchObject({ code: 409, reason: 'AlreadyExists', message: 'configmaps "twice" already exists' });
    const bad = await create({ metadata: { name: 'Bad' }, spec: { containers: [] } });
    expect(bad.details?.causes?.map(({ field }) => field)).toEqual(['metadata.name', 'spec.containers']);
    const unknownUser = new KubeConfig();
    const cluster = config.getCurrentCluster();
    if (cluster === null) throw new Error('no cluster');
    unknownUser.loadFromClusterAndUser(cluster, { name: 'unknown', token: 'none' });
    const list = unknownUser.makeApiClient(CoreV1Api).listNamespacedPod({ namespace });
    await expect(list).rejects.toMatchObject({ code: 401 });
    expect(await new Health(config).readyz({})).toBe(true);
  });

  it('one of two candidates gets a Lease', async () => {
    const leases = config.makeApiClient(CoordinationV1Api);
    const about = { name: 'leader', namespace };
    const spec = (holderIdentity: string) => {
      const now = new V1MicroTime();
      return {
        ...(holderIdentity === '' ? {} : { holderIdentity }),
        leaseDurationSeconds: 15,
        acquireTime: now,
        renewTime: now,
        leaseTransitions: 0,
      };
    };
    await leases.createNamespacedLease({ namespace, body: { metadata: about, spec: spec('') } });
    const seen = await leases.readNamespacedLease(about);
    const take = (who: string) => leases.replaceNamespacedLease({ ...about, body: { ...seen, spec: spec(who) } });
    const outcomes = await Promise.allSettled([take('a'), take('b')]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const { spec: taken } = await leases.readNamespacedLease(about);
    expect(taken?.holderIdentity).toBe(outcomes[0]?.status === 'fulfilled' ? 'a' : 'b');
    expect(String(taken?.renewTime)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  });
});

it('custom objects: definition, status, patches, selectors, deletion', async () => {
  const [definitions, objects] = [config.makeApiClient(ApiextensionsV1Api), config.makeApiClient(CustomObjectsApi)];
  const [group, version, plural] = ['example.com', 'v1', 'widgets'];
  const openAPIV3Schema = {
    type: 'object',
    properties: {
      spec: { type: 'object', properties: { size: { type: 'integer', _default: 1, maximum: 5 } }, _default: {} },
      status: { type: 'object', properties: { ready: { type: 'boolean' } } },
    },
  };
  const versions = [
    { name: version, served: true, storage: true, schema: { openAPIV3Schema }, subresources: { status: {} } },
  ];
  await definitions.createCustomResourceDefinition({
    body: {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.${group}` },
      spec: { group, scope: 'Namespaced', names: { plural, singular: 'widget', kind: 'Widget' }, versions },
    },
  });
  await vi.waitFor(async () => {
    const { status } = await definitions.readCustomResourceDefinition({ name: `${plural}.${group}` });
    expect(status?.conditions?.find(({ type }) => type === 'Established')?.status).toBe('True');
  });
  const at = { group, version, plural, namespace };
  const widget = { apiVersion: `${group}/${version}`, kind: 'Widget', metadata: { name: 'one', labels: { a: 'b' } } };
  expect(await objects.createNamespacedCustomObject({ ...at, body: widget })).toMatchObject({ spec: { size: 1 } });
  const big = objects.createNamespacedCustomObject({
    ...at,
    body: { ...widget, metadata: { name: 'two' }, spec: { size: 9 } },
  });
  expect((await refusal(big)).details?.causes?.[0]?.field).toBe('spec.size');
  const merge = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
  const one = { ...at, name: 'one' };
  await objects.patchNamespacedCustomObjectStatus(
    { ...one, body: { status: { ready: true }, spec: { size: 4 } } },
    merge,
  );
  expect(await objects.getNamespacedCustomObject(one)).toMatchObject({ spec: { size: 1 }, status: { ready: true } });
  const found = await objects.listNamespacedCustomObject({ ...at, labelSelector: 'a=b' });
  expect(found).toMatchObject({ kind: 'WidgetList', items: [{ metadata: { name: 'one' } }] });
  await objects.deleteNamespacedCustomObject(one);
  expect(await refusal(objects.getNamespacedCustomObject(one))).toMatchObject({ code: 404 });
});

it('a watch has its selectors, bookmarks and the initial events', async () => {
  const seen: string[] = [];
  await core.createNamespacedConfigMap({
    namespace,
    body: { ...map('w1', {}), metadata: { name: 'w1', labels: { w: 'y' } } },
  });
  const query = {
    labelSelector: 'w=y',
    allowWatchBookmarks: true,
    sendInitialEvents: true,
    resourceVersionMatch: 'NotOlderThan',
  };
  const running = await new Watch(config).watch(
    `/api/v1/namespaces/${namespace}/configmaps`,
    query,
    (type, object) => {
      // The bookmark of each minute has no annotations.
      if (type === 'BOOKMARK') seen.push(...Object.keys(object.metadata.annotations ?? {}));
      else seen.push(`${type} ${object.metadata.name}`);
    },
    () => undefined,
  );
  await vi.waitFor(() => expect(seen).toEqual(['ADDED w1', 'k8s.io/initial-events-end']));
  await core.createNamespacedConfigMap({ namespace, body: map('w2', {}) });
  await core.deleteNamespacedConfigMap({ name: 'w1', namespace });
  await vi.waitFor(() => expect(seen.slice(2)).toEqual(['DELETED w1']));
  running.abort();
});

describe('an informer', () => {
  const list = () => core.listNamespacedConfigMap({ namespace, labelSelector: 'informed=yes' });
  const make = (name: string, data: Record<string, string> = {}) =>
    core.createNamespacedConfigMap({ namespace, body: { metadata: { name, labels: { informed: 'yes' } }, data } });

  it('follows writes over a crash of the server, and lists again after 410', async () => {
    const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, list, 'informed=yes');
    const seen: string[] = [];
    for (const verb of ['add', 'update', 'delete'] as const) {
      informer.on(verb, (object) => seen.push(`${verb} ${object.metadata?.name}`));
    }
    let errors = 0;
    informer.on('error', () => errors++);
    /** As its users do after an error: again, once the server is there. */
    const again = async (count: number, ...flags: string[]): Promise<void> => {
      await vi.waitFor(() => expect(errors).toBe(count));
      await server.start(...flags);
    };
    await make('i1');
    await informer.start();
    await core.patchNamespacedConfigMap(
      { name: 'i1', namespace, body: { data: { a: 'b' } } },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    );
    await make('i2');
    await vi.waitFor(() => expect(seen).toEqual(['add i1', 'update i1', 'add i2']));
    const snapshot = join(root, 'snapshot.db');
    await execOk(NODELET, ['apiserver', 'snapshot', 'save', snapshot, '--kubeconfig', server.kubeconfig]);

    await server.stop('SIGKILL');
    await again(1);
    // Written before the informer is back: from its revision on, nothing is missing.
    await core.deleteNamespacedConfigMap({ name: 'i1', namespace });
    await informer.start();
    await vi.waitFor(() => expect(seen.slice(3)).toEqual(['delete i1']));

    await make('i3');
    await vi.waitFor(() => expect(seen.slice(4)).toEqual(['add i3']));
    await server.stop('SIGKILL');
    // Back to the snapshot: the revision that the informer knows is too old, and what it lists is what was there then.
    await again(2, '--restore', snapshot);
    await informer.start();
    await vi.waitFor(() => expect(seen.slice(5).sort()).toEqual(['add i1', 'delete i3']));
    expect(
      informer
        .list()
        .map(({ metadata }) => metadata?.name)
        .sort(),
    ).toEqual(['i1', 'i2']);
    await informer.stop();
  });
});
