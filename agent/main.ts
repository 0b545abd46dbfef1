// The composition root: the only file that knows every concrete part of the agent. It puts them together, starts them
// in order and stops them together; it decides nothing.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { matchesNodeSelector } from '../client/selectors.ts';
import { readFileIfExists, writeFileAtomic } from '../lib/atomic.ts';
import { systemClock } from '../lib/clock.ts';
import { errorMessage, UserError } from '../lib/errors.ts';
import type { Exec } from '../lib/exec.ts';
import { createExecHelper } from '../lib/exec-helper.ts';
import { createLog, type Log } from '../lib/log.ts';
import { quantityValue } from '../lib/quantity.ts';
import { resolvePath } from '../lib/resolve-path.ts';
import { Tracer } from '../lib/trace.ts';
import { createAdmission } from './admission/admission.ts';
import { appArmorEnabled } from './admission/host.ts';
import { runtimeHandlerOf } from './api/runtime-class.ts';
import { clusterAccess, createCluster } from './cluster.ts';
import type { AgentOptions } from './config/options.ts';
import { keepDiskReserve } from './disk-reserve.ts';
import { nodeReference, podReference } from './model/event-reference.ts';
import { createAgentNetwork } from './network/agent-network.ts';
import { createRuntimeNetwork } from './network/runtime-network.ts';
import { chooseNodeIPs } from './node/addresses.ts';
import { allocatableOf, capacityOf } from './node/capacity.ts';
import { createNodeCgroups } from './node/cgroups.ts';
import { createDescriptorCheck } from './node/descriptors.ts';
import { enforceAllocatable } from './node/enforce.ts';
import { gatherFacts } from './node/facts.ts';
import { NodeAgent } from './node/node-agent.ts';
import { mayLowerOomScore } from './node/oom-score.ts';
import { checkMachine } from './node/requirements.ts';
import { createSystemdSlices, systemdRuns } from './node/systemd-slices.ts';
import { cgroupLayout, nodeSettings, podsAllocatable } from './node-settings.ts';
import { createNodeShutdown } from './node-shutdown.ts';
import { createPodsAgent } from './pods/pods-agent.ts';
import { restartBackoffPolicy } from './pods/restart-backoff.ts';
import type { PodNetwork } from './ports/node.ts';
import type { ContainerRuntime } from './ports/runtime.ts';
import { createNodePressure } from './pressure.ts';
import { createPodProbes } from './probes/pod-probes.ts';
import { createPullCredentials } from './pull-credentials.ts';
import { openRootDirectory } from './root-directory.ts';
import { askCgroupDriver } from './runtime/cgroup-driver.ts';
import { createCriRuntime } from './runtime/cri-runtime.ts';
import { createLogReader } from './runtime/logs/read-logs.ts';
import { LogRotation } from './runtime/logs/rotation.ts';
import { sweepLogs } from './runtime/logs/sweep.ts';
import { createKubeletServer } from './server/kubelet-server.ts';
import { createTraceSocket } from './server/trace-socket.ts';
import { createStorage } from './storage.ts';
import { imageVolumeProblem } from './volumes/image.ts';
import { createLinuxMounter } from './volumes/linux-mounter.ts';
import { createPodVolumes } from './volumes/pod-volumes.ts';
import { ensureSharedRoot } from './volumes/shared-root.ts';
import { spreadDirectories } from './volumes/spread-directories.ts';
import { podsDir } from './volumes/volume-type.ts';
import { notifyServiceManager, serviceManager } from './watchdog.ts';

/** The Kubernetes release whose kubelet nodelet behaves like. */
const KUBELET_VERSION = 'v1.33.0-nodelet.0.1.0';

