// Every way of the table of states, taken once, and no other; and the page that shows the table.

import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { actionEnded } from '../../../../agent/pods/outcome.ts';
import {
  admittedPod,
  type FinishedState,
  finishedPod,
  isTransition,
  type PodState,
  rejectedPod,
  type TerminatedState,
  type TerminatingState,
  TRANSITIONS,
  type Transition,
  terminatedPod,
  terminatingPod,
} from '../../../../agent/pods/pod-state.ts';
import { advancePod, evictPod, runningPodSeen, stepPod } from '../../../../agent/pods/pod-step.ts';
import { ACTION_IDS, type LastingAction } from '../../../../agent/pods/sync-action.ts';
import type { ContainerId, SandboxId } from '../../../../agent/ports/runtime.ts';
import type { Container } from '../../../../client/types.ts';
import { LIFECYCLE_PAGE, withLifecycle } from '../../../../scripts/pod-lifecycle.ts';
import {
  CREATE_SANDBOX,
  DELETED,
  facts,
  instance,
  NOTHING_THERE,
  NOW,
  podOf,
  sandbox,
  snapshotOf,
  startOf,
  syncing,
  UID,
  underWay,
} from './step-facts.ts';

const terminating = (over: Partial<TerminatingState> = {}): TerminatingState => ({
  ...terminatingPod(syncing(), 'deleted'),
  ...over,
});
const terminated = (over: Partial<TerminatedState> = {}): TerminatedState => ({
  ...terminatedPod(terminating()),
  ...over,
});
const finished = (over: Partial<FinishedState> = {}): FinishedState => ({ ...finishedPod(terminated()), ...over });

const RUNNING = snapshotOf([instance('running')]);
const DEAD = snapshotOf([instance('exited')], [sandbox({ state: 'notReady' })]);
const INIT: Container = { name: 'init', image: 'busybox:stable' };
const RELEASE: LastingAction = { kind: 'releaseResources', id: ACTION_IDS.release, keepsEnds: false };
const REMOVE: LastingAction = {
  kind: 'removeFromRuntime',
  id: ACTION_IDS.removeFromRuntime,
  snapshot: DEAD,
  last: true,
};
const ended = (state: PodState, action: LastingAction): PodState =>
  actionEnded(state, action, { kind: 'done' }, { podUID: UID, config: facts().config, now: NOW }).state;

/** Takes each way; one to two states further where nothing is left to do in the first. */
const WAYS: readonly (readonly [Transition['from'], Transition['cause'], PodState['kind'], () => PodState])[] = [
  ['new', 'admitted', 'syncing', () => admittedPod()],
  ['new', 'rejected', 'finished', () => rejectedPod()],
  ['syncing', 'deleted', 'terminating', () => advancePod(syncing(), facts({ pod: podOf({}, DELETED) })).state],
  ['syncing', 'removed', 'terminating', () => advancePod(syncing(), facts({ removed: true })).state],
  [
    'syncing',
    'evicted',
    'terminating',
    () => evictPod(syncing(), { reason: 'Evicted', message: 'low on memory', graceSeconds: 1 }),
  ],
  [
    'syncing',
    'deadlineExceeded',
    'terminating',
    () =>
      advancePod(
        syncing(),
        facts({ pod: podOf({ activeDeadlineSeconds: 60 }), previous: { startTime: '2026-01-01T00:58:00Z' } }),
      ).state,
  ],
  [
    'syncing',
    'terminalPhase',
    'terminating',
    () => advancePod(syncing(), facts({ previous: { phase: 'Failed' } })).state,
  ],
  [
    'syncing',
    'completed',
    'terminating',
    () =>
      stepPod(syncing(), facts({ pod: podOf({ restartPolicy: 'Never' }), snapshot: snapshotOf([instance('exited')]) }))
        .state,
  ],
  [
    'syncing',
    'initFailed',
    'terminating',
    () =>
      stepPod(
        syncing(),
        facts({
          pod: podOf({ restartPolicy: 'Never', initContainers: [INIT] }),
          snapshot: snapshotOf([instance('exited', { type: 'init', exitCode: 1 }, INIT)]),
        }),
      ).state,
  ],
  [
    'syncing',
    'sandboxDead',
    'terminating',
    () => stepPod(syncing(), facts({ pod: podOf({ restartPolicy: 'Never' }), snapshot: DEAD })).state,
  ],
  [
    'terminating',
    'stopped',
    'terminated',
    () => stepPod(terminating({ stoppedSandboxes: new Set([sandbox().id]) }), facts({ snapshot: DEAD })).state,
  ],
  ['terminated', 'startedLate', 'terminating', () => stepPod(terminated(), facts({ snapshot: RUNNING })).state],
  ['terminated', 'resourcesReleased', 'finished', () => ended(terminated({ underWay: underWay(RELEASE) }), RELEASE)],
  ['finished', 'startedLate', 'terminating', () => runningPodSeen(finished())],
  ['finished', 'removedFromRuntime', 'removed', () => ended(finished({ underWay: underWay(REMOVE) }), REMOVE)],
];

