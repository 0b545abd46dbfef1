// What the configuration demands of the machine before any pod is touched. Pure; never changes the machine.

import { UserError } from '../../lib/errors.ts';

export interface Requirements {
  readonly failSwapOn: boolean;
  readonly failCgroupV1: boolean;
}

/** Throws UserError where the machine is not as demanded. `swapBytes`: swap that is on, in all. */
export function checkMachine(
  { failSwapOn, failCgroupV1 }: Requirements,
  machine: { readonly swapBytes: number; readonly cgroupVersion: 1 | 2 },
): void {
  if (failSwapOn && machine.swapBytes > 0) {
    throw new UserError(
      'running with swap on is not supported, please disable swap or set --fail-swap-on flag to false ' +
        '(pods get no swap then; on cgroup v1 nothing keeps them from it)',
    );
  }
  if (failCgroupV1 && machine.cgroupVersion === 1) {
    throw new UserError(
      'failCgroupV1 is true, and this machine has cgroup v1: boot it with cgroup v2, or set it to false',
    );
  }
}
