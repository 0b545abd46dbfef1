// Containers, sandboxes and facts for the tables of computePodActions, and its answer in words.

import { computePodActions } from '../../../../agent/pods/actions.ts';
import { hashContainer } from '../../../../agent/pods/hash.ts';
import type { PodAction } from '../../../../agent/pods/pod-action.ts';
import type { PodFacts } from '../../../../agent/pods/pod-facts.ts';
import type {
  ContainerId,
  ContainerSnapshot,
  PodUID,
  SandboxId,
  SandboxSnapshot,
} from '../../../../agent/ports/runtime.ts';
import type { Container, Pod } from '../../../../client/types.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { FakeProbes, makePod } from '../../../sim/fakes.ts';

export const NOW = epochMs(1_000_000);
export const policy = { initialMs: 10_000, maxMs: 300_000, factor: 2, resetMs: 600_000 };
export const web: Container = { name: 'web', image: 'nginx:stable' };
export const side: Container = { name: 'side', image: 'busybox:stable', restartPolicy: 'Always' };
export const init: Container = { name: 'init', image: 'busybox:stable' };
export const two: Container = { name: 'two', image: 'busybox:stable' };
export const probe = { tcpSocket: { port: 80 } };

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

export function instance(of: Container, state: ContainerSnapshot['state'], over: Partial<ContainerSnapshot> = {}) {
  const snapshot: ContainerSnapshot = {
    id: `${of.name}-id` as ContainerId,
    sandboxId: 's0' as SandboxId,
    name: of.name,
    type: 'container',
    restartCount: 0,
    hash: hashContainer(of),
    state,
    createdAt: epochMs(1),
    startedAt: epochMs(state === 'created' ? 0 : 2),
    finishedAt: epochMs(state === 'exited' ? NOW : 0),
    exitCode: 0,
    reason: '',
    message: '',
    image: of.image ?? '',
    imageId: '',
    logPath: '',
    ...over,
  };
  return snapshot;
}

export interface Case {
  spec?: Partial<Pod['spec']>;
  sandboxes?: readonly SandboxSnapshot[];
  containers?: readonly ContainerSnapshot[];
  facts?: Partial<PodFacts>;
  verdicts?: readonly (readonly ['liveness' | 'startup', string, 'success' | 'failure'])[];
}

export function decide({ spec = {}, sandboxes = [sandbox()], containers = [], facts = {}, verdicts = [] }: Case) {
  const probes = new FakeProbes();
  for (const [kind, id, verdict] of verdicts) probes.set(kind, id, verdict);
  const pod = makePod('p', { containers: [web], ...spec });
  return computePodActions({
    pod,
    snapshot: {
      pod: { uid: 'u' as PodUID, namespace: 'demo', name: 'p' },
      sandboxes,
      containers,
      observedAt: NOW,
    },
    previous: undefined,
    probes,
    backoff: new Map(),
    backoffPolicy: policy,
    now: NOW,
    sandboxBusy: false,
    starting: new Set(),
    killing: new Set(),
    restartWanted: new Map(),
    ...facts,
  });
}

export function say(action: PodAction): string {
  switch (action.kind) {
    case 'finishPod':
      return `finish: ${action.why}`;
    case 'createSandbox':
      return `sandbox ${action.attempt}: ${action.why}${action.replaces ? ', replaces' : ''}`;
    case 'killContainer':
      return `kill ${action.container.name}: ${action.message}${action.thenStart ? ' (then start)' : ''}`;
    case 'resizePod':
      return `resize: ${action.updates.map(({ container }) => container.name).join(', ')}`;
    default: {
      const created = action.created === undefined ? '' : ' (created)';
      const superseded = action.superseded === undefined ? '' : `, removes ${action.superseded.join(', ')} first`;
      return `start ${action.type} ${action.container.name} #${action.restartCount}${created}${superseded}`;
    }
  }
}

export const output = (row: Case) => decide(row).actions.map(say);
export const failed = { exitCode: 1 };
