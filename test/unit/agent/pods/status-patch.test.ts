// The patch that writes a pod's status: what is in it, and what never is.

import { describe, expect, it } from 'vitest';
import { computeStatusPatch } from '../../../../agent/pods/status-patch.ts';
import type { PodCondition } from '../../../../client/types.ts';
import { applyStatusPatch } from '../../../../labs/sim/status-patch.ts';
import { plusMs } from '../../../../lib/clock.ts';
import { makePod } from '../../../sim/fakes.ts';
import { ended, instance, NOW, statusOf } from './status-of.ts';

describe('the status patch', () => {
  const status = statusOf(makePod('p'), [instance('web')]);
  it('is nothing when nothing changed, however absent things are spelled', () => {
    expect(computeStatusPatch(structuredClone(status), status)).toBeUndefined();
    const spelled = structuredClone(status);
    const web = spelled.containerStatuses?.[0];
    if (web !== undefined) Reflect.deleteProperty(web, 'lastState');
    Object.assign(spelled.conditions?.[0] ?? {}, { lastProbeTime: null });
    expect(computeStatusPatch(spelled, status)).toBeUndefined();
  });
  it('turns the one into the other', () => {
    const after = statusOf(makePod('p'), [ended('web', 1)], { previous: status, now: plusMs(NOW, 9000) });
    const patch = computeStatusPatch(status, after) ?? {};
    expect(applyStatusPatch(status, patch)).toEqual(after);
    expect(Object.keys(patch)).toEqual(['containerStatuses', 'conditions']);
  });
  it('takes back reasons that are no longer so', () => {
    const before = statusOf(makePod('p'), []);
    const patch = computeStatusPatch(before, status) ?? {};
    expect(applyStatusPatch(before, patch)).toEqual(status);
  });
  it('never touches conditions of others', () => {
    const foreign = { type: 'example.com/gate', status: 'True' };
    const base = { ...status, conditions: [...(status.conditions ?? []), foreign] };
    const stale = { ...status, conditions: [...(status.conditions ?? []), { ...foreign, status: 'False' }] };
    expect(computeStatusPatch(base, stale)).toBeUndefined();
    expect(computeStatusPatch(base, status)).toBeUndefined();
  });
  it('never touches a DisruptionTarget of others, whatever was known of it', () => {
    const theirs = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager', message: 'theirs' };
    const own = { ...theirs, reason: 'TerminationByKubelet', message: 'ours' };
    const withCondition = (one: object) => ({
      ...status,
      conditions: [...(status.conditions ?? []), one as PodCondition],
    });
    expect(computeStatusPatch(withCondition(theirs), status)).toBeUndefined();
    expect(computeStatusPatch(status, withCondition(theirs))).toBeUndefined();
    expect(computeStatusPatch(withCondition({ ...theirs, message: 'new' }), withCondition(theirs))).toBeUndefined();
    expect(computeStatusPatch(status, withCondition(own))).toEqual({ conditions: [own] });
    // Once reported, it stays, also while a later status does not contain it.
    expect(computeStatusPatch(withCondition(own), status)).toBeUndefined();
  });
  it('has nothing of a DisruptionTarget of others, which is served with the status all the same', () => {
    const theirs: PodCondition = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' };
    const pod = { ...makePod('p'), status: { conditions: [theirs] } };
    expect(statusOf(pod, [instance('web')]).conditions).toContainEqual(theirs);
  });
  it('leaves out generations of conditions for a server that drops them', () => {
    const pod = makePod('p', {}, { generation: 2 });
    const wanted = statusOf(pod, [instance('web')]);
    const kept = structuredClone(wanted);
    for (const condition of kept.conditions ?? []) delete condition.observedGeneration;
    expect(computeStatusPatch(kept, wanted)).toMatchObject({ conditions: expect.any(Array) });
    expect(computeStatusPatch(kept, wanted, new Set(['conditions[].observedGeneration']))).toBeUndefined();
  });
  it('replaces addresses rather than adding to them', () => {
    const moved = { ...status, podIP: '10.0.0.9', podIPs: [{ ip: '10.0.0.9' }] };
    const patch = computeStatusPatch(status, moved) ?? {};
    expect(applyStatusPatch(status, patch).podIPs).toEqual([{ ip: '10.0.0.9' }]);
  });
});
