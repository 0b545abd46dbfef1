// Who gets in, over TLS: the attacks of a stolen node certificate, impersonated requests, and credentials of
// what is gone.

import { createServer, type Server } from 'node:https';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { at, type Call, type Credentials, TestApiServer } from '../../../support/api-server.ts';

const MARKER = 'the-secret-value';
let stand: TestApiServer;
let n1: Credentials;
let n2: Credentials;

const NS = '/api/v1/namespaces/default';
const pod = (name: string, nodeName: string, spec: object = {}, metadata: object = {}): object => ({
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: { name, ...metadata },
  spec: { nodeName, containers: [{ name: 'c', image: 'x:1' }], ...spec },
});

beforeAll(async () => {
  stand = await TestApiServer.start();
  [n1, n2] = [await stand.node('n1'), await stand.node('n2')];
  await stand.admit('POST', `${NS}/serviceaccounts`, {
    kind: 'ServiceAccount',
    apiVersion: 'v1',
    metadata: { name: 'default' },
  });
  await stand.admit('POST', `${NS}/secrets`, {
    kind: 'Secret',
    apiVersion: 'v1',
    metadata: { name: 'hidden' },
    data: { key: Buffer.from(MARKER).toString('base64') },
  });
  for (const as of [n1, n2]) {
    const name = as === n1 ? 'n1' : 'n2';
    const node = { kind: 'Node', apiVersion: 'v1', metadata: { name } };
    expect((await stand.call({ method: 'POST', path: '/api/v1/nodes', as, body: node })).code).toBe(201);
  }
  await stand.admit(
    'POST',
    `${NS}/pods`,
    pod('theirs', 'n2', { volumes: [{ name: 's', secret: { secretName: 'hidden' } }] }),
  );
  await stand.admit('POST', `${NS}/pods`, pod('mine', 'n1'));
});
afterAll(() => stand.stop());

const code = async (call: Call): Promise<number> => (await stand.call(call)).code;

