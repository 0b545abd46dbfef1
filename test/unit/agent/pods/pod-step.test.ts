// The result of one sync of a pod, by its state: which actions begin and which wait, the events, the next sync.

import { describe, expect, it } from 'vitest';
import { hashContainer } from '../../../../agent/pods/hash.ts';
import { actionEnded } from '../../../../agent/pods/outcome.ts';
import {
  type FinishedState,
  finishedPod,
  type PodState,
  rejectedPod,
  type SyncingState,
  terminatedPod,
  terminatingPod,
} from '../../../../agent/pods/pod-state.ts';
import { advancePod, needsObservation, podDefinitionChanged, reclaimPod } from '../../../../agent/pods/pod-step.ts';
import { restartBackoffKey } from '../../../../agent/pods/restart-backoff.ts';
import { retryAfterFailure } from '../../../../agent/pods/retries.ts';
import { ACTION_IDS, type LastingAction } from '../../../../agent/pods/sync-action.ts';
import type { SyncFacts } from '../../../../agent/pods/sync-facts.ts';
import { startedContainers } from '../../../../agent/pods/sync-pod.ts';
import type { ContainerId, SandboxId } from '../../../../agent/ports/runtime.ts';
import type { Container } from '../../../../client/types.ts';
import { plusMs } from '../../../../lib/clock.ts';
import { FakeProbes } from '../../../sim/fakes.ts';
import {
  begun,
  CREATE_SANDBOX,
  DELETED,
  facts,
  instance,
  killOf,
  NOTHING_THERE,
  NOW,
  podOf,
  RUNNING,
  sandbox,
  snapshotOf,
  startOf,
  step,
  syncing,
  underWay,
  WEB,
  words,
} from './step-facts.ts';

const { config } = facts();
const EXITED = snapshotOf([instance('exited', { exitCode: 1 })]);
const PREPARE: LastingAction = { kind: 'preparePod', id: ACTION_IDS.prepare };
const OTHER: Container = { name: 'other', image: 'busybox:stable' };
const HOOKED: Container = { ...WEB, lifecycle: { postStart: { exec: { command: ['warm-up'] } } } };

const failedAction = (state: SyncingState, id: string, inMs: number): SyncingState => ({
  ...state,
  retries: retryAfterFailure(state.retries, id, config.syncBackoff, NOW, plusMs(NOW, inMs)),
});
const dies = (probe: 'liveness' | 'startup'): FakeProbes => {
  const probes = new FakeProbes();
  probes.set(probe, 'web-1', 'failure');
  return probes;
};

