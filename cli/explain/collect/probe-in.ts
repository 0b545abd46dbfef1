// Connections and DNS questions from a network namespace that is not this process's: a program does it that is started in there.

import { fileURLToPath } from 'node:url';
import { exec } from '../../../lib/exec.ts';
import type { ProbeRequest, ProbeResult } from '../network-probe.ts';

/** For giving up only. ms */
const PROGRAM_MS = 15_000;
const PROGRAM = fileURLToPath(new URL('../network-probe-program.ts', import.meta.url));

export type Probed =
  | { readonly failure?: undefined; readonly result: ProbeResult }
  /** Why the namespace cannot be entered. */
  | { readonly failure: string };

/** `namespace`: a file such as /run/netns/n1. Needs root. */
export async function probeIn(namespace: string, request: ProbeRequest): Promise<Probed> {
  const args = [`--net=${namespace}`, process.execPath, '--disable-warning=ExperimentalWarning', PROGRAM];
  const { code, stdout, stderr } = await exec('nsenter', args, {
    stdin: JSON.stringify(request),
    timeoutMs: PROGRAM_MS,
  });
  if (code === 0) return { result: JSON.parse(stdout) };
  return { failure: `${namespace} cannot be entered: ${stderr.trim().split('\n')[0]}` };
}
