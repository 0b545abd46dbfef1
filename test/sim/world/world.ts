// A simulated node: everything the agent talks to, and the agent put together on it as agent/compose do
// on a real one. Nothing here happens by chance or by itself: chaos.ts makes it happen.

import { join } from 'node:path';
import { createAdmission } from '../../../agent/admission/admission.ts';
import { createNodeWatch } from '../../../agent/api/node-watch.ts';
import { createPodApi } from '../../../agent/api/pod-api.ts';
import { createApiPodSource } from '../../../agent/api/pod-source.ts';
import { NodePressureState } from '../../../agent/eviction/pressure-state.ts';
import { Attachments } from '../../../agent/network/attachments.ts';
import { collectPeriodically } from '../../../agent/network/collector.ts';
import type { PodsAgent } from '../../../agent/pods/options.ts';
import { createPodsAgent } from '../../../agent/pods/pods-agent.ts';
import type { CsiNode } from '../../../agent/ports/csi.ts';
import type { SandboxId } from '../../../agent/ports/runtime.ts';
import type { RunningPodProbes } from '../../../agent/probes/options.ts';
import { createPodProbes } from '../../../agent/probes/pod-probes.ts';
import { createCriRuntime } from '../../../agent/runtime/cri-runtime.ts';
import { sweepLogs } from '../../../agent/runtime/logs/sweep.ts';
import { MirrorPods } from '../../../agent/sources/mirror-pods.ts';
import { MirrorReconciler } from '../../../agent/sources/mirror-reconciler.ts';
import { VolumesInUse } from '../../../agent/volumes/volumes-in-use.ts';
import type { Node, Pod } from '../../../client/types.ts';
import { CniInvocations } from '../../../cni/invocations.ts';
import { CniRuntime } from '../../../cni/runtime.ts';
import type { Clock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { Log } from '../../../lib/log.ts';
import { Signal } from '../../../lib/signal.ts';
import { Tracer } from '../../../lib/trace.ts';
import { VirtualClock } from '../clock.ts';
import { SimApiServer } from './api-server.ts';
import { SimCheckpoints } from './checkpoints.ts';
import { SimCriClient } from './cri/client.ts';
import { runtimeKindOf } from './cri/kinds.ts';
import { SimCri } from './cri/runtime.ts';
import { csiLineError, SimCsi } from './csi-driver.ts';
import { Dice } from './dice.ts';
import type { Faults } from './faults.ts';
import { faultyBackoff, faultyProbes, faultyRuntime } from './faulty.ts';
import { SimDisk } from './files.ts';
import { Invariants } from './invariants.ts';
import { Journal } from './journal.ts';
import { SimKernel } from './kernel.ts';
import { Life } from './life.ts';
import { Line } from './line.ts';
import { SimManifests } from './manifests.ts';
import { MeantContainers } from './meant.ts';
import { SimMemory } from './memory.ts';
import { NETWORK, SimNetwork } from './network.ts';
import { createNodeAgent } from './node.ts';
import { ALLOCATABLE, HOST_IPS, NODE_NAME } from './node-facts.ts';
import { SimCgroups, SimObjects, SimRecorder } from './node-parts.ts';
import { NodeRules } from './node-rules.ts';
import { createEviction } from './pressure.ts';
import { simProbeRunners } from './probe-runners.ts';
import { Processes } from './processes.ts';
import { Rules } from './rules.ts';
import { SimShim } from './shim.ts';
import { SimStorage } from './storage-objects.ts';
import { Timing } from './timing.ts';
import { SimVolumes } from './volumes.ts';
import { Weather } from './weather.ts';

/**
 * One for all agents: whatever ran with a tracer leaves a place for it in every later call chain, and a history may have
 * hundreds of agents.
 */
const tracer = new Tracer();

interface RunningAgent {
  readonly life: Life;
  readonly pods: PodsAgent;
  readonly probes: RunningPodProbes;
  readonly pressure: NodePressureState;
  readonly stop: () => void;
}

export class World {
  readonly clock = new VirtualClock();
  readonly dice: Dice;
  readonly journal: Journal;
  readonly rules = new Rules();
  readonly weather = new Weather(this.clock);
  /** Of the API server alone. */
  readonly apiWeather = new Weather(this.clock, this.weather);
  readonly nodeRules = new NodeRules(this);
  readonly timing = new Timing(this);
  readonly network: SimNetwork;
  readonly shim: SimShim;
  readonly processes: Processes;
  readonly runtime: SimCri;
  readonly meant = new MeantContainers();
  readonly api: SimApiServer;
  readonly manifests: SimManifests;
  readonly cgroups: SimCgroups;
  readonly disk = new SimDisk();
  readonly checkpoints: SimCheckpoints;
  readonly kernel: SimKernel;
  readonly csi: SimCsi;
  readonly storage: SimStorage;
  readonly volumes: SimVolumes;
  readonly objects: SimObjects;
  readonly recorder = new SimRecorder((reason, object) => {
    if (reason === 'EvictionThresholdMet') this.timing.pressureReported();
    if (reason === 'Killing') this.timing.killingReported(object.metadata.uid, object.fieldPath);
  });
  readonly memory: SimMemory;
  readonly invariants: Invariants;
  /** Every line that can be made bad, by its name. */
  readonly lines: Readonly<Record<'cri' | 'cni' | 'api' | 'cgroups' | 'mounts' | 'csi' | 'objects', Line>>;
  agent: RunningAgent | undefined;
  readonly #faults: Faults;

  constructor(seed: number, faults: Faults, onLine?: (line: string) => void) {
    const { clock, rules, weather, timing } = this;
    this.#faults = faults;
    this.memory = new SimMemory(this.disk.root, faults, clock);
    this.dice = new Dice(seed);
    const fork = (): Dice => this.dice.fork();
    const journal = new Journal(clock, this.disk.root, onLine);
    this.journal = journal;
    const plain = (call: string, failure: string): Error => new Error(`${call}: injected failure (${failure})`);
    const line = (name: string, error = plain, dropsAbandoned = false): Line =>
      new Line({ name, clock, dice: fork(), journal, error, weather, usualMs: 20, dropsAbandoned });
    this.network = new SimNetwork({ clock, dice: fork(), journal, rules, faults, weather });
    const cni = line('cni');
    this.shim = new SimShim(cni, this.network);
    this.processes = new Processes(clock, fork());
    this.runtime = new SimCri({
      kind: runtimeKindOf(seed),
      meant: this.meant,
      timing,
      nodeRules: this.nodeRules,
      weather,
      memory: this.memory,
      clock,
      dice: fork(),
      journal,
      rules,
      network: this.shim,
      processes: this.processes,
      faults,
      prerequisites: {
        hasVolumes: (pod) => this.volumes.areUp(pod),
        hasCgroup: (uid) => this.cgroups.pods.has(uid),
      },
    });
    this.invariants = new Invariants(this);
    this.api = new SimApiServer({
      clock,
      dice: fork(),
      journal,
      witness: this.invariants,
      nodeWitness: this.nodeRules,
      faults,
      weather: this.apiWeather,
    });
    this.manifests = new SimManifests(this.disk.root, fork());
    const lines = {
      cni,
      cgroups: line('cgroups', plain, true),
      mounts: line('mounts'),
      csi: line('csi', csiLineError),
      objects: line('objects'),
    };
    this.cgroups = new SimCgroups(lines.cgroups, faults, (uid) => this.invariants.givenBack(uid, 'cgroup'));
    this.kernel = new SimKernel(lines.mounts, rules, (path) => this.invariants.unmounted(path));
    this.csi = new SimCsi({
      line: lines.csi,
      dice: fork(),
      rules,
      kernel: this.kernel,
      faults,
      dies: () => void clock.after(0, () => this.restartDriver(3_000)),
    });
    this.checkpoints = new SimCheckpoints(fork(), journal);
    this.storage = new SimStorage(clock, fork(), lines.objects, NODE_NAME);
    this.volumes = new SimVolumes(this.disk.root, this.kernel, this.csi);
    this.disk.begin(
      (path) => this.kernel.deviceOf(path),
      (path) => this.kernel.isMountPoint(path),
      (path) => this.network.isNamespace(path),
      this.memory,
    );
    this.objects = new SimObjects(lines.objects, faults);
    this.lines = { cri: this.runtime.line, api: this.api.line, ...lines };
  }

  /** The agent's process begins. */
  startAgent(): void {
    if (this.agent !== undefined) return;
    this.journal.note('agent starts');
    this.timing.agentForgets();
    // Probes and volumes of pods that run already begin at their own pace.
    this.weather.bad(30_000);
    const life = new Life();
    const clock = life.clock(this.clock);
    const log: Log = (level, message, fields) => {
      if (level !== 'debug') this.journal.note(`agent ${level}: ${message} ${JSON.stringify(fields ?? {})}`);
    };
    const network = this.#networkFor(life, clock, log);
    const connection = new SimCriClient(this.runtime);
    const runtime = this.meant.witness(
      createCriRuntime({
        endpoint: 'simulated',
        client: life.port(connection),
        clock,
        tracer,
        node: this.disk.nodeSettings,
        addressesOf: (sandbox) => network.addresses(sandbox),
        onTrouble: (message) => log('info', message),
      }),
      ({ pod, container }) => this.timing.startAttempted(pod.metadata.uid, container.name),
    );
    const client = life.port(this.api);
    const { recorder, dice } = this;
    const random = (): number => dice.next();
    const nodeChanged = new Signal();
    const podGone = new Signal<Pod>();
    const watch = createNodeWatch({
      client,
      nodeName: NODE_NAME,
      clock,
      random,
      onChange: () => nodeChanged.emit(),
      onError: () => undefined,
    });
    const mirrors = new MirrorPods(NODE_NAME);
    const apiPods = createApiPodSource({ client, nodeName: NODE_NAME, clock, random });
    const probes = createPodProbes({
      runtime,
      recorder,
      clock,
      tracer,
      hostIPs: () => HOST_IPS,
      random,
      runners: simProbeRunners(this.runtime, this.processes, clock),
    });
    const inUse = new VolumesInUse();
    const volumes = this.volumes.forAgent({
      inUse,
      nodeName: NODE_NAME,
      clock,
      tracer,
      log,
      recorder,
      objects: life.port(this.objects),
      storage: life.port(this.storage),
      mounter: life.port(this.kernel),
      csi: this.#csiFor(life),
      random,
    });
    const pressure = new NodePressureState();
    const pods = createPodsAgent({
      runtime: faultyRuntime(runtime, this.#faults, this.runtime.state),
      cgroups: life.port(this.cgroups),
      volumes,
      api: mirrors.podApi(createPodApi(client)),
      objects: life.port(this.objects),
      recorder,
      probes: faultyProbes(probes, this.#faults),
      sources: [
        mirrors.apiSource(watch.startAfterSync(apiPods)),
        mirrors.staticSource(this.manifests.source(NODE_NAME, clock, log)),
      ],
      onPodGone: (pod) => podGone.emit(pod),
      allocations: this.checkpoints.forAgent(clock),
      sweep: async (isKept) => void (await sweepLogs(this.disk.nodeSettings, isKept)),
      clock,
      tracer,
      node: { name: NODE_NAME, hostIPs: () => HOST_IPS, allocatable: () => ALLOCATABLE },
      config: {
        ...faultyBackoff(this.#faults),
        admit: [
          pressure.admit,
          ...createAdmission({
            node: () => {
              const node = watch.node();
              const labels = node?.metadata.labels ?? {};
              return { name: NODE_NAME, labels, taints: node?.spec?.taints ?? [], allocatable: ALLOCATABLE };
            },
            kernelVersion: '6.1.0',
            allowedUnsafeSysctls: [],
            appArmor: false,
          }),
        ],
      },
      log,
    });
    watch.start();
    const node = (): Node | undefined => watch.node();
    const reconciler = new MirrorReconciler({ mirrors, pods, client, node, clock, tracer, log });
    const eviction = createEviction({
      memory: this.memory,
      settings: this.disk.nodeSettings,
      nodeName: NODE_NAME,
      clock,
      log,
      recorder,
      runtime,
      pressure,
      pods: {
        activePods: () => pods.activePods(),
        endPod: (uid, end) => {
          this.timing.podHurried(uid);
          return pods.endPod(uid, end);
        },
        removeEnded: () => pods.removeEnded(),
      },
    });
    const stopped = new AbortController();
    void eviction.run(stopped.signal);
    const listSandboxes = (): Promise<readonly SandboxId[]> => runtime.listSandboxIds();
    const onError = (what: string, error: unknown): void => log('warn', `${what}: ${errorMessage(error)}`);
    void collectPeriodically({ attachments: network, listSandboxes, clock, tracer, onError }, stopped.signal);
    podGone.subscribe(() => reconciler.reconcile());
    nodeChanged.subscribe(() => reconciler.reconcile());
    pods.start();
    const nodeAgent = createNodeAgent({
      client,
      recorder,
      clock,
      log,
      random,
      runtime,
      pods,
      pressure,
      inUse,
      faults: this.#faults,
    });
    void nodeAgent.run(stopped.signal);
    this.nodeRules.agentBegins();
    const stop = (): void => {
      stopped.abort(new Error('the agent stops'));
      watch.stop();
      pods.stop();
      probes.close();
      volumes.close();
      runtime.close();
      connection.close();
    };
    this.agent = { life, pods, probes, pressure, stop };
  }

  /** kill -9. `downMs`: how long no agent runs. Nothing that it would have to do in that time is checked. */
  killAgent(downMs = 0): void {
    if (this.agent === undefined) return;
    this.journal.note('agent is killed');
    this.weather.bad(downMs);
    this.agent.life.over = true;
    this.nodeRules.agentEnds();
    this.shim.hangUp();
    this.agent.stop();
    this.agent = undefined;
    this.csi.forgetCallers();
  }

  /** The driver of the volumes dies, and comes back. */
  restartDriver(downMs: number): void {
    this.csi.die();
    this.clock.after(downMs, () => this.csi.register());
  }

  /** The world is no more: whatever it changed of this process is as before. */
  end(): void {
    this.killAgent();
    this.disk.end();
  }

  /** The agent's part of CNI, put together as agent/network does. */
  #networkFor(life: Life, clock: Clock, log: Log): Attachments {
    const { root, pluginDir } = this.disk;
    const plugins = life.port(this.network);
    const cni = new CniRuntime({
      binDirs: [pluginDir],
      cacheDir: join(root, 'cni'),
      tracer,
      clock,
      exec: (file, args, options) => plugins.exec(file, args, options),
    });
    const operations = new Attachments({
      cni,
      conf: {
        current: async () => ({ kind: 'loaded', network: { file: 'pods.conflist', list: NETWORK, skipped: [] } }),
      },
      confDir: root,
      links: { attached: () => undefined, released: () => undefined },
      clock,
    });
    const onError = (what: string, error: unknown): void => log('warn', `${what}: ${errorMessage(error)}`);
    this.shim.listen(new CniInvocations({ operations, tracer, onError }));
    return operations;
  }

  #csiFor(life: Life): CsiNode {
    const { csi } = this;
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
}
