// Everything about one pod. Where the pod is on this machine, the runtime, the agent's trace and the kernel are read too; also
// of a pod that the API server has forgotten.

import { readLogs } from '../../../client/logs.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { ContainerStatus, Lease, Node, Pod } from '../../../client/types.ts';
import { UserError } from '../../../lib/errors.ts';
import type { OpenCall, Span } from '../../../lib/trace.ts';
import type { Download, GonePodFacts, LogFact, MachineFacts, PodFacts, RuntimeFacts } from '../facts.ts';
import { absent } from './absent.ts';
import { collectDownloads } from './downloads.ts';
import { collectEvents } from './events.ts';
import { collectMachine, collectProcesses } from './machine.ts';
import { collectReferences } from './references.ts';
import { collectRuntime } from './runtime.ts';
import { elsewhere, found, Gaps, type LocalNode, localNode, type Sources } from './source.ts';
import { collectTrace, type TraceFacts } from './spans.ts';

const LOG_LINES = 5;
/** Longer lines are cut: one screen. Characters. */
const LOG_LINE_LENGTH = 160;

interface WantedLog {
  readonly container: string;
  readonly previous: boolean;
}

/** A container whose last words matter: it ended, or is about to be started again. Pure. */
export function logsWanted(pod: Pod): readonly WantedLog[] {
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  return [...initContainerStatuses, ...containerStatuses].flatMap((status: ContainerStatus): WantedLog[] => {
    const { waiting, running, terminated } = status.state ?? {};
    if (running !== undefined) return status.restartCount > 0 ? [{ container: status.name, previous: true }] : [];
    // While it waits for its next start, the log of its last instance is the present one.
    const ended = terminated ?? (waiting === undefined ? undefined : status.lastState?.terminated);
    return (ended?.containerID ?? '') === '' ? [] : [{ container: status.name, previous: false }];
  });
}

async function collectLogs({ client }: Sources, gaps: Gaps, pod: Pod): Promise<readonly LogFact[]> {
  const { namespace, name } = pod.metadata;
  const wanted = logsWanted(pod).map(async ({ container, previous }) => {
    const text = await gaps.attempt(`the log of container ${container}`, '', () =>
      readLogs(client, { namespace, pod: name, container, previous, tailLines: LOG_LINES }),
    );
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    return { container, previous, lines: lines.map((line) => line.slice(0, LOG_LINE_LENGTH)) };
  });
  return (await Promise.all(wanted)).filter(({ lines }) => lines.length > 0);
}

/** Whether what is in use on the nodes matters: a pod without a node, or one that its node refused. */
function needsNeighbours(pod: Pod): boolean {
  return (pod.spec.nodeName ?? '') === '' || pod.status?.phase === 'Failed';
}

interface Local extends TraceFacts {
  readonly runtime: RuntimeFacts | undefined;
  readonly downloads: readonly Download[];
  readonly machine: MachineFacts | undefined;
}

const NO_TRACE: TraceFacts = { spans: [], open: [] };

/** Whether an image may be on its way. */
function waitsForImage({ spec, status }: Pod): boolean {
  const { initContainerStatuses = [], containerStatuses = [] } = status ?? {};
  const started = [...initContainerStatuses, ...containerStatuses].filter(({ imageID }) => imageID !== '');
  return started.length < (spec.initContainers ?? []).length + spec.containers.length;
}

async function collectLocal(sources: Sources, gaps: Gaps, pod: Pod): Promise<Local> {
  const node = pod.spec.nodeName ?? '';
  const local = localNode(sources, node);
  const nothing = { runtime: undefined, downloads: [], machine: undefined, ...NO_TRACE };
  if (node === '') return nothing;
  if (local === undefined) {
    const here = elsewhere(sources);
    const why = sources.locals.length === 0 ? here : `the pod is on node ${node}, ${here}`;
    gaps.add('the container runtime, the kernel and the agent’s trace', why);
    return nothing;
  }
  const { uid } = pod.metadata;
  const about = (call: Span | OpenCall): boolean => call.pod?.uid === uid;
  const [runtime, trace] = await Promise.all([
    collectRuntime(local, { 'io.kubernetes.pod.uid': uid }),
    gaps.attempt('the agent’s trace', NO_TRACE, () => collectTrace(local.traceSocket, about)),
  ]);
  const [machine, downloads] = await Promise.all([
    collectMachine(local, gaps, pod, runtime.containers),
    runtime.failure === undefined && waitsForImage(pod)
      ? gaps.attempt<readonly Download[]>('what the runtime is fetching', [], () => collectDownloads(local))
      : [],
  ]);
  return { runtime, downloads, machine, ...trace };
}