/** Runs the agent until `signal` aborts. Rejects with UserError for what the user has to mend. Pods are left running. */
export async function runAgent(given: AgentOptions, signal: AbortSignal): Promise<void> {
  const access = await clusterAccess(given);
  const options = { ...given, rootDir: await openRootDirectory(given.rootDir) };
  const log = createLog('agent', { verbosity: options.verbosity });
  const manager = serviceManager(process.env, process.pid);
  const { config, nodeName } = options;
  if (options.withoutEffect.length > 0) {
    log('warn', 'settings without effect', { settings: options.withoutEffect });
  }
  const clock = systemClock;
  const tracer = new Tracer();
  const programs = createExecHelper({ onMissing: (message) => log('warn', message) });
  const trace = createTraceSocket({
    path: join(options.socketDir, 'trace.sock'),
    tracer,
    log: (message) => log('warn', message),
  });
  await trace.listen();

  const facts = await gatherFacts(options.rootDir, nodeName);
  const nodeIPs = chooseNodeIPs(options.nodeIPs, nodeName, facts.addresses);
  const allocatable = allocatableOf(capacityOf(facts, config), config);

  const cluster = createCluster(options, access, {
    clock,
    tracer,
    log,
    userAgent: `nodelet-agent/${KUBELET_VERSION}`,
    facts,
    allocatable: () => allocatable,
  });
  const { client, recorder, objects } = cluster;

  const told = await askCgroupDriver(options.containerRuntimeEndpoint, tracer);
  const layout = cgroupLayout(options, told);
  if (layout.driver !== config.cgroupDriver) {
    log(
      'info',
      `the runtime uses the cgroup driver ${layout.driver}: cgroupDriver ${config.cgroupDriver} is put aside`,
    );
  }
  if (layout.driver === 'systemd' && !systemdRuns()) {
    throw new UserError('cgroupDriver is systemd, and systemd does not run on this machine: use cgroupfs');
  }
  const cgroups = createNodeCgroups({
    layout,
    tracer,
    clock,
    ...(layout.driver === 'systemd' ? { slices: createSystemdSlices({ tracer, run: programs.exec }) } : {}),
    // What eviction keeps free is not cut off by the kernel: pods are ended before they get there.
    allocatable: podsAllocatable(allocatableOf(capacityOf(facts, config), { ...config, evictionHard: {} })),
    enforceNodeAllocatable: config.enforceNodeAllocatable.includes('pods'),
    cpuCFSQuota: config.cpuCFSQuota,
    cpuCFSQuotaPeriodUs: config.cpuCFSQuotaPeriod * 1000,
    podPidsLimit: config.podPidsLimit,
  });
  checkMachine(config, { swapBytes: facts.swapBytes, cgroupVersion: cgroups.version });
  await enforceAllocatable({ config, layout, cgroups, nodeName, recorder });

  const settings = { ...nodeSettings(options, facts, layout, cgroups), podLogsDir: resolvePath(config.podLogsDir) };
  if (!mayLowerOomScore()) {
    log(
      'warn',
      'no CAP_SYS_RESOURCE here: OOM scores are not lowered, and containers keep the one they are started with',
    );
  }
  const runtime = createCriRuntime({
    endpoint: options.containerRuntimeEndpoint,
    imageEndpoint: options.imageServiceEndpoint,
    tracer,
    clock,
    node: settings,
    requestTimeoutMs: config.runtimeRequestTimeout,
    addressesOf: (sandbox) => network.port.addresses(sandbox),
    onTrouble: (message) => log('warn', message),
    onWarning: (of, reason, message) =>
      recorder.event(of === 'node' ? nodeReference(nodeName) : podReference(of), 'Warning', reason, message),
  });

  const network = startNetwork(options, {
    tracer,
    runtime,
    log,
    exec: programs.exec,
    changed: () => void node?.checkNow(),
  });
  const mounter = createLinuxMounter({ tracer, exec: programs.exec, direct: programs.mount });
  await ensureSharedRoot(options.rootDir, mounter).catch((error: unknown) =>
    log('warn', `mountPropagation will not work: ${errorMessage(error)}`),
  );
  const podDirectories = [podsDir(options.rootDir), settings.podLogsDir];
  await mkdir(podsDir(options.rootDir), { recursive: true, mode: 0o750 });
  await mkdir(settings.podLogsDir, { recursive: true, mode: 0o755 });
  await spreadDirectories(podDirectories, { mounter, exec: programs.exec, tracer }).catch((error: unknown) =>
    log('info', `directories of pods lie as the file system likes: ${errorMessage(error)}`),
  );
  const storage = createStorage({
    rootDir: options.rootDir,
    nodeName,
    ...(client === undefined ? {} : { client }),
    objects,
    recorder,
    mounter,
    nodeMatches: (selector) => matchesNodeSelector(selector, cluster.node()),
    clock,
    tracer,
    log,
  });
  const volumes = createPodVolumes({
    rootDir: options.rootDir,
    mounter,
    objects,
    tracer,
    clock,
    recorder,
    ...(storage.persistent === undefined ? {} : { persistent: storage.persistent }),
    allocatable: () => allocatable,
    ...(cluster.followed === undefined ? {} : { followed: cluster.followed }),
    recursiveReadOnlyMounts: async () =>
      (await runtime.status()).handlers.some(({ name, recursiveReadOnlyMounts: able }) => name === '' && able),
    imageVolumeProblem: async () => imageVolumeProblem(await runtime.version()),
  });
  const probes = createPodProbes({ runtime, recorder, clock, tracer, hostIPs: () => nodeIPs });
  const { eviction, images } = createNodePressure({
    options,
    clock,
    log,
    recorder,
    runtime,
    pods: () => pods,
    layout,
    cgroupVersion: cgroups.version,
    memoryCapacityBytes: facts.memoryBytes,
    onChange: () => node?.wake(),
  });
  const shutdown = await createNodeShutdown({
    options,
    recorder,
    clock,
    exec: programs.exec,
    log,
    systemd: systemdRuns(),
    pods: { activePods: () => pods.activePods(), endPod: (uid, end) => pods.endPod(uid, end) },
    onChange: () => void node?.checkNow(),
  });
  const credentials = createPullCredentials({ options, cluster, clock, tracer, exec: programs.exec, log });
  const allocationsFile = join(options.rootDir, 'allocated_pods_state');
  const pods = createPodsAgent({
    runtime,
    cgroups,
    volumes,
    ...(cluster.podApi === undefined ? {} : { api: cluster.podApi }),
    objects,
    recorder,
    probes,
    sources: cluster.sources,
    onPodGone: (pod) => {
      credentials.forget(pod);
      cluster.podGone();
    },
    ...(client === undefined ? {} : { runtimeHandler: (name: string) => runtimeHandlerOf(client, name) }),
    credentials,
    sweep: async (isKept) => {
      const removed = await sweepLogs(settings, isKept);
      if (removed.length > 0) log('info', 'removed logs of pods that are no more', { removed });
    },
    allocations: {
      initial: await readFileIfExists(allocationsFile),
      save: (text) => writeFileAtomic(allocationsFile, text, 0o600),
    },
    clock,
    tracer,
    node: { name: nodeName, hostIPs: () => nodeIPs, allocatable: () => allocatable },
    config: {
      serializeImagePulls: config.serializeImagePulls,
      maxParallelImagePulls: config.maxParallelImagePulls ?? 0,
      resyncMs: config.syncFrequency,
      runtimeRequestTimeoutMs: config.runtimeRequestTimeout,
      restartBackoff: restartBackoffPolicy(config.crashLoopBackOff.maxContainerRestartPeriod),
      cpuCFSQuota: config.cpuCFSQuota,
      cpuCFSQuotaPeriodUs: config.cpuCFSQuotaPeriod * 1000,
      admit: [
        ...(shutdown === undefined ? [] : [shutdown.manager.admit]),
        eviction.admit,
        ...createAdmission({
          node: () => cluster.node(),
          kernelVersion: facts.kernelVersion,
          allowedUnsafeSysctls: config.allowedUnsafeSysctls,
          appArmor: await appArmorEnabled(),
        }),
      ],
    },
    log,
  });

  const server = config.enableServer
    ? createKubeletServer({
        options,
        pods,
        runtime,
        logs: createLogReader(clock),
        stats: { containers: () => runtime.containerStats(), volumes: storage.stats },
        ...(client === undefined ? {} : { reviews: client }),
        syncLoopHealth: () => pods.syncLoopProblem(),
        tracer,
        clock,
        log,
      })
    : undefined;
  await server?.listen();

  const node =
    client === undefined
      ? undefined
      : new NodeAgent({
          nodeName,
          nodeIPs,
          nodeLabels: options.nodeLabels,
          kubeletPort: server?.port ?? config.port,
          kubeletVersion: KUBELET_VERSION,
          config,
          client,
          runtime,
          network: network.port,
          recorder,
          clock,
          log,
          facts,
          pressure: () => eviction.pressure(),
          checks: {
            PLEG: () => runtime.plegProblem(),
            'sync loop': () => pods.syncLoopProblem(),
            'file descriptors': createDescriptorCheck(),
          },
          shutdown: () => shutdown?.manager.trouble(),
          volumesInUse: () => storage.inUse.list(),
          onVolumesWritten: (names) => storage.inUse.written(names),
        });

  const rotation = new LogRotation({
    runtime,
    clock,
    maxSizeBytes: quantityValue(config.containerLogMaxSize),
    maxFiles: config.containerLogMaxFiles,
    periodMs: config.containerLogMonitorInterval,
    onTrouble: (message) => log('warn', message),
  });

  // Not waited for: the runtime need not be up.
  void runtime.capabilities().then(
    (found) => {
      if (found === undefined) return;
      log('info', 'what the runtime can do', { ...found });
      if (found.cgroupDriver === undefined || found.cgroupDriver === layout.driver) return;
      log(
        'warn',
        `the runtime uses the cgroup driver ${found.cgroupDriver}, the agent ${layout.driver}: restart the agent`,
      );
    },
    (error: unknown) => log('warn', `what the runtime can do is not known: ${errorMessage(error)}`),
  );
  await network.start();
  storage.inUse.onChange = () => node?.wake(true);
  await storage.start();
  cluster.start(pods);
  pods.start();
  rotation.start();
  void eviction.run(signal);
  void shutdown?.manager.run(signal);
  void images.run(signal);
  void keepDiskReserve({ directory: options.rootDir, clock, exec: programs.exec, log }, signal);
  if (manager !== undefined) {
    void notifyServiceManager(manager, { problem: () => pods.syncLoopProblem(), clock, tracer, log }, signal);
  }
  log('info', 'the agent runs', { node: nodeName, addresses: nodeIPs, port: server?.port, root: options.rootDir });
  try {
    await (node === undefined ? aborted(signal) : node.run(signal));
  } finally {
    rotation.stop();
    pods.stop();
    probes.close();
    volumes.close();
    storage.close();
    cluster.close();
    await server?.close();
    await network.close();
    runtime.close();
    await trace.close();
    await shutdown?.close();
    programs.close();
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
  });
}

