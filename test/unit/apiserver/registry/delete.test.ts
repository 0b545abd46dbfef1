import { describe, expect, it, test } from 'vitest';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import {
  decideDeletion,
  deleteObject,
  deleteWhenAdmitted,
  propagationFinalizers,
} from '../../../../apiserver/registry/delete.ts';
import { patchObject } from '../../../../apiserver/registry/patch.ts';
import { finalizeRules } from '../../../../apiserver/registry/subresources/finalize.ts';
import { createObject, updateObject } from '../../../../apiserver/registry/write.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { ADMIN, body, createPod, failureOf, fixture, namespaces, pods } from '../support.ts';

const NOW = epochMs(Date.parse('2026-01-01T00:00:00Z'));
const object = (metadata: KubeObject['metadata']): KubeObject => ({ apiVersion: 'v1', kind: 'Pod', metadata });
const going = (grace: number): KubeObject =>
  object({ name: 'a', deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: grace });

/** Its end was due before the period could be shortened. */
const goneBy = (grace: number): KubeObject =>
  object({ name: 'a', deletionTimestamp: '2026-01-01T00:00:02Z', deletionGracePeriodSeconds: grace });

describe('what a deletion does', () => {
  const mark = (deletionTimestamp: string, gracePeriodSeconds: number) => ({
    kind: 'mark',
    deletionTimestamp,
    gracePeriodSeconds,
  });
  const cases: readonly [string, KubeObject, boolean, number, boolean, object][] = [
    ['removes at once without grace', object({ name: 'a' }), false, 0, false, { kind: 'remove' }],
    ['marks with the time the grace ends', object({ name: 'a' }), false, 30, false, mark('2026-01-01T00:00:30Z', 30)],
    ['marks what a finalizer holds', object({ name: 'a' }), true, 0, false, mark('2026-01-01T00:00:00Z', 0)],
    ['leaves a pending one when no period is named', going(30), false, 30, false, { kind: 'pending' }],
    ['shortens a period', going(30), false, 10, true, mark('2026-01-01T00:00:10Z', 10)],
    ['does not set the end into the past', goneBy(10), false, 5, true, mark('2026-01-01T00:00:00Z', 1)],
    ['does not lengthen a period', going(30), false, 60, true, { kind: 'pending' }],
    ['removes a pending one with period 0', going(30), false, 0, true, { kind: 'remove' }],
    ['with period 0 still waits for a finalizer', going(30), true, 0, true, mark('2026-01-01T00:00:00Z', 0)],
    ['waits for the finalizer after that', going(0), true, 0, true, { kind: 'pending' }],
    ['removes one whose grace is over', going(0), false, 30, false, { kind: 'remove' }],
  ];
  for (const [does, given, retained, grace, requested, expected] of cases) {
    it(does, () => expect(decideDeletion(given, retained, grace, requested, NOW)).toEqual(expected));
  }
});

describe('the policy for dependents', () => {
  const FOREGROUND = 'foregroundDeletion';
  test.each([
    [[], undefined, []],
    [[], 'Background', []],
    [['x/y'], 'Foreground', ['x/y', FOREGROUND]],
    [['x/y'], 'Orphan', ['x/y', 'orphan']],
    [['orphan'], undefined, ['orphan']],
    [['orphan', 'x/y'], 'Background', ['x/y']],
    [['orphan'], 'Foreground', [FOREGROUND]],
    [[FOREGROUND], 'Orphan', ['orphan']],
  ] as const)('%j with %s becomes %j', (finalizers, propagation, expected) => {
    expect(propagationFinalizers(finalizers, propagation)).toEqual(expected);
  });

  it('keeps the object until a garbage collector removes the finalizer', () => {
    const f = fixture();
    createPod(f, 'a');
    const first = deleteObject(f.registry, pods, 'ns', 'a', { dryRun: false, propagation: 'Foreground' });
    expect(first.removed).toBe(false);
    expect(first.view.object.metadata).toMatchObject({ finalizers: [FOREGROUND], deletionGracePeriodSeconds: 0 });
    const again = deleteObject(f.registry, pods, 'ns', 'a', { dryRun: false, propagation: 'Orphan' });
    expect(again.view.object.metadata.finalizers).toEqual(['orphan']);
    patchObject(f.registry, pods, 'ns', 'a', { metadata: { finalizers: null } }, 'application/merge-patch+json', ADMIN);
    expect(f.registry.find(pods, 'ns', 'a')).toBeUndefined();
  });

  it('changes nothing in a dry run, nor while a grace period runs', () => {
    const f = fixture();
    createPod(f, 'a', { spec: { nodeName: 'n1' } });
    const dry = deleteObject(f.registry, pods, 'ns', 'a', { dryRun: true, propagation: 'Foreground' });
    expect(dry.view.object.metadata.finalizers).toEqual([FOREGROUND]);
    deleteObject(f.registry, pods, 'ns', 'a', { dryRun: false });
    const pending = deleteObject(f.registry, pods, 'ns', 'a', { dryRun: false, propagation: 'Orphan' });
    expect(pending.view.object.metadata.finalizers).toBeUndefined();
  });
});