describe('a pod that should run', () => {
  const backoff = new Map([
    [restartBackoffKey('web', hashContainer(WEB)), { delayMs: 20_000, since: plusMs(NOW, -30_000) }],
  ]);
  it.each<[string, SyncingState, Partial<SyncFacts>, string[]]>([
    ['has its sandbox made', syncing(), {}, ['createSandbox #sandbox']],
    ['has nothing else begun while that is under way', syncing({ underWay: underWay(CREATE_SANDBOX) }), {}, []],
    [
      'has no second one made when the first came during the observation',
      syncing(),
      { underWayBefore: underWay(CREATE_SANDBOX) },
      [],
    ],
    ['has its container started', syncing(), { snapshot: snapshotOf() }, ['startContainer start web']],
    [
      'has no second start of it while one is under way',
      syncing({ underWay: underWay(startOf()) }),
      { snapshot: snapshotOf() },
      [],
    ],
    [
      'has no second start of it when the first ended during the observation',
      syncing(),
      { snapshot: snapshotOf(), underWayBefore: underWay(startOf()) },
      [],
    ],
    [
      'of before the agent has its volumes looked after first',
      syncing({ prepared: false }),
      { snapshot: snapshotOf() },
      ['preparePod #prepare'],
    ],
    [
      'of before the agent has that done once',
      syncing({ prepared: false, underWay: underWay(PREPARE) }),
      { snapshot: snapshotOf() },
      [],
    ],
    ['has its container started again when it ended', syncing(), { snapshot: EXITED }, ['startContainer start web']],
    ['has it wait for its back-off', syncing({ restartBackoff: backoff }), { snapshot: EXITED }, []],
    [
      'has it started when its back-off is over',
      syncing({ restartBackoff: backoff }),
      { snapshot: EXITED, now: plusMs(NOW, 20_000) },
      ['startContainer start web'],
    ],
    ['has a start that failed wait', failedAction(syncing(), 'start web', 5_000), { snapshot: snapshotOf() }, []],
    [
      'has it tried again when the pause is over',
      failedAction(syncing(), 'start web', 5_000),
      { snapshot: snapshotOf(), now: plusMs(NOW, 5_000) },
      ['startContainer start web'],
    ],
    [
      'has it tried at once when the clock was set back',
      failedAction(syncing(), 'start web', 5_000),
      { snapshot: snapshotOf(), now: plusMs(NOW, -3_600_000) },
      ['startContainer start web'],
    ],
    [
      'has a container killed that fails liveness',
      syncing(),
      { snapshot: RUNNING, probes: dies('liveness') },
      ['killContainer kill web-1'],
    ],
    [
      'has a container killed that fails startup',
      syncing(),
      { snapshot: RUNNING, probes: dies('startup') },
      ['killContainer kill web-1'],
    ],
    [
      'has it killed once',
      syncing({ underWay: underWay(killOf(instance('running'), 'livenessProbe', true)) }),
      { snapshot: RUNNING, probes: dies('liveness') },
      [],
    ],
    [
      'has it not killed again when that ended during the observation',
      syncing(),
      {
        snapshot: RUNNING,
        probes: dies('liveness'),
        underWayBefore: underWay(killOf(instance('running'), 'livenessProbe', true)),
      },
      [],
    ],
    [
      'has a container killed whose postStart hook failed',
      syncing({ failedPostStart: new Set(['web-1' as ContainerId]) }),
      { snapshot: RUNNING },
      ['killContainer kill web-1'],
    ],
    [
      'has a second dead instance removed',
      syncing(),
      {
        snapshot: snapshotOf([
          instance('running'),
          instance('exited', { id: 'web-0' as ContainerId }),
          instance('exited', { id: 'web-00' as ContainerId }),
        ]),
      },
      ['removeContainer remove web-00'],
    ],
    [
      'has an old sandbox removed',
      syncing(),
      {
        snapshot: snapshotOf(
          [instance('running', { sandboxId: 's1' as SandboxId })],
          [sandbox({ id: 's1' as SandboxId, attempt: 1 }), sandbox({ state: 'notReady' })],
        ),
      },
      ['removeSandbox remove s0'],
    ],
    [
      'has a resize done',
      syncing(),
      {
        snapshot: RUNNING,
        resize: {
          actual: new Map([['web-1' as ContainerId, { requests: { cpu: '1' } }]]),
          startsOutdated: false,
          cgroupEnlarged: false,
        },
      },
      ['resizePod #resize'],
    ],
    [
      'has a resize done once',
      syncing({
        underWay: underWay({
          kind: 'resizePod',
          id: '#resize',
          resize: { kind: 'resizePod', sandboxId: undefined, updates: [] },
        }),
      }),
      { snapshot: RUNNING, resize: { actual: new Map(), startsOutdated: false, cgroupEnlarged: false } },
      [],
    ],
  ])('%s', (_, state, over, expected) => {
    const result = step(state, over);
    expect(words(result)).toEqual(expected);
    for (const action of result.actions) if ('id' in action) expect(result.state.underWay.get(action.id)).toBe(action);
  });

  it('has a container whose postStart hook failed killed for that alone, whatever its probes say', () => {
    const state = syncing({ failedPostStart: new Set(['web-1' as ContainerId]) });
    const result = step(state, { snapshot: RUNNING, probes: dies('liveness') });
    expect(result.actions).toMatchObject([
      { kind: 'killContainer', reason: 'postStartHook', thenStart: false, kill: { message: 'FailedPostStartHook' } },
    ]);
    expect(result.status?.restarting).toEqual(new Set(['web']));
    const dead = step(state, { snapshot: EXITED });
    expect(dead.state).toMatchObject({ failedPostStart: new Set() });
  });

  it('with a dead sandbox has what is left of it killed, stopped and removed before another is made', () => {
    // As a kubelet made it, without a word on what it is: it is known by its name.
    const init = instance('exited', { type: 'container' }, { name: 'init' });
    const dead = snapshotOf([instance('running'), init], [sandbox({ state: 'notReady' })]);
    const pod = podOf({ initContainers: [{ name: 'init', image: 'busybox:stable' }] });
    const result = step(syncing(), { pod, snapshot: dead });
    expect(begun('createSandbox', result)).toMatchObject({
      attempt: 1,
      prepared: true,
      replaced: {
        kills: [{ instance: { id: 'web-1' }, graceSeconds: 30 }],
        sandboxes: ['s0'],
        initContainers: ['init-1'],
      },
    });
    expect(result.events).toEqual([
      { type: 'Normal', reason: 'SandboxChanged', message: 'Pod sandbox changed, it will be killed and re-created.' },
    ]);
  });

  it('has one BackOff event for each wait, and is synced when the wait is over', () => {
    const first = step(syncing({ restartBackoff: backoff }), { snapshot: EXITED });
    expect(first.events).toEqual([
      {
        container: 'web',
        type: 'Warning',
        reason: 'BackOff',
        message: 'Back-off restarting failed container web in pod p_demo(u)',
      },
    ]);
    expect(first.wakeAt).toBe(plusMs(NOW, 20_000));
    expect(first.status?.waiting.get('web')?.reason).toBe('CrashLoopBackOff');
    const second = step(first.state, { snapshot: EXITED, now: plusMs(NOW, 1_000) });
    expect([second.events, second.wakeAt]).toEqual([[], plusMs(NOW, 20_000)]);
    const later = snapshotOf([instance('exited', { exitCode: 1, finishedAt: plusMs(NOW, 30_000) })]);
    expect(step(second.state, { snapshot: later, now: plusMs(NOW, 30_000) }).events).toHaveLength(1);
  });

  it('is synced when a failed action may be retried, and at its deadline', () => {
    expect(step(failedAction(syncing(), 'start web', 5_000), { snapshot: snapshotOf() }).wakeAt).toBe(
      plusMs(NOW, 5_000),
    );
    const pod = podOf({ activeDeadlineSeconds: 7_200 });
    expect(advancePod(syncing(), facts({ pod, previous: { startTime: '2026-01-01T00:00:00Z' } })).wakeAt).toBe(
      plusMs(NOW, 3_600_000),
    );
  });

  it.each([
    [59, false],
    [60, true],
    [61, true],
  ])('that was active for %i s of its 60 ends: %s', (seconds, ends) => {
    const startTime = new Date(NOW - seconds * 1000).toISOString();
    const { state, events } = advancePod(
      syncing(),
      facts({ pod: podOf({ activeDeadlineSeconds: 60 }), previous: { startTime } }),
    );
    expect(state.kind).toBe(ends ? 'terminating' : 'syncing');
    expect(events).toEqual(
      ends
        ? [
            {
              type: 'Normal',
              reason: 'DeadlineExceeded',
              message: 'Pod was active on the node longer than the specified deadline',
            },
          ]
        : [],
    );
    if (state.kind === 'terminating') expect(state.podEnd?.reason).toBe('DeadlineExceeded');
  });

  it('has a container that is killed to run again run again, whatever policy says, and waits where it must all the same', () => {
    const pod = podOf({ restartPolicy: 'OnFailure' });
    const kill = step(syncing(), { pod, snapshot: RUNNING, probes: dies('liveness') });
    const killed = begun('killContainer', kill);
    if (killed.kind !== 'killContainer') throw new Error('not a kill');
    const { state } = actionEnded(kill.state, killed, { kind: 'done' }, { podUID: RUNNING.pod.uid, config, now: NOW });
    const dead = snapshotOf([instance('exited')]);
    const again = step(state, { pod, snapshot: dead });
    expect(words(again)).toEqual(['startContainer start web']);
    expect(again.status?.restarting).toEqual(new Set(['web']));
  });

  it('has containers after one with a postStart hook wait for it, and all of them for a resize', () => {
    const pod = podOf({ containers: [HOOKED, OTHER] });
    const resize = { actual: new Map(), startsOutdated: false, cgroupEnlarged: false };
    const { actions } = step(syncing(), { pod, snapshot: snapshotOf(), resize });
    expect(actions.flatMap((action) => (action.kind === 'startContainer' ? [[action.id, action.after]] : []))).toEqual([
      ['start web', ['#resize']],
      ['start other', ['start web', '#resize']],
    ]);
  });

  it('has a running container that the runtime made early reported as not started until its hook has ended', () => {
    const names = (state: SyncingState): string[] =>
      startedContainers(state, RUNNING).containers.map(({ name }) => name);
    expect(names(syncing())).toEqual(['web']);
    expect(names(syncing({ underWay: underWay(startOf()) }))).toEqual([]);
    expect(names(syncing({ failedPostStart: new Set(['web-1' as ContainerId]) }))).toEqual([]);
  });

  it('has no trouble with a start any more once the container runs', () => {
    const startErrors = new Map([['web', { reason: 'RunContainerError', message: 'no' }]]);
    expect(step(syncing({ startErrors }), { snapshot: RUNNING }).status?.waiting.size).toBe(0);
    expect(
      step(failedAction(syncing({ startErrors }), 'start web', 5_000), { snapshot: snapshotOf() }).status?.waiting.get(
        'web',
      )?.reason,
    ).toBe('RunContainerError');
  });

  it('forgets the back-off of a container whose resources changed', () => {
    const before = podOf();
    const after = podOf({ containers: [{ ...WEB, resources: { limits: { cpu: '1' } } }] });
    const state = syncing({ restartBackoff: backoff });
    expect(podDefinitionChanged(state, before, after)).toMatchObject({ restartBackoff: new Map() });
    expect(podDefinitionChanged(state, before, podOf())).toBe(state);
  });
});

