// The agent on a simulated machine, put together as agent/compose does on a real one. What differs between worlds (who
// checks, what is configured, what the runtime's processes are) is handed in.

import { join } from 'node:path';
import { createAdmission } from '../../agent/admission/admission.ts';
import { createNodeWatch, type NodeWatch } from '../../agent/api/node-watch.ts';
import { createPodApi } from '../../agent/api/pod-api.ts';
import { createApiPodSource } from '../../agent/api/pod-source.ts';
import { NodePressureState } from '../../agent/eviction/pressure-state.ts';
import type { ImageGcConfig } from '../../agent/images/gc-policy.ts';
import { Attachments } from '../../agent/network/attachments.ts';
import { collectPeriodically } from '../../agent/network/collector.ts';
import type { NodeAgentOptions } from '../../agent/node/options.ts';
import type { PodsAgent, PodsAgentOptions } from '../../agent/pods/options.ts';
import { createPodsAgent } from '../../agent/pods/pods-agent.ts';
import type { EventRecorder, FollowedObjects, ObjectReader } from '../../agent/ports/api.ts';
import type { CsiNode } from '../../agent/ports/csi.ts';
import type { ContainerSpec, SandboxId } from '../../agent/ports/runtime.ts';
import type { RunningPodProbes } from '../../agent/probes/options.ts';
import { createPodProbes } from '../../agent/probes/pod-probes.ts';
import type { ProbeRunners } from '../../agent/probes/runners.ts';
import type { CriClient } from '../../agent/runtime/cri-client.ts';
import { createCriRuntime } from '../../agent/runtime/cri-runtime.ts';
import { sweepLogs } from '../../agent/runtime/logs/sweep.ts';
import type { NodeSettings } from '../../agent/runtime/options.ts';
import type { CriRuntime } from '../../agent/runtime/types.ts';
import { type Logind, NodeShutdown } from '../../agent/shutdown/node-shutdown.ts';
import type { ShutdownGroup } from '../../agent/shutdown/plan.ts';
import { NodeShutdownState } from '../../agent/shutdown/shutdown-state.ts';
import { MirrorPods } from '../../agent/sources/mirror-pods.ts';
import { MirrorReconciler } from '../../agent/sources/mirror-reconciler.ts';
import { VolumesInUse } from '../../agent/volumes/volumes-in-use.ts';
import type { ApiClient } from '../../client/api.ts';
import type { Node, Pod } from '../../client/types.ts';
import { CniInvocations } from '../../cni/invocations.ts';
import { CniRuntime } from '../../cni/runtime.ts';
import type { NetworkConfigList } from '../../cni/types.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import { Signal } from '../../lib/signal.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { SimCheckpoints } from './checkpoints.ts';
import { SimCriClient } from './cri/client.ts';
import type { SimCri } from './cri/runtime.ts';
import type { SimCsi } from './csi-driver.ts';
import type { Dice } from './dice.ts';
import type { SimDiskSpace } from './disk-space.ts';
import type { SimDisk } from './files.ts';
import type { SimKernel } from './kernel.ts';
import { Life } from './life.ts';
import type { SimManifests } from './manifests.ts';
import type { MeantContainers } from './meant.ts';
import type { SimMemory } from './memory.ts';
import { NETWORK, type SimNetwork } from './network.ts';
import { createNodeAgent } from './node.ts';
import { ALLOCATABLE, HOST_IPS, NODE_NAME } from './node-facts.ts';
import type { SimCgroups } from './node-parts.ts';
import { createEviction, createImageGc } from './pressure.ts';
import type { SimShim } from './shim.ts';
import type { SimStorage } from './storage-objects.ts';
import type { SimVolumes } from './volumes.ts';

