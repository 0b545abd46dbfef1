// A real containerd whose only network is the shim: pod sandboxes get their address through shim, socket and chain.

import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { createAgentNetwork } from '../../../agent/network/agent-network.ts';
import { COLLECTION_PERIOD_MS } from '../../../agent/network/collector.ts';
import { SANDBOX_CREATION_MS } from '../../../agent/network/forgotten.ts';
import type { AgentNetwork } from '../../../agent/network/options.ts';
import type { SandboxId } from '../../../agent/ports/runtime.ts';
import { releaseAllAttachments } from '../../../cni/cleanup.ts';
import { type Clock, plusMs, systemClock } from '../../../lib/clock.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { Tracer } from '../../../lib/trace.ts';
import { loadProto } from '../../../proto/load.ts';
import { unaryCaller } from '../../../proto/unary.ts';
import { type RunningContainerd, startContainerd } from '../support/containerd.ts';
import { importLabImages } from '../support/images.ts';
import { freePort } from '../support/ports.ts';
import {
  bridgeChain,
  cachedFiles,
  eventually,
  logOf,
  PLUGIN_DIR,
  remains,
  removeTestNetwork,
  type TestNetwork,
  testNetwork,
  writeConf,
  writePlugin,
} from './harness.ts';

const CGROUP = `/nodelet-cni-test-${process.pid}`;
/** For giving up only. */
const DEADLINE = { deadlineMs: 300_000 };
let root: string;
let containerd: RunningContainerd;
let network: TestNetwork;
let agent: AgentNetwork;
const { RuntimeService } = loadProto('cri').runtime.v1;
let cri: InstanceType<typeof RuntimeService>;
const call = unaryCaller(new Tracer(), 'cri');

const shimDir = (): { confDir: string; binDir: string } => ({
  confDir: join(root, 'shim/net.d'),
  binDir: join(root, 'shim/bin'),
});

/** The network namespaces that this test's containerd has made: it calls the loopback plugin for each first. */
async function netnsPaths(): Promise<readonly string[]> {
  return [...new Set(await logOf(netnsLog()))];
}

async function netnsAreGone(): Promise<boolean> {
  const paths = await netnsPaths();
  expect(paths).not.toEqual([]);
  return !paths.some((path) => existsSync(path));
}

/** Ends the collector's pause. */
let nextRound: (() => void) | undefined;
/** Added to the monotonic clock. */
let laterMs = 0;
/** The system's clock, but for the collector's pauses, which end when a test wants it. */
const steppedClock: Clock = {
  ...systemClock,
  monotonic: () => plusMs(systemClock.monotonic(), laterMs),
  sleep: (ms, signal) => {
    if (ms !== COLLECTION_PERIOD_MS) return systemClock.sleep(ms, signal);
    return new Promise((resolve, reject) => {
      nextRound = () => {
        nextRound = undefined;
        resolve();
      };
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  },
};

const netnsLog = (): string => join(root, 'netns');

/** Writes down the namespaces that are given to the loopback plugin, which is run all the same. */
async function recordNamespaces(): Promise<void> {
  const loopback = join(shimDir().binDir, 'loopback');
  await rm(loopback, { force: true });
  await writeFile(loopback, `#!/bin/sh\necho "$CNI_NETNS" >> '${netnsLog()}'\nexec ${join(PLUGIN_DIR, 'loopback')}\n`, {
    mode: 0o755,
  });
}

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-cni-ctrd-'));
  const { confDir, binDir } = shimDir();
  containerd = await startContainerd({ root, cniConfDir: confDir, cniBinDir: binDir });
  await importLabImages(containerd);
  cri = new RuntimeService(`unix://${containerd.socket}`, credentials.createInsecure());
});

afterAll(async () => {
  cri.close();
  await containerd.stop();
  for (const controller of await readdir('/sys/fs/cgroup')) {
    await rmdir(join('/sys/fs/cgroup', controller, CGROUP)).catch(() => undefined);
  }
  await rm(root, { recursive: true, force: true });
});

beforeEach(async () => {
  nextRound = undefined;
  laterMs = 0;
  await rm(netnsLog(), { force: true });
  network = await testNetwork();
  agent = createAgentNetwork({
    confDir: network.confDir,
    binDirs: [network.binDir, PLUGIN_DIR],
    cacheDir: network.cacheDir,
    socketPath: join(network.dir, 'cni.sock'),
    shim: shimDir(),
    tracer: network.tracer,
    clock: steppedClock,
    onError: (what, error) => {
      throw new Error(what, { cause: error });
    },
  });
});

afterEach(async () => {
  await agent.close();
  await removeTestNetwork(network);
});

async function networkReady(): Promise<boolean> {
  const { status } = await call(cri, 'Status', {}, DEADLINE);
  return status?.conditions.find((condition) => condition.type === 'NetworkReady')?.status === true;
}

