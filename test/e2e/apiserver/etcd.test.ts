// Two API servers on one etcd with TLS, as stock kubectl and etcdctl see them.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { ensurePki, type RunningApiServer, startLabApiServer } from '../../../apiserver/main.ts';
import { systemClock } from '../../../lib/clock.ts';
import { exec } from '../../../lib/exec.ts';
import { Tracer } from '../../../lib/trace.ts';
import { Etcd } from '../../support/etcd.ts';

let root: string;
let etcd: Etcd;
const servers: RunningApiServer[] = [];
/** Longer than anything here takes: no server is forgotten because it is slow, and none that stops because its lease has ended. */
const MASTER_LEASE_SECONDS = 600;
/** For giving up only. */
const PATIENT = { timeout: 240_000, interval: 100 };
/** Where each server is for the others; nothing connects to them. */
const ADDRESSES: Readonly<Record<string, string>> = { a: '192.0.2.1', b: '192.0.2.2' };
const pki = (file: string): string => join(root, 'a', 'pki', file);

async function startServer(name: string): Promise<RunningApiServer> {
  const server = await startLabApiServer({
    root: join(root, name),
    bindAddress: '127.0.0.1',
    port: 0,
    advertiseAddress: ADDRESSES[name] ?? '',
    etcd: {
      servers: [etcd.url],
      caFile: pki('ca.crt'),
      certFile: pki('admin.crt'),
      keyFile: pki('admin.key'),
      masterLeaseSeconds: MASTER_LEASE_SECONDS,
    },
    tracer: new Tracer(),
    clock: systemClock,
  });
  servers.push(server);
  return server;
}

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-two-servers-'));
  await ensurePki(join(root, 'a', 'pki'), { hosts: ['127.0.0.1'], nodeName: 'node', now: systemClock.now() });
  await cp(join(root, 'a', 'pki'), join(root, 'b', 'pki'), { recursive: true });
  etcd = await Etcd.start({
    cert: pki('apiserver.crt'),
    key: pki('apiserver.key'),
    ca: pki('ca.crt'),
    clientCert: pki('admin.crt'),
    clientKey: pki('admin.key'),
  });
  await startServer('a');
  await startServer('b');
});
afterAll(async () => {
  for (const server of servers) await server.close();
  await etcd.stop();
  await rm(root, { recursive: true });
});

