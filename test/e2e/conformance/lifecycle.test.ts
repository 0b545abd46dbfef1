// What upstream's conformance tests do with nearly every kind, with each of them: it is discovered, created, read, listed,
// watched, patched, applied, updated, reported about by its status, scaled, and deleted by name and as a collection.
// docs/conformance.md says which of upstream's tests each one stands for.

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { at } from '../../support/api-server.ts';
import { Client, type Fields, nameOf, objects, versionOf } from './client.ts';
import { LIFECYCLES, type Lifecycle } from './kinds.ts';

let client: Client;
beforeAll(async () => {
  client = await Client.start();
});
afterAll(() => client.stop());

/** Where a kind is, and its objects as they are sent. */
class Place {
  readonly kind: Lifecycle;
  readonly apiVersion: string;
  readonly names: readonly [string, string, string];
  readonly everywhere: string;
  readonly here: string;
  /** Of its own: events are one kind in two groups, whose tests may run at the same time. */
  readonly labels: Readonly<Record<string, string>>;
  readonly selected: string;
  readonly #kindName: string;

  constructor(kind: Lifecycle, namespace: string) {
    const [apiVersion = '', kindName = ''] = kind.type.split(' ');
    const id = kindName.toLowerCase();
    this.kind = kind;
    this.apiVersion = apiVersion;
    this.#kindName = kindName;
    const label = `${kindName}.${apiVersion.replace(/\/?v\d+$/, '') || 'core'}`;
    this.labels = { conformance: label };
    this.selected = `labelSelector=conformance%3D${label}`;
    this.names = kind.names ?? [`${id}-one`, `${id}-two`, `${id}-three`];
    const root = `${apiVersion.includes('/') ? '/apis' : '/api'}/${apiVersion}`;
    this.everywhere = `${root}/${kind.plural}`;
    this.here = kind.namespaced === false ? this.everywhere : `${root}/namespaces/${namespace}/${kind.plural}`;
  }

