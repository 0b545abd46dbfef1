// What this machine needs to make and to run a virtual one, in one line for what is missing. Starts nothing.

import { UserError } from '../../lib/errors.ts';
import { hasProgram } from '../../lib/has-program.ts';
import { QEMU } from './machine.ts';

/** Program → Debian's package that has it. */
const PACKAGES: ReadonlyMap<string, string> = new Map([
  [QEMU, 'qemu-system-x86'],
  ['debootstrap', 'debootstrap'],
  ['mkfs.ext4', 'e2fsprogs'],
]);

export interface MachineFacts {
  /** As in process.arch. */
  readonly architecture: string;
  readonly uid: number | undefined;
  /** Programs of PACKAGES that are not on the path. */
  readonly missing: readonly string[];
}

/** One line, or undefined where a virtual machine can be made and run. Pure. */
export function requirementProblem({ architecture, uid, missing }: MachineFacts): string | undefined {
  if (architecture !== 'x64')
    return `a virtual machine needs an x86-64 host: its Debian has the host's node_modules, and this is ${architecture}`;
  if (missing.length > 0) {
    const packages = missing.map((program) => PACKAGES.get(program) ?? program);
    const names = packages.length === 1 ? packages[0] : `${packages.slice(0, -1).join(', ')} and ${packages.at(-1)}`;
    return (
      `a virtual machine needs Debian's ${packages.length === 1 ? 'package' : 'packages'} ${names}: ` +
      `run "sh scripts/setup --with-vm", or "apt-get install ${packages.join(' ')}"`
    );
  }
  if (uid !== 0) return 'a virtual machine needs root: debootstrap makes device files and runs in a chroot';
  return undefined;
}

/** Rejects with UserError. */
export async function checkRequirements(): Promise<void> {
  const missing: string[] = [];
  for (const program of PACKAGES.keys()) if (!(await hasProgram(program))) missing.push(program);
  const problem = requirementProblem({ architecture: process.arch, uid: process.getuid?.(), missing });
  if (problem !== undefined) throw new UserError(problem);
}
