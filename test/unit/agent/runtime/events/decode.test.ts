import { describe, expect, test } from 'vitest';
import { CONTAINERD_FILTERS, decodeEnvelope } from '../../../../../agent/runtime/events/containerd-events.ts';
import { decodeContainerEvent } from '../../../../../agent/runtime/events/cri-events.ts';
import { longestRelistMs, nextRelistMs, plegProblem } from '../../../../../agent/runtime/events/pleg.ts';
import { monotonicMs } from '../../../../../lib/clock.ts';
import type { Envelope__Output } from '../../../../../proto/gen/containerd/types/Envelope.ts';
import { loadProto } from '../../../../../proto/load.ts';

const types = loadProto('containerd-tasks').containerd.events;

function envelope(name: string, value: Buffer, overrides: Partial<Envelope__Output> = {}): Envelope__Output {
  return {
    timestamp: { seconds: '1700000000', nanos: 250_000_000 },
    namespace: 'k8s.io',
    topic: '/tasks/x',
    event: { type_url: `containerd.events.${name}`, value },
    ...overrides,
  };
}

describe('containerd’s events', () => {
  const exit = types.TaskExit.serialize({
    container_id: 'c1',
    id: 'c1',
    exit_status: 3,
    exited_at: { seconds: 1_699_999_999, nanos: 999_000_000 },
  });
  const oom = types.TaskOOM.serialize({ container_id: 'c1' });
  test.each([
    [
      'a start',
      envelope('TaskStart', types.TaskStart.serialize({ container_id: 'c1', pid: 9 })),
      { kind: 'started', id: 'c1', at: 1_700_000_000_250 },
    ],
    [
      'an exit, dated by the exit itself',
      envelope('TaskExit', exit),
      { kind: 'exited', id: 'c1', at: 1_699_999_999_999, exitCode: 3 },
    ],
    [
      'an exit without a date',
      envelope('TaskExit', types.TaskExit.serialize({ container_id: 'c1', id: 'c1' })),
      { kind: 'exited', id: 'c1', at: 1_700_000_000_250, exitCode: 0 },
    ],
    ['an OOM kill', envelope('TaskOOM', oom), { kind: 'oom', id: 'c1', at: 1_700_000_000_250 }],
    [
      'a removal',
      envelope('ContainerDelete', types.ContainerDelete.serialize({ id: 'c1' })),
      { kind: 'removed', id: 'c1', at: 1_700_000_000_250 },
    ],
    [
      'with a type URL',
      { ...envelope('', oom), event: { type_url: 'types.containerd.io/containerd.events.TaskOOM', value: oom } },
      { kind: 'oom', id: 'c1', at: 1_700_000_000_250 },
    ],
    [
      'the exit of an exec is not the container’s',
      envelope('TaskExit', types.TaskExit.serialize({ container_id: 'c1', id: 'exec-7' })),
      undefined,
    ],
    ['another namespace is not Kubernetes’', envelope('TaskExit', exit, { namespace: 'moby' }), undefined],
    ['other events', envelope('TaskPaused', types.TaskPaused.serialize({ container_id: 'c1' })), undefined],
    ['an envelope without an event', envelope('', exit, { event: null }), undefined],
  ])('%s', (_what, received, expected) => {
    expect(decodeEnvelope(received)).toEqual(expected);
  });

  test('only the topics that are understood are asked for, in Kubernetes’ namespace', () => {
    expect(CONTAINERD_FILTERS).toContain('namespace=="k8s.io",topic=="/tasks/exit"');
  });
});

test.each([
  ['CONTAINER_CREATED_EVENT', undefined],
  ['CONTAINER_STARTED_EVENT', 'started'],
  ['CONTAINER_STOPPED_EVENT', 'exited'],
  ['CONTAINER_DELETED_EVENT', 'removed'],
] as const)('CRI’s %s is %s', (container_event_type, kind) => {
  const event = decodeContainerEvent({
    container_id: 'c1',
    container_event_type,
    created_at: '1700000000250000000',
    pod_sandbox_status: null,
    containers_statuses: [],
  });
  expect(event).toEqual(kind === undefined ? undefined : { kind, id: 'c1', at: 1_700_000_000_250 });
});

test.each([
  ['nothing was asked for yet', undefined, undefined, 1e9, undefined],
  ['the first list may take its time', 0, undefined, 180_000, undefined],
  ['the first list does not come', 0, undefined, 180_001, 'PLEG is not healthy: pleg has yet to be successful'],
  ['the last list is three minutes old', 0, 20_000, 200_000, undefined],
  [
    'the last list is older',
    0,
    20_000,
    207_500,
    'PLEG is not healthy: pleg was last seen active 3m7.5s ago; threshold is 3m0s',
  ],
])('%s', (_what, startedAt, relistedAt, now, problem) => {
  const moment = (ms: number | undefined) => (ms === undefined ? undefined : monotonicMs(ms));
  expect(plegProblem(moment(startedAt), moment(relistedAt), monotonicMs(now))).toBe(problem);
});

test('lists become rarer up to six times where nothing happens', () => {
  const pauses = [10_000];
  while (pauses.length < 6) pauses.push(nextRelistMs(pauses.at(-1) ?? 0, 10_000));
  expect(pauses).toEqual([10_000, 20_000, 40_000, 60_000, 60_000, 60_000]);
  expect(longestRelistMs(10_000)).toBe(60_000);
});
