// What the end of each action changes: state, retries, events.

import { describe, expect, it } from 'vitest';
import { StartError } from '../../../../agent/pods/container-starter.ts';
import { type ActionResult, actionEnded, observationFailed, StepError } from '../../../../agent/pods/outcome.ts';
import { finishedPod, type PodState, terminatedPod, terminatingPod } from '../../../../agent/pods/pod-state.ts';
import { ACTION_IDS, type LastingAction } from '../../../../agent/pods/sync-action.ts';
import { VolumeError } from '../../../../agent/ports/node.ts';
import { type ContainerId, RuntimeError, type SandboxId } from '../../../../agent/ports/runtime.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { CREATE_SANDBOX, facts, instance, killOf, NOW, startOf, syncing, UID, underWay, WEB } from './step-facts.ts';

const { config } = facts();
const BROKEN = new RuntimeError('StopContainer', 'DEADLINE_EXCEEDED', 'shim is stuck');
const failed = (error: unknown): ActionResult => ({ kind: 'failed', error });
const end = (state: PodState, action: LastingAction, result: ActionResult, now = NOW) =>
  actionEnded({ ...state, underWay: underWay(action) }, action, result, { podUID: UID, config, now: epochMs(now) });

const terminating = terminatingPod(syncing(), 'deleted');
const PREPARE: LastingAction = { kind: 'preparePod', id: ACTION_IDS.prepare };
const RESTART: LastingAction = {
  ...startOf(),
  start: { ...startOf().start, previousFinishedAt: plusMs(NOW, -1_000) },
};
const KILL = killOf(instance('running'), 'livenessProbe', true);
const STOP: LastingAction = {
  kind: 'stopSandbox',
  id: ACTION_IDS.stop('s0' as SandboxId),
  sandboxId: 's0' as SandboxId,
};
const RELEASE: LastingAction = { kind: 'releaseResources', id: ACTION_IDS.release, keepsEnds: false };
const hookFailed = new StartError({ reason: 'PostStartHookError', message: 'no' }, { started: 'web-1' as ContainerId });
const noImage = new StartError({ reason: 'ErrImagePull', message: 'no' }, { retryAt: plusMs(NOW, 9_000) });

describe('an action that has ended', () => {
  it.each<[string, PodState, LastingAction, ActionResult, Record<string, unknown>]>([
    ['cgroup and volumes', syncing({ prepared: false }), PREPARE, { kind: 'done', prepared: true }, { prepared: true }],
    [
      'a sandbox whose volumes cannot be mounted',
      syncing({ prepared: false }),
      CREATE_SANDBOX,
      failed(new StepError('volumes', new Error('x'))),
      { prepared: false },
    ],
    [
      'a sandbox that failed after its volumes were mounted',
      syncing({ prepared: false }),
      CREATE_SANDBOX,
      { ...failed(new StepError('createSandbox', new Error('x'))), prepared: true },
      { prepared: true },
    ],
    [
      'a start',
      syncing({ startErrors: new Map([['web', noImage.waiting]]), restartWanted: new Map([['web', 'waited']]) }),
      startOf(),
      { kind: 'done', attemptedAt: NOW },
      { startErrors: new Map(), restartWanted: new Map(), restartBackoff: new Map() },
    ],
    [
      'the second start of a container: it waits 10 s the next time, from when it was attempted',
      syncing(),
      RESTART,
      { kind: 'done', attemptedAt: plusMs(NOW, -500) },
      { restartBackoff: new Map([[`web_${startOf().start.hash}`, { delayMs: 10_000, since: plusMs(NOW, -500) }]]) },
    ],
    [
      'a start that came to no attempt',
      syncing({ restartWanted: new Map([['web', 'waited']]) }),
      RESTART,
      failed(noImage),
      {
        startErrors: new Map([['web', noImage.waiting]]),
        restartWanted: new Map([['web', 'waited']]),
        restartBackoff: new Map(),
        failedPostStart: new Set(),
      },
    ],
    [
      'a start whose postStart hook failed: the instance is to be killed',
      syncing(),
      startOf(),
      { ...failed(hookFailed), attemptedAt: NOW },
      { startErrors: new Map([['web', hookFailed.waiting]]), failedPostStart: new Set(['web-1']) },
    ],
    [
      'a kill, after which it starts again',
      syncing({ restartWanted: new Map([['web', { endedBefore: undefined }]]) }),
      KILL,
      { kind: 'done' },
      { restartWanted: new Map([['web', { endedBefore: undefined }]]) },
    ],
    [
      'a kill that failed: nothing starts after it',
      syncing({ restartWanted: new Map([['web', { endedBefore: undefined }]]) }),
      KILL,
      failed(BROKEN),
      { restartWanted: new Map() },
    ],
    [
      'a kill of a pod that ends',
      terminating,
      killOf(instance('running')),
      { kind: 'done' },
      { killedAt: new Map([['web-1', NOW]]) },
    ],
    [
      'a kill of a pod that ends, which failed',
      terminating,
      killOf(instance('running')),
      failed(BROKEN),
      { killedAt: new Map() },
    ],
    ['a stopped sandbox', terminating, STOP, { kind: 'done' }, { stoppedSandboxes: new Set(['s0']) }],
    ['a sandbox that did not stop', terminating, STOP, failed(BROKEN), { stoppedSandboxes: new Set() }],
    ['volumes and cgroup', terminatedPod(terminating), RELEASE, { kind: 'done' }, { kind: 'finished' }],
    [
      'volumes that stay mounted',
      terminatedPod(terminating),
      RELEASE,
      failed(new Error('busy')),
      { kind: 'terminated' },
    ],
    [
      'what is removed for the room that it takes, of a pod that stays',
      finishedPod(terminatedPod(terminating)),
      { kind: 'removeFromRuntime', id: ACTION_IDS.removeFromRuntime, snapshot: facts().snapshot, last: false },
      { kind: 'done' },
      { kind: 'finished' },
    ],
  ])('%s', (_, state, action, result, expected) => {
    const after = end(state, action, result).state;
    expect(after).toMatchObject(expected);
    expect(after.underWay.size).toBe(0);
  });
});

