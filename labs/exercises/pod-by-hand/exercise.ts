// A pod by hand through CRI, the same pod by the kubelet, and the recordings of both.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../../../client/types.ts';
import { readFileIfExists } from '../../../lib/atomic.ts';
import { methodsOf, recordingFinding, removeSandboxes, type Sandbox, sandboxesOf, sandboxFinding } from '../by-hand.ts';
import { type Exercise, type Finding, finding } from '../model.ts';
import { listPods, readyFinding } from '../pods.ts';

export interface Facts {
  readonly sandboxes: readonly Sandbox[];
  readonly pods: readonly Pod[];
  /** Methods in the two recordings; undefined where there is none. */
  readonly hand: readonly string[] | undefined;
  readonly kubelet: readonly string[] | undefined;
  readonly difference: string | undefined;
}

/** Pure. */
export function evaluate({ sandboxes, pods, hand, kubelet, difference }: Facts): readonly Finding[] {
  return [
    sandboxFinding(
      'sandbox at the runtime, made by hand',
      sandboxes.find(({ kubelets }) => !kubelets),
    ),
    recordingFinding('hand.crirec', hand),
    sandboxFinding(
      'sandbox at the runtime, made by the kubelet',
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
  restore: ({ cri, namespace }) => removeSandboxes(cri, namespace),
  check: async (machine) => {
    const read = (name: string): Promise<string | undefined> => readFileIfExists(join(machine.directory, name));
    const [hand, kubelet] = [await read('hand.crirec'), await read('kubelet.crirec')];
    return evaluate({
      sandboxes: await sandboxesOf(machine.cri, machine.namespace),
      pods: await listPods(machine),
      hand: hand === undefined ? undefined : methodsOf(hand),
      kubelet: kubelet === undefined ? undefined : methodsOf(kubelet),
      difference: await read('difference.txt'),
    });
  },
};
