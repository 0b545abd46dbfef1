// CreateContainerConfigError, because a Secret lacks a key.

import type { Pod, Secret } from '../../../client/types.ts';
import { type Exercise, type Finding, finding } from '../model.ts';
import { findPod, getObject, listPods, mainPid, readEnviron, readyFinding, variableFinding } from '../pods.ts';

export interface Facts {
  readonly pods: readonly Pod[];
  readonly keys: readonly string[];
  /** Of the container's process; undefined while none runs. */
  readonly environ: readonly string[] | undefined;
}

/** Pure. */
export function evaluate({ pods, keys, environ }: Facts): readonly Finding[] {
  return [
    finding(
      'keys of the Secret database',
      keys.join(', ') || 'none',
      keys.includes('password'),
      'it is to have the key password',
    ),
    // Its value is a secret: only whether it is there is shown.
    variableFinding(
      environ?.map((line) => line.replace(/^(DATABASE_PASSWORD=).+$/, '$1(not shown)')),
      'DATABASE_PASSWORD',
      (value) => value !== '',
      'the container is to have the variable DATABASE_PASSWORD',
    ),
    readyFinding(pods, 'client'),
  ];
}

export const configError: Exercise = {
  name: 'config-error',
  title: 'CreateContainerConfigError: a Secret without the key',
  lesson: 'The kubelet resolves a container’s environment before it calls the runtime; it tries again by itself.',
  minutes: 5,
  hints: [
    'Which call to the runtime was made last? The reason says: none for this container. Read the message.',
    'Compare the keys of the Secret with those that the pod’s `env` names.',
    'Add `password:` under `stringData` in world.yaml, and apply it.',
  ],
  check: async (machine) => {
    const pods = await listPods(machine);
    const secret = await getObject<Secret>(machine, 'secrets', 'database');
    const environ = await readEnviron(await mainPid(machine, findPod(pods, 'client')));
    return evaluate({ pods, keys: Object.keys(secret?.data ?? {}), environ });
  },
};
