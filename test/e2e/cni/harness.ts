// What the CNI end-to-end tests share: a network of their own (bridge, subnet, directories), network namespaces, and
// a list of everything on this machine that carries the network's name. Removes all it made.

import { mkdir, mkdtemp, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LABS_DIR, otherClaims, writeClaim } from '../../../cli/lab/claims.ts';
import { cleanupChains, type FirewallSnapshot, releaseAllAttachments, snapshotFirewall } from '../../../cni/cleanup.ts';
import { CniRuntime, type CniRuntimeOptions } from '../../../cni/runtime.ts';
import type { Attachment } from '../../../cni/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import { isErrno } from '../../../lib/errors.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { type Span, Tracer } from '../../../lib/trace.ts';

export const PLUGIN_DIR = '/usr/lib/cni';

/** Vitest numbers the processes that run test files at the same time. */
const WORKER = Number(process.env['VITEST_POOL_ID'] ?? '1');

let counter = 0;

export interface TestNetwork {
  readonly dir: string;
  /** By which labs that are up or come up know that they are not alone. */
  readonly runDir: string;
  /** The firewall before the first of those who are here. */
  readonly firewall: FirewallSnapshot;
  readonly name: string;
  readonly bridge: string;
  /** First three octets of the /24. */
  readonly prefix: string;
  readonly confDir: string;
  readonly binDir: string;
  readonly cacheDir: string;
  readonly leasesDir: string;
  readonly tracer: Tracer;
  readonly spans: Span[];
}

/** A network that nothing else on this machine uses. */
export async function testNetwork(): Promise<TestNetwork> {
  const dir = await mkdtemp(join(tmpdir(), 'nodelet-cni-'));
  const number = ++counter;
  // Of one length, so that no network's name is the beginning of another's.
  const id = process.pid.toString(36).padStart(5, '0') + number.toString(36).padStart(3, '0');
  const tracer = new Tracer();
  const spans: Span[] = [];
  tracer.subscribe((span) => spans.push(span));
  const runDir = join(LABS_DIR, `test-${id}`);
  const known = (await otherClaims(`test-${id}`)).find((claim) => claim.firewall !== undefined);
  const network: TestNetwork = {
    dir,
    runDir,
    firewall: known?.firewall ?? (await snapshotFirewall()),
    name: `ndlt-${id}`,
    bridge: `ndb${id}`.slice(0, 15),
    // Above the ranges of labs with several nodes (10.192.0.0/11), below the pods of those with one (10.244.0.0/16).
    prefix: `10.${224 + (WORKER % 16)}.${(process.pid + number) % 250}`,
    confDir: join(dir, 'net.d'),
    binDir: join(dir, 'bin'),
    cacheDir: join(dir, 'cache'),
    leasesDir: join(dir, 'leases'),
    tracer,
    spans,
  };
  await writeClaim(runDir, { subnet: `${network.prefix}.0/24`, firewall: network.firewall });
  await mkdir(network.confDir, { recursive: true });
  await mkdir(network.binDir, { recursive: true });
  return network;
}

/** Removes the network, with what a failed test may have left attached. */
export async function removeTestNetwork(network: TestNetwork): Promise<void> {
  await releaseAllAttachments({
    cacheDir: network.cacheDir,
    binDirs: [network.binDir, PLUGIN_DIR],
    tracer: network.tracer,
    clock: systemClock,
  });
  if (await linkExists(network.bridge)) await execOk('ip', ['link', 'del', network.bridge]);
  await rm(network.dir, { recursive: true, force: true });
  await rm(network.runDir, { recursive: true, force: true });
  if ((await otherClaims('')).length === 0) await cleanupChains(network.firewall);
  await rmdir(LABS_DIR).catch((error: unknown) => {
    if (!isErrno(error, 'ENOTEMPTY', 'ENOENT')) throw error;
  });
}

