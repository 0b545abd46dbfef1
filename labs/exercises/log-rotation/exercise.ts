// Container logs on the node, and their rotation by the kubelet.

import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../../../client/types.ts';
import { isErrno } from '../../../lib/errors.ts';
import { formatBytes } from '../../../lib/quantity.ts';
import { type Exercise, type Finding, finding, type Machine } from '../model.ts';
import { findPod, listPods, readyFinding } from '../pods.ts';

export interface LogFile {
  readonly name: string;
  /** Bytes. */
  readonly size: number;
}

/** Pure. */
export function evaluate(pods: readonly Pod[], files: readonly LogFile[]): readonly Finding[] {
  const rotated = files.filter(({ name }) => /^0\.log\.\d{8}-\d{6}$/.test(name));
  const compressed = files.filter(({ name }) => /^0\.log\.\d{8}-\d{6}\.gz$/.test(name));
  const list = (some: readonly LogFile[]): string =>
    some.map(({ name, size }) => `${name} (${formatBytes(size)})`).join(', ') || 'none';
  return [
    readyFinding(pods, 'chatty', 'the pod is to run'),
    finding(
      'current log of its container',
      list(files.filter(({ name }) => name === '0.log')),
      files.some(({ name }) => name === '0.log'),
      'the container is to have a log',
    ),
    finding(
      'logs that were rotated',
      list(rotated),
      rotated.length > 0,
      'let it print more than containerLogMaxSize, and wait',
    ),
    finding(
      'older logs that were compressed',
      list(compressed),
      compressed.length > 0,
      'let it print as much once more, and wait',
    ),
  ];
}

async function logFiles({ podLogsDir, namespace }: Machine, pod: Pod | undefined): Promise<readonly LogFile[]> {
  if (pod === undefined) return [];
  const directory = join(podLogsDir, `${namespace}_${pod.metadata.name}_${pod.metadata.uid}`, 'main');
  try {
    const names = (await readdir(directory)).sort();
    return await Promise.all(names.map(async (name) => ({ name, size: (await stat(join(directory, name))).size })));
  } catch (error) {
    // Not there yet, or renamed meanwhile.
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

export const logRotation: Exercise = {
  name: 'log-rotation',
  title: 'Logs on the node, and their rotation',
  lesson: 'The runtime writes the log, the kubelet rotates it; `kubectl logs` shows only the newest file.',
  minutes: 10,
  hints: [
    'The log of a container is below "$POD_LOGS", in a directory named after namespace, pod and uid.',
    'The kubelet looks every ten seconds. Whatever is larger than 10 MiB is renamed then.',
    '`kubectl exec chatty -- sh -c "echo > /tmp/more"` makes the container print 12 MB once more.',
  ],
  check: async (machine) => {
    const pods = await listPods(machine);
    return evaluate(pods, await logFiles(machine, findPod(pods, 'chatty')));
  },
};
