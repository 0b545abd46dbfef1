// `nodelet explain`: collects facts about one object, applies the rules, prints the answer; with --watch at each change of the
// answer, until the object is Ready. Changes neither the cluster nor the machine.

import { hostname } from 'node:os';
import { ApiClient } from '../../client/api.ts';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import { systemClock } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { poll } from '../../lib/retry.ts';
import { Tracer } from '../../lib/trace.ts';
import { netnsFile, nodePaths } from '../lab/node/plan.ts';
import { DEFAULT_ROOT, type LabPaths, labPaths } from '../lab/paths.ts';
import { readLabState, runtimeSocket } from '../lab/state.ts';
import { parseObjectName } from '../object-name.ts';
import type { LocalNode, Sources } from './collect/source.ts';
import { withFlags } from './command-text.ts';
import type { Kind } from './facts.ts';
import type { Explanation, Target } from './finding.ts';
import { explanationJson, renderText } from './render.ts';
import { explainTarget } from './targets.ts';

/** Between two looks with --watch. ms */
const WATCH_MS = 1_000;

export interface ExplainOptions {
  readonly root: string;
  /** Instead of the lab's. */
  readonly kubeconfig?: string;
  readonly runtimeEndpoint?: string;
  readonly traceSocket?: string;
  /** The Node that this machine is, where its name is not the host's. */
  readonly nodeName?: string;
  /** Of the agent of this machine, where it is no lab's. */
  readonly agentKubeconfig?: string;
  /** Of the node, where it is not in the one of this process: a file such as /run/netns/n1. */
  readonly networkNamespace?: string;
  /** The pod, NAMESPACE/NAME or NAME, from which a Service is looked for. */
  readonly from?: string;
  readonly output: 'text' | 'json';
  readonly watch: boolean;
}

const KINDS: ReadonlyMap<string, Kind> = new Map([
  ['pod', 'pod'],
  ['pods', 'pod'],
  ['po', 'pod'],
  ['node', 'node'],
  ['nodes', 'node'],
  ['no', 'node'],
  ['service', 'service'],
  ['services', 'service'],
  ['svc', 'service'],
  ['pvc', 'pvc'],
  ['persistentvolumeclaim', 'pvc'],
  ['persistentvolumeclaims', 'pvc'],
  ['deployment', 'deployment'],
  ['deployments', 'deployment'],
  ['deploy', 'deployment'],
  ['replicaset', 'replicaset'],
  ['replicasets', 'replicaset'],
  ['rs', 'replicaset'],
  ['statefulset', 'statefulset'],
  ['statefulsets', 'statefulset'],
  ['sts', 'statefulset'],
  ['daemonset', 'daemonset'],
  ['daemonsets', 'daemonset'],
  ['ds', 'daemonset'],
  ['job', 'job'],
  ['jobs', 'job'],
]);

/** "pod", "demo/web". `namespace`: of names without one. Throws UserError. Pure. */
export function parseTarget(kindText: string, nameText: string, namespace: string): Target {
  const kind = KINDS.get(kindText.toLowerCase());
  if (kind === undefined)
    throw new UserError(
      `"${kindText}" cannot be explained: give pod, node, service, pvc, deployment, replicaset, statefulset, daemonset or job`,
    );
  if (kind !== 'node') return { kind, ...parseObjectName(nameText, namespace) };
  if (nameText === '' || nameText.includes('/')) throw new UserError('nodes are in no namespace: give the name alone');
  return { kind, namespace: '', name: nameText };
}

interface Opened extends Sources {
  readonly namespace: string;
  close(): void;
}

/** The nodes of this machine: the lab's, or the one of the host's name with its runtime's endpoint. */
async function openLocals(options: ExplainOptions): Promise<readonly LocalNode[]> {
  const [{ createCriClient }, { DEFAULT_ENDPOINTS }] = await Promise.all([
    import('../../agent/runtime/grpc-cri-client.ts'),
    import('../crictl/settings.ts'),
  ]);
  const paths = labPaths(options.root);
  const state = options.kubeconfig === undefined ? await readLabState(paths) : undefined;
  const criOf = (endpoint: string): Pick<LocalNode, 'endpoint' | 'cri'> => ({
    endpoint,
    cri: createCriClient(endpoint, endpoint, new Tracer()),
  });
  if (state?.nodes !== undefined) {
    return state.nodes.list.map(({ name }) => {
      const node = nodePaths(paths, name);
      return {
        name,
        ...criOf(`unix://${runtimeSocket(node, state)}`),
        ...partsOf(node),
        networkNamespace: netnsFile(node),
      };
    });
  }
  const preset = state === undefined ? (DEFAULT_ENDPOINTS[0] ?? '') : `unix://${runtimeSocket(paths, state)}`;
  const parts = state === undefined ? UNKNOWN_PARTS : partsOf(paths);
  return [
    {
      name: options.nodeName ?? state?.nodeName ?? hostname().toLowerCase(),
      ...criOf(options.runtimeEndpoint ?? preset),
      ...parts,
      traceSocket: options.traceSocket ?? parts.traceSocket,
      agentKubeconfig: options.agentKubeconfig ?? parts.agentKubeconfig,
      networkNamespace: options.networkNamespace,
    },
  ];
}

