// Random events: what users, processes, machines and networks do to a node. Each comes at a random moment and is thrown
// from the seed alone. What happens is written into the journal; whether it was right is judged elsewhere.

import { isMirrorPod } from '../../../agent/ports/static-pods.ts';
import type { Pod } from '../../../client/types.ts';
import type { Dice } from './dice.ts';
import { IMAGES } from './images.ts';
import { FOREIGN_CONDITION } from './invariants.ts';
import { PodMaker } from './pod-maker.ts';
import type { Instance, Sandbox } from './runtime-state.ts';
import { CLAIMS, type ClaimName } from './storage-objects.ts';
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
  manifest: 4,
  settings: 2,
  badLine: 10,
  badNetwork: 3,
  badEvents: 4,
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
type Event = keyof typeof WEIGHTS;
type LineName = keyof World['lines'];

const MOST_PODS = 8;
const MOST_MANIFESTS = 2;
/** Pauses between events, in ms: some come together, some when all has come to rest. */
const PAUSES = [0, 0, 3, 3, 40, 40, 300, 300, 300, 1_500, 1_500, 1_500, 6_000, 20_000, 70_000] as const;

export class Chaos {
  readonly #world: World;
  readonly #dice: Dice;
  readonly #maker: PodMaker;
  readonly #weights: Readonly<Record<Event, number>>;
  /** How many calls of a hundred go wrong on each line when nothing special is the matter. */
  readonly #usualTrouble: Readonly<Record<LineName, number>>;
  readonly #happens: Readonly<Record<Event, () => string | undefined>>;
  /** How many events have happened. */
  count = 0;
  #over = false;

  constructor(world: World) {
    this.#world = world;
    this.#dice = world.dice.fork();
    this.#maker = new PodMaker(world.dice.fork(), world.disk.root);
    this.#weights = this.#taste();
    const usual = (): number => this.#dice.pick([0, 0, 0, 1, 4, 15]);
    this.#usualTrouble = {
      cri: usual(),
      api: usual(),
      cgroups: usual(),
      mounts: usual(),
      csi: usual(),
      objects: usual(),
    };
    this.#happens = { ...this.#userEvents(), ...this.#machineEvents(), ...this.#lineEvents() };
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
    for (const name of Object.keys(this.#usualTrouble) as LineName[]) {
      this.#world.lines[name].trouble = this.#usualTrouble[name];
    }
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
    const said = this.#happens[event]();
    if (said === undefined) return;
    this.count++;
    this.#world.journal.note(`* ${event} ${said}`);
  }

  /** Nothing more happens, and everything works. Pods stay as they are. */
  calm(): void {
    this.#over = true;
    const { lines, network, runtime, api, processes, kernel, csi } = this.#world;
    for (const line of Object.values(lines)) line.mend();
    network.trouble = 0;
    runtime.events.trouble = 0;
    api.watchTrouble = 0;
    processes.calm = true;
    for (const { process } of runtime.state.instances()) if (process?.crashes === true) process.timer?.cancel();
    kernel.busy = false;
    csi.deadly = 0;
    csi.register();
    this.#world.journal.note('* calm');
    this.#world.startAgent();
  }

  /** Every pod and manifest goes, as users delete them. */
  deleteEverything(): void {
    const { api, manifests } = this.#world;
    for (const name of [...manifests.files.keys()]) manifests.remove(name);
    for (const pod of [...api.pods.values()]) if (!isMirrorPod(pod)) api.deletePod(pod, 5);
  }

  // ---------------------------------------------------------------- choosing

