// Decides a lab's names, ports and addresses, and writes them down before anything is taken.

import { hostname } from 'node:os';
import { DEFAULT_SERVICE_CIDR } from '../../apiserver/kinds/services/ranges.ts';
import { type FirewallSnapshot, snapshotFirewall } from '../../cni/cleanup.ts';
import { UserError } from '../../lib/errors.ts';
import { exec } from '../../lib/exec.ts';
import { SHARED_DIRECTORIES } from '../../lib/machine.ts';
import { Tracer } from '../../lib/trace.ts';
import { tracedExec } from '../../lib/traced-exec.ts';
import { choosePort, chooseSubnet, claimSubnet, usedSubnets, usualPort } from './allocate.ts';
import { otherClaims, writeClaim } from './claims.ts';
import { cgroupDirectories, topCgroup } from './clean-cgroups.ts';
import { dnsState } from './dns.ts';
import type { MarkerFile } from './marker.ts';
import { chooseRange, firstNodes, type NodesState, nodesCgroup, planRange } from './node/plan.ts';
import type { LabOptions, NodesOptions } from './options.ts';
import type { LabPaths } from './paths.ts';
import { NETPOL_METRICS_PORT } from './programs.ts';
import { bridgesAreFiltered, claimProxy } from './proxy-claim.ts';
import { registryState } from './registry.ts';
import { exists, nodeMountAreas } from './root.ts';
import { type LabState, readLabState, writeLabState } from './state.ts';
import { makeEntries } from './take-root.ts';

interface Preparing {
  readonly paths: LabPaths;
  readonly marker: MarkerFile;
  readonly options: LabOptions;
  readonly say: (line: string) => void;
}

export async function prepareLab(preparing: Preparing): Promise<LabState> {
  const { paths, marker, options } = preparing;
  const earlier = await readLabState(paths);
  const made = await Promise.all(SHARED_DIRECTORIES.map(async (path) => ((await exists(path)) ? [] : [path])));
  const apiserver = await choosePort(
    'the API server',
    options.apiserverPort,
    earlier?.apiserverPort ?? usualPort(paths, 6443),
  );
  const kubelet = await choosePort(
    'the kubelet API',
    options.kubeletPort,
    earlier?.kubeletPort ?? usualPort(paths, 10250),
    apiserver,
  );
  const others = await otherClaims(paths.hash);
  // With other labs up the machine is no longer as it was: how it was is theirs to say.
  const firewall =
    others.find((other) => other.firewall !== undefined)?.firewall ??
    (await snapshotFirewall(tracedExec(new Tracer(), 'netfilter', exec)));
  const directories = [earlier, ...others].flatMap((known) => known?.madeDirectories ?? []);
  const madeDirectories = [...new Set([...directories, ...made.flat()])];
  const subnet = await takeAddresses(paths, options.nodes, { firewall, madeDirectories });
  const cgroupDriver = options.cgroupDriver ?? 'cgroupfs';
  const top = topCgroup({ root: paths.cgroupRoot, driver: cgroupDriver });
  await listOutside(marker, madeDirectories, options.nodes === undefined ? top : nodesCgroup(paths));
  const csi = csiState(options.csi);
  const docker = options.runtime === 'docker';
  const nodes = options.nodes === undefined ? undefined : nodesState(subnet, options.nodes);
  if (nodes !== undefined) await marker.put(...nodeMountAreas(paths));
  await makeEntries(paths, marker, { csi: csi.csi !== undefined, docker, nodes: nodes !== undefined });
  // Each of several nodes has a proxy of its own, and the machine none.
  const proxy = nodes === undefined ? await proxyState(preparing, earlier?.proxy) : undefined;
  const registry = await registryState(
    options,
    nodes === undefined ? '127.0.0.1' : planRange(nodes.range).gateway,
    () => choosePort('the registry', undefined, earlier?.registry?.own?.port ?? usualPort(paths, 5000)),
  );
  const controlplane = await controlplaneState(paths, earlier?.controlplane);
  const state: LabState = {
    version: 1,
    nodeName: (nodes?.list[0]?.name ?? options.nodeName ?? hostname()).toLowerCase(),
    apiserverPort: apiserver,
    kubeletPort: kubelet,
    subnet,
    network: options.network ?? 'agent',
    cgroupDriver,
    ...(docker ? { runtime: 'docker' as const } : {}),
    ...csi,
    ...(proxy === undefined ? {} : { proxy }),
    controlplane,
    ...(nodes === undefined ? {} : { nodes }),
    ...(options.dns === true
      ? { dns: dnsState(subnet, nodes, (proxy ?? (nodes && options.proxy)) !== undefined) }
      : {}),
    ...(registry === undefined ? {} : { registry }),
    ...(await netpolState(preparing, earlier)),
    firewall,
    madeDirectories,
  };
  await writeLabState(paths, state);
  return state;
}

