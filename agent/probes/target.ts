// A probe's resolved target: the command, request, address or service of its handler. Pure; the runners send it.

import type { Container } from '../../client/types.ts';
import { expandVariables } from '../../lib/expand.ts';
import type { HttpGetRequest } from '../../lib/http-get.ts';
import { httpGetRequest, resolveContainerPort } from '../model/http-action.ts';
import type { ContainerId } from '../ports/runtime.ts';
import type { ProbeSpec } from './automaton.ts';

export interface ExecTarget {
  readonly containerId: ContainerId;
  readonly command: readonly string[];
}

export interface TcpTarget {
  readonly host: string;
  readonly port: number;
}

export interface GrpcTarget {
  readonly host: string;
  readonly port: number;
  /** '' is the server as a whole. */
  readonly service: string;
}

export type ProbeTarget =
  | ({ readonly kind: 'exec' } & ExecTarget)
  | { readonly kind: 'httpGet'; readonly request: HttpGetRequest }
  | ({ readonly kind: 'tcpSocket' } & TcpTarget)
  | ({ readonly kind: 'grpc' } & GrpcTarget);

/** In a probe's command only variables with a literal value are expanded. */
function expandStatic(command: readonly string[], container: Container): readonly string[] {
  const values = new Map((container.env ?? []).map(({ name, value }) => [name, value ?? '']));
  return command.map((word) => expandVariables(word, (name) => values.get(name)));
}

function addressOf(podIP: string | undefined): string {
  if (podIP === undefined) throw new Error('the pod has no address');
  return podIP;
}

/** Throws with the kubelet's words when the handler cannot be resolved. */
export function probeTarget(
  probe: ProbeSpec,
  container: Container,
  containerId: ContainerId,
  podIP: string | undefined,
): ProbeTarget {
  const { exec, httpGet, tcpSocket, grpc } = probe;
  if (exec !== undefined) {
    return { kind: 'exec', containerId, command: expandStatic(exec.command ?? [], container) };
  }
  if (httpGet !== undefined) {
    return { kind: 'httpGet', request: httpGetRequest(httpGet, container, podIP, 'probe') };
  }
  if (tcpSocket !== undefined) {
    const port = resolveContainerPort(tcpSocket.port, container);
    const host = tcpSocket.host !== undefined && tcpSocket.host !== '' ? tcpSocket.host : addressOf(podIP);
    return { kind: 'tcpSocket', host, port };
  }
  if (grpc !== undefined) {
    return { kind: 'grpc', host: addressOf(podIP), port: grpc.port, service: grpc.service ?? '' };
  }
  throw new Error(`missing probe handler for ${container.name}`);
}
