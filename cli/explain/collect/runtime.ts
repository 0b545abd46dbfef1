// The container runtime of this machine: its conditions and what it has of a pod. Only reads, with short deadlines: a
// runtime that hangs is a fact, and must not make this command hang.

import { RuntimeError } from '../../../agent/ports/runtime.ts';
import type { RuntimeFacts } from '../facts.ts';
import type { LocalNode } from './source.ts';

/** ms */
const DEADLINE_MS = 3_000;

const EMPTY = { conditions: [], handlers: undefined, sandboxes: [], containers: [] } as const;

/** `uid`: the pod's; undefined: only the runtime itself. */
export async function collectRuntime(local: LocalNode, uid: string | undefined): Promise<RuntimeFacts> {
  const { cri, endpoint } = local;
  const options = { deadlineMs: DEADLINE_MS };
  const label_selector = { 'io.kubernetes.pod.uid': uid ?? '' };
  try {
    const [status, sandboxes, containers] = await Promise.all([
      cri.call('Status', { verbose: false }, options),
      uid === undefined ? undefined : cri.call('ListPodSandbox', { filter: { label_selector } }, options),
      uid === undefined ? undefined : cri.call('ListContainers', { filter: { label_selector } }, options),
    ]);
    return {
      endpoint,
      failure: undefined,
      conditions: status.status?.conditions ?? [],
      handlers: status.runtime_handlers.length === 0 ? undefined : status.runtime_handlers.map(({ name }) => name),
      sandboxes: (sandboxes?.items ?? []).map(({ id, state }) => ({ id, ready: state === 'SANDBOX_READY', ip: '' })),
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
