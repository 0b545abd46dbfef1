// The result of one sync of a pod that should stop: which kills begin, with which grace period, what is given back.

import { describe, expect, it } from 'vitest';
import { type PodState, type TerminatingState, terminatingPod } from '../../../../agent/pods/pod-state.ts';
import { advancePod, evictPod } from '../../../../agent/pods/pod-step.ts';
import type { LastingAction } from '../../../../agent/pods/sync-action.ts';
import type { Step, SyncFacts } from '../../../../agent/pods/sync-facts.ts';
import type { ContainerId, ContainerSnapshot, SandboxId } from '../../../../agent/ports/runtime.ts';
import type { Container } from '../../../../client/types.ts';
import { plusMs } from '../../../../lib/clock.ts';
import {
  begun,
  CREATE_SANDBOX,
  DELETED,
  facts,
  instance,
  killOf,
  NOW,
  podOf,
  RUNNING,
  snapshotOf,
  startOf,
  step,
  syncing,
  underWay,
  WEB,
  words,
} from './step-facts.ts';

describe('a pod that should stop', () => {
  const pod = podOf({}, DELETED);
  const terminating = (over: Partial<TerminatingState> = {}): TerminatingState => ({
    ...terminatingPod(syncing(), 'deleted'),
    ...over,
  });
  const killed = underWay(killOf(instance('running')));
  const stopped = snapshotOf([instance('exited')]);
  const STOP: LastingAction = { kind: 'stopSandbox', id: 'stop s0', sandboxId: 's0' as SandboxId };

  it.each<[string, TerminatingState, Partial<SyncFacts>, string[]]>([
    ['has its containers killed', terminating(), { snapshot: RUNNING }, ['killContainer kill web-1']],
    ['has each killed once', terminating({ underWay: killed }), { snapshot: RUNNING }, []],
    [
      'has none killed again whose kill ended during the observation',
      terminating(),
      { snapshot: RUNNING, underWayBefore: killed },
      [],
    ],
    [
      'has one killed again that is alive a second after its kill',
      terminating({ killedAt: new Map([['web-1' as ContainerId, plusMs(NOW, -1_000)]]) }),
      { snapshot: RUNNING },
      ['killContainer kill web-1'],
    ],
    [
      'has it not killed again before',
      terminating({ killedAt: new Map([['web-1' as ContainerId, plusMs(NOW, -999)]]) }),
      { snapshot: RUNNING },
      [],
    ],
    [
      'has a container of unknown state killed',
      terminating(),
      { snapshot: snapshotOf([instance('unknown')]) },
      ['killContainer kill web-1'],
    ],
    ['has its sandboxes stopped when nothing runs', terminating(), { snapshot: stopped }, ['stopSandbox stop s0']],
    ['has each stopped once', terminating({ underWay: underWay(STOP) }), { snapshot: stopped }, []],
    [
      'has none stopped while a start is under way',
      terminating({ underWay: underWay(startOf()) }),
      { snapshot: stopped },
      [],
    ],
    [
      'has none stopped when a start ended during the observation',
      terminating(),
      { snapshot: stopped, underWayBefore: underWay(startOf()) },
      [],
    ],
    [
      'has what it used given back when all is stopped',
      terminating({ stoppedSandboxes: new Set(['s0' as SandboxId]) }),
      { snapshot: stopped },
      ['releaseResources #release'],
    ],
    ['has it given back at once where nothing was there', terminating(), {}, ['releaseResources #release']],
  ])('%s', (_, state, over, expected) => {
    expect(words(step(state, { pod, ...over }))).toEqual(expected);
  });

  it.each<[string, TerminatingState, Partial<SyncFacts>, boolean]>([
    ['nothing runs', terminating(), { snapshot: stopped }, true],
    ['a container runs', terminating(), { snapshot: RUNNING }, false],
    ['a start is under way', terminating({ underWay: underWay(startOf()) }), { snapshot: stopped }, false],
    [
      'a start ended during the observation',
      terminating(),
      { snapshot: stopped, underWayBefore: underWay(startOf()) },
      false,
    ],
    ['a sandbox is being made', terminating({ underWay: underWay(CREATE_SANDBOX) }), {}, false],
  ])('is reported as ended, where %s: %s', (_, state, over, expected) => {
    expect(step(state, { pod, ...over }).status?.over).toBe(expected);
  });

  it('has the reason of its failure, where the node ends it', () => {
    const end = { reason: 'Evicted', message: 'low on memory', graceSeconds: 1 };
    expect(step(evictPod(syncing(), end), { snapshot: RUNNING }).status?.podEnd).toBe(end);
    expect(step(evictPod(terminating(), end), { snapshot: RUNNING }).status?.podEnd).toBe(end);
  });

  it('has sidecars wait for the containers and for the sidecars after them', () => {
    const side = (name: string): Container => ({ name, image: 'busybox:stable', restartPolicy: 'Always' });
    const [one, two] = [side('one'), side('two')];
    const many = podOf({ initContainers: [one, two] }, DELETED);
    const live = (of: Container, type: ContainerSnapshot['type']) => instance('running', { type }, of);
    const snapshot = snapshotOf([live(WEB, 'container'), live(two, 'init'), live(one, 'init')]);
    const after = step(terminating(), { pod: many, snapshot }).actions.flatMap((action) =>
      action.kind === 'killContainer' ? [[action.kill.instance.name, [...action.kill.after].sort()]] : [],
    );
    expect(after).toEqual([
      ['web', []],
      ['two', ['web']],
      ['one', ['two', 'web']],
    ]);
  });

  it.each<[string, Partial<Parameters<typeof podOf>[0] & object>, object, number | undefined, number]>([
    ['its own grace period', { terminationGracePeriodSeconds: 7 }, {}, undefined, 7],
    [
      'that of its deletion',
      { terminationGracePeriodSeconds: 7 },
      { ...DELETED, deletionGracePeriodSeconds: 5 },
      undefined,
      5,
    ],
    ['what the node grants, where that is less', {}, {}, 2, 2],
    ['no more than its own, where the node grants more', { terminationGracePeriodSeconds: 7 }, {}, 20, 7],
    ['a second at least, for its hooks', {}, { ...DELETED, deletionGracePeriodSeconds: 0 }, undefined, 1],
  ])('grants each container %s', (_, spec, meta, grantedSeconds, expected) => {
    const result = step(terminating({ grantedSeconds }), { pod: podOf(spec, meta), snapshot: RUNNING });
    expect(begun('killContainer', result)).toMatchObject({ kill: { graceSeconds: expected } });
  });

  describe('and is granted less while its containers are being killed', () => {
    const advance = (state: PodState, seconds: number): Step =>
      advancePod(state, facts({ pod: podOf({}, { ...DELETED, deletionGracePeriodSeconds: seconds }) }));

    it('has the kills under way shortened, once for each change', () => {
      const first = advance(terminating({ graceSeconds: 30, underWay: killed }), 3);
      expect(first.actions).toEqual([{ kind: 'shortenGrace', graceSeconds: 3 }]);
      expect(advance(first.state, 3).actions).toEqual([]);
      expect(advance(first.state, 1).actions).toEqual([{ kind: 'shortenGrace', graceSeconds: 1 }]);
    });

    it('has a kill shortened that began before the pod was to end', () => {
      const liveness = underWay(killOf(instance('running'), 'livenessProbe', true));
      expect(advance(syncing({ underWay: liveness }), 3).actions).toEqual([{ kind: 'shortenGrace', graceSeconds: 3 }]);
    });

    it('has nothing to shorten before the first kill', () => {
      expect(advance(syncing(), 3).actions).toEqual([]);
    });

    it('by the node, whose least grant counts', () => {
      const end = { reason: 'Evicted', message: '', graceSeconds: 9 };
      const evicted = evictPod(terminating({ graceSeconds: 30, underWay: killed }), end);
      expect(advance(evicted, 30).actions).toEqual([{ kind: 'shortenGrace', graceSeconds: 9 }]);
      const twice = evictPod(evicted, { ...end, reason: 'Shutdown', graceSeconds: 4 });
      expect(twice).toMatchObject({ podEnd: { reason: 'Evicted' }, grantedSeconds: 4 });
      expect(evictPod(twice, end)).toMatchObject({ grantedSeconds: 4 });
    });
  });
});
