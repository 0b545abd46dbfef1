// The container runtime of this machine: its conditions and what it has of a pod. Only reads, with short deadlines: a
// runtime that hangs is a fact, and must not make this command hang.

import { RuntimeError } from '../../../agent/ports/runtime.ts';
import { epochMs } from '../../../lib/clock.ts';
import type { RuntimeFacts } from '../facts.ts';
import type { LocalNode } from './source.ts';

/** ms */
const DEADLINE_MS = 5_000;

const EMPTY = { conditions: [], handlers: undefined, sandboxes: [], containers: [] } as const;

/** Labels that the kubelet gives everything that it makes for a pod. */
export type PodLabels = Readonly<Record<`io.kubernetes.pod.${'uid' | 'namespace' | 'name'}`, string>>;

/** `labels`: those of the pod; undefined: only the runtime itself. */
export async function collectRuntime(local: LocalNode, labels?: Partial<PodLabels>): Promise<RuntimeFacts> {
  const { cri, endpoint } = local;
  const options = { deadlineMs: DEADLINE_MS };
  const request = { filter: { label_selector: { ...labels } } };
  try {
    const [status, sandboxes, containers] = await Promise.all([
      cri.call('Status', { verbose: false }, options),
      labels === undefined ? undefined : cri.call('ListPodSandbox', request, options),
      labels === undefined ? undefined : cri.call('ListContainers', request, options),
    ]);
    return {
      endpoint,
      failure: undefined,
      conditions: status.status?.conditions ?? [],
      handlers: status.runtime_handlers.length === 0 ? undefined : status.runtime_handlers.map(({ name }) => name),
      sandboxes: (sandboxes?.items ?? []).map(({ id, state, metadata, created_at, annotations }) => ({
        id,
        uid: metadata?.uid ?? '',
        ready: state === 'SANDBOX_READY',
        created: epochMs(Number(created_at) / 1_000_000),
        source: annotations['kubernetes.io/config.source'] ?? '',
      })),
      containers: (containers?.containers ?? []).map(({ id, metadata, state }) => ({
        id,
        name: metadata?.name ?? '',
        attempt: metadata?.attempt ?? 0,
        state: state.replace('CONTAINER_', ''),
      })),
    };
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    return { endpoint, failure: `${error.call}: ${error.message}`, ...EMPTY };
  }
}
