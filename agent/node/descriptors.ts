// Whether the agent has file descriptors left to run pods with. A node that has none reports NotReady instead of admitting pods that
// it cannot start. Only measures.

import { type DescriptorUse, readDescriptorUse } from '../../lib/descriptors.ts';

/**
 * What starting a pod may need at one moment: CNI plugins and mounts with their pipes, files of volumes and checkpoints,
 * sockets of probes and of the runtime.
 */
const NEEDED = 32;
/** So many have to be free again before there are enough: a node that goes back and forth is of no use. */
const ENOUGH = 2 * NEEDED;

/** The whole sentence for the Node's Ready condition while there are too few; undefined when there are enough. Pure. */
export function descriptorProblem(use: DescriptorUse | 'exhausted', wasShort: boolean): string | undefined {
  const begins = 'kubelet has insufficient file descriptors available';
  if (use === 'exhausted') return `${begins}: none is left`;
  const { open, limit, systemFree } = use;
  const wanted = wasShort ? ENOUGH : NEEDED;
  if (limit - open < wanted) return `${begins}: ${open} of ${limit} are open (RLIMIT_NOFILE)`;
  if (systemFree < wanted) return `${begins}: the machine can open ${systemFree} more files (fs.file-max)`;
  return undefined;
}

/** The check for the node's health. Throws when /proc cannot be read at all. */
export function createDescriptorCheck(
  read: () => DescriptorUse | 'exhausted' = readDescriptorUse,
): () => string | undefined {
  let problem: string | undefined;
  return () => {
    problem = descriptorProblem(read(), problem !== undefined);
    return problem;
  };
}
