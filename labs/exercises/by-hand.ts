// What exercises ask about pods that were made by hand through CRI, and about recordings of the calls that made them. Pure but
// for the reading at the end.

import type { CriClient } from '../../agent/runtime/cri-client.ts';
import { type Finding, finding } from './model.ts';

const START = ['RunPodSandbox', 'CreateContainer', 'StartContainer'];
/** What the kubelet puts on each sandbox of its own. */
const KUBELETS = 'io.kubernetes.pod.uid';

export interface Sandbox {
  readonly id: string;
  readonly ready: boolean;
  /** Labelled as the kubelet's are. */
  readonly kubelets: boolean;
  /** Names of its containers that run. */
  readonly running: readonly string[];
}

/** Methods of the calls in a recording of nodelet tap, each once; a torn line is left out. Pure. */
export function methodsOf(recording: string): readonly string[] {
  const methods = [...recording.matchAll(/"record":"call".*?"method":"[^"]*\/([A-Za-z]+)"/g)];
  return [...new Set(methods.map(([, method = '']) => method))];
}

/** The recording has the three calls of a pod. `methods`: undefined where there is none. */
export function recordingFinding(name: string, methods: readonly string[] | undefined): Finding {
  const there = START.filter((method) => methods?.includes(method) === true);
  return finding(
    `recording ${name}`,
    methods === undefined ? 'there is none' : `${methods.length} methods, of a start: ${there.join(', ') || 'none'}`,
    there.length === START.length,
    `it is to have ${START.join(', ')}`,
  );
}

/** The sandbox is ready, and a container runs in it. */
export function sandboxFinding(subject: string, sandbox: Sandbox | undefined): Finding {
  const running = sandbox?.running.join(', ') || 'nothing';
  return finding(
    subject,
    sandbox === undefined
      ? 'there is none'
      : `${sandbox.id.slice(0, 13)}: ${sandbox.ready ? 'ready' : 'not ready'}, ${running} runs in it`,
    sandbox?.ready === true && sandbox.running.length > 0,
    'it is to be there, with a container that runs',
  );
}

// ---------------------------------------------------------------- reading

/** Of one namespace. */
export async function sandboxesOf(cri: CriClient, namespace: string): Promise<readonly Sandbox[]> {
  const { items } = await cri.call('ListPodSandbox', {});
  const { containers } = await cri.call('ListContainers', { filter: { state: { state: 'CONTAINER_RUNNING' } } });
  return items
    .filter(({ metadata }) => metadata?.namespace === namespace)
    .map(({ id, state, labels }) => ({
      id,
      ready: state === 'SANDBOX_READY',
      kubelets: new Map(Object.entries(labels)).has(KUBELETS),
      running: containers.filter((each) => each.pod_sandbox_id === id).map(({ metadata }) => metadata?.name ?? ''),
    }));
}

/** Takes away what was made by hand. */
export async function removeSandboxes(cri: CriClient, namespace: string): Promise<void> {
  for (const { id, kubelets } of await sandboxesOf(cri, namespace)) {
    if (kubelets) continue;
    await cri.call('StopPodSandbox', { pod_sandbox_id: id });
    await cri.call('RemovePodSandbox', { pod_sandbox_id: id });
  }
}
