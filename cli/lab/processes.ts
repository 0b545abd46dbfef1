// Which processes belong to a lab: those that carry its root in their environment, and everything below them. Every
// process of a lab is started with NODELET_LAB_ROOT set, which its children inherit (containerd's shims, the agent's CNI
// plugins), so a lab's processes are found whatever their parent is now and whatever files are lost.

import { markedProcesses } from '../../lib/marked-processes.ts';
import type { ProcessEntry } from '../../lib/processes.ts';

const LAB_ROOT_VARIABLE = 'NODELET_LAB_ROOT';

/** In the C locale: nothing here needs another one, and every program starts faster (Perl by 0.3 ms, for each pod). */
export function labEnvironment(root: string): Readonly<Record<string, string | undefined>> {
  return { ...process.env, LC_ALL: 'C', [LAB_ROOT_VARIABLE]: root };
}

/** Never this process itself, nor what it was started by. */
export function labProcesses(root: string): Promise<readonly ProcessEntry[]> {
  return markedProcesses(LAB_ROOT_VARIABLE, root);
}