describe('the grace period of a kill', () => {
  const probe = { tcpSocket: { port: 80 }, terminationGracePeriodSeconds: 4 };
  it.each<[string, Container, 'liveness' | 'startup', number]>([
    ['is the liveness probe’s own', { ...WEB, livenessProbe: probe }, 'liveness', 4],
    ['is the startup probe’s own', { ...WEB, startupProbe: probe }, 'startup', 4],
    ['is the pod’s where the probe has none', { ...WEB, livenessProbe: { tcpSocket: { port: 80 } } }, 'liveness', 11],
    ['is the pod’s where another probe has one', { ...WEB, startupProbe: probe }, 'liveness', 11],
  ])('%s', (_, container, which, expected) => {
    const pod = podOf({ containers: [container], terminationGracePeriodSeconds: 11 });
    const result = step(syncing(), { pod, snapshot: RUNNING, probes: dies(which) });
    expect(begun('killContainer', result)).toMatchObject({ kill: { graceSeconds: expected } });
  });
});

describe('whether the runtime must be observed', () => {
  const desired = { pod: podOf(), removed: false };
  const deleted = { pod: podOf({}, DELETED), removed: false };
  const terminating = terminatingPod(syncing(), 'deleted');
  const finished = (over: Partial<FinishedState> = {}) => ({ ...finishedPod(terminatedPod(terminating)), ...over });
  const RELEASE: LastingAction = { kind: 'releaseResources', id: ACTION_IDS.release, keepsEnds: false };
  const REMOVE: LastingAction = {
    kind: 'removeFromRuntime',
    id: ACTION_IDS.removeFromRuntime,
    snapshot: NOTHING_THERE,
    last: true,
  };
  it.each<[string, PodState, typeof desired, boolean]>([
    ['while it should run', syncing(), desired, true],
    ['while it should stop', terminating, deleted, true],
    ['before anything is given back', terminatedPod(terminating), deleted, true],
    ['not while it is given back', { ...terminatedPod(terminating), underWay: underWay(RELEASE) }, deleted, false],
    ['not when it has finished', finished(), desired, false],
    ['when it has finished and is deleted', finished(), deleted, true],
    ['when it has finished and no source has it', finished(), { ...desired, removed: true }, true],
    ['not while its remains are removed', finished({ underWay: underWay(REMOVE) }), deleted, false],
    ['not when it was refused', rejectedPod(), desired, false],
  ])('%s', (_, state, wanted, expected) => {
    expect(needsObservation(state, wanted)).toBe(expected);
  });

  it('what a pod that stays keeps in the runtime is removed when the room is wanted', () => {
    const dead = snapshotOf([instance('exited')], [sandbox({ state: 'notReady' })]);
    expect(words(reclaimPod(finished(), facts({ snapshot: dead })))).toEqual(['removeFromRuntime #removeFromRuntime']);
    expect(words(reclaimPod(syncing(), facts({ snapshot: RUNNING })))).toEqual([]);
  });
});