describe('a stolen node certificate', () => {
  it('reads no Secret by way of a mirror pod that names it', async () => {
    const node = await stand.admit('GET', '/api/v1/nodes/n1');
    const owner = { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: at(node, 'metadata', 'uid'), controller: true };
    const mirror = (spec: object) =>
      pod('mirror', 'n1', spec, { annotations: { 'kubernetes.io/config.mirror': 'x' }, ownerReferences: [owner] });
    const ways: object[] = [
      { containers: [{ name: 'c', image: 'x:1', envFrom: [{ secretRef: { name: 'hidden' } }] }] },
      { imagePullSecrets: [{ name: 'hidden' }] },
      { volumes: [{ name: 'v', projected: { sources: [{ secret: { name: 'hidden' } }] } }] },
    ];
    for (const way of ways) {
      const answer = await stand.call({ method: 'POST', path: `${NS}/pods`, as: n1, body: mirror(way) });
      expect(answer.text).toContain('a mirror pod may not reference secrets');
      expect(answer.code).toBe(403);
    }
    expect(await code({ method: 'POST', path: `${NS}/pods`, as: n1, body: mirror({}) })).toBe(201);
    const read = await stand.call({ path: `${NS}/secrets/hidden`, as: n1 });
    expect(read.code).toBe(403);
    expect(read.text).toContain("no relationship found between node 'n1' and this object");
    expect((await stand.call({ path: `${NS}/secrets/hidden`, as: n2 })).text).toContain(
      Buffer.from(MARKER).toString('base64'),
    );
  });

  it('sees pods and Nodes of its own only, as a kubelet asks for them', async () => {
    expect(await code({ path: '/api/v1/pods', as: n1 })).toBe(403);
    const own = await stand.call({ path: '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=500', as: n1 });
    expect(own.text).not.toContain('theirs');
    expect(own.code).toBe(200);
    expect(await code({ path: '/api/v1/pods?fieldSelector=spec.nodeName%3Dn2', as: n1 })).toBe(403);
    expect(await code({ path: '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&fieldSelector=', as: n1 })).toBe(200);
    expect(await code({ path: '/api/v1/pods?fieldSelector=&fieldSelector=spec.nodeName%3Dn1', as: n1 })).toBe(403);
    expect(await code({ path: '/api/v1/nodes?fieldSelector=metadata.name%3Dn1', as: n1 })).toBe(200);
    expect(await code({ path: '/api/v1/nodes?fieldSelector=metadata.name%3Dn2', as: n1 })).toBe(403);
    expect(await code({ path: '/api/v1/nodes', as: n1 })).toBe(403);
    expect(await code({ path: `${NS}/pods/theirs`, as: n1 })).toBe(403);
    expect(await code({ path: `${NS}/pods/mine`, as: n1 })).toBe(200);
    expect(await code({ path: `${NS}/pods/gone`, as: n1 })).toBe(404);
    expect(await code({ path: '/api/v1/pods?fieldSelector=%3D', as: n1 })).toBe(403);
    expect(await code({ path: '/api/v1/pods?fieldSelector=%3D', as: stand.admin })).toBe(400);
  });

  it('writes nothing that is not its own', async () => {
    const merge = { 'content-type': 'application/merge-patch+json' };
    const patch = (path: string, body: object) => code({ method: 'PATCH', path, as: n1, body, headers: merge });
    expect(await patch(`${NS}/pods/theirs/status`, { status: { phase: 'Failed' } })).toBe(403);
    expect(await patch(`${NS}/pods/mine/status`, { metadata: { labels: { a: 'b' } } })).toBe(403);
    expect(await patch(`${NS}/pods/mine/status`, { metadata: { finalizers: ['a/b'] } })).toBe(403);
    expect(await patch(`${NS}/pods/mine/status`, { status: { phase: 'Running' } })).toBe(200);
    expect(await patch('/api/v1/nodes/n1', { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } })).toBe(403);
    expect(await patch('/api/v1/nodes/n1', { metadata: { labels: { 'node-role.kubernetes.io/x': '' } } })).toBe(403);
    expect(await patch('/api/v1/nodes/n1', { metadata: { labels: { 'example.com/x': '' } } })).toBe(200);
    expect(await patch('/api/v1/nodes/n1/status', { metadata: { labels: { 'k8s.io/x': '' } } })).toBe(403);
    expect(await patch('/api/v1/nodes/n2/status', { status: {} })).toBe(403);
    expect(await code({ method: 'DELETE', path: '/api/v1/nodes/n1', as: n1 })).toBe(403);
    expect(await code({ method: 'DELETE', path: `${NS}/pods/theirs`, as: n1 })).toBe(403);
    expect(await code({ method: 'DELETE', path: `${NS}/pods/gone`, as: n1 })).toBe(404);
    expect(await code({ method: 'POST', path: `${NS}/pods/theirs/eviction`, as: n1, body: {} })).toBe(403);
    const lease = (name: string) => ({ kind: 'Lease', apiVersion: 'coordination.k8s.io/v1', metadata: { name } });
    const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    expect(await code({ method: 'POST', path: leases, as: n1, body: lease('n2') })).toBe(403);
    expect(await code({ method: 'POST', path: leases, as: n1, body: lease('n1') })).toBe(201);
  });

  it('cannot make a mirror pod an ordinary one to be granted what it refers to, or the other way round', async () => {
    const annotation = { 'kubernetes.io/config.mirror': 'x' };
    const volumes = [{ name: 'v', configMap: { name: 'map' } }];
    // Not by a node: the admission of nodes would refuse it.
    await stand.admit('POST', `${NS}/pods`, pod('marked', 'n1', { volumes }, { annotations: annotation }));
    const merge = { 'content-type': 'application/merge-patch+json' };
    for (const [name, value] of [
      ['marked', null],
      ['marked', 'y'],
      ['mine', 'x'],
    ] as const) {
      const body = { metadata: { annotations: { 'kubernetes.io/config.mirror': value } } };
      const path = `${NS}/pods/${name}`;
      const byNode = await stand.call({ method: 'PATCH', path: `${path}/status`, as: n1, body, headers: merge });
      expect(byNode.text).toContain('mirror pod annotation');
      expect(byNode.code).toBe(422);
      expect(await code({ method: 'PATCH', path, as: stand.admin, body, headers: merge })).toBe(422);
    }
    expect(await code({ path: `${NS}/configmaps/map`, as: n1 })).toBe(403);
  });

  it('gets tokens of its own pods only, bound to them, for the audience they use', async () => {
    const uid = async (name: string) => at(await stand.admit('GET', `${NS}/pods/${name}`), 'metadata', 'uid');
    const request = (spec: object) =>
      stand.call({ method: 'POST', path: `${NS}/serviceaccounts/default/token`, as: n1, body: { spec } });
    const bound = async (name: string) => ({ kind: 'Pod', apiVersion: 'v1', name, uid: await uid(name) });
    const mine = await bound('mine');
    expect((await request({})).text).toContain('node requested token not bound to a pod');
    expect((await request({ boundObjectRef: await bound('theirs') })).text).toContain('scheduled on a different node');
    expect((await request({ boundObjectRef: { ...mine, uid: 'other' } })).text).toContain('does not match the UID');
    expect((await request({ boundObjectRef: mine, audiences: ['vault'] })).text).toContain(
      'not found in pod spec volume',
    );
    expect((await request({ boundObjectRef: mine, expirationSeconds: 599 })).code).toBe(422);
    expect((await request({ boundObjectRef: mine, expirationSeconds: 4_294_967_297 })).code).toBe(422);
    expect((await request({ boundObjectRef: mine, expirationSeconds: 600.5 })).code).toBe(422);
    expect((await request({ boundObjectRef: mine, expirationSeconds: 600 })).code).toBe(201);
  });

  it('gets nowhere as a serving certificate, with another CA’s, or once it has ended', async () => {
    const serving = await stand.certificate('system:node:n2', 'system:nodes', { usage: 'server' });
    const foreign = await stand.certificate('kubernetes-admin', 'system:masters', { ca: await stand.otherCa() });
    for (const as of [serving, foreign]) expect(await code({ path: `${NS}/secrets/hidden`, as })).toBe(401);
    const short = await stand.certificate('system:node:n2', 'system:nodes', { lifeMs: 60_000 });
    expect(await code({ path: `${NS}/secrets/hidden`, as: short })).toBe(200);
    // The same connection, later.
    stand.clock.shift = 61_000;
    expect(await code({ path: `${NS}/secrets/hidden`, as: short })).toBe(401);
    stand.clock.shift = 0;
  });
});

