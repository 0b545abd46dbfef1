// What tests of statuses start from: a ready sandbox, containers in it, and the status that follows.

import { computePodStatus, type PodStatusFacts } from '../../../../agent/pods/status.ts';
import type {
  ContainerId,
  ContainerSnapshot,
  PodUID,
  SandboxId,
  SandboxSnapshot,
} from '../../../../agent/ports/runtime.ts';
import type { Pod, PodStatus } from '../../../../client/types.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { FakeProbes } from '../../../sim/fakes.ts';

export const NOW = epochMs(Date.parse('2026-01-01T10:00:00.400Z'));
export const AT = '2026-01-01T10:00:00Z';

export const ready: SandboxSnapshot = {
  id: 's0' as SandboxId,
  attempt: 0,
  state: 'ready',
  createdAt: NOW,
  ips: ['10.0.0.1', 'fd00::1'],
  hostNetwork: false,
  runtimeHandler: '',
};

export function instance(name: string, over: Partial<ContainerSnapshot> = {}): ContainerSnapshot {
  return {
    id: `${name}-0` as ContainerId,
    sandboxId: 's0' as SandboxId,
    name,
    type: 'container',
    restartCount: 0,
    hash: '',
    state: 'running',
    createdAt: NOW,
    startedAt: NOW,
    finishedAt: epochMs(0),
    exitCode: 0,
    reason: '',
    message: '',
    image: 'docker.io/library/nginx:stable',
    imageId: 'docker.io/library/nginx@sha256:1',
    logPath: '',
    ...over,
  };
}
export const ended = (name: string, exitCode: number, over: Partial<ContainerSnapshot> = {}) =>
  instance(name, {
    state: 'exited',
    finishedAt: plusMs(NOW, 1000),
    exitCode,
    reason: exitCode === 0 ? 'Completed' : 'Error',
    ...over,
  });

export function statusOf(
  pod: Pod,
  containers: readonly ContainerSnapshot[],
  over: Partial<PodStatusFacts> = {},
  sandboxes: readonly SandboxSnapshot[] = [ready],
): PodStatus {
  return computePodStatus({
    pod,
    runtimeName: 'cri-o',
    snapshot: {
      pod: { uid: 'u' as PodUID, namespace: 'demo', name: 'p' },
      sandboxes,
      containers,
      observedAt: NOW,
    },
    probes: new FakeProbes(),
    previous: undefined,
    hostIPs: ['192.0.2.1'],
    waiting: new Map(),
    over: false,
    now: NOW,
    ...over,
  });
}
export const condition = (status: PodStatus, type: string) => status.conditions?.find((each) => each.type === type);
