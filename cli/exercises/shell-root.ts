// Which lab a command of `nodelet lab` is about without --root: in the shell of an exercise, that exercise's. Pure.

import { DEFAULT_ROOT } from '../lab/paths.ts';

/** By what the exercise's env file exports. LAB alone may be anyone's variable. */
export function rootOfShell(env: Readonly<Record<string, string | undefined>>): string {
  const { LAB: root, NAMESPACE: namespace } = env;
  return root !== undefined && root !== '' && namespace?.startsWith('exercise-') === true ? root : DEFAULT_ROOT;
}
