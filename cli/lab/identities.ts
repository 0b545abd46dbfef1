// Certificates of a lab, and the kubeconfigs of what runs on the machine itself.

import { ensurePki } from '../../apiserver/pki/ensure.ts';
import { writeKubeconfig } from '../../apiserver/pki/kubeconfig.ts';
import type { Pki } from '../../apiserver/pki/types.ts';
import type { EpochMs } from '../../lib/clock.ts';
import type { LabPaths } from './paths.ts';
import type { LabState } from './state.ts';

export interface ServerAddress {
  /** What the API server listens on. */
  readonly bind: string;
  /** The host in the machine's kubeconfigs. */
  readonly host: string;
  /** One more name in its certificate, by which nodes with namespaces of their own reach it. */
  readonly gateway?: string;
}

/** By default the server is the machine's alone; with several nodes it is at the machine's address on their bridge. Pure. */
export function serverAddress(bindAddress: string | undefined, gateway: string | undefined): ServerAddress {
  const bind = bindAddress ?? gateway ?? '127.0.0.1';
  const host = ['0.0.0.0', '::'].includes(bind) ? '127.0.0.1' : bind;
  return { bind, host, ...(gateway === undefined ? {} : { gateway }) };
}

/** Pure. */
export function serverUrl(host: string, state: Pick<LabState, 'apiserverPort'>): string {
  return `https://${host.includes(':') ? `[${host}]` : host}:${state.apiserverPort}`;
}

/** `agent`: where the machine's agent finds its kubeconfig, and the server that it names. */
export async function writeIdentities(
  paths: LabPaths,
  state: LabState,
  address: ServerAddress,
  now: EpochMs,
  agent: { readonly path: string; readonly server?: string | undefined },
): Promise<Pki> {
  const hosts = address.gateway === undefined ? [] : [address.gateway];
  const pki = await ensurePki(paths.pkiDir, { hosts, nodeName: state.nodeName, now });
  const server = serverUrl(address.host, state);
  const { kubeconfigs } = paths;
  const identities = [
    { path: paths.kubeconfig, user: 'kubernetes-admin', client: pki.clients.admin },
    { path: agent.path, user: 'agent', client: pki.clients.agent },
    { path: kubeconfigs.scheduler, user: 'scheduler', client: pki.clients.scheduler },
    { path: kubeconfigs.controllerManager, user: 'controller-manager', client: pki.clients['controller-manager'] },
    { path: kubeconfigs.proxy, user: 'proxy', client: pki.clients.proxy },
    { path: kubeconfigs.dns, user: 'dns', client: pki.clients.dns },
    { path: kubeconfigs.netpol, user: 'netpol', client: pki.clients.netpol },
  ];
  for (const { path, user, client } of identities) {
    const own = user === 'agent' ? (agent.server ?? server) : server;
    await writeKubeconfig(path, { server: own, ca: pki.ca.cert, user, client });
  }
  return pki;
}
