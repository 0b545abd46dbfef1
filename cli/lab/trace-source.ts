// Whose trace a command reads: that of a lab's agent, or of one that runs alone.

import { UserError } from '../../lib/errors.ts';
import { nodePaths } from './node/plan.ts';
import { type LabPaths, labPaths } from './paths.ts';
import { type LabState, readLabState } from './state.ts';

/** --root, --node and --socket. */
export interface TraceSource {
  /** The lab's directory. */
  readonly root: string;
  /** Of a lab with several nodes, the one whose agent is meant. */
  readonly node?: string;
  /** The trace socket of an agent that runs alone, instead of the lab's. */
  readonly socket?: string;
}

/** `node`: as TraceSource's; undefined: not named. Throws UserError for one that the lab has not, and where several could be meant. Pure. */
export function traceSocketOf(
  paths: LabPaths,
  state: Pick<LabState, 'nodeName' | 'nodes'> | undefined,
  node: string | undefined,
): string {
  const nodes = state?.nodes?.list.map(({ name }) => name);
  if (nodes === undefined) {
    if (node === undefined || node === state?.nodeName) return paths.traceSocket;
    throw new UserError(`--node ${node}: the lab in ${paths.root} has no such node`);
  }
  if (node === undefined) throw new UserError(`the lab has several nodes: give --node ${nodes.join(' or --node ')}`);
  if (!nodes.includes(node)) throw new UserError(`the lab has no node ${node}: there is ${nodes.join(', ')}`);
  return nodePaths(paths, node).traceSocket;
}

/** Rejects with UserError, as `traceSocketOf` throws. `usualNode`: where several could be meant, and none is named. */
export async function traceSocket(
  { root, socket, node }: TraceSource,
  usualNode: () => Promise<string | undefined> = () => Promise.resolve(undefined),
): Promise<string> {
  if (socket !== undefined) return socket;
  const paths = labPaths(root);
  const state = await readLabState(paths);
  const isOpen = node === undefined && state?.nodes !== undefined;
  return traceSocketOf(paths, state, isOpen ? await usualNode() : node);
}

/** Where the agent's pods are read unless a kubeconfig is named: an agent that runs alone has no lab's. */
export function kubeconfigOf({ root, socket }: TraceSource, named: string | undefined): string | undefined {
  return named ?? (socket === undefined ? labPaths(root).kubeconfig : undefined);
}
