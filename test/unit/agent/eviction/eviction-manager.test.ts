// The eviction loop on a virtual clock, against pods and signals that the test sets.

import { beforeEach, describe, expect, it } from 'vitest';
import { EvictionManager } from '../../../../agent/eviction/eviction-manager.ts';
import type { EvictionConfig } from '../../../../agent/eviction/options.ts';
import { NodePressureState } from '../../../../agent/eviction/pressure-state.ts';
import type { DiskLayout, Observations, PodUsage } from '../../../../agent/eviction/types.ts';
import type { PodEnd } from '../../../../agent/ports/pod-end.ts';
import type { Pod } from '../../../../client/types.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { disk, MI, makePod, usage } from './support.ts';

const CONFIG: EvictionConfig = {
  evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '10%' },
  evictionSoft: {},
  evictionSoftGracePeriod: {},
  evictionMinimumReclaim: {},
  enforceNodeAllocatable: ['pods'],
  evictionPressureTransitionPeriod: 300_000,
  evictionMaxPodGracePeriod: 0,
  localStorageCapacityIsolation: true,
};

const PLENTY = { available: 900 * MI, capacity: 1000 * MI };
const SCARCE = { available: 50 * MI, capacity: 1000 * MI };

class World {
  readonly clock = new VirtualClock();
  pods: Pod[] = [];
  readonly usages = new Map<string, PodUsage>();
  observations: Observations = { 'memory.available': PLENTY, 'nodefs.available': PLENTY };
  layout: DiskLayout = 'shared';
  readonly ended: { readonly uid: string; readonly end: PodEnd; readonly at: number }[] = [];
  readonly events: string[] = [];
  readonly did: string[] = [];
  readonly logged: string[] = [];
  /** How long a pod takes to be gone, ms. */
  endTakesMs = 0;
  /** What happens when a pod is gone, or when the node reclaims. */
  onRelief: () => void = () => undefined;
  changes = 0;
  readonly pressure = new NodePressureState();
  /** How long measuring the pods takes, ms. */
  walkMs = 0;
  signalsFail = false;
  readonly manager: EvictionManager;
  readonly #stop = new AbortController();

  constructor(config: Partial<EvictionConfig> = {}) {
    this.pressure.changed.subscribe(() => this.changes++);
    this.manager = new EvictionManager({
      config: { ...CONFIG, ...config },
      clock: this.clock,
      log: (_level, message) => this.logged.push(message),
      recorder: { event: (object, _type, reason, message) => this.events.push(`${object.kind} ${reason}: ${message}`) },
      nodeName: 'node-1',
      pods: {
        activePods: () => this.pods,
        endPod: async (uid, end) => {
          this.ended.push({ uid, end, at: this.clock.monotonic() });
          if (this.endTakesMs > 0) await this.clock.sleep(this.endTakesMs);
          this.pods = this.pods.filter(({ metadata }) => metadata.uid !== uid);
          this.onRelief();
        },
        removeEnded: async () => {
          this.did.push('removeEnded');
          this.onRelief();
        },
      },
      readSignals: async () => {
        if (this.signalsFail) throw new Error('EIO: i/o error, read');
        return { observations: this.observations, layout: this.layout };
      },
      readUsage: async (pods, { disk: withDisk }) => {
        this.did.push(`measure ${pods.map(({ metadata }) => metadata.name).join(' ')}${withDisk ? ' with disk' : ''}`);
        if (this.walkMs > 0) await this.clock.sleep(this.walkMs);
        return new Map(pods.map(({ metadata }) => [metadata.uid, this.usages.get(metadata.uid) ?? usage()]));
      },
      removeUnusedImages: async () => {
        this.did.push('removeUnusedImages');
      },
      pressure: this.pressure,
    });
  }

  add(pod: Pod, used: PodUsage = usage()): void {
    this.pods.push(pod);
    this.usages.set(pod.metadata.uid, used);
  }

