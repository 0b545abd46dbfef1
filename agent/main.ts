// The composition root: puts the subsystems of compose/ together, starts them in order and stops them together. It
// decides nothing.

import { join } from 'node:path';
import type { ClusterAccess } from '../client/kubeconfig.ts';
import { whenAborted } from '../lib/abort.ts';
import { systemClock } from '../lib/clock.ts';
import { exec as execDirectly } from '../lib/exec.ts';
import { createExecHelper, type ExecHelper } from '../lib/exec-helper.ts';
import { reportViolations } from '../lib/invariant.ts';
import { createLog } from '../lib/log.ts';
import { Tracer } from '../lib/trace.ts';
import { parseTricks, TRICKS_VARIABLE } from '../lib/tricks.ts';
import { type AgentBase, AgentSignals, KUBELET_VERSION } from './compose/base.ts';
import { clusterAccess, createCluster } from './compose/cluster.ts';
import { createCgroups, findMachine } from './compose/machine.ts';
import { createMetrics } from './compose/metrics.ts';
import { createNetwork } from './compose/network.ts';
import { createNode } from './compose/node.ts';
import { createPods } from './compose/pods.ts';
import { createPressure } from './compose/pressure.ts';
import { createPullCredentials } from './compose/pull-credentials.ts';
import { createLogRotation, createRuntime, logCapabilities } from './compose/runtime.ts';
import { createServer } from './compose/server.ts';
import { createShutdown } from './compose/shutdown.ts';
import { createTracing } from './compose/tracing.ts';
import { createVolumes } from './compose/volumes.ts';
import type { AgentOptions } from './config/options.ts';
import { NodePressureState } from './eviction/pressure-state.ts';
import { keepDiskReserve } from './node/disk-reserve.ts';
import { openRootDirectory } from './node/root-directory.ts';
import { notifyServiceManager, serviceManager } from './node/watchdog.ts';
import { createPodProbes } from './probes/pod-probes.ts';
import { createTraceSocket } from './server/trace-socket.ts';
import { NodeShutdownState } from './shutdown/shutdown-state.ts';

/** What all subsystems share. */
async function openBase(requested: AgentOptions): Promise<AgentBase & { readonly helper: ExecHelper | undefined }> {
  const options = { ...requested, rootDir: await openRootDirectory(requested.rootDir) };
  const log = createLog('agent', { verbosity: options.verbosity });
  reportViolations((name, fields) => log('error', 'Invariant violated', { invariant: name, ...fields }));
  if (options.withoutEffect.length > 0) log('warn', 'settings without effect', { settings: options.withoutEffect });
  const tricks = parseTricks(process.env[TRICKS_VARIABLE]);
  const helper = tricks.has('exec-helper')
    ? createExecHelper({ onMissing: (message) => log('warn', message) })
    : undefined;
  const exec = helper?.exec ?? execDirectly;
  return { options, clock: systemClock, tracer: new Tracer(), log, exec, signals: new AgentSignals(), tricks, helper };
}

/** The subsystems, put together, each with those that it needs. Of them only the kubelet's server is at work. */
async function compose(base: AgentBase, access: ClusterAccess | undefined) {
  const { options, clock, tracer } = base;
  const machine = await findMachine(base);
  const cluster = createCluster(base, access, machine);
  const { recorder } = cluster;
  const cgroups = await createCgroups(base, machine, recorder);
  const network = createNetwork(base);
  const metrics = createMetrics(base, access?.server);
  const runtime = createRuntime(base, { ...cgroups, network, recorder, metrics });
  const volumes = await createVolumes(base, { machine, cgroups, cluster, runtime });
  const probes = createPodProbes({ runtime, recorder, clock, tracer, hostIPs: () => machine.nodeIPs });
  const credentials = createPullCredentials(base, cluster);
  const pressure = new NodePressureState();
  const shutdown = new NodeShutdownState();
  const parts = {
    machine,
    cgroups,
    cluster,
    network,
    runtime,
    volumes,
    probes,
    credentials,
    pressure,
    shutdown,
    metrics,
  };
  const pods = await createPods(base, parts);
  const { eviction, images } = createPressure(base, { ...parts, pods });
  const shutdownManager = await createShutdown(base, { recorder, pods, state: shutdown });
  const server = createServer(base, { ...parts, pods });
  await server?.listen();
  const node = createNode(base, { ...parts, pods, kubeletPort: server?.port ?? options.config.port });
  const rotation = createLogRotation(base, runtime);
  return { ...parts, pods, eviction, images, shutdownManager, server, node, rotation };
}

type Agent = Awaited<ReturnType<typeof compose>>;

async function start(base: AgentBase, agent: Agent, signal: AbortSignal): Promise<void> {
  const { options, clock, tracer, log, exec } = base;
  const { machine, cgroups, network, runtime, volumes, cluster, pods, rotation, server } = agent;
  void logCapabilities(base, runtime, cgroups.layout.driver);
  await network.start(runtime);
  await volumes.storage.start();
  cluster.start(pods);
  pods.start();
  rotation.start();
  void agent.eviction.run(signal);
  void agent.shutdownManager?.run(signal);
  void agent.images.run(signal);
  void keepDiskReserve({ directory: options.rootDir, clock, exec, tracer, log }, signal);
  const address = { node: options.nodeName, addresses: machine.nodeIPs, port: server?.port, root: options.rootDir };
  log('info', 'Started kubelet', { kubeletVersion: KUBELET_VERSION, ...address });
}

async function stop({ rotation, pods, probes, volumes, cluster, server, network, runtime }: Agent): Promise<void> {
  rotation.stop();
  pods.stop();
  probes.close();
  volumes.manager.close();
  volumes.storage.close();
  cluster.close();
  await server?.close();
  await network.close();
  runtime.close();
}

/** Runs the agent until `signal` aborts. Rejects with UserError for what the user has to mend. Pods are left running. */
export async function runAgent(requested: AgentOptions, signal: AbortSignal): Promise<void> {
  const access = await clusterAccess(requested);
  const manager = serviceManager(process.env, process.pid);
  const base = await openBase(requested);
  const { options, clock, tracer, log } = base;
  const warn = (message: string): void => log('warn', message);
  const trace = createTraceSocket({ path: join(options.socketDir, 'trace.sock'), tracer, log: warn });
  await trace.listen();
  const tracing = await createTracing(base);
  const agent = await compose(base, access);
  await start(base, agent, signal);
  if (manager !== undefined) {
    void notifyServiceManager(manager, { problem: () => agent.pods.syncLoopProblem(), clock, tracer, log }, signal);
  }
  try {
    await (agent.node === undefined ? whenAborted(signal) : agent.node.run(signal));
  } finally {
    await stop(agent);
    await trace.close();
    await tracing?.close();
    await agent.shutdownManager?.close();
    base.helper?.close();
  }
}
