// What upstream's conformance tests of the API machinery ask of any kind: watches, lists in pages, tables, discovery, field
// validation, namespaces. docs/conformance.md says which of upstream's tests each one stands for.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { at } from '../../support/api-server.ts';
import { Client, nameOf, objects, versionOf } from './client.ts';

let client: Client;
beforeAll(async () => {
  client = await Client.start();
});
afterAll(() => client.stop());

const configMap = (name: string, label: string, data: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, labels: { watch: label } },
  data,
});
const mapsOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`;

describe('watches', () => {
  it('observe what their selectors match: additions, changes and deletions, each watcher its own', async () => {
    const maps = mapsOf(await client.namespace('watchers'));
    using a = await client.watch(maps, 'labelSelector=watch%3Da');
    using b = await client.watch(maps, 'labelSelector=watch%3Db');
    using both = await client.watch(maps, 'labelSelector=watch%20in%20(a,b)');
    await client.create(maps, configMap('of-a', 'a'));
    await client.patch(`${maps}/of-a`, { data: { mutation: '1' } });
    await client.patch(`${maps}/of-a`, { data: { mutation: '2' } });
    await client.delete(`${maps}/of-a`);
    await client.create(maps, configMap('of-b', 'b'));
    await client.delete(`${maps}/of-b`);
    const ofA = ['ADDED of-a', 'MODIFIED of-a', 'MODIFIED of-a', 'DELETED of-a'];
    const ofB = ['ADDED of-b', 'DELETED of-b'];
    await Promise.all([a.until(({ events }) => events.length >= 4), b.until(({ events }) => events.length >= 2)]);
    await both.until(({ events }) => events.length >= 6);
    expect([a.shown, b.shown, both.shown]).toEqual([ofA, ofB, [...ofA, ...ofB]]);
    expect(a.events.map(({ object }) => at(object, 'data', 'mutation'))).toEqual([undefined, '1', '2', '2']);
  });

  it('start from a resourceVersion, and from the last one that an earlier watch has observed', async () => {
    const maps = mapsOf(await client.namespace('restarts'));
    const created = await client.create(maps, configMap('one', 'a'));
    const first = await client.patch(`${maps}/one`, { data: { mutation: '1' } });
    await client.patch(`${maps}/one`, { data: { mutation: '2' } });
    await client.delete(`${maps}/one`);
    const mutations = async (resourceVersion: string): Promise<unknown[]> => {
      using watch = await client.watch(maps, `resourceVersion=${resourceVersion}`);
      await watch.until(({ shown }) => shown.includes('DELETED one'));
      return watch.events.map(({ type, object }) => `${type} ${String(at(object, 'data', 'mutation'))}`);
    };
    expect(await mutations(versionOf(first))).toEqual(['MODIFIED 2', 'DELETED 2']);
    expect(await mutations(versionOf(created))).toEqual(['MODIFIED 1', 'MODIFIED 2', 'DELETED 2']);
    let last = '';
    {
      using watch = await client.watch(maps, `resourceVersion=${versionOf(created)}`);
      await watch.until(({ events }) => events.length >= 1);
      last = versionOf(watch.events[0]?.object);
    }
    expect(await mutations(last)).toEqual(['MODIFIED 2', 'DELETED 2']);
  });

  it('see an object go when it no longer matches, and come back when it does', async () => {
    const maps = mapsOf(await client.namespace('relabelled'));
    using watch = await client.watch(maps, 'labelSelector=watch%3Da');
    await client.create(maps, configMap('one', 'a'));
    await client.patch(`${maps}/one`, { metadata: { labels: { watch: 'other' } } });
    await client.patch(`${maps}/one`, { data: { unseen: 'yes' } });
    await client.patch(`${maps}/one`, { metadata: { labels: { watch: 'a' } } });
    await client.patch(`${maps}/one`, { data: { seen: 'yes' } });
    await client.delete(`${maps}/one`);
    await watch.until(({ events }) => events.length >= 5);
    expect(watch.shown).toEqual(['ADDED one', 'DELETED one', 'ADDED one', 'MODIFIED one', 'DELETED one']);
  });

  it('that begin at different moments deliver the rest in the same order', async () => {
    const maps = mapsOf(await client.namespace('ordered'));
    const start = versionOf(await client.get(maps));
    using first = await client.watch(maps, `resourceVersion=${start}`);
    const writes = Array.from({ length: 20 }, async (_, index) => {
      await client.create(maps, configMap(`map-${index}`, 'a'));
      await client.patch(`${maps}/map-${index}`, { data: { index: String(index) } });
      await client.delete(`${maps}/map-${index}`);
    });
    await Promise.all([...writes, first.until(({ events }) => events.length >= 60)]);
    const versions = first.events.map(({ object }) => versionOf(object));
    const numbers = versions.map(Number);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    for (const from of [0, 17, 41]) {
      using later = await client.watch(maps, `resourceVersion=${versions[from]}`);
      await later.until(({ events }) => events.length >= 59 - from);
      expect(later.events.map(({ object }) => versionOf(object))).toEqual(versions.slice(from + 1));
    }
  });
});

describe('lists', () => {
  it('come in pages of one revision, with the number of those that remain, or as a whole', async () => {
    const templates = `/api/v1/namespaces/${await client.namespace('chunks')}/podtemplates`;
    const template = { spec: { containers: [{ name: 'c', image: 'image' }] } };
    const count = 40;
    const named = Array.from({ length: count }, (_, index) => `template-${String(index).padStart(4, '0')}`);
    for (const name of named)
      await client.create(templates, { apiVersion: 'v1', kind: 'PodTemplate', metadata: { name }, template });
    const seen: string[] = [];
    let token = '';
    let version: string | undefined;
    do {
      const page = await client.get(`${templates}?limit=17${token === '' ? '' : `&continue=${token}`}`);
      version ??= versionOf(page);
      expect(versionOf(page)).toBe(version);
      seen.push(...objects(page).map(nameOf));
      const remaining = at(page, 'metadata', 'remainingItemCount');
      expect(remaining).toBe(seen.length === count ? undefined : count - seen.length);
      token = String(at(page, 'metadata', 'continue') ?? '');
      // What changes meanwhile is not in the list.
      if (seen.length === 17) await client.delete(`${templates}/${named.at(-1)}`);
    } while (token !== '');
    expect(seen).toEqual(named);
    const whole = await client.get(`${templates}?resourceVersion=0`);
    expect(objects(whole).map(nameOf)).toEqual(named.slice(0, -1));
    expect(at(whole, 'metadata', 'continue')).toBeUndefined();
  });

  it('are tables where a client wants them; a review is none, and 406', async () => {
    const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';
    const call = (method: string, path: string, body?: object) =>
      client.stand.call({ method, path, body, as: client.stand.admin, headers: { accept: table } });
    const list = await call('GET', '/api/v1/namespaces');
    expect(list.json).toMatchObject({ kind: 'Table', apiVersion: 'meta.k8s.io/v1' });
    const review = {
      ...{ apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview' },
      spec: { nonResourceAttributes: { path: '/', verb: 'get' } },
    };
    const refused = await call('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', review);
    expect([refused.code, at(refused.json, 'reason')]).toEqual([406, 'NotAcceptable']);
  });
});

describe('discovery', () => {
  it('leads from each group to its preferred version and to resources in it', async () => {
    const groups = at(await client.get('/apis'), 'groups');
    if (!Array.isArray(groups)) throw new Error('no groups');
    expect(groups.length).toBeGreaterThan(15);
    for (const listed of groups) {
      const name = String(at(listed, 'name'));
      const group = await client.get(`/apis/${name}`);
      const preferred = at(group, 'preferredVersion');
      expect(at(group, 'versions')).toContainEqual(preferred);
      expect(preferred).toEqual(at(listed, 'preferredVersion'));
      const groupVersion = String(at(preferred, 'groupVersion'));
      const list = await client.get(`/apis/${groupVersion}`);
      expect(at(list, 'groupVersion')).toBe(groupVersion);
      expect(at(list, 'resources', 0, 'name')).toEqual(expect.any(String));
    }
  });

  it('the version of the server is one of numbers', async () => {
    const version = await client.get('/version');
    expect([at(version, 'major'), at(version, 'minor')]).toEqual([
      expect.stringMatching(/^\d+$/),
      expect.stringMatching(/^\d+$/),
    ]);
  });
});

describe('fieldValidation=Strict', () => {
  const deployment = (metadata: string, spec: string): string =>
    `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"${metadata}},"spec":{"selector":{"matchLabels":{"a":"b"}},` +
    `"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}${spec}}}`;

  it('refuses unknown and duplicate fields of a typed object, in its metadata too', async () => {
    const path = `/apis/apps/v1/namespaces/${await client.namespace('strict')}/deployments?fieldValidation=Strict`;
    const message = async (body: string): Promise<string> =>
      String(at((await client.send('POST', path, body)).json, 'message'));
    expect(await message(deployment('', ',"unknown":"x","replicas":1,"replicas":2'))).toBe(
      'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.unknown", duplicate field "spec.replicas"',
    );
    expect(await message(deployment(',"unknownMeta":"x"', ''))).toBe(
      'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "metadata.unknownMeta"',
    );
  });
});

