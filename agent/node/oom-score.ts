// Whether processes of this machine may be given a lower OOM score than the one they have. Containers that are to die
// late need that; where it is not so, they run with what they are given.

import { readFileSync } from 'node:fs';

/** CAP_SYS_RESOURCE is bit 24 of CapEff in /proc/PID/status. */
const CAP_SYS_RESOURCE = 24n;

/** `status`: the text of /proc/self/status. */
export function mayLowerOomScore(status: string = readFileSync('/proc/self/status', 'utf8')): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1];
  return effective !== undefined && ((BigInt(`0x${effective}`) >> CAP_SYS_RESOURCE) & 1n) === 1n;
}