describe('an action that failed', () => {
  it('waits 1 s, 2 s, … 10 s, each counted from its failure, and not at all once it succeeded', () => {
    let state: PodState = syncing();
    let now = NOW;
    const waits: number[] = [];
    for (let i = 0; i < 6; i++) {
      now = plusMs(now, 100);
      state = end(state, CREATE_SANDBOX, failed(new Error('no')), now).state;
      waits.push((state.retries.get(ACTION_IDS.sandbox)?.at ?? 0) - now);
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
    expect(end(state, CREATE_SANDBOX, { kind: 'done' }).state.retries.size).toBe(0);
  });

  it('waits as long as its error says where that knows better', () => {
    const { retries } = end(syncing(), startOf(), failed(noImage)).state;
    expect(retries.get(ACTION_IDS.start('web'))?.at).toBe(plusMs(NOW, 9_000));
  });

  it('does not make another one wait', () => {
    const { retries } = end(syncing(), startOf(), failed(noImage)).state;
    expect([...retries.keys()]).toEqual([ACTION_IDS.start(WEB.name)]);
  });

  it('that was aborted because the pod ends does not wait, and is not reported', () => {
    const { state, events } = end(terminating, startOf(), { kind: 'aborted' });
    expect([state.retries.size, events]).toEqual([0, []]);
  });

  it('when it was a look at the runtime is looked for again, with growing pauses', () => {
    const once = observationFailed(syncing(), config, NOW);
    expect(once.retries.get(ACTION_IDS.sync)?.at).toBe(plusMs(NOW, 1_000));
    expect(observationFailed(once, config, NOW).retries.get(ACTION_IDS.sync)?.at).toBe(plusMs(NOW, 2_000));
  });

  const killPod = (sync: string, name: string): string =>
    `error killing pod: failed to "${sync}" for "${name}" with ${sync}Error: ` +
    '"rpc error: code = DeadlineExceeded desc = shim is stuck"';
  it.each<[string, LastingAction, unknown, string | undefined, string]>([
    [
      'its cgroup',
      CREATE_SANDBOX,
      new StepError('cgroup', new Error('no')),
      'FailedCreatePodContainer',
      'unable to ensure pod container exists: no',
    ],
    [
      'its volumes',
      PREPARE,
      new StepError('volumes', new Error('no')),
      'FailedMount',
      'Unable to attach or mount volumes: no',
    ],
    [
      'one of its volumes',
      PREPARE,
      new StepError('volumes', new VolumeError('v', 'MountVolume.SetUp failed')),
      'FailedMount',
      'MountVolume.SetUp failed',
    ],
    [
      'its sandbox',
      CREATE_SANDBOX,
      new StepError('createSandbox', BROKEN),
      'FailedCreatePodSandBox',
      'Failed to create pod sandbox: rpc error: code = DeadlineExceeded desc = shim is stuck',
    ],
    ['a kill', killOf(instance('running')), BROKEN, 'FailedKillPod', killPod('KillContainer', 'web')],
    [
      'a kill before its sandbox is made anew',
      CREATE_SANDBOX,
      new StepError('killContainer', BROKEN, 'web'),
      'FailedKillPod',
      killPod('KillContainer', 'web'),
    ],
    ['the stop of its sandbox', STOP, BROKEN, 'FailedKillPod', killPod('KillPodSandbox', 'u')],
    [
      'the stop of the sandbox that is replaced',
      CREATE_SANDBOX,
      new StepError('stopSandbox', BROKEN),
      'FailedKillPod',
      killPod('KillPodSandbox', 'u'),
    ],
    ['a start, which has its own events', startOf(), noImage, undefined, ''],
    ['volumes that stay mounted', RELEASE, new Error('busy'), undefined, ''],
  ])('says so in an event: %s', (_, action, error, reason, message) => {
    const { events } = end(syncing(), action, failed(error));
    expect(events).toEqual(reason === undefined ? [] : [{ type: 'Warning', reason, message }]);
  });
});
