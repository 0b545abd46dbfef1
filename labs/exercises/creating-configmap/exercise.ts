// ContainerCreating, because a volume's ConfigMap does not exist: its name is misspelled where it was made.

import { join } from 'node:path';
import type { ConfigMap, Pod } from '../../../client/types.ts';
import { readFileIfExists } from '../../../lib/atomic.ts';
import { type Exercise, type Finding, finding } from '../model.ts';
import { findPod, getObject, listPods, readyFinding } from '../pods.ts';

export interface Facts {
  readonly pods: readonly Pod[];
  readonly keys: readonly string[] | undefined;
  /** The file on the node; undefined when it is not there. */
  readonly content: string | undefined;
}

/** Pure. */
export function evaluate({ pods, keys, content }: Facts): readonly Finding[] {
  return [
    finding(
      'ConfigMap shop-settings',
      keys === undefined ? 'there is none' : `keys: ${keys.join(', ')}`,
      keys?.includes('colour') === true,
      'it is to exist, with the key colour',
    ),
    finding(
      'file colour in the pod’s volume on this node',
      content === undefined ? 'there is none' : JSON.stringify(content),
      content !== undefined,
      'the kubelet is to have written it',
    ),
    readyFinding(pods, 'shop'),
  ];
}

export const creatingConfigmap: Exercise = {
  name: 'creating-configmap',
  title: 'ContainerCreating: a ConfigMap that is not there',
  lesson:
    'A kubelet mounts all volumes before it makes the sandbox, and tries again by itself: the pod need not be made anew.',
  minutes: 5,
  hints: [
    'ContainerCreating: look at the events of the pod, from the last one upwards.',
    'Compare the name in the event with `kubectl get configmaps`, letter by letter.',
    'Make a ConfigMap `shop-settings` with `colour: blue` and apply it.',
  ],
  check: async (machine) => {
    const pods = await listPods(machine);
    const uid = findPod(pods, 'shop')?.metadata.uid ?? 'none';
    const map = await getObject<ConfigMap>(machine, 'configmaps', 'shop-settings');
    const volume = join(machine.kubeletDir, 'pods', uid, 'volumes/kubernetes.io~configmap/settings');
    return evaluate({
      pods,
      keys: map === undefined ? undefined : Object.keys(map.data ?? {}),
      content: await readFileIfExists(join(volume, 'colour')),
    });
  },
};