function sandboxConfig(name: string, more: { portMappings?: object[]; annotations?: Record<string, string> } = {}) {
  return {
    metadata: { name, uid: `uid-${name}`, namespace: 'demo', attempt: 0 },
    hostname: name,
    log_directory: join(root, 'logs', name),
    port_mappings: more.portMappings ?? [],
    annotations: more.annotations ?? {},
    labels: { 'io.kubernetes.pod.name': name },
    linux: { cgroup_parent: CGROUP },
  };
}

it('containerd reports NetworkReady once the agent serves, and a pod gets address, ports and all through the shim', async () => {
  expect(await networkReady()).toBe(false);
  await writePlugin(
    network,
    'recorder',
    'cat > "$(dirname "$0")/$CNI_COMMAND.json"; [ "$CNI_COMMAND" = ADD ] && sed \'s/.*"prevResult"://; s/}$//\' "$(dirname "$0")/ADD.json"; exit 0',
  );
  const capabilities = { 'io.kubernetes.cri.pod-annotations': true, portMappings: true, cgroupPath: true };
  const more = [{ type: 'recorder', capabilities }];
  await writeConf(network, bridgeChain(network, { ipMasq: true, more }));
  await agent.start();
  await recordNamespaces();
  await eventually('containerd has read the conflist', networkReady);

  const config = sandboxConfig('web', {
    portMappings: [{ protocol: 'TCP', container_port: 80, host_port: await freePort() }],
    annotations: { 'example.com/a': 'b' },
  });
  const { pod_sandbox_id: id } = await call(cri, 'RunPodSandbox', { config }, DEADLINE);
  const { status } = await call(cri, 'PodSandboxStatus', { pod_sandbox_id: id }, DEADLINE);
  expect(status?.network?.ip).toBe(`${network.prefix}.2`);
  const [eth0] = await agent.interfaces(id as SandboxId);
  expect(eth0).toMatchObject({
    name: 'eth0',
    addresses: [`${network.prefix}.2/24`],
    routes: [{ dst: '0.0.0.0/0', gw: `${network.prefix}.1` }],
  });
  expect(await execOk('ip', ['-o', 'link', 'show', eth0?.hostName ?? ''])).toContain(`master ${network.bridge}`);

  const given = JSON.parse(await readFile(join(network.binDir, 'ADD.json'), 'utf8'));
  expect(given.runtimeConfig).toMatchObject({
    'io.kubernetes.cri.pod-annotations': { 'example.com/a': 'b' },
    portMappings: [{ containerPort: 80, protocol: 'tcp' }],
  });
  expect(network.spans.find((span) => span.name === 'ADD bridge')).toMatchObject({
    pod: { namespace: 'demo', name: 'web', uid: 'uid-web' },
    outcome: 'ok',
  });

  await call(cri, 'StopPodSandbox', { pod_sandbox_id: id }, DEADLINE);
  await call(cri, 'RemovePodSandbox', { pod_sandbox_id: id }, DEADLINE);
  expect(await remains(network)).toEqual([]);
  expect(await cachedFiles(network)).toEqual([]);
  await eventually('the namespace is gone', netnsAreGone);
});

it('a failing plugin’s own message is in the error of RunPodSandbox, and no namespace or address is left', async () => {
  await writePlugin(
    network,
    'widget',
    '[ "$CNI_COMMAND" = DEL ] && exit 0; echo \'{"code":119,"msg":"no more widgets"}\'; exit 1',
  );
  await writeConf(network, bridgeChain(network, { ipMasq: true, more: [{ type: 'widget' }] }));
  await agent.start();
  await recordNamespaces();
  await eventually('containerd has read the conflist', networkReady);
  await expect(call(cri, 'RunPodSandbox', { config: sandboxConfig('broken') }, DEADLINE)).rejects.toThrow(
    /plugin type="widget" failed \(add\): no more widgets/,
  );
  expect(await remains(network)).toEqual([]);
  expect(await cachedFiles(network)).toEqual([]);
  await eventually('the namespace is gone', netnsAreGone);
});

it('a pod made while the agent is away fails with the reason, and one that lived is removed after it is back', async () => {
  await writeConf(network, bridgeChain(network));
  await agent.start();
  await recordNamespaces();
  await eventually('containerd has read the conflist', networkReady);
  const { pod_sandbox_id: id } = await call(cri, 'RunPodSandbox', { config: sandboxConfig('lives') }, DEADLINE);
  await agent.close();
  await expect(call(cri, 'RunPodSandbox', { config: sandboxConfig('fails') }, DEADLINE)).rejects.toThrow(
    /the nodelet agent does not answer on .*cni\.sock; is it running\?/,
  );
  await expect(call(cri, 'StopPodSandbox', { pod_sandbox_id: id }, DEADLINE)).rejects.toThrow(/does not answer/);
  await agent.start();
  // A runtime may still have the one that failed: its network could not be undone either.
  const { items } = await call(cri, 'ListPodSandbox', {}, DEADLINE);
  expect(items.map(({ metadata }) => metadata?.name)).toContain('lives');
  for (const { id: each } of items) {
    await call(cri, 'StopPodSandbox', { pod_sandbox_id: each }, DEADLINE);
    await call(cri, 'RemovePodSandbox', { pod_sandbox_id: each }, DEADLINE);
  }
  expect(await remains(network)).toEqual([]);
  expect(await netnsPaths()).toHaveLength(2);
  await eventually('the namespaces are gone', netnsAreGone);
});

