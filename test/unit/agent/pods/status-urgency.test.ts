import { describe, expect, test } from 'vitest';
import { sameValue } from '../../../../agent/pods/status-patch.ts';
import { type StatusUrgency, statusUrgency } from '../../../../agent/pods/status-urgency.ts';
import { podNeedsSync } from '../../../../agent/pods/sync-triggers.ts';
import type { ContainerStatus, Pod, PodStatus } from '../../../../client/types.ts';

const container = (state: ContainerStatus['state'], restartCount = 0): ContainerStatus => ({
  name: 'web',
  image: 'i',
  imageID: '',
  ready: false,
  restartCount,
  ...(state === undefined ? {} : { state }),
});
const pending = (...containerStatuses: ContainerStatus[]): PodStatus => ({
  phase: 'Pending',
  startTime: '2026-01-01T00:00:00Z',
  containerStatuses,
});
const creating = { waiting: { reason: 'ContainerCreating' } };

describe('how long a status may wait to be written', () => {
  const rows: readonly [string, PodStatus | undefined, PodStatus, StatusUrgency][] = [
    ['a moment: a new pod is being worked on', { phase: 'Pending' }, pending(container(creating)), 'soon'],
    ['a moment: the same before the API had any status', undefined, pending(container(creating)), 'soon'],
    [
      'longer: the pod has its address',
      pending(container(creating)),
      withAddress(pending(container(creating))),
      'later',
    ],
    ['not at all: a container runs', pending(container(creating)), pending(container({ running: {} })), 'now'],
    [
      'not at all: an image cannot be pulled',
      pending(container(creating)),
      pending(container({ waiting: { reason: 'ErrImagePull' } })),
      'now',
    ],
    [
      'not at all: a container starts anew',
      pending(container({ running: {} }, 0)),
      pending(container(creating, 1)),
      'now',
    ],
    ['not at all: the phase', pending(), { phase: 'Running' }, 'now'],
    ['not at all: readiness', ...ready('False', 'True'), 'now'],
    ['a moment: a condition that adds detail', ...ready('True', 'True'), 'soon'],
  ];
  test.each(rows)('%s', (_, before, after, expected) => {
    expect(statusUrgency(before, after)).toBe(expected);
  });
});

function withAddress(status: PodStatus): PodStatus {
  return { ...status, podIP: '10.0.0.1', conditions: [{ type: 'PodReadyToStartContainers', status: 'True' }] };
}

function ready(before: 'True' | 'False', after: 'True' | 'False'): [PodStatus, PodStatus] {
  const status = (value: 'True' | 'False', message: string): PodStatus => ({
    phase: 'Running',
    startTime: '2026-01-01T00:00:00Z',
    conditions: [{ type: 'Ready', status: value, message }],
  });
  return [status(before, 'then'), status(after, 'now')];
}

describe('a newer version of a pod asks for something', () => {
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '1', labels: { a: '1' } },
    spec: { containers: [{ name: 'web', image: 'i' }] },
  };
  const rows: readonly [string, Pod, boolean][] = [
    ['not when only its status changed', { ...pod, status: { phase: 'Running' } }, false],
    ['when its labels did', { ...pod, metadata: { ...pod.metadata, labels: { a: '2' } } }, true],
    ['when its annotations did', { ...pod, metadata: { ...pod.metadata, annotations: { b: '' } } }, true],
    ['when an image did', { ...pod, spec: { containers: [{ name: 'web', image: 'j' }] } }, true],
    [
      'when it is being deleted',
      { ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } },
      true,
    ],
    ['when its grace period did', { ...pod, metadata: { ...pod.metadata, deletionGracePeriodSeconds: 1 } }, true],
    [
      'always when others gate its readiness',
      { ...pod, spec: { ...pod.spec, readinessGates: [{ conditionType: 'x' }] } },
      true,
    ],
  ];
  test.each(rows)('%s', (_, after, expected) => {
    expect(podNeedsSync(pod, after)).toBe(expected);
  });
});

describe('two values say the same', () => {
  const rows: readonly [unknown, unknown, boolean][] = [
    [undefined, null, true],
    [{}, undefined, true],
    [[], null, true],
    [{ a: { b: [] } }, {}, true],
    [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
    [{ a: 1 }, { a: 1, b: undefined }, true],
    [{ a: 1 }, { a: 1, b: 0 }, false],
    [{ a: 1 }, { a: '1' }, false],
    [{ a: {} }, [], true],
    [{}, { constructor: 'x' }, false],
    [[1, 2], [2, 1], false],
    [[1], [1, null], false],
    [[null], [], false],
    [{ a: 1 }, [1], false],
    [false, undefined, false],
    ['', null, false],
  ];
  test.each(rows)('%j and %j: %s', (a, b, expected) => {
    expect([sameValue(a, b), sameValue(b, a)]).toEqual([expected, expected]);
  });
});
