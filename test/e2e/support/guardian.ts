// Takes a lab of a test's or of the benchmark's down when the process that started it is gone before it has done so itself.

import { fileURLToPath } from 'node:url';
import { GUARDIAN, type Guardian, guard } from '../../../lib/guardian.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
const TAKE_DOWN = '"$1" down --root "$2"; rmdir "$2"';

/** Guards the lab under `root`, a directory of its own. */
export function guardLab(root: string): Promise<Guardian> {
  return guard(['sh', '-c', TAKE_DOWN, GUARDIAN, NODELET, root]);
}