type Parts = Pick<LocalNode, 'traceSocket' | 'cgroupRoot' | 'agentKubeconfig' | 'agentConfig'>;

/** Of an agent that is no lab's. */
const UNKNOWN_PARTS: Parts = {
  traceSocket: '/run/nodelet/trace.sock',
  cgroupRoot: '/',
  agentKubeconfig: undefined,
  agentConfig: undefined,
};

function partsOf({ traceSocket, cgroupRoot, kubeconfigs, kubeletConfig }: LabPaths): Parts {
  return { traceSocket, cgroupRoot, agentKubeconfig: kubeconfigs.agent, agentConfig: kubeletConfig };
}

async function open(options: ExplainOptions): Promise<Opened> {
  const access = await loadKubeconfig(options.kubeconfig ?? labPaths(options.root).kubeconfig);
  const client = new ApiClient(access, { tracer: new Tracer(), clock: systemClock, userAgent: 'nodelet-explain' });
  const isRoot = process.getuid?.() === 0;
  const locals = isRoot ? await openLocals(options) : [];
  return {
    client,
    now: systemClock.now,
    locals,
    notLocal: 'only root can read them',
    from: options.from,
    namespace: access.namespace ?? 'default',
    close: () => {
      client.close();
      for (const { cri } of locals) cri.close();
    },
  };
}

/** The flags by which the same cluster is found again. */
function clusterFlags({ root, kubeconfig }: ExplainOptions): string {
  if (kubeconfig !== undefined) return `--kubeconfig ${kubeconfig}`;
  return root === DEFAULT_ROOT ? '' : `--root ${root}`;
}

function print(explanation: Explanation, options: ExplainOptions, write: (text: string) => void): void {
  if (options.output === 'text') write(renderText(explanation, Math.min(process.stdout.columns ?? 100, 120)));
  else write(`${JSON.stringify(explanationJson(explanation), undefined, options.watch ? undefined : 2)}\n`);
}

/** What of an explanation is news; times that only go on are none. Pure. */
export function newsOf({ finding, others }: Explanation): string {
  return JSON.stringify([
    finding.rule,
    finding.state,
    finding.verdict,
    others.map(({ verdict }) => verdict),
  ]).replaceAll(/\d+/g, '0');
}

/** Resolves to the exit code: 0 where nothing is wrong, 1 otherwise. Rejects with UserError. */
export async function runExplain(
  kind: string,
  name: string,
  options: ExplainOptions,
  write: (text: string) => void,
  signal: AbortSignal,
): Promise<number> {
  const sources = await open(options);
  try {
    const target = parseTarget(kind, name, sources.namespace);
    let last: Explanation | undefined;
    const look = async (): Promise<boolean> => {
      const explanation = withFlags(await explainTarget(sources, target), clusterFlags(options));
      if (last === undefined || newsOf(last) !== newsOf(explanation)) {
        if (last !== undefined && options.output === 'text') write(`\n${'─'.repeat(40)}\n`);
        print(explanation, options, write);
      }
      last = explanation;
      return isOver(explanation);
    };
    if (options.watch) {
      await poll(look, { clock: systemClock, everyMs: WATCH_MS, signal }).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    } else await look();
    return last !== undefined && (last.finding.state === 'ready' || last.finding.rule === 'succeeded') ? 0 : 1;
  } catch (error) {
    if (error instanceof UserError) throw error;
    const { isUnreachable, ApiError } = await import('../../client/errors.ts');
    if (isUnreachable(error) || error instanceof ApiError) throw new UserError(errorMessage(error), { cause: error });
    throw error;
  } finally {
    sources.close();
  }
}

function isOver({ finding }: Explanation): boolean {
  return finding.state === 'ready' || finding.state === 'ended';
}
