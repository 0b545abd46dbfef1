// What each process of a lab is started with: command lines made from the lab's paths and state. Pure.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DRIVER_NAME } from '../../csi/driver/names.ts';
import type { ServerAddress } from './identities.ts';
import { loadBalancerRange } from './load-balancers.ts';
import { netpolTable } from './netpol.ts';
import type { LabPart, LabPaths } from './paths.ts';
import type { LabState } from './state.ts';

/** The wrapper sets up each process: compiled code kept between runs, and a small heap for the agent. */
const COMMAND = fileURLToPath(new URL('../../bin/nodelet', import.meta.url));

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

/** One of the project's own programs. */
export function nodelet(...args: string[]): Program {
  return { command: COMMAND, args };
}

export function apiserverProgram(
  paths: LabPaths,
  state: LabState,
  address: Pick<ServerAddress, 'bind' | 'gateway'>,
  more: readonly string[] = [],
): Program {
  return nodelet(
    'apiserver',
    ...['--root', paths.root],
    ...['--bind-address', address.bind],
    ...(address.gateway === undefined ? [] : ['--cert-host', address.gateway]),
    ...(state.nodes === undefined ? [] : ['--service-cluster-ip-range', state.nodes.serviceRange]),
    ...['--port', String(state.apiserverPort)],
    ...['--node-name', state.nodeName],
    ...componentFlags(state),
    ...more,
  );
}

/** What `kubectl get componentstatuses` asks. */
function componentFlags({ controlplane }: LabState): readonly string[] {
  if (controlplane === undefined) return [];
  const { port, schedulerPort } = controlplane;
  const at = (name: string, of: number): readonly string[] => [
    '--component',
    `${name}=https://127.0.0.1:${of}/healthz`,
  ];
  return [...at('controller-manager', port), ...at('scheduler', schedulerPort)];
}

/** What another program has in the place of a part has the port of it, too. */
function servingFlags({ controlplane }: LabState, without: readonly LabPart[]): readonly string[] {
  if (controlplane === undefined) return [];
  return [
    ...(without.includes('controllers') ? [] : ['--secure-port', String(controlplane.port)]),
    ...(without.includes('scheduler') ? [] : ['--scheduler-secure-port', String(controlplane.schedulerPort)]),
  ];
}

/** False where nothing of it is to run. The side-cars of the CSI driver are neither controllers nor scheduler. */
export function hasControlplane(state: Pick<LabState, 'csi'>, without: readonly LabPart[] = []): boolean {
  return state.csi !== undefined || !without.includes('controllers') || !without.includes('scheduler');
}

export function controlplaneProgram(
  paths: LabPaths,
  state: LabState,
  without: readonly LabPart[] = [],
  more: readonly string[] = [],
): Program {
  return nodelet(
    'controlplane',
    ...['--kubeconfig', paths.kubeconfigs.controllerManager],
    // The lab starts one at a time, so that the next one need not wait for the lease of the last.
    ...['--leader-elect', '--leader-elect-identity', paths.networkName],
    ...(without.includes('controllers') ? ['--controllers', ''] : []),
    ...['--load-balancer-range', loadBalancerRange(state)],
    ...['--cluster-signing-cert-file', join(paths.pkiDir, 'ca.crt')],
    ...['--cluster-signing-key-file', join(paths.pkiDir, 'ca.key')],
    ...['--service-account-private-key-file', join(paths.pkiDir, 'sa.key')],
    ...(without.includes('scheduler') ? [] : ['--scheduler-kubeconfig', paths.kubeconfigs.scheduler]),
    ...servingFlags(state, without),
    ...(state.csi !== undefined ? ['--csi-endpoint', `${DRIVER_NAME}=unix://${paths.csi.socket}`] : []),
    ...more,
  );
}

