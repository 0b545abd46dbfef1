// The atomic writer: how the files of a ConfigMap volume change together, and what does not change with them.

import { readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { readFileIfExists } from '../../../lib/atomic.ts';
import { isErrno } from '../../../lib/errors.ts';
import { type Exercise, type Finding, finding } from '../model.ts';
import { findPod, listPods, mainPid, readEnviron, readOfProcess } from '../pods.ts';

const BEFORE = 'blue';

export interface Facts {
  /** Where ..data leads; undefined when there is no such link. */
  readonly data: string | undefined;
  /** The file on the node. */
  readonly colour: string | undefined;
  /** The same, and the file with a subPath, as the container's process has them. */
  readonly live: string | undefined;
  readonly fixed: string | undefined;
  readonly variable: string | undefined;
}

const shown = (content: string | undefined): string => content ?? 'not there';

/** Pure. */
export function evaluate({ data, colour, live, fixed, variable }: Facts): readonly Finding[] {
  return [
    finding(
      '..data in the volume on the node',
      data === undefined ? 'there is no such link' : `a link to ${data}`,
      data !== undefined,
      'the pod is to run',
    ),
    finding(
      'file colour in the volume, on the node and in the container',
      `${shown(colour)}, ${shown(live)}`,
      colour !== undefined && colour !== BEFORE && live === colour,
      'change the ConfigMap: another colour is to arrive in the volume',
    ),
    finding(
      'the same file with a subPath, and the variable, in the container',
      `${shown(fixed)}, ${shown(variable)}`,
      fixed === BEFORE && variable === BEFORE,
      'both are to be the old ones: the container that has seen the change is to be the one from before it',
    ),
  ];
}

async function linkAt(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

export const atomicWriter: Exercise = {
  name: 'atomic-writer',
  title: 'ConfigMap volumes: ..data, and what never changes',
  lesson:
    'The files of a ConfigMap volume change together by one rename of the link ..data; a subPath and an environment never follow.',
  minutes: 10,
  hints: [
    'Look at the volume on the node with `ls -la`, before and after a change of the ConfigMap.',
    'Change `colour` in world.yaml and apply it; the pod stays as it is.',
    'If you have made the pod anew, everything in it is new: apply one more change.',
  ],
  check: async (machine) => {
    const pod = findPod(await listPods(machine), 'reader');
    const volume = join(
      machine.kubeletDir,
      'pods',
      pod?.metadata.uid ?? 'none',
      'volumes/kubernetes.io~configmap/settings',
    );
    const pid = await mainPid(machine, pod);
    const environ = await readEnviron(pid);
    return evaluate({
      data: await linkAt(join(volume, '..data')),
      colour: await readFileIfExists(join(volume, 'colour')),
      live: await readOfProcess(pid, 'root/live/colour'),
      fixed: await readOfProcess(pid, 'root/fixed/colour'),
      variable: environ?.find((line) => line.startsWith('COLOUR='))?.slice('COLOUR='.length),
    });
  },
};