  start(): void {
    void this.manager.run(this.#stop.signal);
  }

  stop(): void {
    this.#stop.abort();
  }

  memory(observation: typeof PLENTY): void {
    this.observations = { ...this.observations, 'memory.available': observation };
  }

  get names(): string[] {
    return this.ended.map(({ uid }) => uid.replace('uid-', ''));
  }
}

let world: World;

beforeEach(() => {
  world = new World();
});

describe('a node with plenty of everything', () => {
  it('measures no pod, ends none, and says that nothing is scarce', async () => {
    world.add(makePod('a'));
    world.start();
    await world.clock.advance(3_600_000);
    expect(world.did).toEqual([]);
    expect(world.ended).toEqual([]);
    expect(world.pressure.conditions()).toEqual({ memory: false, disk: false, pid: false });
    world.stop();
  });

  it('looks once every ten seconds', async () => {
    world.start();
    const before = world.clock.timersSet;
    await world.clock.advance(60_000);
    expect(world.clock.timersSet - before).toBeLessThanOrEqual(7);
    world.stop();
  });
});

describe('memory pressure', () => {
  it('ends one pod, the largest, with the kubelet’s words, and stops when there is enough', async () => {
    world.add(makePod('small'), usage({ workingSetBytes: 5 * MI }));
    world.add(
      makePod('large'),
      usage({ workingSetBytes: 900 * MI, containers: [{ name: 'c', workingSetBytes: 1024 * MI }] }),
    );
    world.onRelief = () => world.memory(PLENTY);
    world.memory(SCARCE);
    world.start();
    await world.clock.advance(60_000);
    expect(world.names).toEqual(['large']);
    const message =
      'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ' +
      'Container c was using 1Gi, request is 0, has larger consumption of memory. ';
    expect(world.ended[0]?.end).toEqual({
      reason: 'Evicted',
      message,
      graceSeconds: 1,
      disruption: { reason: 'TerminationByKubelet', message },
    });
    expect(world.events).toEqual([
      'Node EvictionThresholdMet: Attempting to reclaim memory',
      `Pod Evicted: ${message}`,
    ]);
    world.stop();
  });

  it('looks again at once after an eviction, and goes on one by one while it lasts', async () => {
    for (const name of ['a', 'b', 'c']) world.add(makePod(name), usage({ workingSetBytes: MI }));
    world.memory(SCARCE);
    world.endTakesMs = 1_000;
    world.start();
    await world.clock.advance(3_500);
    expect(world.ended.map(({ at }) => at)).toEqual([0, 1_000, 2_000]);
    world.stop();
  });

  it('waits no longer than 30 s for a pod that does not go, and then takes another, never the same', async () => {
    world.add(makePod('stuck'), usage({ workingSetBytes: 900 * MI }));
    world.add(makePod('other'), usage({ workingSetBytes: MI }));
    world.memory(SCARCE);
    world.endTakesMs = 10_000_000;
    world.start();
    await world.clock.advance(120_000);
    expect(world.names).toEqual(['stuck', 'other']);
    expect(world.ended[1]?.at).toBe(30_000);
    world.stop();
  });

  it('never ends a critical or static pod', async () => {
    world.add(makePod('critical', { priority: 2_000_001_000 }), usage({ workingSetBytes: 900 * MI }));
    world.add(
      makePod('static', { annotations: { 'kubernetes.io/config.source': 'file' } }),
      usage({ workingSetBytes: 900 * MI }),
    );
    world.memory(SCARCE);
    world.start();
    await world.clock.advance(60_000);
    expect(world.ended).toEqual([]);
    world.stop();
  });

  it('is reported at once, refuses BestEffort pods, and is taken back after the transition period', async () => {
    world.memory(SCARCE);
    world.start();
    await world.clock.advance(1);
    expect(world.pressure.conditions()).toEqual({ memory: true, disk: false, pid: false });
    expect(world.changes).toBe(1);
    expect(world.pressure.admit(makePod('new'))).toMatchObject({ reason: 'Evicted' });
    await world.clock.advance(20_000);
    world.memory(PLENTY);
    await world.clock.advance(290_000);
    expect(world.pressure.conditions().memory).toBe(true);
    await world.clock.advance(30_000);
    expect(world.pressure.conditions().memory).toBe(false);
    expect(world.changes).toBe(2);
    expect(world.pressure.admit(makePod('new'))).toBeUndefined();
    world.stop();
  });

  it('of the soft kind waits its grace period and gives the pod its time', async () => {
    world = new World({
      evictionSoft: { 'memory.available': '200Mi' },
      evictionSoftGracePeriod: { 'memory.available': 90_000 },
      evictionMaxPodGracePeriod: 60,
    });
    world.add(makePod('a', { grace: 45 }), usage({ workingSetBytes: MI }));
    world.memory({ available: 150 * MI, capacity: 1000 * MI });
    world.start();
    await world.clock.advance(85_000);
    expect(world.ended).toEqual([]);
    await world.clock.advance(10_000);
    expect(world.ended).toMatchObject([{ at: 90_000, end: { graceSeconds: 45 } }]);
    world.stop();
  });
});

describe('disk pressure', () => {
  beforeEach(() => {
    world.add(makePod('a'), usage({ volumes: { v: disk(1) } }));
    world.observations = { 'nodefs.available': SCARCE };
  });

  it('is relieved from the node’s own first: if that is enough, no pod is ended', async () => {
    world.onRelief = () => {
      world.observations = { 'nodefs.available': PLENTY };
    };
    await world.manager.synchronize();
    expect(world.did).toEqual(['removeEnded', 'removeUnusedImages']);
    expect(world.ended).toEqual([]);
  });

  it('ends a pod when that was not enough', async () => {
    await world.manager.synchronize();
    expect(world.did).toEqual(['removeEnded', 'removeUnusedImages', 'measure a with disk']);
    expect(world.names).toEqual(['a']);
  });

  it.each<[DiskLayout, 'nodefs.available' | 'imagefs.available', string[]]>([
    ['imagefs', 'nodefs.available', []],
    ['imagefs', 'imagefs.available', ['removeEnded', 'removeUnusedImages']],
    ['splitImagefs', 'nodefs.available', ['removeEnded']],
    ['splitImagefs', 'imagefs.available', ['removeUnusedImages']],
  ])('with layout %s, %s is relieved by what lies there', async (layout, signal, acts) => {
    world = new World({ evictionHard: { [signal]: '10%' } });
    world.layout = layout;
    world.observations = { [signal]: SCARCE };
    await world.manager.synchronize();
    expect(world.did.filter((what) => !what.startsWith('measure'))).toEqual(acts);
  });
});

describe('limits on local storage', () => {
  const limited = (name: string) => makePod(name, { volumes: [{ name: 'x', emptyDir: { sizeLimit: '1Mi' } }] });

  it('end every pod that exceeds them, at once and without DisruptionTarget, and only those', async () => {
    world.add(limited('over'), usage({ volumes: { x: disk(2) } }));
    world.add(limited('too'), usage({ volumes: { x: disk(3) } }));
    world.add(limited('within'), usage({ volumes: { x: disk(1) } }));
    world.add(makePod('unlimited'), usage({ volumes: { x: disk(9) } }));
    await world.manager.synchronize();
    expect(world.did).toEqual(['measure over too within with disk']);
    expect(world.names).toEqual(['over', 'too']);
    expect(world.ended[0]?.end).toEqual({
      reason: 'Evicted',
      message: 'Usage of EmptyDir volume "x" exceeds the limit "1Mi". ',
      graceSeconds: 1,
    });
  });

  it('are measured every ten seconds, but less often where measuring takes long', async () => {
    world.add(limited('a'), usage({ volumes: { x: disk(1) } }));
    world.start();
    await world.clock.advance(65_000);
    expect(world.did.length).toBe(7);
    world.walkMs = 5_000;
    await world.clock.advance(600_000);
    expect(world.did.length).toBeLessThanOrEqual(14);
    world.stop();
  });

  it('do not count where localStorageCapacityIsolation is off', async () => {
    world = new World({ localStorageCapacityIsolation: false });
    world.add(limited('over'), usage({ volumes: { x: disk(2) } }));
    await world.manager.synchronize();
    expect(world.did).toEqual([]);
  });
});

describe('trouble', () => {
  it('a round that fails is reported, and the next one comes', async () => {
    world.signalsFail = true;
    world.start();
    await world.clock.advance(25_000);
    expect(world.logged).toEqual(Array(3).fill('Eviction manager: failed to synchronize: EIO: i/o error, read'));
    world.signalsFail = false;
    world.memory(SCARCE);
    await world.clock.advance(10_000);
    expect(world.pressure.conditions().memory).toBe(true);
    world.stop();
  });

  it('with no threshold and no isolation there is nothing to look at', async () => {
    world = new World({ evictionHard: {}, localStorageCapacityIsolation: false });
    world.start();
    await world.clock.advance(60_000);
    expect(world.clock.timers).toBe(0);
  });
});