describe('every way from one state to the next', () => {
  it.each(WAYS)('%s, %s: %s', (from, cause, to, take) => {
    expect(isTransition(from, cause, to)).toBe(true);
    const state = take();
    expect(state.kind).toBe(to);
    if (state.kind === 'terminating') expect(state.cause).toBe(cause);
  });

  it('is taken above', () => {
    const key = ({ from, cause, to }: Pick<Transition, 'from' | 'cause' | 'to'>): string => `${from} ${cause} ${to}`;
    expect(WAYS.map(([from, cause, to]) => key({ from, cause, to })).sort()).toEqual(TRANSITIONS.map(key).sort());
  });

  it('that the table does not have breaks an invariant', () => {
    expect(() => terminatingPod(syncing(), 'startedLate')).toThrow('a pod changes its state as the table says');
    expect(() => terminatingPod(finished(), 'deleted')).toThrow('a pod changes its state as the table says');
  });
});

describe('a state is kept', () => {
  const pod = podOf({}, DELETED);
  const late = snapshotOf([instance('running')], [sandbox({ id: 's1' as SandboxId })]);
  it.each<[string, PodState, () => PodState]>([
    ['syncing while it runs', syncing(), () => stepPod(syncing(), facts({ snapshot: RUNNING })).state],
    [
      'syncing before its deadline',
      syncing(),
      () =>
        advancePod(
          syncing(),
          facts({ pod: podOf({ activeDeadlineSeconds: 600 }), previous: { startTime: '2026-01-01T00:58:00Z' } }),
        ).state,
    ],
    [
      'terminating while a container runs',
      terminating(),
      () => stepPod(terminating(), facts({ pod, snapshot: RUNNING })).state,
    ],
    [
      'terminating while a container is being started, although none is seen',
      terminating(),
      () => stepPod(terminating({ underWay: underWay(startOf()) }), facts({ pod })).state,
    ],
    [
      'terminating when a start ended during the observation',
      terminating(),
      () => stepPod(terminating(), facts({ pod, underWayBefore: underWay(startOf()) })).state,
    ],
    [
      'terminating while a sandbox is being made',
      terminating(),
      () => stepPod(terminating({ underWay: underWay(CREATE_SANDBOX) }), facts({ pod })).state,
    ],
    [
      'terminating while its cgroup is being made',
      terminating(),
      () =>
        stepPod(terminating({ underWay: underWay({ kind: 'preparePod', id: ACTION_IDS.prepare }) }), facts({ pod }))
          .state,
    ],
    [
      'terminating while a sandbox is not stopped',
      terminating(),
      () => stepPod(terminating(), facts({ pod, snapshot: DEAD })).state,
    ],
    [
      'terminating when the node would end it too',
      terminating(),
      () => evictPod(terminating(), { reason: 'Evicted', message: '' }),
    ],
    [
      'terminated when releasing failed',
      terminated(),
      () =>
        actionEnded(
          terminated({ underWay: underWay(RELEASE) }),
          RELEASE,
          { kind: 'failed', error: new Error('busy') },
          { podUID: UID, config: facts().config, now: NOW },
        ).state,
    ],
    ['finished while nobody deletes it', finished(), () => stepPod(finished(), facts({ snapshot: DEAD })).state],
    [
      'finished while its dead containers are being removed',
      finished(),
      () => stepPod(finished({ underWay: underWay(REMOVE) }), facts({ pod, snapshot: DEAD })).state,
    ],
    [
      'finished where nothing of it was ever here, whatever a list shows',
      rejectedPod(),
      () => runningPodSeen(rejectedPod()),
    ],
    [
      'finished when a sandbox is shown ready that was stopped',
      finished(),
      () => stepPod(finished({ stoppedSandboxes: new Set([sandbox().id]) }), facts({ snapshot: snapshotOf() })).state,
    ],
  ])('%s', (_, before, after) => {
    expect(after().kind).toBe(before.kind);
  });

  it('finished only until something of it comes up late', () => {
    const { state, actions } = stepPod(finished(), facts({ pod, snapshot: late }));
    expect(state).toMatchObject({ kind: 'terminating', cause: 'startedLate' });
    expect(actions).toMatchObject([{ kind: 'killContainer', kill: { instance: { id: 'web-1' as ContainerId } } }]);
  });
});

describe('a deleted pod that has finished', () => {
  const pod = podOf({}, DELETED);

  it('is finalized before what the runtime keeps of it is removed, and once', () => {
    const first = stepPod(finished(), facts({ pod, snapshot: DEAD }));
    expect(first.actions.map(({ kind }) => kind)).toEqual(['finalizePod', 'removeFromRuntime']);
    const second = stepPod({ ...first.state, underWay: new Map() }, facts({ pod, snapshot: DEAD }));
    expect(second.actions.map(({ kind }) => kind)).toEqual(['removeFromRuntime']);
  });

  it('is removed at once where the runtime has nothing of it', () => {
    const { state, actions } = stepPod(finished(), facts({ pod, snapshot: NOTHING_THERE }));
    expect([state.kind, actions.map(({ kind }) => kind)]).toEqual(['removed', ['finalizePod']]);
  });

  it('has no object to finalize where no source has it any more', () => {
    const { actions } = stepPod(finished(), facts({ pod, removed: true, snapshot: DEAD }));
    expect(actions.map(({ kind }) => kind)).toEqual(['removeFromRuntime']);
  });
});

test('docs/pod-lifecycle.md shows the table as it is: `sh scripts/node24 scripts/pod-lifecycle.ts` writes it', () => {
  const page = readFileSync(LIFECYCLE_PAGE, 'utf8');
  expect(page).toBe(withLifecycle(page));
});
