// The programs that the driver runs, as spans: mount and umount, and those that work on images, devices and filesystems. Mount
// options may be sensitive (CSI's mount_flags) and are not shown.

import type { Exec } from '../../lib/exec.ts';
import type { Tracer } from '../../lib/trace.ts';
import { tracedExec } from '../../lib/traced-exec.ts';

const OPTIONS_FLAG = '-o';
const HIDDEN = '***';

/** Arguments of mount(8) without the values of its options, of others as they are. Pure. */
export function shownArguments(args: readonly string[]): readonly string[] {
  return args.map((word, index) => (args[index - 1] === OPTIONS_FLAG ? HIDDEN : word));
}

export function tracedPrograms(tracer: Tracer, run: Exec): Exec {
  return tracedExec(tracer, (file) => (/^u?mount$/.test(file) ? 'mount' : 'disk'), run, shownArguments);
}
