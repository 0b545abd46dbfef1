// The store in etcd, against Debian's etcd: what every store does, several stores on one etcd, and an etcd that goes away,
// comes back, and has forgotten changes.

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { admissionOf } from '../../../apiserver/admission/create.ts';
import { RESOURCE_KINDS } from '../../../apiserver/kinds/index.ts';
import { Registry, type WriteOptions } from '../../../apiserver/registry/registry.ts';
import { createObject, newObject } from '../../../apiserver/registry/write.ts';
import { parseConfiguration } from '../../../apiserver/storage/encryption/configuration.ts';
import { encryptionOf } from '../../../apiserver/storage/encryption/load.ts';
import { EtcdClient } from '../../../apiserver/storage/etcd/client.ts';
import { EtcdStore, type EtcdStoreOptions } from '../../../apiserver/storage/etcd/etcd-store.ts';
import { Progress, progressIsInOrder } from '../../../apiserver/storage/etcd/progress.ts';
import { WatchCache } from '../../../apiserver/storage/etcd/watch-cache.ts';
import { Watcher } from '../../../apiserver/storage/etcd/watcher.ts';
import { systemClock } from '../../../lib/clock.ts';
import { Tracer } from '../../../lib/trace.ts';
import { Etcd } from '../../support/etcd.ts';
import { key, put, remove, storeContract, storedValue } from '../../unit/apiserver/storage/contract.ts';

/** For giving up only. */
const PATIENT = { timeout: 240_000 };

let etcd: Etcd;
let prefixes = 0;
const open: EtcdStore[] = [];
const log: string[] = [];

beforeAll(async () => {
  etcd = await Etcd.start();
});
afterAll(() => etcd.stop());
afterEach(() => {
  for (const store of open.splice(0)) store.close();
  log.length = 0;
});

/** A store below a prefix of its own; another on the same with its prefix. */
async function store(prefix = `/test-${++prefixes}`, more: Partial<EtcdStoreOptions> = {}): Promise<EtcdStore> {
  const opened = await EtcdStore.open({
    address: { servers: [etcd.url] },
    prefix,
    resources: RESOURCE_KINDS.map(({ group, plural }) => `${group}/${plural}`),
    decodeProtobuf: () => {
      throw new Error('there is no protobuf here');
    },
    clock: systemClock,
    tracer: new Tracer(),
    log: (line) => log.push(line),
    ...more,
  });
  open.push(opened);
  return opened;
}
const prefix = (): string => `/test-${prefixes}`;

describe('etcd', () => {
  storeContract(() => store());
});