/** A pod that is not at the API server and still has a sandbox here that is ready; undefined where there is none. */
async function collectGone(
  { now }: Sources,
  local: LocalNode,
  gaps: Gaps,
  namespace: string,
  name: string,
): Promise<GonePodFacts | undefined> {
  const labels = { 'io.kubernetes.pod.namespace': namespace, 'io.kubernetes.pod.name': name };
  const runtime = await collectRuntime(local, labels);
  const uid = runtime.sandboxes.find(({ ready }) => ready)?.uid;
  if (uid === undefined) return undefined;
  const trace = await gaps.attempt('the agent’s trace', NO_TRACE, () =>
    collectTrace(local.traceSocket, (call) => call.pod?.uid === uid),
  );
  const processes = await collectProcesses(local, uid, runtime.containers);
  const own = { namespace, name, node: local.name, runtime, processes, open: trace.open };
  return { kind: 'gone-pod', now: now(), gaps: gaps.list, events: [], ...own };
}

/** Rejects with UserError when there is no such pod, and as `ApiClient` does when the server is away. */
export async function collectPod(sources: Sources, namespace: string, name: string): Promise<PodFacts | GonePodFacts> {
  const { client } = sources;
  const gaps = new Gaps();
  const lookup = await gaps.lookup('pod', () => client.get<Pod>(resourcePath('v1', 'pods', { namespace, name })));
  if (lookup.state === 'absent') {
    for (const local of sources.locals) {
      const gone = await collectGone(sources, local, gaps, namespace, name);
      if (gone !== undefined) return gone;
    }
    throw await noSuchPod(sources, gaps, namespace, name);
  }
  if (lookup.state === 'unknown') throw new UserError(`the pod cannot be read: ${lookup.why}`);
  const pod = lookup.value;
  const node = pod.spec.nodeName ?? '';
  const [events, nodes, placed, lease, references, logs, local] = await Promise.all([
    collectEvents(sources, gaps, 'Pod', { namespace, name, uid: pod.metadata.uid }),
    gaps.attempt<readonly Node[]>('nodes', [], async () => (await client.list<Node>('/api/v1/nodes')).items),
    needsNeighbours(pod)
      ? gaps.attempt<readonly Pod[]>(
          'pods of the nodes',
          [],
          async () => (await client.list<Pod>('/api/v1/pods')).items,
        )
      : [],
    node === ''
      ? undefined
      : gaps.lookup('the node’s lease', () => client.get<Lease>(leasePath(node))).then((lease) => found(lease)),
    collectReferences(sources, gaps, pod),
    collectLogs(sources, gaps, pod),
    collectLocal(sources, gaps, pod),
  ]);
  const isPlaced = (each: Pod): boolean =>
    (each.spec.nodeName ?? '') !== '' && each.status?.phase !== 'Succeeded' && each.status?.phase !== 'Failed';
  return {
    kind: 'pod',
    now: sources.now(),
    gaps: gaps.list,
    events,
    pod,
    nodes,
    placed: placed.filter(isPlaced),
    lease,
    references,
    logs,
    ...local,
  };
}

export function leasePath(node: string): string {
  return resourcePath('coordination.k8s.io/v1', 'leases', { namespace: 'kube-node-lease', name: node });
}

/** Names what there is instead. */
async function noSuchPod(sources: Sources, gaps: Gaps, namespace: string, name: string): Promise<UserError> {
  const path = resourcePath('v1', 'pods', { namespace });
  const pods = await gaps.attempt<readonly Pod[]>('pods', [], async () => (await sources.client.list<Pod>(path)).items);
  const names = pods.map((pod) => pod.metadata.name);
  return absent('pod', namespace, name, names);
}