it('a sandbox that containerd has lost gives its network back while the agent runs, and one that it has keeps it', async () => {
  await writeConf(network, bridgeChain(network, { ipMasq: true }));
  const lists: number[] = [];
  const round = async (): Promise<void> => {
    const before = lists.length;
    await eventually('the collector waits for its next round', () => nextRound !== undefined);
    nextRound?.();
    await eventually('the sandboxes are listed', () => lists.length > before);
    await eventually('the round is over', () => nextRound !== undefined);
  };
  await agent.start(async () => {
    const { items } = await call(cri, 'ListPodSandbox', {}, DEADLINE);
    lists.push(items.length);
    return items.map(({ id }) => id as SandboxId);
  });
  await recordNamespaces();
  await eventually('containerd has read the conflist', networkReady);
  const run = async (name: string): Promise<SandboxId> =>
    (await call(cri, 'RunPodSandbox', { config: sandboxConfig(name) }, DEADLINE)).pod_sandbox_id as SandboxId;
  const [lost, kept] = [await run('lost'), await run('kept')];
  const [namespace] = await netnsPaths();
  // Behind CRI's back: its pause process and its record, and containerd has read its records again.
  const ctr = ['--address', containerd.socket, '--namespace', 'k8s.io'];
  await execOk('ctr', [...ctr, 'task', 'kill', '--signal', 'SIGKILL', lost]);
  const isDeleted = async (): Promise<boolean> => (await exec('ctr', [...ctr, 'container', 'delete', lost])).code === 0;
  await eventually('containerd has removed the task, and lets its container be deleted', isDeleted);
  await containerd.restart();
  // Its namespace is still there, so it might be one that is being made.
  await round();
  expect(lists.at(-1)).toBe(1);
  expect(await agent.interfaces(lost)).toHaveLength(1);
  laterMs = SANDBOX_CREATION_MS + 60_000;
  await round();
  expect(await agent.interfaces(lost)).toEqual([]);
  expect(await agent.interfaces(kept)).toHaveLength(1);
  const left = await remains(network);
  expect(left.filter((line) => line.startsWith('lease'))).toEqual([`lease ${network.prefix}.3`]);
  expect(left.filter((line) => line.startsWith('link'))).toHaveLength(1);
  expect(left.join()).toContain(kept);
  expect(left.join()).not.toContain(lost);
  await call(cri, 'StopPodSandbox', { pod_sandbox_id: kept }, DEADLINE);
  await call(cri, 'RemovePodSandbox', { pod_sandbox_id: kept }, DEADLINE);
  expect(await remains(network)).toEqual([]);
  expect(await cachedFiles(network)).toEqual([]);
  // containerd has forgotten these as well: what its libcni remembers of the sandbox, and the namespace.
  const remembered = (await readdir('/var/lib/cni/results')).filter((name) => name.includes(lost));
  for (const name of remembered) await rm(join('/var/lib/cni/results', name));
  await execOk('umount', [namespace ?? '']);
  await rm(namespace ?? '');
  await eventually('the namespaces are gone', netnsAreGone);
});

it('without agent and runtime, the cache directory alone is enough to remove everything, also what libcni keeps', async () => {
  await writeConf(network, bridgeChain(network, { ipMasq: true }));
  await agent.start();
  await recordNamespaces();
  await eventually('containerd has read the conflist', networkReady);
  const { pod_sandbox_id: id } = await call(cri, 'RunPodSandbox', { config: sandboxConfig('orphan') }, DEADLINE);
  const kept = async () => (await readdir('/var/lib/cni/results')).filter((name) => name.includes(id));
  expect((await kept()).sort()).toEqual([`cni-loopback-${id}-lo`, `nodelet-${id}-eth0`]);
  await agent.close();
  const { cacheDir, binDir, tracer } = network;
  const report = await releaseAllAttachments({ cacheDir, binDirs: [binDir, PLUGIN_DIR], tracer, clock: systemClock });
  expect(report).toEqual({ removed: [{ containerID: id, ifname: 'eth0' }], failures: [] });
  expect(await kept()).toEqual([]);
  expect(await remains(network)).toEqual([]);
  // Back again, for the sandbox itself to be removed as any other.
  await containerd.restart();
  await agent.start();
  await call(cri, 'StopPodSandbox', { pod_sandbox_id: id }, DEADLINE);
  await call(cri, 'RemovePodSandbox', { pod_sandbox_id: id }, DEADLINE);
  await eventually('the namespace is gone', netnsAreGone);
});