describe('deleting', () => {
  const options = { dryRun: false };

  it('a pod on a node marks it; grace period 0 removes it', () => {
    const f = fixture();
    createPod(f, 'a', { spec: { nodeName: 'n1' } });
    const first = deleteObject(f.registry, pods, 'ns', 'a', options);
    expect(first.removed).toBe(false);
    expect(first.view.object.metadata).toMatchObject({ deletionGracePeriodSeconds: 30, generation: 2 });
    expect(deleteObject(f.registry, pods, 'ns', 'a', { ...options, gracePeriodSeconds: 0 }).removed).toBe(true);
    expect(f.registry.find(pods, 'ns', 'a')).toBeUndefined();
  });

  it('an unbound pod removes it', () => {
    const f = fixture();
    createPod(f, 'a');
    expect(deleteObject(f.registry, pods, 'ns', 'a', options).removed).toBe(true);
  });

  it('honours uid and resourceVersion as preconditions', () => {
    const f = fixture();
    const { uid = '', resourceVersion = '' } = createPod(f, 'a').object.metadata;
    expect(failureOf(() => deleteObject(f.registry, pods, 'ns', 'a', { ...options, uid: 'other' })).code).toBe(409);
    expect(failureOf(() => deleteObject(f.registry, pods, 'ns', 'a', { ...options, resourceVersion: '0' })).code).toBe(
      409,
    );
    expect(deleteObject(f.registry, pods, 'ns', 'a', { ...options, uid, resourceVersion }).removed).toBe(true);
  });

  it('removes nothing on a dry run', () => {
    const f = fixture();
    createPod(f, 'a');
    deleteObject(f.registry, pods, 'ns', 'a', { dryRun: true });
    expect(f.registry.find(pods, 'ns', 'a')).toBeDefined();
  });

  it('waits for finalizers: the update that drops the last one removes the object', () => {
    const f = fixture();
    createPod(f, 'a', { finalizers: ['a.b/c'] });
    expect(deleteObject(f.registry, pods, 'ns', 'a', options).removed).toBe(false);
    patchObject(f.registry, pods, 'ns', 'a', { metadata: { finalizers: null } }, 'application/merge-patch+json', ADMIN);
    expect(f.registry.find(pods, 'ns', 'a')).toBeUndefined();
  });

  it('does not remove a pod in its grace period when its last finalizer goes', () => {
    const f = fixture();
    createPod(f, 'a', { finalizers: ['a.b/c'], spec: { nodeName: 'n1' } });
    deleteObject(f.registry, pods, 'ns', 'a', options);
    patchObject(f.registry, pods, 'ns', 'a', { metadata: { finalizers: null } }, 'application/merge-patch+json', ADMIN);
    expect(f.registry.find(pods, 'ns', 'a')).toBeDefined();
  });

  it('a namespace makes it Terminating until it is finalized', () => {
    const f = fixture();
    const { view } = deleteObject(f.registry, namespaces, '', 'ns', options);
    expect(view.object['status']).toEqual({ phase: 'Terminating' });
    expect(view.object.metadata.deletionTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    updateObject(
      f.registry,
      namespaces,
      '',
      'ns',
      body('Namespace', { name: 'ns' }, { spec: {} }),
      ADMIN,
      finalizeRules,
    );
    expect(f.registry.find(namespaces, '', 'ns')).toBeUndefined();
  });

  it('is forbidden for the default namespace and 404 for what is not there', async () => {
    const f = fixture();
    createObject(f.registry, namespaces, '', body('Namespace', { name: 'default' }), ADMIN);
    const deleted = deleteWhenAdmitted(f.registry, namespaces, '', 'default', options, ADMIN);
    await expect(deleted).rejects.toThrow('namespaces "default" is forbidden: this namespace may not be deleted');
    expect(failureOf(() => deleteObject(f.registry, pods, 'ns', 'none', options)).code).toBe(404);
  });
});
