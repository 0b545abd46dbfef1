// A simulated cluster with a whole control plane in it: the API server in memory, kubelets, and the processes of one or more
// control planes, which are started again when they end. Every write passes by the rules.

import type { Pod } from '../../../client/types.ts';
import { VirtualClock } from '../../../labs/sim/clock.ts';
import { attempt } from '../../../labs/sim/control-plane/attempt.ts';
import { LATEST_EVENT_MS, NO_TROUBLE, type Trouble } from '../../../labs/sim/control-plane/connection.ts';
import { SimKubelet } from '../../../labs/sim/control-plane/kubelet.ts';
import { ControlPlaneProcess, type ProcessParts } from '../../../labs/sim/control-plane/process.ts';
import { SimControlPlaneServer, type SimRequest, type Written } from '../../../labs/sim/control-plane/server.ts';
import { Dice } from '../../../labs/sim/dice.ts';
import { Journal } from '../../../labs/sim/journal.ts';
import { Weather } from '../../../labs/sim/weather.ts';
import { Rules } from './rules.ts';

/** How the control plane is run. */
export type Arrangement =
  /** One process with everything. */
  | 'alone'
  /** Two with everything, of which one leads. */
  | 'pair'
  /** Several, each with some of the controllers. */
  | 'split';

/** Controllers that have nothing to do here: no volumes, no certificates, no metrics. */
const IDLE = [
  'horizontal-pod-autoscaler-controller',
  'certificatesigningrequest-approving-controller',
  'certificatesigningrequest-signing-controller',
];
const SPLIT: readonly (readonly string[])[] = [
  ['replicaset-controller', 'replicationcontroller-controller', 'job-controller'],
  ['deployment-controller', 'statefulset-controller', 'garbage-collector-controller'],
  ['daemonset-controller', 'cronjob-controller', 'endpointslice-controller', 'disruption-controller'],
];
/** A reflector waits this long at most after a failure: 30 s, stretched by up to its own length. */
const RECONNECT_MS = 60_000;
const NODES = 4;
const NAMESPACES = ['default', 'kube-system', 'kube-node-lease', 'a', 'b'];

interface Slot {
  readonly controllers: readonly string[];
  readonly scheduler: boolean;
  readonly leaderElection: boolean;
  process: ControlPlaneProcess | undefined;
}

export class ControlPlaneWorld {
  readonly clock = new VirtualClock();
  readonly dice: Dice;
  readonly journal: Journal;
  readonly weather: Weather;
  readonly server: SimControlPlaneServer;
  readonly rules: Rules;
  readonly kubelets: readonly SimKubelet[];
  readonly arrangement: Arrangement;
  readonly #slots: readonly Slot[];
  readonly #processDice: Dice;
  readonly #followers: ((written: Written) => void)[] = [];
  readonly #shown: ProcessParts['shown'];
  trouble: Trouble = NO_TROUBLE;
  #incarnations = 0;
  #isOver = false;