/** What the agent calls, and what it finds there after a restart. */
export interface SimMachine {
  readonly clock: Clock;
  readonly dice: Dice;
  readonly network: SimNetwork;
  readonly shim: SimShim;
  readonly runtime: SimCri;
  readonly meant: MeantContainers;
  readonly api: Pick<ApiClient, 'list' | 'watch' | 'get' | 'create' | 'replace' | 'patch' | 'delete'>;
  readonly manifests: SimManifests;
  readonly cgroups: SimCgroups;
  readonly disk: SimDisk;
  readonly checkpoints: SimCheckpoints;
  readonly kernel: SimKernel;
  readonly csi: SimCsi;
  readonly storage: SimStorage;
  readonly volumes: SimVolumes;
  readonly memory: SimMemory;
  /** Undefined where the disks are not counted. */
  readonly space?: SimDiskSpace;
}

/** What is particular to a world. */
export interface SimAgentOptions {
  readonly tracer: Tracer;
  readonly log: (clock: Clock) => Log;
  /** Calls of CRI are spans, as those of a real connection are. */
  readonly traceCalls?: boolean;
  readonly recorder: EventRecorder;
  /** As this agent's process sees it. */
  readonly objects: (life: Life, clock: Clock) => ObjectReader & { readonly followed?: FollowedObjects };
  readonly probeRunners: Pick<ProbeRunners, 'httpGet' | 'tcpSocket'>;
  /** The agent is about to create a container. */
  readonly onStartAttempt?: (spec: ContainerSpec) => void;
  /** The node ends a pod before its time. */
  readonly onEndPod?: (uid: string) => void;
  /** Between the workers and the ports: tests of rules have agents that are wrong. */
  readonly runtime?: (runtime: CriRuntime) => CriRuntime;
  readonly probes?: (probes: RunningPodProbes) => RunningPodProbes;
  readonly node?: (options: NodeAgentOptions) => Partial<NodeAgentOptions>;
  readonly pods?: Omit<NonNullable<PodsAgentOptions['config']>, 'admit'>;
  readonly network?: NetworkConfigList;
  readonly eviction?: Parameters<typeof createEviction>[1];
  /** Images take disk here, and are collected. */
  readonly images?: ImageGcConfig;
  readonly nodeConfig?: NodeAgentOptions['config'];
  /** Instead of what the simulated machine is usually configured with. */
  readonly settings?: Partial<NodeSettings>;
  /** Without it, a shutdown of the machine waits for no pod. */
  readonly shutdown?: { readonly logind: Logind; readonly groups: readonly ShutdownGroup[] };
}

export interface RunningAgent {
  readonly life: Life;
  readonly pods: PodsAgent;
  readonly probes: RunningPodProbes;
  readonly pressure: NodePressureState;
  readonly stop: () => void;
}

/** One process of the agent: what all its parts are made with. */
interface AgentProcess {
  readonly machine: SimMachine;
  readonly options: SimAgentOptions;
  readonly life: Life;
  readonly clock: Clock;
  readonly log: Log;
  readonly settings: NodeSettings;
  readonly random: () => number;
}