const flags = (server: string): string[] => ['--kubeconfig', join(root, server, 'kubeconfig')];
async function kubectl(server: 'a' | 'b', ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await exec('kubectl', [...flags(server), ...args]);
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

it('what is written through one is read through the other at once, and both refuse what the other has changed', async () => {
  await kubectl('a', 'create', 'configmap', 'one', '--from-literal=a=b');
  expect(await kubectl('b', 'get', 'configmap', 'one', '-o', 'jsonpath={.data.a}')).toBe('b');
  const version = (server: 'a' | 'b') =>
    kubectl(server, 'get', 'configmap', 'one', '-o', 'jsonpath={.metadata.resourceVersion}');
  expect(await version('a')).toBe(await version('b'));
  await kubectl('b', 'label', 'configmap', 'one', 'x=y');
  expect(await kubectl('a', 'get', 'configmaps', '-l', 'x=y', '-o', 'name')).toBe('configmap/one\n');
  await expect(kubectl('a', 'create', 'configmap', 'one')).rejects.toThrow('configmaps "one" already exists');
  await kubectl('a', 'delete', 'configmap', 'one');
  await expect(kubectl('b', 'get', 'configmap', 'one')).rejects.toThrow('configmaps "one" not found');
});

it('a watch on one shows the writes of the other', async () => {
  const watch = spawn('kubectl', [...flags('b'), 'get', 'configmaps', '--watch-only', '--output-watch-events'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let seen = '';
  watch.stdout.setEncoding('utf8').on('data', (text: string) => {
    seen += text;
  });
  try {
    // Until it is open, what is created is not seen.
    let count = 0;
    await vi.waitFor(async () => {
      await kubectl('a', 'create', 'configmap', `watched-${++count}`);
      expect(seen).toMatch(/ADDED +watched-/);
    }, PATIENT);
    await kubectl('a', 'delete', 'configmap', `watched-${count}`);
    await vi.waitFor(() => expect(seen).toMatch(/DELETED +watched-/), PATIENT);
  } finally {
    watch.kill();
    await once(watch, 'exit');
  }
});

it('etcdctl shows the keys that a course shows', async () => {
  await kubectl('a', 'create', 'serviceaccount', 'default');
  await kubectl('b', 'run', 'my-pod', '--image=nginx');
  await kubectl('b', 'expose', 'pod', 'my-pod', '--port=80');
  const keys = await etcd.keys('/registry');
  expect(keys).toEqual(
    expect.arrayContaining([
      '/registry/namespaces/default',
      '/registry/namespaces/kube-system',
      '/registry/pods/default/my-pod',
      '/registry/serviceaccounts/default/default',
      '/registry/services/specs/default/kubernetes',
      '/registry/services/specs/default/my-pod',
    ]),
  );
  const pod = JSON.parse(await etcd.ctl('get', '/registry/pods/default/my-pod', '--print-value-only'));
  expect([pod.kind, pod.spec.containers[0].image, pod.metadata.resourceVersion]).toEqual(['Pod', 'nginx', undefined]);
  const revision = JSON.parse(await etcd.ctl('get', '/registry/pods/default/my-pod', '-w', 'json')).kvs[0].mod_revision;
  expect(await kubectl('a', 'get', 'pod', 'my-pod', '-o', 'jsonpath={.metadata.resourceVersion}')).toBe(
    String(revision),
  );
});

it('/metrics counts requests by what is served, watch events, and the calls of etcd', async () => {
  await kubectl('a', 'get', 'configmaps', '-A');
  await exec('kubectl', [...flags('a'), 'get', '--raw', '/apis/made-up/v1/things']);
  const text = await kubectl('a', 'get', '--raw', '/metrics');
  const list = 'verb="LIST",group="",version="v1",resource="configmaps",subresource="",scope="cluster",dry_run=""';
  expect(text).toMatch(new RegExp(`^apiserver_request_total\\{${list},component="apiserver",code="200"\\} [1-9]`, 'm'));
  expect(text).toMatch(
    new RegExp(`^apiserver_request_duration_seconds_count\\{${list},component="apiserver"\\} [1-9]`, 'm'),
  );
  expect(text).toContain('apiserver_current_inflight_requests{request_kind="mutating"} 0');
  expect(text).toMatch(/^etcd_request_duration_seconds_count\{operation="txn",group="",resource=""\} [1-9]/m);
  expect(await kubectl('b', 'get', '--raw', '/metrics')).toMatch(
    /^apiserver_watch_events_total\{group="",version="v1",resource="configmaps"\} [1-9]/m,
  );
  expect(text).not.toContain('made-up');
});

it('a quota holds for what is created through both at the same time', async () => {
  await kubectl('a', 'create', 'namespace', 'small');
  const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'three', namespace: 'small' } };
  const file = join(root, 'quota.json');
  await writeFile(file, JSON.stringify({ ...quota, spec: { hard: { configmaps: '3' } } }));
  await kubectl('a', 'apply', '-f', file);
  const used = () => kubectl('b', 'get', 'quota', 'three', '-n', 'small', '-o', 'jsonpath={.status.used.configmaps}');
  await vi.waitFor(async () => expect(await used()).toBe('0'), PATIENT);
  const create = async (index: number): Promise<string> => {
    const args = ['create', 'configmap', `c${index}`, '-n', 'small'];
    const { code, stderr } = await exec('kubectl', [...flags(index % 2 === 0 ? 'a' : 'b'), ...args]);
    return code === 0 ? 'created' : stderr;
  };
  const results = await Promise.all(Array.from({ length: 6 }, (_, index) => create(index)));
  expect(results.filter((result) => result === 'created')).toHaveLength(3);
  expect(results.filter((result) => result.includes('exceeded quota: three'))).toHaveLength(3);
  await vi.waitFor(async () => expect(await used()).toBe('3'), PATIENT);
});

it('both are endpoints of the service kubernetes, each with a lease; one that stops is gone at once', async () => {
  const addresses = async (server: 'a' | 'b'): Promise<string[]> => [
    await kubectl(server, 'get', 'endpoints', 'kubernetes', '-o', 'jsonpath={.subsets[*].addresses[*].ip}'),
    await kubectl(server, 'get', 'endpointslice', 'kubernetes', '-o', 'jsonpath={.endpoints[*].addresses[*]}'),
  ];
  const both = '192.0.2.1 192.0.2.2';
  // What one server writes by an older list of leases is put right by its next look, which a lease that comes or goes brings about.
  const become = (shown: string) => expect.poll(() => addresses('a')).toEqual([shown, shown]);
  await become(both);
  expect(await etcd.keys('/registry/masterleases')).toEqual(
    Object.values(ADDRESSES).map((ip) => `/registry/masterleases/${ip}`),
  );
  const value = JSON.parse(await etcd.ctl('get', '/registry/masterleases/192.0.2.2', '--print-value-only'));
  expect(value).toMatchObject({ kind: 'Endpoints', subsets: [{ addresses: [{ ip: '192.0.2.2' }] }] });
  await servers[1]?.close();
  await become('192.0.2.1');
  await startServer('b');
  await become(both);
});

it('everything is there after a restart, and a snapshot is etcd’s own to take', async () => {
  await kubectl('a', 'create', 'configmap', 'kept', '--from-literal=a=b');
  await servers[0]?.close();
  await startServer('a');
  expect(await kubectl('a', 'get', 'configmap', 'kept', '-o', 'jsonpath={.data.a}')).toBe('b');
  await expect(kubectl('a', 'get', '--raw', '/nodelet/snapshot')).rejects.toThrow('NotFound');
});

it('addresses of Services are in etcd, once each, whichever server gives them out', async () => {
  const pairs = async (server: 'a' | 'b', plural: string, columns: string): Promise<string[]> =>
    (await kubectl(server, 'get', plural, '-A', `-o=jsonpath={range .items[*]}${columns} {end}`))
      .trim()
      .split(' ')
      .sort();
  const ips = (server: 'a' | 'b') => pairs(server, 'ipaddresses', '{.metadata.name}={.spec.parentRef.name}');
  const before = await ips('a');
  const names = Array.from({ length: 6 }, (_, index) => `svc-${index}`);
  const create = (name: string, index: number): Promise<string> =>
    kubectl(index % 2 === 0 ? 'a' : 'b', 'create', 'service', 'clusterip', name, '--tcp=80');
  await Promise.all(names.map(create));
  const given = await ips('b');
  expect(given).toEqual(await pairs('a', 'services', '{.spec.clusterIP}={.metadata.name}'));
  expect(new Set(given.map((pair) => pair.split('=')[0])).size).toBe(before.length + names.length);
  await kubectl('b', 'delete', 'service', ...names);
  expect(await ips('a')).toEqual(before);
  expect(await kubectl('b', 'get', 'servicecidr,ipaddress')).toMatch(
    /servicecidr\.networking\.k8s\.io\/kubernetes +10\.96\.0\.0\/16[\s\S]*ipaddress\.networking\.k8s\.io\/10\.96\.0\.1 +services\/default\/kubernetes/,
  );
});
