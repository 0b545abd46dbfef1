// Whether traffic for a Service can reach a program, with all that is between them: selector, readiness, port. What listens is
// read in the pods' network namespaces. A lab may have no proxy: what one would do follows from these facts.

import type { ServicePort } from 'kubernetes-types/core/v1';
import { isPodReady } from '../../agent/model/pod-ready.ts';
import type { Pod, Service } from '../../client/types.ts';
import { type ListeningSocket, parseListening } from '../../lib/listening-sockets.ts';
import { type Finding, finding, type Machine } from './model.ts';
import { getObject, listPods, mainPid, podState, readOfProcess } from './pods.ts';

export interface ServiceFacts {
  readonly service: Service | undefined;
  readonly pods: readonly Pod[];
  /** By the pod's name. */
  readonly listening: ReadonlyMap<string, readonly ListeningSocket[]>;
}

function selected({ service, pods }: ServiceFacts): readonly Pod[] {
  const selector = Object.entries(service?.spec?.selector ?? {});
  if (selector.length === 0) return [];
  return pods.filter(({ metadata }) => {
    const labels = new Map(Object.entries(metadata.labels ?? {}));
    return metadata.deletionTimestamp === undefined && selector.every(([key, value]) => labels.get(key) === value);
  });
}

/** The port in the pod; undefined: a name that no port of its containers has. */
function targetOf({ port, targetPort = port }: ServicePort, pod: Pod): number | undefined {
  if (typeof targetPort === 'number') return targetPort;
  return pod.spec.containers.flatMap(({ ports = [] }) => ports).find(({ name }) => name === targetPort)?.containerPort;
}

function portFinding(facts: ServiceFacts, pods: readonly Pod[]): Finding {
  const [port] = facts.service?.spec?.ports ?? [];
  const [pod] = pods;
  const subject = 'where the port of the Service leads';
  if (port === undefined || pod === undefined) return finding(subject, 'nowhere', false, 'a port of a pod');
  const { name } = pod.metadata;
  const target = targetOf(port, pod);
  const all = facts.listening.get(name) ?? [];
  const listens = all.some((socket) => socket.port === target && socket.protocol === 'TCP' && !socket.loopback);
  const ports = [...new Set(all.map((socket) => socket.port))].sort((a, b) => a - b);
  const there =
    ports.length === 0 ? 'nothing listens in the pod' : `in the pod, ports ${ports.join(', ')} are listened on`;
  return finding(
    subject,
    `${port.port} → ${target ?? `${port.targetPort}, which is no port of the pod`}; ${there}`,
    listens,
    'it is to lead to the port on which the program listens',
  );
}

/** `name`: of the Service. Pure. */
export function evaluateService(name: string, facts: ServiceFacts): readonly Finding[] {
  const pods = selected(facts);
  const selector = Object.entries(facts.service?.spec?.selector ?? {}).map(([key, value]) => `${key}=${value}`);
  const ready = pods.filter(isPodReady);
  const first = facts.service === undefined ? 'there is no such Service' : `${selector.join(',') || 'none'} selects `;
  const names = pods.map(({ metadata }) => metadata.name).join(', ') || 'no pod';
  return [
    finding(
      `selector of the Service ${name}`,
      facts.service === undefined ? first : `${first}${names}`,
      pods.length > 0,
      'it is to select the pod',
    ),
    finding(
      'pods behind it that are Ready',
      ready.map(({ metadata }) => metadata.name).join(', ') ||
        pods.map((pod) => `${pod.metadata.name}: ${podState(pod)}`).join('; ') ||
        'none',
      ready.length > 0,
      'only Ready pods become endpoints',
    ),
    portFinding(facts, pods),
  ];
}

async function listeningIn(machine: Machine, pod: Pod): Promise<readonly ListeningSocket[]> {
  const pid = await mainPid(machine, pod);
  const tables = await Promise.all(['tcp', 'tcp6'].map((table) => readOfProcess(pid, `net/${table}`)));
  return tables.flatMap((text) => parseListening('TCP', text ?? ''));
}

export async function collectService(machine: Machine, name: string): Promise<ServiceFacts> {
  const [service, pods] = await Promise.all([getObject<Service>(machine, 'services', name), listPods(machine)]);
  const listening = new Map<string, readonly ListeningSocket[]>();
  for (const pod of pods) listening.set(pod.metadata.name, await listeningIn(machine, pod));
  return { service, pods, listening };
}
