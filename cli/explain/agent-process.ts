// Which process of this machine is a node's agent, by its command line: a kubelet, or `nodelet agent`. Pure.

import { basename } from 'node:path';
import type { ProcessEntry } from '../../lib/processes.ts';

/** The value of `--name value` or `--name=value`. */
export function flagOf(argv: readonly string[], name: string): string | undefined {
  const flag = `--${name}`;
  const place = argv.findIndex((each) => each === flag || each.startsWith(`${flag}=`));
  const found = argv[place];
  if (found === undefined) return undefined;
  return found === flag ? argv[place + 1] : found.slice(flag.length + 1);
}

function isAgent({ argv, state }: ProcessEntry): boolean {
  if (state === 'Z' || state === 'X') return false;
  if (basename(argv[0] ?? '') === 'kubelet') return true;
  const command = argv.findIndex((each) => each.endsWith('/cli/main.ts') || basename(each) === 'nodelet');
  return command >= 0 && argv[command + 1] === 'agent';
}

/** `kubeconfig`: of the agent, where it is known; else the node's name decides. */
export function agentProcess(
  processes: readonly ProcessEntry[],
  { kubeconfig, nodeName }: { readonly kubeconfig: string | undefined; readonly nodeName: string },
): ProcessEntry | undefined {
  return processes.filter(isAgent).find(({ argv }) => {
    const own = flagOf(argv, 'kubeconfig');
    if (kubeconfig !== undefined) return own === kubeconfig;
    return own !== undefined && (flagOf(argv, 'hostname-override') ?? nodeName).toLowerCase() === nodeName;
  });
}
