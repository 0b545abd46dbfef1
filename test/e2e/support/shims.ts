// Shims that a containerd has lost: processes that no API shows any more, so that only the test's own clean-up would
// ever end them. Only reads.

import { setTimeout as sleep } from 'node:timers/promises';
import { execOk } from '../../../lib/exec.ts';
import { listProcesses, type ProcessEntry } from '../../../lib/processes.ts';

/** What containerd is about to end may take this long. */
const SETTLE_MS = 120_000;

function wordAfter({ argv }: Pick<ProcessEntry, 'argv'>, flag: string): string | undefined {
  const at = argv.indexOf(flag);
  return at < 0 ? undefined : argv[at + 1];
}

/** The shims of the containerd at `socket` whose container is not among the `known` ones. Pure. */
export function lostShims(
  processes: readonly Pick<ProcessEntry, 'pid' | 'comm' | 'argv'>[],
  socket: string,
  known: ReadonlySet<string>,
): readonly string[] {
  return (
    processes
      .filter(({ comm }) => comm.startsWith('containerd-shim'))
      // Docker's containers are in a namespace of its own, and dockerd ends theirs.
      .filter((entry) => wordAfter(entry, '-namespace') !== 'moby')
      .filter((entry) => wordAfter(entry, '-address') === socket && !known.has(wordAfter(entry, '-id') ?? ''))
      .map(({ pid, argv }) => `shim ${pid} ${argv.join(' ')}`)
  );
}

/** Rejects when a shim of the containerd that serves at `socket` belongs to no container that it lists. */
export async function expectNoLostShims(socket: string): Promise<void> {
  const deadline = performance.now() + SETTLE_MS;
  for (;;) {
    // First the processes: a container is recorded before its shim is started.
    const processes = await listProcesses();
    const ctr = ['--address', socket, '--connect-timeout', '20s', '--namespace', 'k8s.io', 'containers', 'ls', '-q'];
    const known = new Set((await execOk('ctr', ctr, { timeoutMs: 60_000 })).split('\n'));
    const lost = lostShims(processes, socket, known);
    if (lost.length === 0) return;
    if (performance.now() > deadline) throw new Error(`containerd has lost shims:\n${lost.join('\n')}`);
    await sleep(100);
  }
}
