// The status of a pod as a kubelet 1.34.2 wrote it, from what the runtime (containerd 1.6) answered at that moment. Both were
// recorded: kubelet-1.34-statuses.jsonl, one pod a line. Times of transitions are left out: they are those of the changes
// before.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { podUID } from '../../../../agent/model/pod-uid.ts';
import { computePodStatus } from '../../../../agent/pods/status.ts';
import { fullContainer, sandboxDetail, sandboxSnapshot } from '../../../../agent/runtime/convert.ts';
import type { Pod, PodStatus } from '../../../../client/types.ts';
import type { ContainerStatus__Output } from '../../../../proto/gen/runtime/v1/ContainerStatus.ts';
import type { PodSandboxStatus__Output } from '../../../../proto/gen/runtime/v1/PodSandboxStatus.ts';
import { NOW } from './status-of.ts';

interface Recorded {
  readonly pod: Pod;
  readonly status: PodStatus;
  readonly sandboxes: readonly PodSandboxStatus__Output[];
  readonly containers: readonly { readonly sandbox: string; readonly status: ContainerStatus__Output }[];
}

const lines = readFileSync(new URL('kubelet-1.34-statuses.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n');
const recorded: readonly Recorded[] = lines.map((line) => JSON.parse(line));

function withoutTimes({ startTime: _, conditions, ...status }: PodStatus): object {
  return { ...status, conditions: conditions?.map(({ lastTransitionTime: __, ...condition }) => condition) };
}

/** Last words are in a file, of which the runtime says nothing. */
function lastWords({ containerStatuses = [] }: PodStatus, id: string): string {
  return containerStatuses.find(({ containerID }) => containerID?.endsWith(id))?.state?.terminated?.message ?? '';
}

test.each(recorded.map((each) => [each.pod.metadata.name, each] as const))('%s', (_name, each) => {
  const { pod, status, sandboxes, containers } = each;
  const { uid, namespace, name } = pod.metadata;
  const over = status.phase === 'Succeeded' || status.phase === 'Failed';
  const computed = computePodStatus({
    pod,
    runtimeName: 'containerd',
    snapshot: {
      pod: { uid: podUID(uid), namespace, name },
      sandboxes: sandboxes.map((sandbox) => sandboxSnapshot(sandbox, sandboxDetail(sandbox))),
      containers: containers.map((one) => fullContainer(one.sandbox, one.status, lastWords(status, one.status.id))),
      observedAt: NOW,
    },
    probes: { liveness: () => 'success', readiness: () => 'success', startup: () => 'success' },
    // The addresses of a sandbox that is stopped were reported before.
    previous: over ? { podIPs: status.podIPs ?? [] } : undefined,
    hostIPs: ['192.0.2.2'],
    waiting: new Map(),
    over,
    now: NOW,
  });
  // On the wire an empty state is the same as none.
  expect(withoutTimes(JSON.parse(JSON.stringify(computed)))).toEqual(withoutTimes(status));
});