interface MachineBefore {
  readonly firewall: FirewallSnapshot;
  readonly madeDirectories: readonly string[];
}

/** A /24 for the pods of the one node, or a /18 for nodes and pods. */
async function takeAddresses(
  paths: LabPaths,
  nodes: NodesOptions | undefined,
  { firewall, madeDirectories }: MachineBefore,
): Promise<string> {
  const subnet = await claimSubnet(paths.hash, {
    used: usedSubnets,
    claimed: async () => (await otherClaims(paths.hash)).map((other) => other.subnet),
    claim: (chosen) => writeClaim(paths.runDir, { subnet: chosen, firewall, madeDirectories, root: paths.root }),
    choose: nodes === undefined ? chooseSubnet : chooseRange,
  });
  if (subnet !== undefined) return subnet;
  const what = nodes === undefined ? 'no /24 of 10.244.0.0/16 is free for pods' : 'no /18 of 10.192.0.0/11 is free';
  throw new UserError(`${what} on this machine`);
}

function nodesState(range: string, { count, zones, serviceRange = DEFAULT_SERVICE_CIDR }: NodesOptions): NodesState {
  return { range, serviceRange, list: firstNodes(count, zones) };
}

/** After the claim on the subnet: by that one other labs see whether this one is still there. */
async function proxyState({ paths, options, say }: Preparing, earlier: LabState['proxy']): Promise<LabState['proxy']> {
  const { proxy: mode } = options;
  if (mode === undefined) return undefined;
  const owner = await claimProxy(paths.networkName);
  if (owner !== undefined) {
    say(`Services are not forwarded: ${owner} does so on this machine, and there is one proxy in a network namespace`);
    return undefined;
  }
  const port = (known: number | undefined, wellKnown: number, what: string, not?: number): Promise<number> =>
    choosePort(what, undefined, known ?? usualPort(paths, wellKnown), not);
  const healthzPort = await port(earlier?.healthzPort, 10256, 'the health of the proxy');
  const metricsPort = await port(earlier?.metricsPort, 10249, 'the metrics of the proxy', healthzPort);
  return { mode, healthzPort, metricsPort, masqueradeAll: !(await bridgesAreFiltered()) };
}

async function controlplaneState(
  paths: LabPaths,
  earlier: LabState['controlplane'],
): Promise<NonNullable<LabState['controlplane']>> {
  const port = await choosePort('the controllers', undefined, earlier?.port ?? usualPort(paths, 10257));
  const known = earlier?.schedulerPort ?? usualPort(paths, 10259);
  return { port, schedulerPort: await choosePort('the scheduler', undefined, known, port) };
}

/** Each of several nodes finds out by itself. */
async function netpolState(
  { paths, options, say }: Preparing,
  earlier: LabState | undefined,
): Promise<Pick<LabState, 'netpol' | 'netpolMetricsPort'>> {
  if (options.netpol !== true) return {};
  if (options.nodes !== undefined) return { netpol: true };
  if (await bridgesAreFiltered()) {
    const known = earlier?.netpolMetricsPort ?? usualPort(paths, NETPOL_METRICS_PORT);
    return { netpol: true, netpolMetricsPort: await choosePort('the metrics of netpol', undefined, known) };
  }
  say('Network policies are not enforced: it needs br_netfilter, and net.bridge.bridge-nf-call-iptables=1');
  return {};
}

/** Puts on the marker's list what the lab will make outside its root. What is there already is not the lab's. */
async function listOutside(marker: MarkerFile, madeDirectories: readonly string[], cgroup: string): Promise<void> {
  const cgroups = (await cgroupDirectories(cgroup)).length === 0 ? [{ kind: 'cgroup' as const, path: cgroup }] : [];
  const directories = madeDirectories.map((path) => ({ kind: 'shared-directory' as const, path }));
  await marker.put(...cgroups, ...directories);
}

function csiState(csi: LabOptions['csi']): Pick<LabState, 'csi'> {
  if (csi === undefined || csi === false) return {};
  return { csi: { flags: csi === true ? [] : csi } };
}
