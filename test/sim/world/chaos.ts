// Random events: what users, processes, machines and networks do to a node. Each comes at a random moment and is thrown
// from the seed alone. What happens is written into the journal; whether it was right is checked elsewhere.

import { isMirrorPod } from '../../../agent/model/static-pods.ts';
import type { Dice } from '../../../labs/sim/dice.ts';
import { Chooser, type Happening } from './chooser.ts';
import { type LineName, lineEvents } from './line-events.ts';
import { machineEvents } from './machine-events.ts';
import { PodMaker } from './pod-maker.ts';
import { userEvents } from './user-events.ts';
import type { World } from './world.ts';

/** How often each thing happens, relative to the others; each history has a taste of its own. */
const WEIGHTS = {
  create: 30,
  recreate: 3,
  delete: 10,
  shorten: 4,
  forceDelete: 2,
  exit: 12,
  oom: 3,
  memoryRunsOut: 2,
  sandboxDies: 5,
  probeFlips: 12,
  editImage: 5,
  editDeadline: 3,
  editLabels: 3,
  resize: 3,
  clockJumps: 1,
  debug: 2,
  gate: 4,
  nodeEndsPod: 2,
  taint: 1,
  disturbLease: 2,
  manifest: 4,
  settings: 2,
  editSettings: 4,
  badLine: 10,
  badNetwork: 3,
  badEvents: 4,
  streamsBreak: 3,
  badWatch: 4,
  busyMounts: 2,
  csiDies: 3,
  csiIsDeadly: 2,
  detach: 2,
  watchBreaks: 4,
  apiDown: 2,
  runtimeRestarts: 3,
  agentRestarts: 5,
  imageGoes: 2,
} as const;
export type Event = keyof typeof WEIGHTS;

/** What users and processes do: it goes on in fair weather, when machines, lines and networks are well. */
const FAIR: ReadonlySet<Event> = new Set<Event>([
  'create',
  'recreate',
  'delete',
  'shorten',
  'forceDelete',
  'exit',
  'oom',
  'memoryRunsOut',
  'sandboxDies',
  'probeFlips',
  'editImage',
  'editDeadline',
  'editLabels',
  'editSettings',
  'resize',
  'debug',
  'gate',
  'nodeEndsPod',
  'manifest',
  'disturbLease',
]);
/** What was under way in bad weather may take this long in fair weather, ms. */
const CLEARING_MS = 160_000;

/** In a history that is about storage. */
const STORAGE_WEIGHTS = { csiDies: 6, csiIsDeadly: 12, agentRestarts: 8, busyMounts: 4 } satisfies Partial<
  Record<Event, number>
>;

/** Pauses between events, in ms: some come together, some when all has come to rest. */
const PAUSES = [0, 0, 3, 3, 40, 40, 300, 300, 300, 1_500, 1_500, 1_500, 6_000, 20_000, 70_000] as const;

export class Chaos {
  readonly #world: World;
  readonly #dice: Dice;
  #weights: Readonly<Record<Event, number>>;
  readonly #chosen: Partial<Record<Event, number>>;
  /** How many calls of a hundred go wrong on each line when nothing special is the matter. */
  readonly #usualTrouble: Readonly<Record<LineName | 'deadly', number>>;
  readonly #happens: Readonly<Record<Event, Happening>>;
  /** How many events have happened. */
  count = 0;
  #over = false;
  /** Nothing goes wrong any more but what users and processes do. */
  #fair = false;

  /** `storage`: most pods have volumes of the driver, and it is a bad one. `weights` go before the history's own taste. */
  constructor(world: World, storage = false, weights: Partial<Record<Event, number>> = {}) {
    this.#world = world;
    this.#dice = world.dice.fork();
    this.#weights = { ...this.#taste(), ...(storage ? STORAGE_WEIGHTS : {}), ...weights };
    this.#chosen = weights;
    const usual = (): number => this.#dice.pick([0, 0, 0, 1, 4, 15]);
    this.#usualTrouble = {
      cri: usual(),
      cni: usual(),
      api: usual(),
      cgroups: usual(),
      mounts: usual(),
      csi: storage ? this.#dice.pick([15, 30, 50]) : usual(),
      objects: usual(),
      deadly: storage ? 15 : 0,
    };
    const choose = new Chooser(world, this.#dice);
    const maker = new PodMaker(world.dice.fork(), world.disk.root, storage);
    this.#happens = {
      ...userEvents(choose, maker),
      ...machineEvents(choose),
      ...lineEvents(choose, this.#usualTrouble, () => this.#fair),
    };
  }

  /** Some things never happen in a history, and some happen all the time: together they would hide each other. */
  #taste(): Record<Event, number> {
    const weights: Record<Event, number> = { ...WEIGHTS };
    for (const event of Object.keys(WEIGHTS) as Event[]) {
      if (event !== 'create') weights[event] *= this.#dice.pick([0, 1, 1, 1, 4]);
    }
    return weights;
  }

  /** Events come from now on, until `calm`. */
  begin(): void {
    const { lines, csi } = this.#world;
    for (const name of Object.keys(lines) as LineName[]) lines[name].trouble = this.#usualTrouble[name];
    csi.deadly = this.#usualTrouble.deadly;
    this.#next();
  }

  #next(): void {
    this.#world.clock.after(this.#dice.pick(PAUSES), () => {
      if (this.#over) return;
      this.happen();
      this.#next();
    });
  }

  /** One event, now. */
  happen(): void {
    const event = this.#dice.weighted(this.#weights);
    const what = this.#happens[event]();
    if (what === undefined) return;
    this.count++;
    this.#world.journal.note(`* ${event} ${what}`);
  }

  /** Machines, lines and networks work from now on; what users and processes do goes on. */
  clearsUp(): void {
    const weights = Object.entries(this.#weights).map(([event, weight]) => [
      event,
      FAIR.has(event as Event) ? weight : 0,
    ]);
    // Whatever the taste of this history: pods come, and some of them fail.
    this.#weights = {
      ...this.#weights,
      ...Object.fromEntries(weights),
      create: WEIGHTS.create,
      probeFlips: 12,
      ...this.#chosen,
    };
    this.#fair = true;
    const { lines, network, runtime, api, kernel, csi, manifests, objects, weather } = this.#world;
    for (const line of Object.values(lines)) line.mend();
    runtime.mend();
    network.trouble = 0;
    api.watchTrouble = 0;
    manifests.trouble = 0;
    objects.present = true;
    kernel.busy = false;
    csi.deadly = 0;
    csi.register();
    weather.bad(CLEARING_MS);
    this.#world.journal.note('* clears up');
    this.#world.startAgent();
  }

  /** Nothing more happens, and everything works. Pods stay as they are. */
  calm(): void {
    this.#over = true;
    const { runtime, processes } = this.#world;
    processes.calm = true;
    for (const { process } of runtime.state.instances()) if (process?.crashes === true) process.timer?.cancel();
    this.#world.journal.note('* calm');
  }

  /** Every pod and manifest goes, as users delete them. */
  deleteEverything(): void {
    const { api, manifests } = this.#world;
    for (const name of [...manifests.files]) manifests.remove(name);
    for (const pod of [...api.pods.values()]) if (!isMirrorPod(pod)) api.deletePod(pod, 5);
  }
}
