// A pod by hand through CRI, the same pod by the kubelet, and the recordings of both.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../../../client/types.ts';
import { readFileIfExists } from '../../../lib/atomic.ts';
import { type Exercise, type Finding, finding, type Machine } from '../model.ts';
import { listPods, readyFinding } from '../pods.ts';

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

export interface Facts {
  readonly sandboxes: readonly Sandbox[];
  readonly pods: readonly Pod[];
  /** Methods in the two recordings; undefined where there is none. */
  readonly hand: readonly string[] | undefined;
  readonly kubelet: readonly string[] | undefined;
  readonly difference: string | undefined;
}

/** Methods of the calls in a recording of nodelet tap, each once; a torn line is left out. Pure. */
export function methodsOf(recording: string): readonly string[] {
  const methods = [...recording.matchAll(/"record":"call".*?"method":"[^"]*\/([A-Za-z]+)"/g)];
  return [...new Set(methods.map(([, method = '']) => method))];
}

function recordingFinding(name: string, methods: readonly string[] | undefined): Finding {
  const there = START.filter((method) => methods?.includes(method) === true);
  return finding(
    `recording ${name}`,
    methods === undefined ? 'there is none' : `${methods.length} methods, of a start: ${there.join(', ') || 'none'}`,
    there.length === START.length,
    `it is to have ${START.join(', ')}`,
  );
}

function sandboxFinding(whose: string, sandbox: Sandbox | undefined): Finding {
  const running = sandbox?.running.join(', ') || 'nothing';
  return finding(
    `sandbox at the runtime, made by ${whose}`,
    sandbox === undefined
      ? 'there is none'
      : `${sandbox.id.slice(0, 13)}: ${sandbox.ready ? 'ready' : 'not ready'}, ${running} runs in it`,
    sandbox?.ready === true && sandbox.running.length > 0,
    'it is to be there, with a container that runs',
  );
}

/** Pure. */
export function evaluate({ sandboxes, pods, hand, kubelet, difference }: Facts): readonly Finding[] {
  return [
    sandboxFinding(
      'hand',
      sandboxes.find(({ kubelets }) => !kubelets),
    ),
    recordingFinding('hand.crirec', hand),
    sandboxFinding(
      'the kubelet',
      sandboxes.find(({ kubelets }) => kubelets),
    ),
    readyFinding(pods, 'web', 'the kubelet is to make the same pod'),
    recordingFinding('kubelet.crirec', kubelet),
    finding(
      'difference.txt',
      difference === undefined ? 'there is none' : `${difference.split('\n').length} lines`,
      difference?.includes('RunPodSandbox') === true,
      'compare the two recordings with nodelet tap diff',
    ),
  ];
}

async function sandboxesOf({ cri, namespace }: Machine): Promise<readonly Sandbox[]> {
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

export const podByHand: Exercise = {
  name: 'pod-by-hand',
  title: 'A pod by hand with crictl, and what the kubelet does differently',
  lesson:
    'A pod is three calls to the runtime; nearly everything that makes it a pod of a cluster is what the kubelet puts into them.',
  minutes: 20,
  changesNode: true,
  hints: [
    'Every step builds on the one before, in one shell: `$pod` and `$container` have to stay set.',
    '`cat tap.log` says what the tap is doing. `crictl pods` lists both pods, the one by hand and the kubelet’s.',
    'When the node does not become Ready: does a tap listen where `containerRuntimeEndpoint` of "$KUBELET_CONFIG" leads?',
  ],
  variables: ({ directory }) => ({ EXERCISE: directory }),
  cgroups: ['by-hand'],
  setUp: async ({ directory }) => {
    // As the kubelet does: a runtime makes the file, not its directory.
    await mkdir(join(directory, 'logs'));
  },
  restore: async (machine) => {
    for (const { id, kubelets } of await sandboxesOf(machine)) {
      if (kubelets) continue;
      await machine.cri.call('StopPodSandbox', { pod_sandbox_id: id });
      await machine.cri.call('RemovePodSandbox', { pod_sandbox_id: id });
    }
  },
  check: async (machine) => {
    const read = (name: string): Promise<string | undefined> => readFileIfExists(join(machine.directory, name));
    const [hand, kubelet] = [await read('hand.crirec'), await read('kubelet.crirec')];
    return evaluate({
      sandboxes: await sandboxesOf(machine),
      pods: await listPods(machine),
      hand: hand === undefined ? undefined : methodsOf(hand),
      kubelet: kubelet === undefined ? undefined : methodsOf(kubelet),
      difference: await read('difference.txt'),
    });
  },
};
