// What the runtime tests share: a private containerd with a bridge network of its own, the lab's images, and a CriRuntime
// on top; `close` leaves the machine as it was.

import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { type CgroupLayout, cgroupParent } from '../../../agent/model/cgroup-names.ts';
import { createNodeCgroups, type NodeCgroups } from '../../../agent/node/cgroups.ts';
import type {
  ContainerId,
  ContainerSpec,
  PodRef,
  PodUID,
  RuntimeImage,
  SandboxId,
} from '../../../agent/ports/runtime.ts';
import { createCriRuntime } from '../../../agent/runtime/cri-runtime.ts';
import type { CriRuntimeOptions, NodeSettings } from '../../../agent/runtime/options.ts';
import type { CriRuntime } from '../../../agent/runtime/types.ts';
import type { Container, Pod } from '../../../client/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import { isErrno } from '../../../lib/errors.ts';
import { exec } from '../../../lib/exec.ts';
import { type Span, Tracer } from '../../../lib/trace.ts';
import { type RunningContainerd, startContainerd } from '../support/containerd.ts';
import { BUSYBOX, importLabImages } from '../support/images.ts';

export { BUSYBOX };

export interface RuntimeLab {
  readonly root: string;
  readonly containerd: RunningContainerd;
  readonly cgroups: NodeCgroups;
  readonly node: NodeSettings;
  readonly tracer: Tracer;
  readonly spans: Span[];
  readonly troubles: string[];
  readonly image: RuntimeImage;
  readonly runtime: CriRuntime;
  /** Another adapter on the same containerd, as after a restart of the agent. */
  another(options?: Partial<CriRuntimeOptions>): CriRuntime;
  close(): Promise<void>;
}

/** `bridge` and `subnet` are the test file's own: two files may run side by side. */
export async function startRuntimeLab(
  bridge: string,
  subnet: string,
  options: Partial<CriRuntimeOptions> = {},
): Promise<RuntimeLab> {
  const root = await mkdtemp(join(tmpdir(), 'nodelet-runtime-'));
  const confDir = join(root, 'cni', 'net.d');
  await mkdir(confDir, { recursive: true });
  const ipam = { type: 'host-local', dataDir: join(root, 'ipam'), ranges: [[{ subnet }]] };
  await writeFile(
    join(confDir, '10-test.conflist'),
    JSON.stringify({
      cniVersion: '1.0.0',
      name: bridge,
      plugins: [{ type: 'bridge', bridge, isGateway: true, ipam: { ...ipam, routes: [{ dst: '0.0.0.0/0' }] } }],
    }),
  );
  const layout: CgroupLayout = { root: `/${bridge}-test`, driver: 'cgroupfs' };
  const tracer = new Tracer();
  const spans: Span[] = [];
  const troubles: string[] = [];
  tracer.subscribe((span) => spans.push(span));
  const cgroups = createNodeCgroups({
    layout,
    tracer,
    clock: systemClock,
    allocatable: { cpuMilli: 2000, memoryBytes: totalmem() },
    cpuCFSQuota: true,
    cpuCFSQuotaPeriodUs: 100_000,
    podPidsLimit: -1,
  });
  await cgroups.ensureNode();
  const node: NodeSettings = {
    rootDir: join(root, 'kubelet'),
    podLogsDir: join(root, 'log', 'pods'),
    containerLogsDir: join(root, 'log', 'containers'),
    cgroups: layout,
    cgroupVersion: cgroups.version,
    swapController: cgroups.swapController,
    clusterDNS: ['10.96.0.10'],
    clusterDomain: 'cluster.local',
    resolvConf: '/etc/resolv.conf',
    seccompDefault: false,
    seccompProfileRoot: join(root, 'seccomp'),
    cpuCFSQuota: true,
    cpuCFSQuotaPeriodUs: 100_000,
    memoryCapacityBytes: totalmem(),
    selinux: false,
    hugepageSizes: [],
  };
  const containerd = await startContainerd({ root });
  const made: CriRuntime[] = [];
  const another = (options: Partial<CriRuntimeOptions> = {}): CriRuntime => {
    const runtime = createCriRuntime({
      endpoint: `unix://${containerd.socket}`,
      tracer,
      clock: systemClock,
      node,
      onTrouble: (message) => troubles.push(message),
      ...options,
    });
    made.push(runtime);
    return runtime;
  };
  const close = async (): Promise<void> => {
    for (const runtime of made) runtime.close();
    await containerd.stop();
    for (const uid of await cgroups.listPods()) await cgroups.removePod(uid);
    await cgroups.removeNode();
    await exec('ip', ['link', 'delete', bridge]);
    await rm(root, { recursive: true, force: true });
  };
  try {
    await importLabImages(containerd);
    const runtime = another(options);
    const image = await runtime.imageStatus(BUSYBOX);
    if (image === undefined) throw new Error(`${BUSYBOX} was imported and is not there`);
    return { root, containerd, cgroups, node, tracer, spans, troubles, image, runtime, another, close };
  } catch (error) {
    await close();
    throw error;
  }
}