describe('a namespace', () => {
  const path = (name: string): string => `/api/v1/namespaces/${name}`;
  const create = (name: string): Promise<unknown> =>
    client.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

  it('is patched, updated, and reported about by its status', async () => {
    await create('changed');
    await client.patch(path('changed'), { metadata: { labels: { testLabel: 'testValue' } } });
    const stored = await client.get(path('changed'));
    expect(at(stored, 'metadata', 'labels')).toMatchObject({ testLabel: 'testValue' });
    expect(at(await client.get(`${path('changed')}/status`), 'status', 'phase')).toBe('Active');
    const condition = { type: 'StatusPatch', status: 'True', reason: 'E2E', message: 'Set by an e2e test' };
    const patched = await client.patch(`${path('changed')}/status`, { status: { conditions: [condition] } });
    expect(at(patched, 'status', 'conditions')).toEqual([expect.objectContaining(condition)]);
    const body = {
      ...Object(patched),
      status: { phase: 'Active', conditions: [{ ...condition, type: 'StatusUpdate' }] },
    };
    const updated = await client.update(`${path('changed')}/status`, body);
    expect(at(updated, 'status', 'conditions', 0, 'type')).toBe('StatusUpdate');
    const relabelled = {
      ...Object(updated),
      metadata: { ...Object(at(updated, 'metadata')), labels: { updated: 'yes' } },
    };
    expect(at(await client.update(path('changed'), relabelled), 'metadata', 'labels')).toEqual({
      'kubernetes.io/metadata.name': 'changed',
      updated: 'yes',
    });
  });

  it('gets and loses a finalizer through its subresource', async () => {
    const created = await create('finalized');
    const finalize = (finalizers: string[]): Promise<unknown> =>
      client.update(`${path('finalized')}/finalize`, {
        ...Object(created),
        metadata: { name: 'finalized' },
        spec: { finalizers },
      });
    expect(at(await finalize(['kubernetes', 'e2e.example.com/fake']), 'spec', 'finalizers')).toEqual([
      'kubernetes',
      'e2e.example.com/fake',
    ]);
    await finalize(['kubernetes']);
    expect(at(await client.get(path('finalized')), 'spec', 'finalizers')).toEqual(['kubernetes']);
  });
});
