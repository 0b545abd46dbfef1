// The composition root: puts the subsystems of compose/ together, starts them in order and stops them together. It
// decides nothing.

import { join } from 'node:path';
import { whenAborted } from '../lib/abort.ts';
import { systemClock } from '../lib/clock.ts';
import { exec as execDirectly } from '../lib/exec.ts';
import { createExecHelper } from '../lib/exec-helper.ts';
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

/** Runs the agent until `signal` aborts. Rejects with UserError for what the user has to mend. Pods are left running. */
export async function runAgent(requested: AgentOptions, signal: AbortSignal): Promise<void> {
  const access = await clusterAccess(requested);
  const options = { ...requested, rootDir: await openRootDirectory(requested.rootDir) };
  const { config, rootDir } = options;
  const log = createLog('agent', { verbosity: options.verbosity });
  reportViolations((name, fields) => log('error', 'Invariant violated', { invariant: name, ...fields }));
  const manager = serviceManager(process.env, process.pid);
  if (options.withoutEffect.length > 0) log('warn', 'settings without effect', { settings: options.withoutEffect });
  const clock = systemClock;
  const tracer = new Tracer();
  const tricks = parseTricks(process.env[TRICKS_VARIABLE]);
  const helper = tricks.has('exec-helper')
    ? createExecHelper({ onMissing: (message) => log('warn', message) })
    : undefined;
  const exec = helper?.exec ?? execDirectly;
  const signals = new AgentSignals();
  const base: AgentBase = { options, clock, tracer, log, exec, signals, tricks };
  const warn = (message: string): void => log('warn', message);
  const trace = createTraceSocket({ path: join(options.socketDir, 'trace.sock'), tracer, log: warn });
  await trace.listen();
  const tracing = await createTracing(base);

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
  const node = createNode(base, { ...parts, pods, kubeletPort: server?.port ?? config.port });
  const rotation = createLogRotation(base, runtime);

  void logCapabilities(base, runtime, cgroups.layout.driver);
  await network.start(runtime);
  await volumes.storage.start();
  cluster.start(pods);
  pods.start();
  rotation.start();
  void eviction.run(signal);
  void shutdownManager?.run(signal);
  void images.run(signal);
  void keepDiskReserve({ directory: rootDir, clock, exec, tracer, log }, signal);
  if (manager !== undefined) {
    void notifyServiceManager(manager, { problem: () => pods.syncLoopProblem(), clock, tracer, log }, signal);
  }
  const address = { node: options.nodeName, addresses: machine.nodeIPs, port: server?.port, root: rootDir };
  log('info', 'Started kubelet', { kubeletVersion: KUBELET_VERSION, ...address });
  try {
    await (node === undefined ? whenAborted(signal) : node.run(signal));
  } finally {
    rotation.stop();
    pods.stop();
    probes.close();
    volumes.manager.close();
    volumes.storage.close();
    cluster.close();
    await server?.close();
    await network.close();
    runtime.close();
    await trace.close();
    await tracing?.close();
    await shutdownManager?.close();
    helper?.close();
  }
}