  #pods(which: (pod: Pod) => boolean = () => true): Pod | undefined {
    return this.#dice.pick([...this.#world.api.pods.values()].filter((pod) => !isMirrorPod(pod) && which(pod)));
  }

  #livePod(): Pod | undefined {
    return this.#pods(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  #runningInstance(): Instance | undefined {
    return this.#dice.pick([...this.#world.runtime.state.instances()].filter(({ process }) => process !== undefined));
  }

  #liveSandbox(): Sandbox | undefined {
    return this.#dice.pick(
      [...this.#world.runtime.state.sandboxes()].filter(({ snapshot }) => snapshot.state === 'ready'),
    );
  }

  #edit(pod: Pod | undefined, spec: (pod: Pod) => Partial<Pod['spec']>): string | undefined {
    if (pod === undefined) return undefined;
    this.#world.api.updatePod({ ...pod, spec: { ...pod.spec, ...spec(pod) } });
    return pod.metadata.name;
  }

  // ---------------------------------------------------------------- users

  #userEvents() {
    const { api, manifests, objects } = this.#world;
    const dice = this.#dice;
    return {
      create: () => {
        if (api.pods.size >= MOST_PODS) return undefined;
        const pod = api.createPod(this.#maker.make());
        return `${pod.metadata.name} ${JSON.stringify(pod.spec)}`;
      },
      // Another pod of the same name, the moment the name is free.
      recreate: () => {
        const pod = this.#pods();
        if (pod === undefined) return undefined;
        api.deletePod(pod, 0);
        return api.createPod(this.#maker.make(pod.metadata.name)).metadata.name;
      },
      delete: () => {
        const pod = this.#livePod();
        if (pod === undefined) return undefined;
        const grace = dice.pick([1, 5, 30, pod.spec.terminationGracePeriodSeconds || 1]);
        api.deletePod(pod, grace);
        return `${pod.metadata.name} ${grace}`;
      },
      shorten: () => {
        const pod = this.#pods(({ metadata }) => metadata.deletionTimestamp !== undefined);
        if (pod === undefined) return undefined;
        api.deletePod(pod, 1);
        return pod.metadata.name;
      },
      forceDelete: () => {
        const pod = this.#pods();
        if (pod === undefined) return undefined;
        api.deletePod(pod, 0);
        return pod.metadata.name;
      },
      editImage: () =>
        this.#edit(this.#livePod(), ({ spec }) => ({
          containers: spec.containers.map((container, index) =>
            index === 0 ? { ...container, image: dice.pick(IMAGES.present) } : container,
          ),
        })),
      editDeadline: () =>
        this.#edit(this.#livePod(), ({ spec }) => ({
          activeDeadlineSeconds: Math.min(spec.activeDeadlineSeconds ?? 10_000, dice.pick([1, 30, 300])),
        })),
      editLabels: () => {
        const pod = this.#livePod();
        if (pod === undefined) return undefined;
        api.updatePod({ ...pod, metadata: { ...pod.metadata, labels: { edited: String(dice.below(1000)) } } });
        return pod.metadata.name;
      },
      resize: () =>
        this.#edit(this.#livePod(), ({ spec }) => ({
          containers: spec.containers.map((container, index) =>
            index === 0
              ? { ...container, resources: { requests: { cpu: dice.pick(['50m', '300m', '2', '64']) } } }
              : container,
          ),
        })),
      debug: () =>
        this.#edit(this.#livePod(), (pod) => ({
          ephemeralContainers: [...(pod.spec.ephemeralContainers ?? []), this.#maker.ephemeral(pod)],
        })),
      gate: () => {
        const pod = this.#livePod();
        if (pod === undefined) return undefined;
        const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== FOREIGN_CONDITION);
        const condition = { type: FOREIGN_CONDITION, status: dice.pick(['True', 'False']) };
        api.updatePod({ ...pod, status: { ...pod.status, conditions: [...others, condition] } });
        return `${pod.metadata.name} ${condition.status}`;
      },
      taint: () => {
        const taints = dice.chance(0.15) ? [{ key: 'broken', effect: 'NoExecute' }] : [];
        const labels: Record<string, string> = dice.chance(0.5) ? { disk: 'ssd' } : {};
        api.updateNode((node) => ({ ...node, metadata: { ...node.metadata, labels }, spec: { ...node.spec, taints } }));
        return `${taints.length} ${labels['disk']}`;
      },
      manifest: () => {
        const name = dice.pick([...manifests.files.keys()]);
        if (name !== undefined && (manifests.files.size >= MOST_MANIFESTS || dice.chance(0.5))) {
          if (dice.chance(0.4)) manifests.remove(name);
          else manifests.write(name, this.#manifest(name, dice.chance(0.1)));
          return name;
        }
        const added = `static-${dice.below(100)}`;
        manifests.write(added, this.#manifest(added, false));
        return added;
      },
      // A volume is detached once nobody uses it, as the attach/detach controller does.
      detach: () => {
        const [claim] = Object.keys(CLAIMS) as ClaimName[];
        const used = [...api.pods.values()].some(({ spec }) =>
          spec.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName === claim),
        );
        if (claim === undefined || used || this.#world.csi.staged.size > 0) return undefined;
        this.#world.storage.detach(claim);
        return claim;
      },
      settings: () => {
        const metadata = { name: 'settings', namespace: 'demo', uid: 'uid-settings', resourceVersion: '1' };
        objects.settings = objects.settings === undefined ? { metadata, data: { key: 'value' } } : undefined;
        return String(objects.settings !== undefined);
      },
    };
  }

  #manifest(name: string, broken: boolean): string {
    if (broken) return '{ "kind": "Pod", ';
    const { nodeName: _node, priority: _priority, ...spec } = this.#maker.make(name).spec;
    const containers = spec.containers.map(({ env: _env, ...container }) => container);
    const initContainers = (spec.initContainers ?? []).map(({ env: _env, ...container }) => container);
    // A static pod can refer to no object of the API server.
    const volumes = (spec.volumes ?? []).filter(({ emptyDir }) => emptyDir !== undefined);
    const names = new Set(volumes.map((volume) => volume.name));
    for (const container of [...containers, ...initContainers]) {
      container.volumeMounts = (container.volumeMounts ?? []).filter((mount) => names.has(mount.name));
    }
    const metadata = { name, namespace: 'kube-system' };
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata,
      spec: { ...spec, volumes, containers, initContainers },
    });
  }

  // ---------------------------------------------------------------- processes and machines

  #machineEvents() {
    const { runtime } = this.#world;
    const dice = this.#dice;
    const end = (exitCode: number, reason: string): string | undefined => {
      const instance = this.#runningInstance();
      if (instance === undefined) return undefined;
      runtime.end(instance, exitCode, reason);
      return instance.snapshot.id;
    };
    return {
      exit: () => (dice.chance(0.4) ? end(0, 'Completed') : end(1, 'Error')),
      oom: () => end(137, 'OOMKilled'),
      sandboxDies: () => {
        const sandbox = this.#liveSandbox();
        if (sandbox === undefined) return undefined;
        runtime.killSandbox(sandbox);
        return sandbox.snapshot.id;
      },
      probeFlips: () => {
        const instance = this.#runningInstance();
        if (instance?.process === undefined) return undefined;
        const kind = dice.pick(['startup', 'liveness', 'readiness', 'readiness'] as const);
        instance.process.well[kind] = !instance.process.well[kind];
        return `${instance.snapshot.id} ${kind} ${instance.process.well[kind]}`;
      },
      nodeEndsPod: () => {
        const pod = this.#livePod();
        const { agent } = this.#world;
        if (pod === undefined || agent === undefined) return undefined;
        const { uid, name } = pod.metadata;
        const end = { reason: 'Evicted', message: 'The node was low on resource: memory. ' };
        void agent.pods.endPod(uid, dice.chance(0.5) ? { ...end, graceSeconds: 1 } : end);
        return name;
      },
      clockJumps: () => {
        const ms = dice.pick([-3_600_000, -40_000, -900, 1_100, 60_000, 3_600_000]);
        this.#world.clock.jump(ms);
        return String(ms);
      },
      imageGoes: () => {
        const name = dice.pick([...runtime.images.held.keys()]);
        if (name === undefined) return undefined;
        runtime.removeUnusedImage(name);
        return name;
      },
      runtimeRestarts: () => {
        const downMs = dice.pick([5, 800, 20_000]);
        runtime.restart(downMs);
        return String(downMs);
      },
      agentRestarts: () => {
        if (this.#world.agent === undefined) return undefined;
        const downMs = dice.pick([0, 500, 30_000]);
        this.#world.killAgent();
        this.#world.clock.after(downMs, () => this.#world.startAgent());
        return String(downMs);
      },
    };
  }

  // ---------------------------------------------------------------- lines

  /** Something is bad for a while. */
  #forAWhile(begin: () => void, end: () => void): string {
    const ms = this.#dice.pick([50, 2_000, 30_000]);
    begin();
    this.#world.clock.after(ms, () => {
      if (!this.#over) end();
    });
    return `for ${ms} ms`;
  }

  #lineEvents() {
    const { lines, network, runtime, api, kernel, csi } = this.#world;
    const dice = this.#dice;
    return {
      badLine: () => {
        const name = dice.weighted({ cri: 6, api: 3, cgroups: 1, mounts: 2, csi: 3, objects: 1 });
        const trouble = dice.pick([5, 30, 90]);
        const during = (percent: number) => (): void => {
          lines[name].trouble = percent;
        };
        return `${name} ${trouble} ${this.#forAWhile(during(trouble), during(this.#usualTrouble[name]))}`;
      },
      badNetwork: () => {
        const during = (percent: number) => (): void => {
          network.trouble = percent;
        };
        return this.#forAWhile(during(50), during(0));
      },
      badEvents: () => {
        const during = (percent: number) => (): void => {
          runtime.events.trouble = percent;
        };
        return this.#forAWhile(during(dice.pick([20, 100])), during(0));
      },
      badWatch: () => {
        const during = (percent: number) => (): void => {
          api.watchTrouble = percent;
        };
        return this.#forAWhile(during(60), during(0));
      },
      busyMounts: () => {
        const during = (busy: boolean) => (): void => {
          kernel.busy = busy;
        };
        return this.#forAWhile(during(true), during(false));
      },
      csiIsDeadly: () => {
        const during = (percent: number) => (): void => {
          csi.deadly = percent;
        };
        return this.#forAWhile(during(80), during(0));
      },
      csiDies: () => {
        const downMs = dice.pick([5, 800, 40_000]);
        this.#world.restartDriver(downMs);
        return String(downMs);
      },
      watchBreaks: () => {
        const forget = dice.chance(0.3);
        api.breakWatches(forget);
        return String(forget);
      },
      apiDown: () =>
        this.#forAWhile(
          () => api.goDown(),
          () => {
            api.line.down = false;
          },
        ),
    };
  }
}
