// Name servers that are there and do not answer, for experiments that give pods one: addresses on the lab's bridge, which go with
// it, where queries are received and dropped. Each one is a query without an answer.

import { createSocket, type Socket } from 'node:dgram';
import { decode } from 'dns-packet';
import { errorMessage, UserError } from '../../../lib/errors.ts';
import { execOk } from '../../../lib/exec.ts';
import type { WorldStep } from '../world.ts';
import type { LabQuery } from './dns-queries.ts';

/** TEST-NET-2 of RFC 5737: no machine has an address of it. */
export const SILENT_RANGE = '198.51.100.0/24';
const SILENT = /^198\.51\.100\.\d+$/;
const PORT = 53;

function nameserversOf(spec: unknown): readonly unknown[] {
  if (typeof spec !== 'object' || spec === null || !('dnsConfig' in spec)) return [];
  const { dnsConfig } = spec;
  if (typeof dnsConfig !== 'object' || dnsConfig === null || !('nameservers' in dnsConfig)) return [];
  return Array.isArray(dnsConfig.nameservers) ? dnsConfig.nameservers : [];
}

/** The addresses in that range that pods of the experiment have in their dnsConfig. Pure. */
export function silentServers(steps: readonly WorldStep[]): readonly string[] {
  const manifests = steps.flatMap((step) => ('apply' in step ? step.apply : []));
  const found = manifests
    .flatMap(({ kind, spec }) => (kind === 'Pod' ? nameserversOf(spec) : []))
    .filter((each) => typeof each === 'string');
  return [...new Set(found.filter((address) => SILENT.test(address)))];
}

/** Where a cluster's name server is by default, and where the simulated one is. */
const CLUSTER_SERVER = '10.96.0.10';

/** A pod that has the cluster's name server in its dnsConfig has the lab's there: nothing forwards Services in such a lab. Pure. */
export function withLabServer<M extends object>(manifest: M, server: string | undefined): M {
  if (server === undefined || !('kind' in manifest) || manifest.kind !== 'Pod' || !('spec' in manifest))
    return manifest;
  const { spec } = manifest;
  if (typeof spec !== 'object' || spec === null || !('dnsConfig' in spec)) return manifest;
  const { dnsConfig } = spec;
  const nameservers = nameserversOf(spec);
  if (!nameservers.includes(CLUSTER_SERVER)) return manifest;
  const own = nameservers.map((each) => (each === CLUSTER_SERVER ? server : each));
  return { ...manifest, spec: { ...spec, dnsConfig: { ...Object(dnsConfig), nameservers: own } } };
}

/** The first question of a query; undefined for a packet that is none. Pure. */
export function parsePacket(packet: Buffer): Pick<LabQuery, 'name' | 'type'> | undefined {
  try {
    const { type, questions = [] } = decode(packet);
    const [question] = questions;
    return type !== 'query' || question === undefined ? undefined : { name: question.name, type: question.type };
  } catch (error) {
    // Anything can be sent to the port.
    if (error instanceof Error) return undefined;
    throw error;
  }
}

/** Listens at the addresses, on a bridge that is there. Rejects with UserError where one cannot be. */
export async function listenSilently(
  addresses: readonly string[],
  bridge: string,
  onQuery: (query: LabQuery) => void,
): Promise<readonly Socket[]> {
  const sockets: Socket[] = [];
  for (const server of addresses) {
    await execOk('ip', ['address', 'replace', `${server}/32`, 'dev', bridge]);
    const socket = createSocket('udp4');
    sockets.push(socket);
    socket.on('message', (packet, { address }) => {
      const question = parsePacket(packet);
      if (question !== undefined) onQuery({ ...question, address, server, answer: 'none', durationMs: 0 });
    });
    await new Promise<void>((resolve, reject) => {
      socket.once('error', (error) => {
        for (const each of sockets) each.close();
        reject(new UserError(`no name server can be at ${server}: ${errorMessage(error)}`));
      });
      socket.bind(PORT, server, resolve);
    });
  }
  return sockets;
}