export function proxyProgram(paths: LabPaths, state: LabState, more: readonly string[] = []): Program {
  const { proxy } = state;
  if (proxy === undefined) throw new Error('the lab has no proxy');
  return nodelet(
    'proxy',
    ...['--kubeconfig', paths.kubeconfigs.proxy],
    ...['--hostname-override', state.nodeName],
    ...['--proxy-mode', proxy.mode],
    ...['--cluster-cidr', state.subnet],
    ...['--healthz-bind-address', `127.0.0.1:${proxy.healthzPort}`],
    ...['--metrics-bind-address', `127.0.0.1:${proxy.metricsPort}`],
    ...['--owner', paths.networkName],
    ...(proxy.masqueradeAll ? ['--masquerade-all'] : []),
    ...more,
  );
}

export function dnsProgram(paths: LabPaths, { dns }: LabState): Program {
  if (dns === undefined) throw new Error('the lab has no DNS server');
  return nodelet('dns', ...['--kubeconfig', paths.kubeconfigs.dns], ...['--bind-address', dns.address]);
}

/** In a network namespace of its own. */
export const NETPOL_METRICS_PORT = 10254;

/** A table for each lab: several of a machine enforce their policies side by side. */
export function netpolProgram(paths: LabPaths, nodeName: string, metricsPort = NETPOL_METRICS_PORT): Program {
  return nodelet(
    'netpol',
    ...['--kubeconfig', paths.kubeconfigs.netpol],
    ...['--node-name', nodeName],
    ...['--table', netpolTable(paths.hash)],
    ...['--metrics-bind-address', `127.0.0.1:${metricsPort}`],
  );
}

/** `reachable`: registries that are left to serve their own images. */
export function registryProgram(
  { registry }: Pick<LabState, 'registry'>,
  reachable: ReadonlySet<string>,
  more: readonly string[] = [],
): Program {
  if (registry?.own === undefined) throw new Error('the lab has no registry of its own');
  const { address, port } = registry.own;
  return nodelet(
    'registry',
    ...['--bind-address', address],
    ...['--port', String(port)],
    ...(reachable.size === 0 ? [] : ['--reachable', [...reachable].join(',')]),
    ...more,
  );
}

export function dockershimProgram(paths: LabPaths, state: LabState): Program {
  const { cni, docker } = paths;
  const agentRunsCni = state.network === 'agent';
  return nodelet(
    'dockershim',
    ...['--docker', `unix://${docker.socket}`],
    ...['--listen', `unix://${docker.shimSocket}`],
    ...['--cni-conf-dir', agentRunsCni ? cni.shimConfDir : cni.confDir],
    ...['--cni-bin-dir', agentRunsCni ? cni.shimBinDir : cni.binDir],
    ...['--cni-cache-dir', docker.cniCacheDir],
    ...['--oom-dir', docker.oomDir],
  );
}

export function csiDriverProgram(paths: LabPaths, state: LabState): Program {
  return nodelet(
    'csi-driver',
    ...['--endpoint', `unix://${paths.csi.socket}`],
    ...['--state-dir', paths.csi.stateDir],
    ...['--node-id', state.nodeName],
    ...['--registration-dir', paths.csi.registrationDir],
    ...(state.csi?.flags ?? []),
  );
}

export function agentProgram(paths: LabPaths, state: LabState, more: readonly string[] = []): Program {
  return nodelet(
    'agent',
    ...['--kubeconfig', paths.kubeconfigs.agent],
    ...['--config', paths.kubeletConfig],
    ...['--hostname-override', state.nodeName],
    ...['--root-dir', paths.kubeletDir],
    ...['--socket-dir', paths.agentSocketDir],
    ...['--network', state.network],
    ...['--cni-conf-dir', paths.cni.confDir],
    ...['--cni-bin-dir', paths.cni.binDir],
    ...['--cni-cache-dir', paths.cni.cacheDir],
    ...['--cni-shim-dir', paths.cni.shimDir],
    ...more,
  );
}
