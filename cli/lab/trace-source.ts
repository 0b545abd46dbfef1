// Whose trace a command reads: that of a lab's agent, or of one that runs alone. Pure.

import { labPaths } from './paths.ts';

/** --root and --socket. */
export interface TraceSource {
  /** The lab's directory. */
  readonly root: string;
  /** The trace socket of an agent that runs alone, instead of the lab's. */
  readonly socket?: string;
}

export function traceSocket({ root, socket }: TraceSource): string {
  return socket ?? labPaths(root).traceSocket;
}

/** Where the agent's pods are read unless a kubeconfig is named: an agent that runs alone has no lab's. */
export function kubeconfigOf({ root, socket }: TraceSource, named: string | undefined): string | undefined {
  return named ?? (socket === undefined ? labPaths(root).kubeconfig : undefined);
}