/** The agent's process begins. The caller ends it by `life.over`, then `stop`. */
export function startSimAgent(machine: SimMachine, options: SimAgentOptions): RunningAgent {
  const { tracer, recorder } = options;
  const life = new Life();
  const clock = life.clock(machine.clock);
  const log = options.log(clock);
  const settings = { ...machine.disk.nodeSettings, ...options.settings };
  const random = (): number => machine.dice.next();
  const agent: AgentProcess = { machine, options, life, clock, log, settings, random };
  const network = networkFor(agent);
  const connection = new SimCriClient(machine.runtime);
  const runtime = runtimeFor(agent, connection, network);
  const client = life.port(machine.api);
  const nodeChanged = new Signal();
  const podGone = new Signal<Pod>();
  const watch = createNodeWatch({
    ...{ client, nodeName: NODE_NAME, clock, random },
    onChange: () => nodeChanged.emit(),
    onError: () => undefined,
  });
  const mirrors = new MirrorPods(NODE_NAME);
  const hostIPs = (): readonly string[] => HOST_IPS;
  const probes = createPodProbes({ runtime, recorder, clock, tracer, hostIPs, random, runners: options.probeRunners });
  const inUse = new VolumesInUse();
  const objects = options.objects(life, clock);
  const volumes = volumesFor(agent, objects, inUse);
  const pressure = new NodePressureState();
  const shutdown = new NodeShutdownState();
  const apiPods = createApiPodSource({ client, nodeName: NODE_NAME, clock, random });
  const pods = createPodsAgent({
    runtime: options.runtime?.(runtime) ?? runtime,
    cgroups: life.port(machine.cgroups),
    volumes,
    api: mirrors.podApi(createPodApi(client)),
    objects,
    recorder,
    probes: options.probes?.(probes) ?? probes,
    sources: [
      mirrors.apiSource(watch.startAfterSync(apiPods)),
      mirrors.staticSource(machine.manifests.source(NODE_NAME, clock, log)),
    ],
    onPodGone: (pod) => podGone.emit(pod),
    allocations: machine.checkpoints.forAgent(clock),
    sweep: async (isKept) => void (await sweepLogs(settings, isKept)),
    clock,
    tracer,
    node: { name: NODE_NAME, hostIPs, allocatable: () => ALLOCATABLE },
    config: { ...options.pods, admit: [shutdown.admit, pressure.admit, ...admissionFor(watch)] },
    log,
  });
  watch.start();
  const node = (): Node | undefined => watch.node();
  const reconciler = new MirrorReconciler({ mirrors, pods, client, node, clock, tracer, log });
  podGone.subscribe(() => reconciler.reconcile());
  nodeChanged.subscribe(() => reconciler.reconcile());
  const stopped = new AbortController();
  const { signal } = stopped;
  runPressure(agent, { runtime, pods, pressure }, signal);
  const listSandboxes = (): Promise<readonly SandboxId[]> => runtime.listSandboxIds();
  const onError = (what: string, error: unknown): void => log('warn', `${what}: ${errorMessage(error)}`);
  void collectPeriodically({ attachments: network, listSandboxes, clock, tracer, onError }, signal);
  pods.start();
  const nodeAgent = createNodeAgent({
    ...{ client, recorder, clock, log, random, runtime, pods, pressure, shutdown, inUse },
    watched: node,
    ...(options.node === undefined ? {} : { changed: options.node }),
    ...(options.nodeConfig === undefined ? {} : { config: options.nodeConfig }),
  });
  void nodeAgent.run(signal);
  runShutdown(agent, pods, shutdown, signal);
  const stop = (): void => {
    stopped.abort(new Error('the agent stops'));
    watch.stop();
    pods.stop();
    probes.close();
    volumes.close();
    runtime.close();
    connection.close();
  };
  return { life, pods, probes, pressure, stop };
}

function runtimeFor(agent: AgentProcess, connection: SimCriClient, network: Attachments): CriRuntime {
  const { machine, options, life, clock, log, settings } = agent;
  const { tracer } = options;
  const runtime = createCriRuntime({
    endpoint: 'simulated',
    client: life.port(options.traceCalls === true ? tracedCri(connection, tracer) : connection),
    clock,
    tracer,
    node: settings,
    addressesOf: (sandbox) => network.addresses(sandbox),
    onTrouble: (message) => log('info', message),
  });
  return machine.meant.witness(runtime, (spec) => options.onStartAttempt?.(spec));
}

function volumesFor(agent: AgentProcess, objects: ReturnType<SimAgentOptions['objects']>, inUse: VolumesInUse) {
  const { machine, options, life, clock, log, random } = agent;
  const { tracer, recorder } = options;
  return machine.volumes.forAgent({
    ...{ inUse, nodeName: NODE_NAME, clock, tracer, log, recorder, objects, random },
    ...(objects.followed === undefined ? {} : { followed: objects.followed }),
    storage: life.port(machine.storage),
    mounter: life.port(machine.kernel),
    csi: csiFor(machine.csi, life),
  });
}

