import { describe, expect, it } from 'vitest';
import { MODIFIED } from '../../../../apiserver/errors.ts';
import { patchObject } from '../../../../apiserver/registry/patch.ts';
import { bindPod, ephemeralContainersRules } from '../../../../apiserver/registry/subresources/pods.ts';
import { createObject, statusRules, updateObject } from '../../../../apiserver/registry/write.ts';
import { ADMIN, body, createPod, failureOf, fixture, leases, namespaces, pods } from '../support.ts';

const MERGE = 'application/merge-patch+json';

describe('creating', () => {
  it('fills in what the server owns and drops what a client may not say', () => {
    const { registry } = fixture();
    const view = createObject(
      registry,
      pods,
      'ns',
      body(
        'Pod',
        { name: 'a', uid: 'mine', generation: 7, deletionTimestamp: '2020-01-01T00:00:00Z' },
        { spec: {}, status: { phase: 'Running' } },
      ),
      ADMIN,
    );
    const { metadata } = view.object;
    expect(metadata.uid).not.toBe('mine');
    expect(metadata).toMatchObject({ namespace: 'ns', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' });
    expect(metadata.deletionTimestamp).toBeUndefined();
    expect(view.object['status']).toBeUndefined();
  });

  it('makes a name from generateName', () => {
    const { registry } = fixture();
    const { object } = createObject(registry, pods, 'ns', body('Pod', { generateName: 'job-' }, { spec: {} }), ADMIN);
    expect(object.metadata.name).toMatch(/^job-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  });

  it('stores nothing on a dry run', () => {
    const f = fixture();
    const before = f.store.revision;
    createObject(f.registry, pods, 'ns', body('Pod', { name: 'a' }, { spec: {} }), { ...ADMIN, dryRun: true });
    expect([f.store.revision, f.registry.find(pods, 'ns', 'a')]).toEqual([before, undefined]);
  });

  it('is refused with the real words', () => {
    const f = fixture();
    createPod(f, 'a');
    const create = (name: string, ns: string, metadata = {}, spec = {}) =>
      failureOf(() => createObject(f.registry, pods, ns, body('Pod', { name, ...metadata }, { spec }), ADMIN));
    expect(create('a', 'ns')).toEqual({ code: 409, reason: 'AlreadyExists', message: 'pods "a" already exists' });
    expect(create('b', 'none')).toEqual({ code: 404, reason: 'NotFound', message: 'namespaces "none" not found' });
    expect(create('b', 'ns', { namespace: 'other' })).toMatchObject({ code: 400 });
    expect(create('b', 'ns', { resourceVersion: '5' })).toMatchObject({ code: 400 });
    expect(create('b', 'ns', {}, { image: 'bad' })).toEqual({
      code: 422,
      reason: 'Invalid',
      message: 'Pod "b" is invalid: spec.image: Invalid value: "bad": must be good',
    });
    expect(f.registry.find(pods, 'ns', 'b')).toBeUndefined();
  });
});

describe('updating', () => {
  it('bumps the generation for a new spec through a subresource, too', () => {
    const f = fixture();
    createPod(f, 'a');
    const debug = { spec: { ephemeralContainers: [{ name: 'debug', image: 'busybox' }] } };
    const { object } = patchObject(f.registry, pods, 'ns', 'a', debug, MERGE, ADMIN, ephemeralContainersRules);
    expect(object.metadata.generation).toBe(2);
  });

  it('bumps the generation for a new spec, not for labels or status', () => {
    const f = fixture();
    createPod(f, 'a');
    const patch = (value: unknown, rules = undefined as Parameters<typeof patchObject>[7]) =>
      patchObject(f.registry, pods, 'ns', 'a', value, MERGE, ADMIN, rules).object.metadata.generation;
    expect(patch({ metadata: { labels: { x: 'y' } } })).toBe(1);
    expect(patch({ status: { phase: 'Running' } }, statusRules(pods))).toBe(1);
    expect(patch({ spec: { image: 'new' } })).toBe(2);
  });

  it('keeps the resourceVersion when nothing changes', () => {
    const f = fixture();
    const { resourceVersion } = createPod(f, 'a').object.metadata;
    const again = patchObject(f.registry, pods, 'ns', 'a', { spec: {} }, MERGE, ADMIN);
    expect(again.object.metadata.resourceVersion).toBe(resourceVersion);
  });

  it('conflicts when the object has moved on, and does not without a resourceVersion', () => {
    const f = fixture();
    const { resourceVersion = '' } = createPod(f, 'a').object.metadata;
    const put = (metadata: object, image: string) =>
      updateObject(f.registry, pods, 'ns', 'a', body('Pod', { name: 'a', ...metadata }, { spec: { image } }), ADMIN);
    put({ resourceVersion }, 'one');
    const failure = failureOf(() => put({ resourceVersion }, 'two'));
    expect(failure).toEqual({
      code: 409,
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on pods "a": ${MODIFIED}`,
    });
    expect(put({}, 'three').object['spec']).toEqual({ image: 'three' });
  });

  it('conflicts when it is meant for another object of the same name', () => {
    const f = fixture();
    createPod(f, 'a');
    expect(
      failureOf(() => patchObject(f.registry, pods, 'ns', 'a', { metadata: { uid: 'x' } }, MERGE, ADMIN)),
    ).toMatchObject({
      code: 409,
      message: expect.stringMatching(/UID in precondition: x, UID in object meta/),
    });
  });

  it('of what is not there is 404', () => {
    const { registry } = fixture();
    const lease = body('Lease', { name: 'l' });
    expect(failureOf(() => updateObject(registry, leases, 'ns', 'l', lease, ADMIN))).toMatchObject({
      code: 404,
      message: 'leases.coordination.k8s.io "l" not found',
    });
  });

  it('through the object leaves the status, through the status leaves the spec', () => {
    const f = fixture();
    createPod(f, 'a', { spec: { image: 'one' } });
    const both = { spec: { image: 'two' }, status: { phase: 'Running' } };
    const byStatus = patchObject(f.registry, pods, 'ns', 'a', both, MERGE, ADMIN, statusRules(pods)).object;
    expect([byStatus['spec'], byStatus['status']]).toEqual([{ image: 'one' }, { phase: 'Running' }]);
    const byObject = patchObject(
      f.registry,
      pods,
      'ns',
      'a',
      { ...both, status: { phase: 'Failed' } },
      MERGE,
      ADMIN,
    ).object;
    expect([byObject['spec'], byObject['status']]).toEqual([{ image: 'two' }, { phase: 'Running' }]);
  });

  it('cannot change what the server owns', () => {
    const f = fixture();
    const { metadata } = createPod(f, 'a').object;
    const changed = {
      creationTimestamp: '2000-01-01T00:00:00Z',
      generation: 9,
      deletionTimestamp: '2000-01-01T00:00:00Z',
      labels: { a: 'b' },
    };
    const after = patchObject(f.registry, pods, 'ns', 'a', { metadata: changed }, MERGE, ADMIN).object.metadata;
    expect(after).toMatchObject({ creationTimestamp: metadata.creationTimestamp, generation: 1, labels: { a: 'b' } });
    expect(after.deletionTimestamp).toBeUndefined();
  });
});

describe('binding', () => {
  const bind = (f: ReturnType<typeof fixture>, node: string, metadata = {}) =>
    bindPod(f.registry, 'ns', 'a', { metadata, target: { kind: 'Node', name: node } }, ADMIN);

  it('sets the node and the PodScheduled condition, once', () => {
    const f = fixture();
    createPod(f, 'a');
    bind(f, 'n1');
    const { object } = f.registry.get(pods, 'ns', 'a');
    expect(object['spec']).toEqual({ nodeName: 'n1' });
    expect(object['status']).toMatchObject({ conditions: [{ type: 'PodScheduled', status: 'True' }] });
    expect(failureOf(() => bind(f, 'n2'))).toMatchObject({
      code: 409,
      message: expect.stringContaining('already assigned to node "n1"'),
    });
  });

  it('refuses another uid and an empty target', () => {
    const f = fixture();
    createPod(f, 'a');
    expect(failureOf(() => bind(f, 'n1', { uid: 'other' })).code).toBe(409);
    expect(failureOf(() => bind(f, '')).code).toBe(400);
  });
});

describe('ephemeral containers', () => {
  const patch = (f: ReturnType<typeof fixture>, value: unknown) =>
    patchObject(f.registry, pods, 'ns', 'a', value, MERGE, ADMIN, ephemeralContainersRules);

  it('can be added and not changed or removed; nothing else changes', () => {
    const f = fixture();
    createPod(f, 'a', { spec: { image: 'one' } });
    const added = { spec: { image: 'two', ephemeralContainers: [{ name: 'debug', image: 'busybox' }] } };
    expect(patch(f, added).object['spec']).toEqual({
      image: 'one',
      ephemeralContainers: [{ name: 'debug', image: 'busybox' }],
    });
    expect(failureOf(() => patch(f, { spec: { ephemeralContainers: [] } })).message).toMatch(/may not be removed/);
    expect(
      failureOf(() => patch(f, { spec: { ephemeralContainers: [{ name: 'debug', image: 'x' }] } })).message,
    ).toMatch(/may not be changed/);
  });
});

describe('a namespace that is going', () => {
  it('takes nothing new', async () => {
    const { deleteObject } = await import('../../../../apiserver/registry/delete.ts');
    const f = fixture();
    deleteObject(f.registry, namespaces, '', 'ns', { dryRun: false });
    expect(failureOf(() => createPod(f, 'a'))).toMatchObject({
      code: 403,
      message: 'pods "a" is forbidden: unable to create new content in namespace ns because it is being terminated',
    });
  });
});
