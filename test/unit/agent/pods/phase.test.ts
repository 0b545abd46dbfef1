// The phase of a pod, by its containers' statuses.

import { describe, expect, it } from 'vitest';
import { computePhase } from '../../../../agent/pods/phase.ts';
import type { ContainerStatus } from '../../../../client/types.ts';
import { makePod } from '../../../sim/fakes.ts';

describe('the phase', () => {
  const running: ContainerStatus['state'] = { running: {} };
  const waiting: ContainerStatus['state'] = { waiting: {} };
  const end = (exitCode: number): ContainerStatus['state'] => ({ terminated: { exitCode } });
  const of = (name: string, state: ContainerStatus['state'], last?: ContainerStatus['state'], started = true) =>
    ({
      name,
      image: '',
      imageID: '',
      ready: false,
      restartCount: 0,
      started,
      state,
      lastState: last,
    }) as ContainerStatus;
  type Row = readonly [string, string, readonly ContainerStatus[], readonly ContainerStatus[], string];
  const rows: readonly Row[] = [
    ['Pending while a container was never started', 'Always', [of('a', running), of('b', waiting)], [], 'Pending'],
    ['Running while one runs', 'Never', [of('a', running), of('b', end(1))], [], 'Running'],
    ['Running while one waits to be restarted', 'Always', [of('a', waiting, end(1)), of('b', running)], [], 'Running'],
    ['Running under Always though all ended', 'Always', [of('a', end(0)), of('b', end(0))], [], 'Running'],
    ['Running under OnFailure while one failed', 'OnFailure', [of('a', end(1)), of('b', end(0))], [], 'Running'],
    ['Succeeded under OnFailure when all succeeded', 'OnFailure', [of('a', end(0)), of('b', end(0))], [], 'Succeeded'],
    ['Succeeded under Never when all succeeded', 'Never', [of('a', end(0)), of('b', end(0))], [], 'Succeeded'],
    ['Failed under Never when one failed', 'Never', [of('a', end(0)), of('b', end(1))], [], 'Failed'],
    [
      'Pending while an init container runs',
      'Always',
      [of('a', waiting), of('b', waiting)],
      [of('i', running)],
      'Pending',
    ],
    [
      'Failed when an init container failed under Never',
      'Never',
      [of('a', waiting), of('b', waiting)],
      [of('i', end(1))],
      'Failed',
    ],
    [
      'Pending when an init container failed under Always',
      'Always',
      [of('a', waiting), of('b', waiting)],
      [of('i', end(1))],
      'Pending',
    ],
    ['Pending when nothing is known', 'Always', [], [], 'Pending'],
  ];
  it.each(rows)('is %s (%s)', (_name, restartPolicy, regular, init, expected) => {
    const containers = ['a', 'b'].map((name) => ({ name, image: 'i' }));
    const initContainers = init.length > 0 ? [{ name: 'i', image: 'i' }] : [];
    const pod = makePod('p', { restartPolicy, containers, initContainers });
    expect(computePhase({ pod, regular, init, over: false, previous: undefined })).toBe(expected);
  });
  it.each([
    ['Succeeded', 'Succeeded'],
    ['Failed', 'Failed'],
    ['Running', 'Running'],
  ])('once %s does not go back', (previous, expected) => {
    const pod = makePod('p');
    expect(computePhase({ pod, regular: [of('web', waiting)], init: [], over: false, previous })).toBe(expected);
  });
  it('is Running with only a sidecar left, until that is dead too', () => {
    const sidecar = { name: 'i', image: 'i', restartPolicy: 'Always' };
    const pod = makePod('p', { restartPolicy: 'Never', initContainers: [sidecar] });
    const regular = [of('web', end(0))];
    const facts = { pod, regular, over: false, previous: 'Running' };
    expect(computePhase({ ...facts, init: [of('i', running)] })).toBe('Running');
    expect(computePhase({ ...facts, init: [of('i', end(143))] })).toBe('Succeeded');
  });
});
