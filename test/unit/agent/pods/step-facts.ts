// Pods, snapshots and facts for tables about the steps of a pod: one container `web`, one sandbox, a clock that stands.

import { hashContainer } from '../../../../agent/pods/hash.ts';
import { killSpec } from '../../../../agent/pods/kill-spec.ts';
import { DEFAULT_PODS_CONFIG } from '../../../../agent/pods/options.ts';
import type { KillReason } from '../../../../agent/pods/pod-action.ts';
import { admittedPod, type PodState, type SyncingState } from '../../../../agent/pods/pod-state.ts';
import { stepPod } from '../../../../agent/pods/pod-step.ts';
import {
  ACTION_IDS,
  type LastingAction,
  NOTHING_UNDER_WAY,
  type SyncAction,
  type UnderWay,
} from '../../../../agent/pods/sync-action.ts';
import type { Step, SyncFacts } from '../../../../agent/pods/sync-facts.ts';
import type {
  ContainerId,
  ContainerSnapshot,
  PodSnapshot,
  PodUID,
  SandboxId,
  SandboxSnapshot,
} from '../../../../agent/ports/runtime.ts';
import type { Container, Pod } from '../../../../client/types.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { FakeProbes, makePod } from '../../../sim/fakes.ts';

/** Epoch ms. */
export const NOW = epochMs(Date.parse('2026-01-01T01:00:00Z'));
export const WEB: Container = { name: 'web', image: 'nginx:stable' };
export const UID = 'u' as PodUID;

export function sandbox(over: Partial<SandboxSnapshot> = {}): SandboxSnapshot {
  return {
    id: 's0' as SandboxId,
    attempt: 0,
    state: 'ready',
    createdAt: epochMs(1),
    ips: ['10.0.0.1'],
    hostNetwork: false,
    runtimeHandler: '',
    ...over,
  };
}

export function instance(
  state: ContainerSnapshot['state'],
  over: Partial<ContainerSnapshot> = {},
  of: Container = WEB,
): ContainerSnapshot {
  return {
    id: `${of.name}-1` as ContainerId,
    sandboxId: 's0' as SandboxId,
    name: of.name,
    type: 'container',
    restartCount: 0,
    hash: hashContainer(of),
    state,
    createdAt: epochMs(1),
    startedAt: epochMs(state === 'created' ? 0 : plusMs(NOW, -60_000)),
    finishedAt: epochMs(state === 'exited' ? NOW : 0),
    exitCode: 0,
    reason: '',
    message: '',
    image: of.image ?? '',
    imageId: '',
    logPath: '',
    ...over,
  };
}

export function snapshotOf(
  containers: readonly ContainerSnapshot[] = [],
  sandboxes: readonly SandboxSnapshot[] = [sandbox()],
): PodSnapshot {
  return { pod: { uid: UID, namespace: 'demo', name: 'p' }, sandboxes, containers, observedAt: NOW };
}

export const NOTHING_THERE = snapshotOf([], []);

export function podOf(spec: Partial<Pod['spec']> = {}, meta: Partial<Pod['metadata']> = {}): Pod {
  return makePod('p', { containers: [WEB], ...spec }, { uid: UID, ...meta });
}

export const DELETED = { deletionTimestamp: '2026-01-01T01:00:30Z', deletionGracePeriodSeconds: 30 };

export function facts(over: Partial<SyncFacts> = {}): SyncFacts {
  return {
    pod: podOf(),
    removed: false,
    previous: undefined,
    config: DEFAULT_PODS_CONFIG,
    now: NOW,
    snapshot: NOTHING_THERE,
    underWayBefore: NOTHING_UNDER_WAY,
    probes: new FakeProbes(),
    resize: undefined,
    hostIPs: ['192.0.2.1'],
    ...over,
  };
}

export function underWay(...actions: readonly LastingAction[]): UnderWay {
  return new Map(actions.map((action) => [action.id, action]));
}

/** A pod whose cgroup and volumes are there. */
export function syncing(over: Partial<SyncingState> = {}): SyncingState {
  return { ...admittedPod(), prepared: true, ...over };
}

export function startOf(of: Container = WEB): Extract<LastingAction, { kind: 'startContainer' }> {
  return {
    kind: 'startContainer',
    id: ACTION_IDS.start(of.name),
    start: {
      kind: 'startContainer',
      type: 'container',
      container: of,
      hash: hashContainer(of),
      restartCount: 0,
      sandbox: sandbox(),
    },
    after: [],
    podIPs: [],
    target: undefined,
  };
}

export function killOf(
  of: ContainerSnapshot,
  reason: KillReason | 'podEnds' = 'podEnds',
  thenStart = false,
  pod = podOf(),
): Extract<LastingAction, { kind: 'killContainer' }> {
  const kill = killSpec(pod, undefined, of, reason);
  return { kind: 'killContainer', id: ACTION_IDS.kill(of.id), kill, reason, thenStart };
}

export const CREATE_SANDBOX: Extract<LastingAction, { kind: 'createSandbox' }> = {
  kind: 'createSandbox',
  id: ACTION_IDS.sandbox,
  attempt: 0,
  prepared: false,
  replaced: undefined,
};

export const RUNNING = snapshotOf([instance('running')]);
/** "kind id", or the kind alone. */
export const words = ({ actions }: Step): string[] =>
  actions.map((action: SyncAction) => ('id' in action ? `${action.kind} ${action.id}` : action.kind));
export const step = (state: PodState, over: Partial<SyncFacts> = {}): Step => stepPod(state, facts(over));
export const begun = (kind: SyncAction['kind'], { actions }: Step): SyncAction => {
  const action = actions.find((each) => each.kind === kind);
  if (action === undefined) throw new Error(`no ${kind} among ${actions.map((each) => each.kind).join(', ')}`);
  return action;
};