interface StartedNetwork {
  readonly port: PodNetwork;
  start(): Promise<void>;
  close(): Promise<void>;
}

/** CNI run by this agent, or left to the runtime's own configuration (--network=runtime). */
function startNetwork(
  options: AgentOptions,
  parts: {
    readonly tracer: Tracer;
    readonly runtime: ContainerRuntime;
    readonly log: Log;
    readonly exec: Exec;
    readonly changed: () => void;
  },
): StartedNetwork {
  if (options.network === 'runtime') {
    const nothing = async (): Promise<void> => undefined;
    return { port: createRuntimeNetwork({ runtime: parts.runtime }), start: nothing, close: nothing };
  }
  const { cni } = options;
  const network = createAgentNetwork({
    confDir: cni.confDir,
    binDirs: cni.binDirs,
    cacheDir: cni.cacheDir,
    socketPath: join(options.socketDir, 'cni.sock'),
    shim: { confDir: join(cni.shimDir, 'net.d'), binDir: join(cni.shimDir, 'bin') },
    tracer: parts.tracer,
    clock: systemClock,
    exec: parts.exec,
    onStatusChange: parts.changed,
    listSandboxes: async () =>
      (await parts.runtime.listPods()).flatMap((pod) => pod.sandboxes.map((sandbox) => sandbox.id)),
    onError: (what, error) => parts.log('warn', `${what}: ${errorMessage(error)}`),
  });
  return { port: network, start: () => network.start(), close: () => network.close() };
}