function admissionFor(watch: NodeWatch) {
  return createAdmission({
    node: () => {
      const node = watch.node();
      const labels = node?.metadata.labels ?? {};
      return { name: NODE_NAME, labels, taints: node?.spec?.taints ?? [], allocatable: ALLOCATABLE };
    },
    kernelVersion: '6.1.0',
    allowedUnsafeSysctls: [],
    appArmor: false,
  });
}

interface PressureSubjects {
  readonly runtime: CriRuntime;
  readonly pods: PodsAgent;
  readonly pressure: NodePressureState;
}

/** Eviction and, where the world has it, image garbage collection, until the signal aborts. */
function runPressure(agent: AgentProcess, { runtime, pods, pressure }: PressureSubjects, signal: AbortSignal): void {
  const { machine, options, clock, log, settings } = agent;
  const common = { clock, log, recorder: options.recorder, runtime, nodeName: NODE_NAME };
  const images = options.images === undefined ? undefined : createImageGc(options.images, common);
  const eviction = createEviction(
    {
      ...{ ...common, images, memory: machine.memory, space: machine.space, settings, pressure },
      pods: {
        activePods: () => pods.activePods(),
        endPod: (uid, end) => {
          options.onEndPod?.(uid);
          return pods.endPod(uid, end);
        },
        removeEnded: () => pods.removeEnded(),
      },
    },
    options.eviction,
  );
  void eviction.run(signal);
  void images?.run(signal);
}

/** Graceful shutdown of the node, where the world has it, until the signal aborts. */
function runShutdown(
  { options, life, clock, log }: AgentProcess,
  pods: PodsAgent,
  state: NodeShutdownState,
  signal: AbortSignal,
): void {
  if (options.shutdown === undefined) return;
  const { groups, logind } = options.shutdown;
  const { recorder } = options;
  const parts = { groups, logind: life.port(logind), pods, recorder, nodeName: NODE_NAME, clock, log, state };
  void new NodeShutdown(parts).run(signal);
}

function tracedCri(client: SimCriClient, tracer: Tracer): CriClient {
  return {
    call: (method, request, callOptions) =>
      tracer.span('cri', method, {}, () => client.call(method, request, callOptions)),
    containerEvents: (onEvent) => client.containerEvents(onEvent),
    containerdEvents: (filters, onEvent) => client.containerdEvents(filters, onEvent),
    close: () => client.close(),
  };
}

/** The agent's part of CNI, put together as agent/network does. */
function networkFor({ machine, options, life, clock, log }: AgentProcess): Attachments {
  const { root, pluginDir } = machine.disk;
  const plugins = life.port(machine.network);
  const cni = new CniRuntime({
    binDirs: [pluginDir],
    cacheDir: join(root, 'cni'),
    tracer: options.tracer,
    clock,
    exec: (file, args, execOptions) => plugins.exec(file, args, execOptions),
  });
  const list = options.network ?? NETWORK;
  const operations = new Attachments({
    cni,
    conf: {
      current: async () => ({ kind: 'loaded', network: { file: 'pods.conflist', list, skipped: [] } }),
    },
    confDir: root,
    links: { attached: () => undefined, released: () => undefined },
    clock,
  });
  const onError = (what: string, error: unknown): void => log('warn', `${what}: ${errorMessage(error)}`);
  machine.shim.listen(new CniInvocations({ operations, tracer: options.tracer, onError }));
  return operations;
}

function csiFor(csi: SimCsi, life: Life): CsiNode {
  return {
    driver: (name) => {
      const driver = csi.driver(name);
      if (driver === undefined) return undefined;
      const { capabilities } = life.port(driver);
      return { name, node: life.port(driver.node), capabilities };
    },
    registered: (name) => life.port(csi).registered(name),
  };
}