let podCount = 0;

/** A pod of one container that runs `script`. */
export function testPod(
  script: string,
  overrides: { spec?: Partial<Pod['spec']>; container?: Partial<Container> } = {},
): Pod {
  const name = `pod-${++podCount}`;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'test', uid: `${crypto.randomUUID()}`, resourceVersion: '1', labels: { app: name } },
    spec: {
      containers: [{ name: 'main', image: BUSYBOX, command: ['sh', '-c', script], ...overrides.container }],
      ...overrides.spec,
    },
  };
}

export function refOf(pod: Pod): PodRef {
  return { uid: pod.metadata.uid as PodUID, namespace: pod.metadata.namespace, name: pod.metadata.name };
}

export interface StartedPod {
  readonly pod: Pod;
  readonly ref: PodRef;
  readonly sandboxId: SandboxId;
  readonly containerId: ContainerId;
  readonly ips: readonly string[];
}

export function containerSpec(
  lab: Pick<RuntimeLab, 'image'>,
  pod: Pod,
  sandboxId: SandboxId,
  podIPs: readonly string[],
  restartCount = 0,
): ContainerSpec {
  const [container] = pod.spec.containers;
  if (container === undefined) throw new Error('a pod without containers');
  const env = (container.env ?? []).map(({ name, value }) => ({ name, value: value ?? '' }));
  return {
    pod,
    container,
    type: 'container',
    sandboxId,
    restartCount,
    hash: 'abc123',
    image: lab.image,
    podIPs,
    env,
    mounts: [],
    devices: [],
  };
}

/** Sandbox, address, container, start: what a worker does. */
export async function startPod(lab: RuntimeLab, pod: Pod, runtime = lab.runtime): Promise<StartedPod> {
  const ref = refOf(pod);
  await lab.cgroups.ensurePod(pod);
  const sandboxId = await runtime.runPodSandbox({ pod, attempt: 0, runtimeHandler: '' });
  const snapshot = await runtime.observePod(ref);
  const ips = snapshot.sandboxes[0]?.ips ?? [];
  const containerId = await runtime.createContainer(containerSpec(lab, pod, sandboxId, ips));
  await runtime.startContainer(containerId);
  return { pod, ref, sandboxId, containerId, ips };
}

export async function removePod(lab: RuntimeLab, started: StartedPod, runtime = lab.runtime): Promise<void> {
  await runtime.stopContainer(started.containerId, 0);
  await runtime.stopPodSandbox(started.sandboxId);
  await runtime.removePodSandbox(started.sandboxId);
  await lab.cgroups.removePod(started.ref.uid);
}

/** Polls until `condition` returns something; a test's deadline, not a way to wait for logic. */
export async function eventually<T>(what: string, condition: () => T | undefined | Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + 120_000;
  for (;;) {
    const value = await condition();
    if (value !== undefined) return value;
    if (performance.now() > deadline) throw new Error(`timed out waiting for ${what}`);
    await systemClock.sleep(10);
  }
}

export async function filesIn(directory: string): Promise<string[]> {
  return (await readdir(directory)).sort();
}

/** The container's processes, as the machine numbers them. */
async function pidsOf(lab: RuntimeLab, pod: Pod, containerId: ContainerId): Promise<number[]> {
  const mount = lab.cgroups.version === 1 ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup';
  const directory = join(mount, cgroupParent(lab.node.cgroups, pod), containerId);
  const text = await readFile(join(directory, 'cgroup.procs'), 'utf8');
  return text.split('\n').filter(Boolean).map(Number);
}

/** Kills the container's processes, as from outside: those that the death of the first takes with it may be gone by their turn. */
export async function killProcesses(lab: RuntimeLab, pod: Pod, containerId: ContainerId): Promise<void> {
  const pids = await pidsOf(lab, pod, containerId);
  if (pids.length === 0) throw new Error(`container ${containerId} has no processes`);
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if (!isErrno(error, 'ESRCH')) throw error;
    }
  }
}

/** Cgroups of that name at the top of any hierarchy of this machine, by whatever version and controller. */
export async function cgroupsNamed(name: string): Promise<string[]> {
  const mount = '/sys/fs/cgroup';
  const tops = [mount, ...(await readdir(mount)).map((entry) => join(mount, entry))];
  return tops.map((top) => join(top, name)).filter((path) => existsSync(path));
}