describe('impersonation', () => {
  const as = (headers: Call['headers'], path = `${NS}/secrets`, more: Partial<Call> = {}) =>
    stand.call({ path, as: stand.admin, headers: headers ?? {}, ...more });

  it('decides what the request may do', async () => {
    expect((await as({ 'Impersonate-User': 'nobody' })).text).toContain('User \\"nobody\\" cannot list resource');
    expect((await as({ 'Impersonate-User': 'nobody', 'Impersonate-Group': ['a', 'system:masters'] })).code).toBe(200);
    const review = (headers: Call['headers']) =>
      as(headers, '/apis/authentication.k8s.io/v1/selfsubjectreviews', { method: 'POST', body: {} });
    const account = await review({
      'Impersonate-User': 'system:serviceaccount:default:default',
      'Impersonate-Extra-a': 'b',
    });
    expect(at(account.json, 'status', 'userInfo')).toEqual({
      username: 'system:serviceaccount:default:default',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
      extra: { a: ['b'] },
    });
    expect(
      (await as({ 'Impersonate-User': 'system:node:n1', 'Impersonate-Group': 'system:nodes' }, `${NS}/pods/theirs`))
        .code,
    ).toBe(403);
  });

  it('is for those who may', async () => {
    const headers = { 'Impersonate-User': 'kubernetes-admin', 'Impersonate-Group': 'system:masters' };
    expect((await stand.call({ path: `${NS}/secrets`, as: n1, headers })).text).toContain('cannot impersonate');
    expect((await stand.call({ path: `${NS}/secrets`, headers })).code).toBe(403);
    expect((await stand.call({ path: '/healthz', headers })).code).toBe(403);
    expect((await as({ 'Impersonate-Group': 'system:masters' })).code).toBe(500);
  });

  it('is logged with both identities, also when refused', async () => {
    stand.lines.length = 0;
    await as({ 'Impersonate-User': 'nobody' });
    await stand.call({ path: '/api', as: n1, headers: { 'Impersonate-User': 'kubernetes-admin' } });
    expect(stand.lines[0]).toMatch(/^impersonation: GET by .*"kubernetes-admin".* as .*"nobody".*secrets$/);
    expect(stand.lines[1]).toMatch(/^impersonation: GET by .*"system:node:n1".*refused: .*cannot impersonate.*\/api$/);
    expect(stand.lines).toHaveLength(2);
  });

  it('is authorized for upgrades too, and never forwarded to a kubelet', async () => {
    const seen: NodeJS.Dict<string | string[]>[] = [];
    const kubelet: Server = createServer({ cert: stand.server.pki.serving.cert, key: stand.server.pki.serving.key });
    kubelet.on('request', (message, response) => {
      seen.push(message.headers);
      response.end('from the kubelet');
    });
    kubelet.on('upgrade', (message, socket) => {
      seen.push(message.headers);
      socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
    });
    await new Promise<void>((resolve) => kubelet.listen(0, '127.0.0.1', resolve));
    const address = kubelet.address();
    const Port = typeof address === 'object' && address !== null ? address.port : 0;
    await stand.admit(
      'PATCH',
      '/api/v1/nodes/n1/status',
      {
        status: {
          addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
          daemonEndpoints: { kubeletEndpoint: { Port } },
        },
      },
      { 'content-type': 'application/merge-patch+json' },
    );
    const masters = { 'Impersonate-User': 'boss', 'Impersonate-Group': 'system:masters', 'Impersonate-Extra-a': 'b' };
    expect((await as(masters, '/api/v1/nodes/n1/proxy/pods')).text).toBe('from the kubelet');
    const upgrade = { Connection: 'Upgrade', Upgrade: 'SPDY/3.1' };
    const exec = `${NS}/pods/mine/exec?command=ls`;
    const refused = await as({ ...upgrade, 'Impersonate-User': 'nobody' }, exec, { method: 'POST' });
    expect(refused.code).toBe(403);
    expect(refused.text).toContain('User \\"nobody\\" cannot create resource');
    expect((await as({ ...upgrade, ...masters }, exec, { method: 'POST' })).code).toBe(101);
    expect(seen).toHaveLength(2);
    for (const headers of seen) expect(Object.keys(headers).filter((name) => /impersonate/.test(name))).toEqual([]);
    kubelet.closeAllConnections();
    kubelet.close();
  });
});