/** The chain Debian's plugins make: bridge with host-local addresses, portmap, and whatever the test adds. */
export function bridgeChain(
  network: TestNetwork,
  options: { cniVersion?: string; ipMasq?: boolean; more?: readonly Record<string, unknown>[] } = {},
): Record<string, unknown> {
  return {
    cniVersion: options.cniVersion ?? '1.0.0',
    name: network.name,
    plugins: [
      {
        type: 'bridge',
        bridge: network.bridge,
        isGateway: true,
        ipMasq: options.ipMasq ?? false,
        ipam: {
          type: 'host-local',
          dataDir: network.leasesDir,
          ranges: [[{ subnet: `${network.prefix}.0/24` }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
      { type: 'portmap', capabilities: { portMappings: true } },
      ...(options.more ?? []),
    ],
  };
}

export async function writeConf(network: TestNetwork, conf: unknown, name = '10-test.conflist'): Promise<string> {
  const path = join(network.confDir, name);
  await writeFile(path, JSON.stringify(conf));
  return path;
}

/** An executable sh script in the network's own plugin dir. */
export async function writePlugin(network: TestNetwork, name: string, script: string): Promise<void> {
  await writeFile(join(network.binDir, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

export function cniRuntime(network: TestNetwork, more: Partial<CniRuntimeOptions> = {}): CniRuntime {
  return new CniRuntime({
    binDirs: [network.binDir, PLUGIN_DIR],
    cacheDir: network.cacheDir,
    tracer: network.tracer,
    clock: systemClock,
    ...more,
  });
}

export interface TestNetns {
  readonly name: string;
  readonly path: string;
  /** Runs a command inside; rejects unless it exits 0. */
  run(...command: string[]): Promise<string>;
  remove(): Promise<void>;
}

export async function testNetns(): Promise<TestNetns> {
  const name = `ndns-${process.pid}-${counter++}`;
  await execOk('ip', ['netns', 'add', name]);
  return {
    name,
    path: `/var/run/netns/${name}`,
    run: (...command) => execOk('ip', ['netns', 'exec', name, ...command]),
    remove: async () => {
      await exec('ip', ['netns', 'del', name]);
    },
  };
}

export function attachment(netns: TestNetns, more: Partial<Attachment> = {}): Attachment {
  return {
    containerId: `c-${netns.name}`,
    netns: netns.path,
    ifName: 'eth0',
    args: 'IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME=web;K8S_POD_UID=u-1;K8S_POD_INFRA_CONTAINER_ID=x',
    capabilityArgs: {},
    ...more,
  };
}

export async function linkExists(name: string): Promise<boolean> {
  return (await exec('ip', ['link', 'show', name])).code === 0;
}

/** Files in the leases directory that stand for an address. */
export async function leases(network: TestNetwork): Promise<string[]> {
  try {
    const names = await readdir(join(network.leasesDir, network.name));
    return names.filter((name) => /^\d+\./.test(name));
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

/** Everything of the network that is still on this machine: addresses leased, ports of the bridge, firewall rules. */
export async function remains(network: TestNetwork): Promise<string[]> {
  const found = (await leases(network)).map((ip) => `lease ${ip}`);
  const ports = await exec('ip', ['-o', 'link', 'show', 'master', network.bridge]);
  if (ports.code === 0) found.push(...lines(ports.stdout).map((line) => `link ${line}`));
  for (const tool of ['iptables-save', 'ip6tables-save']) {
    const rules = await execOk(tool, []);
    found.push(...lines(rules).filter((line) => line.includes(network.name) || line.includes(`${network.prefix}.`)));
  }
  return found;
}

const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');

export async function cachedFiles(network: TestNetwork): Promise<string[]> {
  try {
    const entries = await readdir(network.cacheDir, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

/** Lines that a script plugin logged. */
export async function logOf(path: string): Promise<string[]> {
  try {
    return lines(await readFile(path, 'utf8'));
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

/** Polls a condition; rejects, saying what it waited for, when `ms` pass without it. */
export async function eventually(
  what: string,
  condition: () => Promise<boolean> | boolean,
  ms = 120_000,
): Promise<void> {
  const deadline = performance.now() + ms;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not within ${ms} ms: ${what}`);
    await systemClock.sleep(20);
  }
}
