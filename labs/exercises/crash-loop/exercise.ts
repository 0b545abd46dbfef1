// CrashLoopBackOff, because the program wants a variable that it is not given.

import type { Pod } from '../../../client/types.ts';
import { type Exercise, type Finding, finding } from '../model.ts';
import {
  findPod,
  listPods,
  mainContainer,
  mainPid,
  podState,
  readEnviron,
  readyFinding,
  variableFinding,
} from '../pods.ts';

export interface Facts {
  readonly pods: readonly Pod[];
  readonly environ: readonly string[] | undefined;
}

/** Pure. */
export function evaluate({ pods, environ }: Facts): readonly Finding[] {
  const pod = findPod(pods, 'greeter');
  const checks = mainContainer(pod)?.command?.some((word) => word.includes('test -z "$GREETING"')) === true;
  return [
    finding(
      'program of the pod greeter',
      pod === undefined ? podState(pod) : checks ? 'as it was' : 'changed',
      checks,
      'leave the program as it was',
    ),
    variableFinding(environ, 'GREETING', (value) => value !== '', 'the program is to have the variable GREETING'),
    readyFinding(pods, 'greeter', 'it is to stay up'),
  ];
}

export const crashLoop: Exercise = {
  name: 'crash-loop',
  title: 'CrashLoopBackOff: a program that ends at once',
  lesson:
    'CrashLoopBackOff is the pause; the cause is in lastState and in the log of the container before: `logs --previous`.',
  minutes: 5,
  hints: [
    'The kubelet can start the container. Who ends it, and with which exit code?',
    '`kubectl logs greeter --previous` shows the last words of the container that has ended.',
    'Add `env: [{name: GREETING, value: hello}]` to the container in world.yaml, delete the pod and apply it.',
  ],
  check: async (machine) => {
    const pods = await listPods(machine);
    return evaluate({ pods, environ: await readEnviron(await mainPid(machine, findPod(pods, 'greeter'))) });
  },
};
