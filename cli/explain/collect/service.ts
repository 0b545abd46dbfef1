// Everything about one Service: the pods of its namespace, its EndpointSlices, NetworkPolicies; and of this machine what listens in
// the network namespaces of its pods, the rules of the node's proxy, and how far a pod comes that looks for the Service.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1';
import { isPodReady } from '../../../agent/model/pod-ready.ts';
import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { matchesLabelSelector } from '../../../client/selectors.ts';
import type { Pod, Service, Stored } from '../../../client/types.ts';
import { isErrno, UserError } from '../../../lib/errors.ts';
import { parseListening } from '../../../lib/listening-sockets.ts';
import type { Listening, ServiceFacts, Vantage } from '../facts.ts';
import { familyOf } from '../service-dns.ts';
import { absent } from './absent.ts';
import { collectEvents } from './events.ts';
import { cgroupOf } from './machine.ts';
import { collectProxy, collectReached, type LocalPod } from './service-network.ts';
import { found, Gaps, localNode, type Sources } from './source.ts';

/** A pod's processes share a network namespace: that of the first one is read. */
async function firstProcess(cgroup: string): Promise<string | undefined> {
  for (const entry of await readdir(cgroup, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const pids = await readFile(join(cgroup, entry.name, 'cgroup.procs'), 'utf8');
    const [pid = ''] = pids.split('\n');
    if (pid !== '') return pid;
  }
  return undefined;
}

async function processOf(sources: Sources, pod: Pod): Promise<string | undefined> {
  const local = localNode(sources, pod.spec.nodeName);
  if (local === undefined) return undefined;
  try {
    const cgroup = await cgroupOf(pod, local.cgroupRoot);
    return cgroup === undefined ? undefined : await firstProcess(cgroup);
  } catch (error) {
    // The pod has ended meanwhile.
    if (isErrno(error, 'ENOENT', 'ENODEV')) return undefined;
    throw error;
  }
}

async function listeningOf(sources: Sources, pod: Pod): Promise<Listening | undefined> {
  const pid = await processOf(sources, pod);
  if (pid === undefined) return undefined;
  try {
    const tables = ['tcp', 'tcp6', 'udp', 'udp6'].map(async (name) => {
      const text = await readFile(`/proc/${pid}/net/${name}`, 'utf8');
      return parseListening(name.startsWith('tcp') ? 'TCP' : 'UDP', text);
    });
    return { pod: pod.metadata.name, ports: (await Promise.all(tables)).flat() };
  } catch (error) {
    // The pod has ended meanwhile.
    if (isErrno(error, 'ENOENT', 'ESRCH', 'EINVAL', 'ENODEV')) return undefined;
    throw error;
  }
}

/** Rejects with UserError when there is no such Service. */
export async function collectService(sources: Sources, namespace: string, name: string): Promise<ServiceFacts> {
  const { client, locals } = sources;
  const gaps = new Gaps();
  const at = { namespace };
  const lookup = await gaps.lookup('service', () =>
    client.get<Service>(resourcePath('v1', 'services', { namespace, name })),
  );
  if (lookup.state === 'unknown') throw new UserError(`the service cannot be read: ${lookup.why}`);
  /** A kind that the server does not have is a list of none. */
  const list = <T>(what: string, path: string, query = {}): Promise<readonly T[]> =>
    gaps.attempt<readonly T[]>(what, [], async () => {
      try {
        return (await client.list<T>(path, query)).items;
      } catch (error) {
        if (isNotFound(error)) return [];
        throw error;
      }
    });
  if (lookup.state === 'absent') {
    const services = await list<Service>('services', resourcePath('v1', 'services', at));
    const names = services.map(({ metadata }) => metadata.name);
    throw absent('service', namespace, name, names);
  }
  const service = lookup.value;
  const labelSelector = `kubernetes.io/service-name=${name}`;
  const [events, pods, slices, policies] = await Promise.all([
    collectEvents(sources, gaps, 'Service', { namespace, name, uid: service.metadata.uid }),
    list<Pod>('pods', resourcePath('v1', 'pods', at)),
    list<Stored<EndpointSlice>>('endpoint slices', resourcePath('discovery.k8s.io/v1', 'endpointslices', at), {
      labelSelector,
    }),
    list<Stored<NetworkPolicy>>('network policies', resourcePath('networking.k8s.io/v1', 'networkpolicies', at)),
  ]);
  const matchLabels = service.spec?.selector ?? {};
  const selectsAny = Object.keys(matchLabels).length > 0;
  const selected = pods.filter(
    ({ metadata }) => selectsAny && matchesLabelSelector({ matchLabels }, metadata.labels ?? {}),
  );
  const here = selected.filter(({ spec }) => localNode(sources, spec.nodeName) !== undefined);
  const others = selected.length - here.length;
  if (others > 0) {
    const why = locals.length === 0 ? sources.notLocal : `${others} of its pods are not on this machine`;
    gaps.add('what listens in the pods', why);
  }
  const listening = await Promise.all(here.map((pod) => listeningOf(sources, pod)));
  const hasEndpoints = selected.some(isPodReady) || slices.some(({ endpoints }) => (endpoints ?? []).length > 0);
  const network =
    locals.length === 0 ? NOWHERE : await collectNetwork(sources, gaps, service, { pods, selected, hasEndpoints });
  if (locals.length === 0) gaps.add('the node’s proxy, connections and DNS', sources.notLocal);
  return {
    kind: 'service',
    now: sources.now(),
    gaps: gaps.list,
    events,
    service,
    pods,
    slices,
    policies,
    listening: listening.filter((each) => each !== undefined),
    ...network,
  };
}

type Network = Pick<ServiceFacts, 'vantage' | 'node' | 'proxy' | 'connects' | 'unusedPort' | 'dns'>;

const UNTRIED = { connects: [], unusedPort: undefined, dns: undefined };
const NOWHERE: Network = { vantage: undefined, node: undefined, proxy: undefined, ...UNTRIED };

interface Around {
  readonly pods: readonly Pod[];
  /** The Service's own. */
  readonly selected: readonly Pod[];
  readonly hasEndpoints: boolean;
}

async function collectNetwork(
  sources: Sources,
  gaps: Gaps,
  service: Service,
  { pods, selected, hasEndpoints }: Around,
): Promise<Network> {
  const from = await vantageOf(sources, gaps, service, { pods, selected, hasEndpoints });
  // The rules are those of the node that the connections start from.
  const local = localNode(sources, from?.pod.spec.nodeName) ?? sources.locals[0];
  if (local === undefined) return NOWHERE;
  const [proxy, reached, vantage] = await Promise.all([
    gaps.attempt('the rules of the node’s proxy', undefined, () => collectProxy(local, gaps, familyOf(service))),
    gaps.attempt('connections and DNS', UNTRIED, () =>
      collectReached(sources, local, gaps, service, { from, hasEndpoints }),
    ),
    from === undefined ? undefined : withNamespace(sources, gaps, from),
  ]);
  return { vantage, node: sources.locals.length > 1 ? local.name : undefined, proxy, ...reached };
}

async function withNamespace({ client }: Sources, gaps: Gaps, { pod }: LocalPod): Promise<Vantage> {
  const { namespace } = pod.metadata;
  const lookup = await gaps.lookup(`namespace ${namespace}`, () =>
    client.get<Stored<object>>(resourcePath('v1', 'namespaces', { name: namespace })),
  );
  return { pod, namespaceLabels: found(lookup)?.metadata.labels ?? {} };
}

/** The pod that is named, or one of the namespace that runs here: rather a client than one of the Service's own. */
async function vantageOf(
  sources: Sources,
  gaps: Gaps,
  service: Service,
  { pods, selected }: Around,
): Promise<LocalPod | undefined> {
  const { from } = sources;
  if (from !== undefined) {
    const pod = await namedPod(sources, gaps, service.metadata.namespace ?? 'default', from);
    const pid = await processOf(sources, pod);
    if (pid === undefined) throw new UserError(`--from ${from}: no process of the pod runs on this machine`);
    return { pod, pid };
  }
  const usable = pods.filter(({ spec, status }) => spec.hostNetwork !== true && status?.phase === 'Running');
  const names = new Set(selected.map(({ metadata }) => metadata.name));
  const sorted = [
    ...usable.filter(({ metadata }) => !names.has(metadata.name)),
    ...usable.filter(({ metadata }) => names.has(metadata.name)),
  ];
  for (const pod of sorted) {
    const pid = await processOf(sources, pod);
    if (pid !== undefined) return { pod, pid };
  }
  return undefined;
}

async function namedPod({ client }: Sources, gaps: Gaps, ownNamespace: string, text: string): Promise<Pod> {
  const [first = '', second, ...more] = text.split('/');
  if (first === '' || second === '' || more.length > 0) throw new UserError(`--from "${text}" is not NAMESPACE/NAME`);
  const [namespace, name] = second === undefined ? [ownNamespace, first] : [first, second];
  const lookup = await gaps.lookup('pod', () => client.get<Pod>(resourcePath('v1', 'pods', { namespace, name })));
  if (lookup.state === 'found') return lookup.value;
  throw new UserError(
    `--from: pod ${name} in namespace ${namespace} ${lookup.state === 'absent' ? 'does not exist' : lookup.why}`,
  );
}
