// A simulated node: everything the agent talks to, and the agent put together on it as agent/main.ts and agent/cluster.ts
// do on a real one. Nothing here happens by chance or by itself: chaos.ts makes it happen.

import { createAdmission } from '../../../agent/admission/admission.ts';
import { createNodeWatch } from '../../../agent/api/node-watch.ts';
import { createPodApi } from '../../../agent/api/pod-api.ts';
import { createApiPodSource } from '../../../agent/api/pod-source.ts';
import type { PodsAgent } from '../../../agent/pods/options.ts';
import { createPodsAgent } from '../../../agent/pods/pods-agent.ts';
import type { PodUID } from '../../../agent/ports/runtime.ts';
import type { RunningPodProbes } from '../../../agent/probes/options.ts';
import { createPodProbes } from '../../../agent/probes/pod-probes.ts';
import { MirrorPods } from '../../../agent/sources/mirror-pods.ts';
import type { Node } from '../../../client/types.ts';
import type { Log } from '../../../lib/log.ts';
import { Tracer } from '../../../lib/trace.ts';
import { VirtualClock } from '../clock.ts';
import { SimApiServer } from './api-server.ts';
import { Dice } from './dice.ts';
import type { Faults } from './faults.ts';
import { Invariants } from './invariants.ts';
import { Journal } from './journal.ts';
import { Life } from './life.ts';
import { Line } from './line.ts';
import { SimManifests } from './manifests.ts';
import { SimNetwork } from './network.ts';
import { SimCgroups, SimObjects, SimRecorder } from './node-parts.ts';
import { simProbeRunners } from './probe-runners.ts';
import { Processes } from './processes.ts';
import { Rules } from './rules.ts';
import { SimRuntime } from './runtime.ts';
import { SimVolumes } from './volumes.ts';

export const NODE_NAME = 'node-1';
const HOST_IPS = ['192.0.2.1'];
const ALLOCATABLE = { cpu: '4', memory: '8Gi', pods: '110', 'ephemeral-storage': '10Gi' };

interface RunningAgent {
  readonly life: Life;
  readonly pods: PodsAgent;
  readonly probes: RunningPodProbes;
  readonly stop: () => void;
}

export class World {
  readonly clock = new VirtualClock();
  readonly dice: Dice;
  readonly journal: Journal;
  readonly rules = new Rules();
  readonly network: SimNetwork;
  readonly processes: Processes;
  readonly runtime: SimRuntime;
  readonly api: SimApiServer;
  readonly manifests: SimManifests;
  readonly cgroups: SimCgroups;
  readonly volumes: SimVolumes;
  readonly objects: SimObjects;
  readonly recorder = new SimRecorder();
  readonly invariants: Invariants;
  /** Every line that can be made bad, by its name. */
  readonly lines: Readonly<Record<'cri' | 'api' | 'cgroups' | 'volumes' | 'objects', Line>>;
  agent: RunningAgent | undefined;

  constructor(seed: number, faults: Faults, onLine?: (line: string) => void) {
    const { clock, rules } = this;
    this.dice = new Dice(seed);
    const fork = (): Dice => this.dice.fork();
    const journal = new Journal(clock, onLine);
    this.journal = journal;
    const line = (name: string): Line => {
      const error = (call: string, failure: string): Error => new Error(`${call}: injected failure (${failure})`);
      return new Line({ name, clock, dice: fork(), journal, error, usualMs: 20 });
    };
    this.network = new SimNetwork(fork(), faults);
    this.processes = new Processes(clock, fork());
    this.runtime = new SimRuntime({
      clock,
      dice: fork(),
      journal,
      rules,
      network: this.network,
      processes: this.processes,
      faults,
      prerequisites: {
        hasVolumes: ({ metadata }) => this.volumes.mounted.has(metadata.uid as PodUID),
        hasCgroup: (uid) => this.cgroups.pods.has(uid),
      },
    });
    this.invariants = new Invariants(this);
    const node: Node = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: NODE_NAME, uid: 'uid-node', resourceVersion: '1' },
      spec: {},
      status: { allocatable: ALLOCATABLE },
    };
    this.api = new SimApiServer({ clock, dice: fork(), journal, witness: this.invariants, faults }, node);
    this.manifests = new SimManifests(clock);
    const inUse = (what: string) => (uid: PodUID) => this.invariants.givenBack(uid, what);
    const lines = { cgroups: line('cgroups'), volumes: line('volumes'), objects: line('objects') };
    this.cgroups = new SimCgroups(lines.cgroups, faults, inUse('cgroup'));
    this.volumes = new SimVolumes(lines.volumes, inUse('volumes'));
    this.objects = new SimObjects(lines.objects);
    this.lines = { cri: this.runtime.line, api: this.api.line, ...lines };
  }

  /** The agent's process begins. */
  startAgent(): void {
    if (this.agent !== undefined) return;
    this.journal.note('agent starts');
    const life = new Life();
    const clock = life.clock(this.clock);
    const tracer = new Tracer();
    const log: Log = (level, message, fields) => {
      if (level !== 'debug') this.journal.note(`agent ${level}: ${message} ${JSON.stringify(fields ?? {})}`);
    };
    const runtime = life.port(this.runtime);
    const client = life.port(this.api);
    const { recorder, dice } = this;
    const random = (): number => dice.next();
    const watch = createNodeWatch({
      client,
      nodeName: NODE_NAME,
      clock,
      random,
      onChange: () => mirrors.reconcile(),
      onTrouble: () => undefined,
    });
    const mirrors = new MirrorPods({ client, nodeName: NODE_NAME, node: () => watch.node(), clock, tracer, log });
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
    const pods = createPodsAgent({
      runtime,
      cgroups: life.port(this.cgroups),
      volumes: life.port(this.volumes),
      api: mirrors.podApi(createPodApi(client)),
      objects: life.port(this.objects),
      recorder,
      probes,
      sources: [mirrors.apiSource(watch.holdBack(apiPods)), mirrors.staticSource(this.manifests.source(clock))],
      onPodGone: () => mirrors.reconcile(),
      clock,
      tracer,
      node: { name: NODE_NAME, hostIPs: () => HOST_IPS, allocatable: () => ALLOCATABLE },
      config: {
        admit: createAdmission({
          node: () => {
            const node = watch.node();
            const labels = node?.metadata.labels ?? {};
            return { name: NODE_NAME, labels, taints: node?.spec?.taints ?? [], allocatable: ALLOCATABLE };
          },
          kernelVersion: '6.1.0',
          allowedUnsafeSysctls: [],
          appArmor: false,
        }),
      },
      log,
    });
    watch.start();
    mirrors.attach(pods);
    pods.start();
    const stop = (): void => {
      watch.stop();
      pods.stop();
      probes.close();
    };
    this.agent = { life, pods, probes, stop };
  }

  /** kill -9. */
  killAgent(): void {
    if (this.agent === undefined) return;
    this.journal.note('agent is killed');
    this.agent.life.over = true;
    this.agent.stop();
    this.agent = undefined;
  }
}