  get root(): string {
    return this.everywhere.slice(0, -this.kind.plural.length - 1);
  }
  path(name: string, subresource = ''): string {
    return `${this.here}/${name}${subresource === '' ? '' : `/${subresource}`}`;
  }
  object(name: string, labels: Readonly<Record<string, string>>): object {
    const namespace = this.kind.namespaced === false ? {} : { namespace: this.here.split('/').at(-2) };
    const fields = structuredClone(this.kind.object);
    // Events are in the namespace of what they are about.
    const about = Object.fromEntries(
      ['involvedObject', 'regarding'].flatMap((key) => {
        const reference = fields[key];
        return typeof reference === 'object' ? [[key, { ...reference, ...namespace }]] : [];
      }),
    );
    const head = { apiVersion: this.apiVersion, kind: this.#kindName, metadata: { name, labels, ...namespace } };
    return { ...head, ...fields, ...about };
  }
}

async function isDiscovered({ apiVersion, kind, root }: Place): Promise<void> {
  if (apiVersion.includes('/')) {
    const [group, version] = apiVersion.split('/');
    const groups = at(await client.get('/apis'), 'groups');
    expect(groups).toContainEqual(expect.objectContaining({ name: group }));
    const versions = at(await client.get(`/apis/${group}`), 'versions');
    expect(versions).toContainEqual({ groupVersion: apiVersion, version });
  }
  const resources = at(await client.get(root), 'resources');
  const subresources = [
    ...(kind.status === undefined ? [] : ['status']),
    ...(kind.scale === true ? ['scale'] : []),
    ...(kind.approval === true ? ['approval'] : []),
  ];
  for (const name of [kind.plural, ...subresources.map((one) => `${kind.plural}/${one}`)]) {
    expect(resources).toContainEqual(expect.objectContaining({ name }));
  }
}

async function isCreatedAndRead(place: Place): Promise<void> {
  const [one] = place.names;
  const created = await client.create(place.here, place.object(one, place.labels));
  expect(at(created, 'metadata')).toMatchObject({
    name: one,
    uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
    creationTimestamp: expect.stringMatching(/Z$/),
  });
  // Quotas get their status in a moment; everything else is what it was.
  expect(await client.get(place.path(one))).toMatchObject({
    metadata: { uid: at(created, 'metadata', 'uid') },
    ...(at(created, 'spec') === undefined ? {} : { spec: at(created, 'spec') }),
  });
  expect(await client.refusal('POST', place.here, place.object(one, place.labels))).toEqual([409, 'AlreadyExists']);
  expect(await client.refusal('GET', place.path('missing'))).toEqual([404, 'NotFound']);
  expect(await client.names(`${place.here}?${place.selected}`)).toEqual([one]);
  expect(await client.names(`${place.everywhere}?${place.selected}`)).toEqual([one]);
  expect(
    await client.names(`${place.here}?labelSelector=conformance%21%3D${place.labels['conformance']}`),
  ).not.toContain(one);
  expect(await client.names(`${place.here}?fieldSelector=metadata.name%3D${one}`)).toEqual([one]);
  const { reconciled } = place.kind;
  if (reconciled === undefined) return;
  await vi.waitFor(async () => {
    const conditions = at(await client.get(place.path(one)), 'status', 'conditions');
    expect(conditions).toContainEqual(expect.objectContaining({ type: reconciled }));
  });
}

async function isChanged(place: Place): Promise<void> {
  const [one] = place.names;
  const path = place.path(one);
  const label = async (name: string): Promise<unknown> => at(await client.get(path), 'metadata', 'labels', name);
  const before = await client.get(path);
  await client.patch(path, { metadata: { labels: { patched: 'yes' } } });
  expect(await label('patched')).toBe('yes');
  await client.patch(path, [{ op: 'add', path: '/metadata/labels/json', value: 'yes' }], 'json');
  await client.patch(path, { metadata: { labels: { strategic: 'yes', json: null } } }, 'strategic');
  expect([await label('strategic'), await label('json')]).toEqual(['yes', undefined]);
  const stored = await client.get(path);
  const changed = {
    ...asFields(stored),
    metadata: { ...metadataOf(stored), labels: { ...place.labels, updated: 'yes' } },
  };
  await client.update(path, changed);
  expect([await label('updated'), await label('patched')]).toEqual(['yes', undefined]);
  const stale = { ...changed, metadata: { ...changed.metadata, resourceVersion: versionOf(before) } };
  expect(await client.refusal('PUT', path, stale)).toEqual([409, 'Conflict']);
  const { apiVersion, kind } = asFields(stored);
  const applied = { apiVersion, kind, metadata: { name: one, annotations: { applied: 'yes' } } };
  const managers = at(await client.apply(path, 'test', applied), 'metadata', 'managedFields');
  expect(managers).toContainEqual(expect.objectContaining({ manager: 'test', operation: 'Apply' }));
  expect(versionOf(await client.get(`${path}?resourceVersion=0`))).toBe(versionOf(await client.get(path)));
}

/** The fields with what lists have; they may have more. */
function atLeast(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key,
      Array.isArray(value) ? expect.arrayContaining(value.map((one) => expect.objectContaining(one))) : value,
    ]),
  );
}

async function hasStatus(place: Place, status: Fields): Promise<void> {
  const [one] = place.names;
  const path = place.path(one, 'status');
  const before = await client.get(path);
  const patched = await client.patch(path, { metadata: { annotations: { patchedstatus: 'true' } }, status });
  expect(at(patched, 'metadata', 'annotations', 'patchedstatus')).toBe('true');
  expect(at(patched, 'status')).toMatchObject(status);
  expect(at(patched, 'spec')).toEqual(at(before, 'spec'));
  expect(at(await client.get(path), 'metadata', 'uid')).toBe(at(patched, 'metadata', 'uid'));
  const annotations = { ...asFields(at(patched, 'metadata', 'annotations')), updatedstatus: 'true' };
  // Without a version: the server itself may add a condition meanwhile, as it does to FlowSchemas.
  const { resourceVersion: _, ...metadata } = metadataOf(patched);
  const updated = await client.update(path, { ...asFields(patched), metadata: { ...metadata, annotations } });
  expect(at(updated, 'metadata', 'annotations', 'updatedstatus')).toBe('true');
  // The object itself has no say about its status.
  const through = await client.patch(place.path(one), { status: { conditions: null } });
  expect(at(through, 'status')).toMatchObject(atLeast(status));
}

