// Everything about one Service: the pods of its namespace, its EndpointSlices, NetworkPolicies, and what listens in the network
// namespaces of its pods that are on this machine.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1';
import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { matchesLabelSelector } from '../../../client/selectors.ts';
import type { Pod, Service, Stored } from '../../../client/types.ts';
import { isErrno, UserError } from '../../../lib/errors.ts';
import { parseListening } from '../../../lib/listening-sockets.ts';
import type { Listening, ServiceFacts } from '../facts.ts';
import { absent } from './absent.ts';
import { collectEvents } from './events.ts';
import { cgroupOf } from './machine.ts';
import { Gaps, type LocalNode, type Sources } from './source.ts';

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

async function listeningOf(local: LocalNode, pod: Pod): Promise<Listening | undefined> {
  try {
    const cgroup = await cgroupOf(pod, local.cgroupRoot);
    const pid = cgroup === undefined ? undefined : await firstProcess(cgroup);
    if (pid === undefined) return undefined;
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
  const { client, local } = sources;
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
  const here = selected.filter((pod) => local !== undefined && pod.spec.nodeName === local.name);
  const elsewhere = selected.length - here.length;
  if (elsewhere > 0) {
    const why = local === undefined ? sources.notLocal : `${elsewhere} of its pods are not on this machine`;
    gaps.add('what listens in the pods', why);
  }
  const listening = await Promise.all(here.map((pod) => (local === undefined ? undefined : listeningOf(local, pod))));
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
  };
}