describe('two stores on one etcd', () => {
  /** The lease of a key, as etcdctl shows it: "<id> granted with TTL(…s), …". */
  const leaseOf = async (path: string): Promise<string> => {
    for (const id of (await etcd.ctl('lease', 'list')).match(/^[0-9a-f]{16}$/gm) ?? []) {
      const shown = await etcd.ctl('lease', 'timetolive', id, '--keys');
      if (shown.includes(`([${path}])`)) return shown.replace(/^lease /, '');
    }
    throw new Error(`there is no lease of ${path}`);
  };

  it('know each other’s servers; one that renews its lease no more is gone when it ends', async () => {
    // Longer than anything here takes: the end comes by etcdctl.
    const [a, b] = [
      await store(undefined, { masterLeaseSeconds: 600 }),
      await store(prefix(), { masterLeaseSeconds: 500 }),
    ];
    let changes = 0;
    a.masterLeases.onChange(() => changes++);
    await a.masterLeases.renew('10.0.0.1');
    await b.masterLeases.renew('fd00::2');
    await b.masterLeases.renew('fd00::2');
    expect(await a.masterLeases.list()).toEqual(['10.0.0.1', 'fd00::2']);
    const lease = await leaseOf(`${prefix()}/masterleases/fd00::2`);
    expect(lease).toContain('granted with TTL(500s)');
    await etcd.ctl('lease', 'revoke', lease.slice(0, 16));
    expect(await a.masterLeases.list()).toEqual(['10.0.0.1']);
    // Two came, one has gone; a renewal is no change.
    await vi.waitFor(() => expect(changes).toBe(3));
    await a.masterLeases.remove('10.0.0.1');
    expect(await b.masterLeases.list()).toEqual([]);
  });

  it('show each other’s writes, and make decisions on one object one after the other', async () => {
    const [a, b] = [await store(), await store(prefix())];
    await put(a, key('x'), '0');
    await b.catchUp();
    expect(storedValue(b.get(key('x')))).toBe('0');
    const increment = (one: EtcdStore): Promise<unknown> =>
      one.commit(() => {
        const found = one.get(key('x'));
        const value = String(Number(storedValue(found)) + 1);
        return one.put(key('x'), { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' }, value }, found);
      });
    await Promise.all(Array.from({ length: 12 }, (_, index) => increment(index % 2 === 0 ? a : b)));
    await Promise.all([a.catchUp(), b.catchUp()]);
    expect([storedValue(a.get(key('x'))), storedValue(b.get(key('x')))]).toEqual(['12', '12']);
  });

  it('never make two decisions on a state that the other has changed: a list, an absence', async () => {
    const [a, b] = [await store(), await store(prefix())];
    // Each takes the next free number of all, as addresses are taken.
    const take = (one: EtcdStore, name: string): Promise<unknown> =>
      one.commit(() => {
        const taken = Array.from(one.scan('/pods'), (found) => Number(storedValue(found)));
        const value = String(Math.max(0, ...taken) + 1);
        return one.put(key(name), { apiVersion: 'v1', kind: 'Pod', metadata: { name }, value });
      });
    await Promise.all(Array.from({ length: 10 }, (_, index) => take(index % 2 === 0 ? a : b, `p${index}`)));
    await a.catchUp();
    const values = Array.from(a.scan('/pods'), (found) => Number(storedValue(found)));
    expect(values.sort((one, other) => one - other)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  it('give Services different addresses and node ports', async () => {
    const caller = { name: 'admin', groups: ['system:masters'] };
    const options: WriteOptions = { caller, dryRun: false, fieldValidation: 'Ignore', warn: () => undefined };
    const stores = [await store(), await store(prefix())];
    const registries = stores.map(
      (one) =>
        new Registry({
          store: one,
          kinds: RESOURCE_KINDS,
          clock: systemClock,
          checkBody: () => ({ strict: [] }),
          admission: admissionOf({}, { nodeAudiences: [], log: (line) => log.push(line) }),
        }),
    );
    const [first] = registries;
    if (first === undefined) throw new Error('no registry');
    const namespaces = first.rowOf('', 'namespaces');
    await first.store.commit(() => createObject(first, namespaces, '', newObject(namespaces, 'ns'), options));
    const create = (registry: Registry, name: string) => {
      const row = registry.rowOf('', 'services');
      // All begin to look for a node port at the same place.
      const spec = { type: 'NodePort', ports: [{ name: 'http', port: 80 }] };
      return registry.store.commit(() =>
        createObject(registry, row, 'ns', newObject(row, name, { spec: structuredClone(spec) }), options),
      );
    };
    await Promise.all(Array.from({ length: 12 }, (_, index) => create(registries[index % 2] ?? first, `s${index}`)));
    await first.store.catchUp();
    const specs = Array.from(first.store.scan('/services'), ({ text }) => JSON.parse(text).spec);
    expect(new Set(specs.map((spec) => spec.clusterIP)).size).toBe(12);
    expect(new Set(specs.map((spec) => spec.ports[0].nodePort)).size).toBe(12);
  });

  it('catch up though others write to the same etcd outside of their prefix', async () => {
    const a = await store();
    await put(a, key('x'), 'one');
    await etcd.ctl('put', '/elsewhere', 'x');
    await a.catchUp();
    expect(a.revision).toBeGreaterThan(a.get(key('x'))?.revision ?? 0);
    expect(storedValue(a.get(key('x')))).toBe('one');
  });
});

it('a watch whose progress is requested needs no write below its prefix to catch up', async () => {
  const client = new EtcdClient({ servers: [etcd.url] }, new Tracer());
  const cache = new WatchCache();
  const watcher = new Watcher({
    client,
    prefix: '/none/',
    revision: () => cache.revision,
    changed: () => undefined,
    advanced: (revision) => cache.advance(revision),
    compacted: () => Promise.reject(new Error('nothing was compacted')),
    clock: systemClock,
    log: (line) => log.push(line),
  });
  try {
    const { header } = await client.range({ key: Buffer.from('/none/') });
    cache.fill(Number(header?.revision), []);
    watcher.start();
    await etcd.ctl('put', '/elsewhere', 'y');
    // As with an etcd whose replies are in order; here nothing is written that one could overtake.
    await new Progress(client, cache, watcher, '/none/', '3.5.8', systemClock).catchUp();
    expect(cache.revision).toBeGreaterThan(Number(header?.revision));
    expect(await etcd.keys('/none/')).toEqual([]);
  } finally {
    watcher.stop();
    client.close();
  }
});

describe('the keys and values', () => {
  it('are kube-apiserver’s: JSON without a resourceVersion, events on a lease, a custom resource below its group', async () => {
    const a = await store();
    await put(a, key('p'));
    await put(a, key('n', '', '/nodes'));
    await put(a, key('e', 'ns', '/events'));
    await put(a, key('c', 'ns', 'stable.example.com/crontabs'));
    const keys = ['events/ns/e', 'minions/n', 'pods/ns/p', 'stable.example.com/crontabs/ns/c'];
    expect(await etcd.keys(`${prefix()}/`)).toEqual(keys.map((one) => `${prefix()}/${one}`));
    const value = await etcd.ctl('get', `${prefix()}/pods/ns/p`, '--print-value-only');
    expect(JSON.parse(value)).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', namespace: 'ns' },
      value: '',
    });
    // In JSON, etcdctl leaves out a lease of 0.
    const lease = async (path: string) =>
      JSON.parse(await etcd.ctl('get', `${prefix()}/${path}`, '-w', 'json')).kvs[0].lease;
    expect(await lease('pods/ns/p')).toBeUndefined();
    expect(await lease('events/ns/e')).toBeGreaterThan(0);
    await etcd.ctl('del', `${prefix()}/pods/ns/p`);
    await a.catchUp();
    expect(a.get(key('p'))).toBeUndefined();
  });

  it('are encrypted where the configuration says so; one that cannot be read is named by each request for it', async () => {
    const encryption = encryptionOf(
      parseConfiguration(`{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, resources: [
        {resources: [secrets], providers: [{aescbc: {keys: [{name: key1, secret: ${Buffer.alloc(32, 1).toString('base64')}}]}}]}]}`),
    );
    const a = await store(undefined, { encryption });
    await put(a, key('s', 'ns', '/secrets'), 'plain-text');
    const value = await etcd.ctl('get', `${prefix()}/secrets/ns/s`, '--print-value-only');
    expect([value.startsWith('k8s:enc:aescbc:v1:key1:'), value.includes('plain-text')]).toEqual([true, false]);
    expect(storedValue(a.get(key('s', 'ns', '/secrets')))).toBe('plain-text');
    const b = await store(prefix());
    expect(() => b.get(key('s', 'ns', '/secrets'))?.text).toThrow(
      `unable to transform key "${prefix()}/secrets/ns/s": identity transformer tried to read encrypted data`,
    );
  });
});

describe('an etcd that', () => {
  it('goes away and comes back is watched again; reads go on meanwhile', async () => {
    const a = await store();
    await put(a, key('x'), 'one');
    await etcd.kill();
    expect(storedValue(a.get(key('x')))).toBe('one');
    await expect(put(a, key('x'), 'two')).rejects.toThrow(/^etcd /);
    await etcd.run();
    await etcd.ctl(
      'put',
      `${prefix()}/pods/ns/y`,
      '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"y"},"value":"other"}',
    );
    await vi.waitFor(() => expect(storedValue(a.get(key('y')))).toBe('other'), PATIENT);
    await put(a, key('x'), 'three');
    expect(storedValue(a.get(key('x')))).toBe('three');
    expect(log).toEqual([
      expect.stringMatching(/^the watch on etcd ended, and is opened again: /),
      'the watch on etcd is open again',
    ]);
  });

  it('has compacted what a store has not read is listed again, and watchers see the difference', async () => {
    const a = await store();
    for (const name of ['kept', 'changed', 'gone']) await put(a, key(name), 'one');
    const seen: string[] = [];
    a.subscribe('/pods', ({ record }) => seen.push(`${record.type} ${record.name}`));
    await etcd.kill();
    // At another address, where the store does not see it.
    const other = await Etcd.start();
    const { url } = other;
    await other.stop();
    await etcd.run(url);
    const ctl = (...args: string[]) => etcd.ctlAt(url, ...args);
    const json = (name: string) => `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"${name}"},"value":"two"}`;
    await ctl('put', `${prefix()}/pods/ns/changed`, json('changed'));
    await ctl('put', `${prefix()}/pods/ns/new`, json('new'));
    await ctl('del', `${prefix()}/pods/ns/gone`);
    const { header } = JSON.parse((await ctl('get', 'x', '-w', 'json')).stdout);
    expect(await ctl('compact', String(header.revision))).toMatchObject({ code: 0 });
    await etcd.kill();
    await etcd.run();
    await vi.waitFor(() => expect(seen).toHaveLength(3), PATIENT);
    expect(seen).toEqual(['MODIFIED changed', 'ADDED new', 'DELETED gone']);
    expect(storedValue(a.get(key('changed')))).toBe('two');
    expect(log).toContain('etcd compacted changes that were not read: everything is listed again');
    await remove(a, key('kept'));
    expect(seen.at(-1)).toBe('DELETED kept');
  });

  it('is not there, or is none, is one clear line', async () => {
    const address = { servers: ['http://127.0.0.1:1'] };
    await expect(store(undefined, { address })).rejects.toThrow(
      /^cannot use etcd at http:\/\/127\.0\.0\.1:1: etcd Status: /,
    );
    await expect(store(undefined, { address: { servers: ['localhost'] } })).rejects.toThrow(
      '--etcd-servers: "localhost" is not a URL as http://127.0.0.1:2379',
    );
    const files = { servers: ['https://127.0.0.1:1'], caFile: '/nonexistent/ca' };
    await expect(store(undefined, { address: files })).rejects.toThrow(/^--etcd-cafile: ENOENT/);
    const address2 = { servers: ['http://127.0.0.1:1', etcd.url] };
    expect((await store(undefined, { address: address2 })).revision).toBeGreaterThan(0);
  });
});

it.each([
  ['3.4.23', false],
  ['3.4.25', true],
  ['3.5.7', false],
  ['3.5.8', true],
  ['3.6.0', true],
  ['4.0.0', true],
  ['3.3.27', false],
])('whether progress replies of etcd %s are in order: %s', (version, inOrder) => {
  expect(progressIsInOrder(version)).toBe(inOrder);
});