describe('what is deleted', () => {
  const account = (name: string) => ({ kind: 'ServiceAccount', apiVersion: 'v1', metadata: { name } });
  const tokenFor = async (name: string, boundObjectRef?: object): Promise<Credentials> => {
    const spec = boundObjectRef === undefined ? {} : { boundObjectRef };
    const answer = await stand.admit('POST', `${NS}/serviceaccounts/${name}/token`, { spec });
    return { token: String(at(answer, 'status', 'token')) };
  };
  const discovery = (as: Credentials) => code({ path: '/api', as });

  it('takes its tokens with it, with the next request', async () => {
    await stand.admit('POST', `${NS}/serviceaccounts`, account('short'));
    await stand.admit('POST', '/api/v1/nodes', { kind: 'Node', apiVersion: 'v1', metadata: { name: 'n3' } });
    await stand.admit('POST', `${NS}/secrets`, { kind: 'Secret', apiVersion: 'v1', metadata: { name: 'bound' } });
    await stand.admit('POST', `${NS}/pods`, pod('bound', '', { serviceAccountName: 'short', nodeName: undefined }));
    const plain = await tokenFor('short');
    const refs: readonly [string, string][] = [
      ['Node', '/api/v1/nodes/n3'],
      ['Secret', `${NS}/secrets/bound`],
      ['Pod', `${NS}/pods/bound`],
    ];
    for (const [kind, path] of refs) {
      const name = path.slice(path.lastIndexOf('/') + 1);
      const bound = await tokenFor('short', { kind, apiVersion: 'v1', name });
      expect(await discovery(bound), kind).toBe(200);
      await stand.admit('DELETE', path);
      expect(await discovery(bound), kind).toBe(401);
      const review = await stand.admit('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
        spec: { token: bound.token },
      });
      expect(at(review, 'status', 'authenticated'), kind).not.toBe(true);
    }
    expect(await discovery(plain)).toBe(200);
    await stand.admit('DELETE', `${NS}/serviceaccounts/short`);
    expect(await discovery(plain)).toBe(401);
  });

  it('ends a watch within a minute, and leaves those alone whose callers still may', async () => {
    const [n6, name] = [await stand.node('n6'), 'on-n6'];
    await stand.call({
      method: 'POST',
      path: '/api/v1/nodes',
      as: n6,
      body: { kind: 'Node', apiVersion: 'v1', metadata: { name: 'n6' } },
    });
    const volumes = [{ name: 's', secret: { secretName: 'hidden' } }];
    await stand.admit('POST', `${NS}/pods`, pod(name, 'n6', { volumes }));
    const secret = await stand.watch(`${NS}/secrets?watch=1&fieldSelector=metadata.name%3Dhidden`, n6);
    const node = await stand.watch('/api/v1/nodes?watch=1&fieldSelector=metadata.name%3Dn6', n6);
    let nodeEnded = false;
    void node.ended.then(() => {
      nodeEnded = true;
    });
    await stand.admit('DELETE', `${NS}/pods/${name}?gracePeriodSeconds=0`);
    stand.clock.elapse(60_000);
    await secret.ended;
    expect(nodeEnded).toBe(false);
    node.close();
  });

  it('is not brought back by another Node of that name', async () => {
    const node = { kind: 'Node', apiVersion: 'v1', metadata: { name: 'n4' } };
    await stand.admit('POST', '/api/v1/nodes', node);
    const bound = await tokenFor('default', { kind: 'Node', apiVersion: 'v1', name: 'n4' });
    await stand.admit('DELETE', '/api/v1/nodes/n4');
    await stand.admit('POST', '/api/v1/nodes', node);
    expect(await discovery(bound)).toBe(401);
  });

  it('leaves a Node’s certificate good for registering again, and for no Secret meanwhile', async () => {
    const n5 = await stand.node('n5');
    const node = { kind: 'Node', apiVersion: 'v1', metadata: { name: 'n5' } };
    const register = () => code({ method: 'POST', path: '/api/v1/nodes', as: n5, body: node });
    const read = () => code({ path: `${NS}/secrets/hidden`, as: n5 });
    await register();
    await stand.admit(
      'POST',
      `${NS}/pods`,
      pod('on-n5', 'n5', { volumes: [{ name: 's', secret: { secretName: 'hidden' } }] }),
    );
    expect(await read()).toBe(200);
    await stand.admit('DELETE', '/api/v1/nodes/n5');
    expect(await read()).toBe(403);
    expect(await register()).toBe(201);
    expect(await read()).toBe(200);
  });
});
