// Who makes room for a critical pod: the kubelet's choice, rule by rule.

import { describe, expect, it, test } from 'vitest';
import { admitToNode } from '../../../../agent/admission/admission.ts';
import { chooseVictims, isPreemptable } from '../../../../agent/admission/preemption.ts';
import type { Pod } from '../../../../client/types.ts';
import { makePod } from '../../../sim/fakes.ts';
import { asking, fromFile, NODE } from './support.ts';

const bestEffort = (name: string): Pod => asking(name, {});
const burstable = (name: string, cpu: string, memory = '10Mi'): Pod => asking(name, { cpu, memory });
const guaranteed = (name: string, cpu: string, memory = '10Mi'): Pod =>
  asking(name, { cpu, memory }, { limits: { cpu, memory } });
const critical = fromFile(asking('critical', { cpu: '500m' }));

function victims(others: readonly Pod[], missing: Record<string, number>): readonly string[] | string {
  const wanted = Object.entries(missing).map(([resource, amount]) => ({ resource, amount }));
  const choice = chooseVictims(critical, others, wanted);
  return choice.kind === 'victims' ? choice.pods.map(({ metadata }) => metadata.name) : 'impossible';
}

describe('victims', () => {
  const rows: readonly [string, readonly Pod[], Record<string, number>, readonly string[] | string][] = [
    [
      'come from the lowest class of service that has enough',
      [guaranteed('g', '500m'), burstable('b', '500m')],
      { cpu: 400 },
      ['b'],
    ],
    [
      'are Guaranteed pods when nothing else is enough',
      [guaranteed('g', '500m'), bestEffort('e')],
      { cpu: 400 },
      ['g'],
    ],
    ['are BestEffort pods when only a place is missing', [bestEffort('e'), burstable('b', '1')], { pods: 1 }, ['e']],
    [
      'are the fewest: one that is enough rather than two that are',
      [burstable('small-1', '200m'), burstable('small-2', '200m'), burstable('big', '400m')],
      { cpu: 400 },
      ['big'],
    ],
    [
      'are the smallest that is enough',
      [burstable('huge', '900m', '900Mi'), burstable('fits', '400m', '20Mi')],
      { cpu: 400 },
      ['fits'],
    ],
    ['are several when one is not enough', [burstable('a', '300m'), burstable('b', '200m')], { cpu: 400 }, ['a', 'b']],
    ['include no BestEffort pod that gives nothing', [bestEffort('e'), burstable('b', '500m')], { cpu: 400 }, ['b']],
    ['cannot be found when all together are not enough', [burstable('b', '100m')], { cpu: 400 }, 'impossible'],
    ['are never critical pods', [fromFile(burstable('other', '1'))], { cpu: 400 }, 'impossible'],
    [
      'cover every resource that is missing',
      [burstable('cpu', '500m', '1Mi'), burstable('memory', '1m', '500Mi')],
      { cpu: 400, memory: 400 * 1024 * 1024 },
      ['cpu', 'memory'],
    ],
  ];
  test.each(rows)('%s', (_name, others, missing, expected) => {
    const found = victims(others, missing);
    expect(typeof found === 'string' ? found : [...found].sort()).toEqual(expected);
  });
});

describe('precedence', () => {
  const rows: readonly [string, Pod, Pod, boolean][] = [
    ['a critical pod goes before an ordinary one', critical, makePod('p'), true],
    ['an ordinary pod does not go before a critical one', makePod('p'), critical, false],
    [
      'of two with priorities the higher goes first',
      makePod('p', { priority: 10 }),
      makePod('q', { priority: 5 }),
      true,
    ],
    ['equal priorities stay as they are', makePod('p', { priority: 5 }), makePod('q', { priority: 5 }), false],
    [
      'system-node-critical goes before system-cluster-critical',
      makePod('p', { priority: 2_000_001_000 }),
      makePod('q', { priority: 2_000_000_000 }),
      true,
    ],
  ];
  test.each(rows)('%s', (_name, preemptor, other, expected) => {
    expect(isPreemptable(preemptor, other)).toBe(expected);
  });
});

describe('a critical pod', () => {
  it('that lacks room is given it', () => {
    const others = [burstable('b', '1800m')];
    expect(admitToNode(critical, others, NODE)).toEqual({ preempt: others });
  });

  it('with a system priority from the API server is given room as well', () => {
    const others = [burstable('b', '1800m')];
    const pod = asking('p', { cpu: '500m' }, { spec: { priority: 2_000_000_000 } });
    expect(admitToNode(pod, others, NODE)).toEqual({ preempt: others });
  });

  it('that does not belong here evicts no pod', () => {
    const pod = fromFile(asking('p', { cpu: '500m' }, { spec: { nodeSelector: { zone: 'b' } } }));
    expect(admitToNode(pod, [burstable('b', '1800m')], NODE)).toMatchObject({ reason: 'NodeAffinity' });
  });

  it('for which no room can be made is refused in the kubelet’s words', () => {
    expect(admitToNode(fromFile(asking('p', { cpu: '3' })), [burstable('b', '500m')], NODE)).toEqual({
      reason: 'UnexpectedAdmissionError',
      message:
        'Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods ' +
        'to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]',
    });
  });

  it('an ordinary pod in the same place is refused', () => {
    expect(admitToNode(asking('p', { cpu: '500m' }), [burstable('b', '1800m')], NODE)).toMatchObject({
      reason: 'OutOfcpu',
    });
  });
});