async function isScaled(place: Place): Promise<void> {
  const [one] = place.names;
  const path = place.path(one, 'scale');
  const scale = await client.get(path);
  expect(scale).toMatchObject({ kind: 'Scale', apiVersion: 'autoscaling/v1', spec: { replicas: 1 } });
  const { metadata } = asFields(scale);
  await client.update(path, { ...asFields(scale), spec: { replicas: 2 } });
  expect(at(await client.get(place.path(one)), 'spec', 'replicas')).toBe(2);
  await client.patch(path, { spec: { replicas: 4 } });
  expect(at(await client.get(path), 'spec', 'replicas')).toBe(4);
  expect(await client.refusal('PUT', path, { ...asFields(scale), metadata })).toEqual([409, 'Conflict']);
}

async function isApproved(place: Place): Promise<void> {
  const [one] = place.names;
  const path = place.path(one, 'approval');
  const approved = { type: 'Approved', status: 'True', reason: 'Tested', message: 'by the test' };
  await client.patch(path, { status: { conditions: [approved] } });
  const stored = await client.get(path);
  expect(at(stored, 'status', 'conditions')).toContainEqual(expect.objectContaining(approved));
  const annotations = { updatedapproval: 'true' };
  const updated = await client.update(path, { ...asFields(stored), metadata: { ...metadataOf(stored), annotations } });
  expect(at(updated, 'metadata', 'annotations')).toMatchObject(annotations);
}

/** Removes the finalizers that a controller would remove: of what is being deleted. */
async function release(place: Place): Promise<void> {
  const pending = async (): Promise<readonly unknown[]> =>
    objects(await client.get(place.here)).filter((one) => at(one, 'metadata', 'deletionTimestamp'));
  if (place.kind.reconciled !== undefined) await vi.waitFor(async () => expect(await pending()).toEqual([]));
  if (place.kind.finalizers !== true) return;
  const deleted = await pending();
  expect(deleted.length).toBeGreaterThan(0);
  for (const object of deleted) await client.patch(place.path(nameOf(object)), { metadata: { finalizers: null } });
}

async function isDeleted(place: Place): Promise<void> {
  const [one, two, three] = place.names;
  // Jobs and ReplicationControllers orphan their pods by default, which takes a garbage collector.
  const background = 'propagationPolicy=Background';
  await client.delete(`${place.path(one)}?${background}`);
  await release(place);
  expect(await client.refusal('GET', place.path(one))).toEqual([404, 'NotFound']);
  expect(await client.refusal('DELETE', place.path(one))).toEqual([404, 'NotFound']);
  await client.create(place.here, place.object(two, place.labels));
  await client.create(place.here, place.object(three, {}));
  await client.delete(`${place.here}?${place.selected}&${background}`);
  await release(place);
  expect(await client.names(`${place.everywhere}?${place.selected}`)).toEqual([]);
  expect(await client.names(place.here)).toContain(three);
  await client.delete(`${place.path(three)}?${background}`);
  await release(place);
}

function asFields(value: unknown): Fields {
  if (typeof value !== 'object' || value === null) throw new Error(`no object: ${JSON.stringify(value)}`);
  return { ...value };
}
const metadataOf = (object: unknown): Fields => asFields(at(object, 'metadata'));

describe('the lifecycle of', () => {
  it.concurrent.each(LIFECYCLES.map((kind) => [kind.type, kind] as const))('%s', async (type, kind) => {
    const namespace = `lifecycle-${type.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`;
    if (kind.namespaced !== false) await client.namespace(namespace);
    const place = new Place(kind, namespace);
    await isDiscovered(place);
    const version = versionOf(await client.get(`${place.everywhere}?${place.selected}`));
    using watch = await client.watch(place.everywhere, `${place.selected}&resourceVersion=${version}`);
    await isCreatedAndRead(place);
    await isChanged(place);
    if (kind.scale === true) await isScaled(place);
    if (kind.approval === true) await isApproved(place);
    if (kind.status !== undefined) await hasStatus(place, kind.status);
    await isDeleted(place);
    const [one, two, three] = place.names;
    await watch.until(({ shown }) => shown.includes(`DELETED ${two}`));
    expect(watch.shown.filter((shown) => !shown.startsWith('MODIFIED'))).toEqual([
      ...[`ADDED ${one}`, `DELETED ${one}`],
      ...[`ADDED ${two}`, `DELETED ${two}`],
    ]);
    expect(watch.shown).toContain(`MODIFIED ${one}`);
    expect(watch.shown.join()).not.toContain(three);
  });
});