  constructor(seed: number, onLine?: (line: string) => void, shown?: ProcessParts['shown']) {
    this.#shown = shown;
    this.dice = new Dice(seed);
    this.journal = new Journal(this.clock, '\0', onLine);
    this.weather = new Weather(this.clock);
    this.#processDice = this.dice.fork();
    const kubeletDice = this.dice.fork();
    this.server = new SimControlPlaneServer(this.clock, this.dice.fork(), (written) => this.#written(written));
    this.rules = new Rules(this.clock, this.weather, this.server);
    this.kubelets = Array.from(
      { length: NODES },
      (_, index) =>
        new SimKubelet({
          ...{ name: `node-${index}`, zone: index % 2 === 0 ? 'left' : 'right' },
          ...{ server: this.server, clock: this.clock, dice: kubeletDice.fork(), witness: this.rules.nodes },
        }),
    );
    this.arrangement = (['pair', 'split', 'pair', 'alone'] as const)[seed % 4] ?? 'alone';
    this.#slots = slotsOf(this.arrangement);
  }

  async begin(): Promise<void> {
    for (const name of NAMESPACES) await this.user('POST', '/api/v1/namespaces', { metadata: { name } });
    for (const kubelet of this.kubelets) await kubelet.start();
    for (const slot of this.#slots) this.#start(slot);
  }

  /** Nothing is left that could go on. */
  end(): void {
    this.#isOver = true;
    for (const { process } of this.#slots) process?.kill();
    this.server.close();
  }

  get processes(): readonly ControlPlaneProcess[] {
    return this.#slots.flatMap(({ process }) => process ?? []);
  }

  /** Called with every write, after the rules. */
  follow(listener: (written: Written) => void): void {
    this.#followers.push(listener);
  }

  /** A request of a user, which nothing delays; undefined where it came too late. */
  async user(method: string, target: string, body?: unknown, contentType?: string): Promise<unknown> {
    this.journal.note(`user: ${method} ${target}`);
    const request: SimRequest = {
      ...{ method, target },
      ...(body === undefined ? {} : { body }),
      ...(contentType === undefined ? {} : { contentType }),
    };
    return attempt(this.server, 'user', request);
  }

  breakWatches(forget: boolean): void {
    this.weather.bad(RECONNECT_MS);
    if (forget) this.server.compact();
    for (const process of this.processes) process.breakWatches();
  }

  #start(slot: Slot): void {
    const { controllers, scheduler, leaderElection } = slot;
    this.#incarnations++;
    slot.process = new ControlPlaneProcess({
      ...{ controllers, scheduler, leaderElection, server: this.server, clock: this.clock },
      ...(this.#shown === undefined ? {} : { shown: this.#shown }),
      dice: this.#processDice.fork(),
      identity: `plane-${this.#incarnations}`,
      trouble: () => {
        if (this.trouble.requests + this.trouble.events > 0) this.weather.bad(LATEST_EVENT_MS + RECONNECT_MS);
        return this.trouble;
      },
      onUncertain: (request) => this.rules.uncertain(request),
      note: (what) => this.journal.note(what),
      onEnd: () => {
        slot.process = undefined;
        this.weather.bad(RECONNECT_MS);
        if (this.#isOver) return;
        this.clock.after(this.#processDice.between(100, 8000), () => {
          if (!this.#isOver && slot.process === undefined) this.#start(slot);
        });
      },
    });
    slot.process.start();
  }

  #written(written: Written): void {
    const { resource, type, object, actor } = written;
    if (resource !== 'coordination.k8s.io/leases') {
      const { namespace = '', name, resourceVersion } = object.metadata;
      this.journal.note(`${actor}: ${type} ${resource} ${namespace}/${name} ${resourceVersion}${summary(written)}`);
    }
    this.rules.written(written);
    if (resource === '/pods') this.#toKubelet(written);
    for (const follower of this.#followers) follower(written);
  }

  #toKubelet({ type, object }: Written): void {
    const pod: unknown = object;
    const { spec } = pod as Pod;
    const kubelet = this.kubelets.find(({ name }) => name === spec.nodeName);
    if (kubelet === undefined) return;
    if (type === 'DELETED') kubelet.gone(pod as Pod);
    else kubelet.seen(pod as Pod);
  }
}

/** What of an object one needs to follow a history: sizes, phases, why it goes. */
function summary({ object }: Written): string {
  const { metadata } = object;
  const unknown: unknown = object;
  const { spec = {}, status = {} } = unknown as Record<'spec' | 'status', Readonly<Record<string, unknown>>>;
  const parts = ['replicas', 'parallelism', 'nodeName'].flatMap((field) =>
    spec[field] === undefined ? [] : [`${field} ${spec[field]}`],
  );
  const { phase, conditions, containerStatuses, ...counts } = status;
  if (phase !== undefined) parts.push(String(phase));
  else if (Object.keys(counts).length > 0) parts.push(JSON.stringify(counts));
  const types = Array.isArray(conditions) ? conditions.filter((each) => each.status === 'True') : [];
  if (types.length > 0) parts.push(types.map((each) => each.type).join('+'));
  if (metadata.deletionTimestamp !== undefined) parts.push('leaving');
  if (metadata.finalizers !== undefined) parts.push(`for ${metadata.finalizers.join(', ')}`);
  return parts.length === 0 ? '' : `: ${parts.join('; ')}`;
}

function slotsOf(arrangement: Arrangement): readonly Slot[] {
  const idle = IDLE.map((name) => `-${name}`);
  const slot = (controllers: readonly string[], scheduler: boolean, leaderElection: boolean): Slot => ({
    ...{ controllers, scheduler, leaderElection, process: undefined },
  });
  const all = ['*', ...idle];
  switch (arrangement) {
    case 'alone':
      return [slot(all, true, true)];
    case 'pair':
      return [slot(all, true, true), slot(all, true, true)];
    case 'split': {
      const others = SPLIT.flat().map((name) => `-${name}`);
      return [slot([...all, ...others], true, false), ...SPLIT.map((names) => slot(names, false, false))];
    }
  }
}
