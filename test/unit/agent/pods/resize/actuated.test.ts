// What is known of the resources that instances have: of starts and updates whose response was lost as well.

import { describe, expect, it } from 'vitest';
import { ActuatedPod } from '../../../../../agent/pods/resize/actuated.ts';
import type { ContainerId } from '../../../../../agent/ports/runtime.ts';

const cpu = (milli: number) => ({ requests: { cpu: `${milli}m` } });
const ID = 'web-1' as ContainerId;

type Step = (pod: ActuatedPod) => void;
const starts =
  (milli: number): Step =>
  (pod) =>
    pod.starting('web', cpu(milli));
const fails =
  (attempted: boolean): Step =>
  (pod) =>
    pod.startFailed('web', attempted);
const created =
  (milli: number): Step =>
  (pod) =>
    pod.created('web', ID, cpu(milli));
const updating =
  (milli: number): Step =>
  (pod) =>
    pod.updating('web', ID, cpu(milli));
const updated =
  (milli: number): Step =>
  (pod) =>
    pod.updated('web', ID, cpu(milli));
/** The runtime shows the instance, while so much is allocated. */
const appears =
  (milli: number): Step =>
  (pod) =>
    pod.observed([{ id: ID, name: 'web', state: 'running' }], { web: cpu(milli) });

describe('an instance', () => {
  it.each<[string, Step[], number, number | undefined]>([
    ['has the resources of its start', [starts(1), created(1)], 1, undefined],
    ['is to be actuated where another amount is allocated', [starts(1), created(1)], 2, 1],
    ['that no start is known of has what is allocated', [appears(2)], 2, undefined],
    ['of a failed start has the resources of that start', [starts(1), fails(true), appears(2)], 2, 1],
    [
      'may be that of the start before the last one, if that called the runtime',
      [starts(1), fails(true), starts(2), appears(2)],
      2,
      1,
    ],
    [
      'is of the last start where the one before called nobody',
      [starts(1), fails(false), starts(2), appears(2)],
      2,
      undefined,
    ],
    [
      'may be that of any start before',
      [starts(1), fails(true), starts(2), fails(true), starts(3), fails(false), appears(2)],
      2,
      1,
    ],
    ['has what every start had', [starts(2), fails(true), starts(2), fails(true), appears(2)], 2, undefined],
    ['may have what a failed update was to set', [starts(1), created(1), updating(2)], 1, 2],
    ['may have what it had before a failed update', [starts(1), created(1), updating(2)], 2, 1],
    ['has what an update has set', [starts(1), created(1), updating(2), updated(2)], 2, undefined],
    [
      'has what an update has set, whatever start it is of',
      [starts(1), fails(true), starts(2), appears(2), updating(2), updated(2)],
      2,
      undefined,
    ],
  ])('%s', (_, steps, allocated, differs) => {
    const pod = new ActuatedPod();
    for (const step of steps) step(pod);
    const expected = differs === undefined ? [] : [['web', { id: ID, resources: cpu(differs) }]];
    expect(pod.differing({ web: cpu(allocated) })).toEqual(expected);
    // The next agent actuates whatever may differ.
    expect(pod.saved({ web: cpu(allocated) })).toEqual({ web: cpu(differs ?? allocated) });
  });

  it('that has ended leaves nothing to be actuated', () => {
    const pod = new ActuatedPod();
    for (const step of [starts(1), created(1)]) step(pod);
    pod.observed([], { web: cpu(2) });
    expect(pod.differing({ web: cpu(2) })).toEqual([]);
  });
});

describe('a start under way', () => {
  it('is outdated while other resources than its own are allocated', () => {
    const pod = new ActuatedPod();
    pod.starting('web', cpu(1));
    expect(pod.outdatedStarts({ web: cpu(1) })).toEqual([]);
    expect(pod.outdatedStarts({ web: cpu(2) }).map(([name]) => name)).toEqual(['web']);
    pod.startFailed('web', true);
    expect(pod.outdatedStarts({ web: cpu(2) })).toEqual([]);
  });

  it('may leave an instance of an earlier start: that is what the checkpoint has', () => {
    const pod = new ActuatedPod();
    for (const step of [starts(1), fails(true), starts(2)]) step(pod);
    expect(pod.saved({ web: cpu(2) })).toEqual({ web: cpu(1) });
  });
});
