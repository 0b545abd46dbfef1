// A simulated node: everything the agent talks to, and the agent put together on it as agent/compose do
// on a real one. Nothing here happens by chance or by itself: chaos.ts makes it happen.

import { type RunningAgent, startSimAgent } from '../../../labs/sim/agent.ts';
import { SimApiServer } from '../../../labs/sim/api-server.ts';
import { SimCheckpoints } from '../../../labs/sim/checkpoints.ts';
import { VirtualClock } from '../../../labs/sim/clock.ts';
import { runtimeKindOf } from '../../../labs/sim/cri/kinds.ts';
import { SimCri } from '../../../labs/sim/cri/runtime.ts';
import { csiLineError, SimCsi } from '../../../labs/sim/csi-driver.ts';
import { Dice } from '../../../labs/sim/dice.ts';
import type { Faults } from '../../../labs/sim/faults.ts';
import { SimDisk } from '../../../labs/sim/files.ts';
import { Journal } from '../../../labs/sim/journal.ts';
import { SimKernel } from '../../../labs/sim/kernel.ts';
import { Line } from '../../../labs/sim/line.ts';
import { SimManifests } from '../../../labs/sim/manifests.ts';
import { MeantContainers } from '../../../labs/sim/meant.ts';
import { SimMemory } from '../../../labs/sim/memory.ts';
import { SimNetwork } from '../../../labs/sim/network.ts';
import { NODE_NAME } from '../../../labs/sim/node-facts.ts';
import { SimCgroups, SimObjects, SimRecorder } from '../../../labs/sim/node-parts.ts';
import { simProbeRunners } from '../../../labs/sim/probe-runners.ts';
import { Processes } from '../../../labs/sim/processes.ts';
import { SimShim } from '../../../labs/sim/shim.ts';
import { SimStorage } from '../../../labs/sim/storage-objects.ts';
import { SimVolumes } from '../../../labs/sim/volumes.ts';
import { Weather } from '../../../labs/sim/weather.ts';
import type { Log } from '../../../lib/log.ts';
import { Tracer } from '../../../lib/trace.ts';
import { faultyBackoff, faultyProbes, faultyRuntime } from './faulty.ts';
import { faultyNode } from './faulty-node.ts';
import { Invariants } from './invariants.ts';
import { NodeRules } from './node-rules.ts';
import { Rules } from './rules.ts';
import { Timing } from './timing.ts';

/**
 * One for all agents: whatever ran with a tracer leaves a place for it in every later call chain, and a history may have
 * hundreds of agents.
 */
const tracer = new Tracer();

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
    this.manifests = new SimManifests(this.disk, fork());
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
    const log: Log = (level, message, fields) => {
      if (level !== 'debug') this.journal.note(`agent ${level}: ${message} ${JSON.stringify(fields ?? {})}`);
    };
    this.agent = startSimAgent(this, {
      tracer,
      log: () => log,
      recorder: this.recorder,
      objects: (life) => life.port(this.objects),
      probeRunners: simProbeRunners(this.runtime, this.processes, this.clock),
      onStartAttempt: ({ pod, container }) => this.timing.startAttempted(pod.metadata.uid, container.name),
      onEndPod: (uid) => this.timing.podHurried(uid),
      runtime: (runtime) => faultyRuntime(runtime, this.#faults, this.runtime.state),
      probes: (probes) => faultyProbes(probes, this.#faults),
      node: (options) => faultyNode(options, this.#faults),
      pods: faultyBackoff(this.#faults),
    });
    this.nodeRules.agentBegins();
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
}
