// The volume manager: sets up the volumes of each pod concurrently, each retried by itself until it is mounted, keeps what
// can change up to date, and unmounts it all. What one type does is in its own file; this one only orders and
// keeps state.

import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Container, EphemeralContainer, Pod } from '../../client/types.ts';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import { Gate } from '../../lib/gate.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import { retryUntilAborted } from '../../lib/retry.ts';
import { podReference } from '../model/event-reference.ts';
import { podUID } from '../model/pod-uid.ts';
import { type ContainerVolumes, VolumeError } from '../ports/node.ts';
import type { ContainerDevice, ContainerMount, PodRef, PodUID } from '../ports/runtime.ts';
import type { VolumeCount } from '../ports/stats.ts';
import { makeMount, planDevice, planMount, volumeGroups, volumesInUse } from './container-mounts.ts';
import { LiveUpdates } from './live-updates.ts';
import { MOUNT_BACKOFF, mountFailure, POD_ATTACH_AND_MOUNT_TIMEOUT_MS, unmountedMessage } from './mount-failures.ts';
import type { PersistentVolumes, PodVolumesOptions, VolumeManager } from './options.ts';
import { isPersistent, type PreparedVolume, pluginOf, prepareVolume } from './registry.ts';
import { TokenCache } from './tokens.ts';
import { unmountBelow } from './unmount.ts';
import { podDir, podsDir, type Volume, type VolumeHost } from './volume-type.ts';

/** The directory of the termination logs, which the runtime adapter makes and removes. */
const CONTAINERS = 'containers';
/** Objects whose contents are read and written at once: as many as there are connections to the API server. */
const CONTENTS_AT_ONCE = 8;

interface PodState {
  /** The pod as last seen: labels and annotations may change. */
  pod: Pod;
  /** Volumes that are up. */
  readonly volumes: Map<string, PreparedVolume>;
  /** Volumes that are being brought up, or wait for their next try. Resolve when the volume is up or the pod ends. */
  readonly underWay: Map<string, Promise<void>>;
  readonly ending: AbortController;
  /** Resolves when an object that the volumes show becomes another one; then there is a new one of these. */
  objectsChanged: PromiseWithResolvers<void>;
}

export function createPodVolumes(options: PodVolumesOptions): VolumeManager {
  return new PodVolumeManager(options);
}

class PodVolumeManager implements VolumeManager {
  readonly #options: PodVolumesOptions;
  readonly #host: VolumeHost;
  readonly #pods = new Map<string, PodState>();
  /** The newest piece of work of each pod; the next one begins when it has ended. */
  readonly #queues = new Map<string, Promise<unknown>>();
  /** Pods whose volumes are being taken down. */
  readonly #unmounting = new Map<string, Promise<void>>();
  readonly #live: LiveUpdates;
  /** Loaded with the first volume that needs it. */
  #persistent: PersistentVolumes | undefined;

  constructor(options: PodVolumesOptions) {
    this.#options = options;
    const { mounter, objects, clock, recorder, tracer, followed, imageVolumeProblem, random = Math.random } = options;
    const tokens = new TokenCache(objects, clock, random);
    this.#host = {
      mounter,
      objects,
      clock,
      recorder,
      tracer,
      tokens,
      bigContents: new Gate(CONTENTS_AT_ONCE),
      ...(imageVolumeProblem === undefined ? {} : { imageVolumeProblem }),
    };
    this.#live = new LiveUpdates({
      clock,
      followed,
      random,
      nextRenewal: (uid) => tokens.nextRenewal(uid),
      refresh: (uid, why) => this.#refreshNow(uid, why),
      isMounting: (uid) => (this.#pods.get(uid)?.underWay.size ?? 0) > 0,
      onChangeWhileMounting: (uid) => this.#pods.get(uid)?.objectsChanged.resolve(),
    });
  }

  async mountAll(pod: Pod, signal?: AbortSignal): Promise<void> {
    const { uid } = pod.metadata;
    const before = this.#unmounting.get(uid);
    // Whether that failed is the concern of unmountAll's caller.
    if (before !== undefined) await before.catch(() => undefined);
    const state = this.#pods.get(uid) ?? newState(pod);
    this.#pods.set(uid, state);
    const changed = downwardAPIChanged(state.pod, pod);
    state.pod = pod;
    this.#live.follow(pod);
    const used = volumesInUse(pod);
    const old = [...state.volumes.values()];
    const waiting = (pod.spec.volumes ?? []).filter(({ name }) => used.has(name) && !state.volumes.has(name));
    const all = Promise.all([
      ...slowestFirst(waiting).map((volume) => this.#startMount(state, volume)),
      changed ? this.#serialize(uid, () => this.#refresh(state, old)) : undefined,
    ]);
    await this.#waitForMounts(state, waiting, all, signal);
    this.#live.allUp(uid);
  }

  podChanged(pod: Pod): void {
    const state = this.#pods.get(pod.metadata.uid);
    if (state === undefined) return;
    const changed = downwardAPIChanged(state.pod, pod);
    state.pod = pod;
    this.#live.follow(pod);
    if (changed) this.#live.changed(pod.metadata.uid);
  }

  update(pod: Pod): Promise<void> {
    return this.#serialize(pod.metadata.uid, async () => {
      const state = this.#pods.get(pod.metadata.uid);
      if (state === undefined) return;
      state.pod = pod;
      await this.#refresh(state, [...state.volumes.values()]);
    });
  }

  async containerMounts(
    pod: Pod,
    container: Container | EphemeralContainer,
    env: readonly { readonly name: string; readonly value: string }[],
  ): Promise<ContainerVolumes> {
    const requested = [...(container.volumeMounts ?? []), ...(container.volumeDevices ?? [])];
    // An ephemeral container may be the first to use a volume of its pod.
    const missing = requested.some(({ name }) => this.#pods.get(pod.metadata.uid)?.volumes.has(name) === false);
    if (missing) await this.mountAll(pod);
    const volumes = this.#pods.get(pod.metadata.uid)?.volumes ?? new Map<string, PreparedVolume>();
    const at = { podDir: podDir(this.#options.rootDir, pod.metadata.uid), container: container.name };
    const setsRecursive = container.volumeMounts?.some((mount) => mount.recursiveReadOnly !== undefined) === true;
    const recursive = setsRecursive && ((await this.#options.recursiveReadOnlyMounts?.(pod)) ?? false);
    const { mounter, tracer } = this.#options;
    const mounts: ContainerMount[] = [];
    for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
      await asVolumeError(mount.name, async () => {
        mounts.push(await makeMount(planMount(mount, index, at, volumes, env, recursive), mounter, tracer));
      });
    }
    const devices: ContainerDevice[] = [];
    for (const device of container.volumeDevices ?? []) {
      await asVolumeError(device.name, () => void devices.push(planDevice(device, container.name, volumes)));
    }
    return { mounts, devices, supplementalGroups: volumeGroups(pod, volumes.values()) };
  }

  unmountAll(pod: PodRef, { keepsEnds = false } = {}): Promise<void> {
    const state = this.#pods.get(pod.uid);
    state?.ending.abort();
    this.#live.forget(pod.uid);
    this.#pods.delete(pod.uid);
    this.#host.tokens.forget(pod.uid);
    const down = this.#serialize(pod.uid, async () => {
      // What is on its way cannot be called back; it ends, and is then undone with the rest.
      await Promise.all(state?.underWay.values() ?? []);
      await this.#options.tracer.span('volume', 'UnmountVolumes', {}, () => this.#tearDown(pod, keepsEnds));
    });
    this.#unmounting.set(pod.uid, down);
    const done = (): void => {
      if (this.#unmounting.get(pod.uid) === down) this.#unmounting.delete(pod.uid);
    };
    down.then(done, done);
    return down;
  }

  async listPods(): Promise<readonly PodUID[]> {
    try {
      const entries = await readdir(podsDir(this.#options.rootDir), { withFileTypes: true });
      // The directory's name is the uid: this is where disk turns back into an id.
      return entries.filter((entry) => entry.isDirectory()).map((entry) => podUID(entry.name));
    } catch (error) {
      if (isErrno(error, 'ENOENT')) return [];
      throw error;
    }
  }

  counts(): readonly VolumeCount[] {
    const counts = new Map<string, VolumeCount>();
    const add = (state: VolumeCount['state'], plugin: string): void => {
      const key = `${state} ${plugin}`;
      counts.set(key, { state, plugin, count: (counts.get(key)?.count ?? 0) + 1 });
    };
    for (const { pod, volumes } of this.#pods.values()) {
      const used = volumesInUse(pod);
      for (const volume of pod.spec.volumes ?? []) {
        const mounted = volumes.get(volume.name);
        if (used.has(volume.name)) add('desired_state_of_world', mounted?.plugin ?? pluginOf(volume) ?? 'N/A');
        if (mounted !== undefined) add('actual_state_of_world', mounted.plugin);
      }
    }
    return [...counts.values()];
  }

  close(): void {
    this.#live.close();
    for (const state of this.#pods.values()) state.ending.abort();
  }

  /** Tries until the volume is up, with growing pauses; each failure is an event. Never rejects. */
  #startMount(state: PodState, volume: Volume): Promise<void> {
    const known = state.underWay.get(volume.name);
    if (known !== undefined) return known;
    const trying = this.#mountWithBackoff(state, volume).finally(() => state.underWay.delete(volume.name));
    state.underWay.set(volume.name, trying);
    return trying;
  }

  async #mountWithBackoff(state: PodState, volume: Volume): Promise<void> {
    const { clock, recorder } = this.#options;
    const { signal } = state.ending;
    let changed = state.objectsChanged.promise;
    const attempt = async (): Promise<void> => {
      changed = state.objectsChanged.promise;
      await this.#setUp(state, volume);
    };
    await retryUntilAborted(attempt, {
      clock,
      policy: MOUNT_BACKOFF,
      onFailure: (error) => {
        const { reason, message } = mountFailure(volume.name, error);
        recorder.event(podReference(state.pod), 'Warning', reason, message);
      },
      // A missing object that comes is no reason to wait any longer.
      wake: (error) => {
        const before = changed;
        const retried = before.then(() => {
          if (state.objectsChanged.promise === before) state.objectsChanged = Promise.withResolvers();
        });
        const { until } = mountFailure(volume.name, error);
        return until === undefined ? retried : Promise.race([until, retried]);
      },
      signal,
    });
  }

  async #setUp(state: PodState, volume: Volume): Promise<void> {
    const { name } = volume;
    const { tracer, rootDir, allocatable } = this.#options;
    await tracer.span('volume', 'MountVolume.SetUp', { volume: name }, async (span) => {
      const input = {
        pod: state.pod,
        volume,
        podDir: podDir(rootDir, checkedUid(state.pod.metadata.uid)),
        allocatable: allocatable?.() ?? {},
      };
      const load = isPersistent(volume) ? this.#options.persistent : undefined;
      if (load !== undefined && this.#persistent === undefined) this.#persistent = await load();
      const prepared =
        load === undefined || this.#persistent === undefined
          ? prepareVolume(input)
          : await this.#persistent.prepare(input, state.ending.signal);
      span.set({ plugin: prepared.plugin, path: prepared.plan.path });
      await prepared.mount(state.pod, this.#host);
      state.volumes.set(name, prepared);
      if (prepared.update !== undefined) this.#live.volumeUp(state.pod.metadata.uid);
    });
  }

  /** Waits for `all` until the kubelet's time limit or until `signal` aborts; mounting is retried beyond it. */
  async #waitForMounts(
    state: PodState,
    waiting: readonly Volume[],
    all: Promise<unknown>,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { promise, reject } = Promise.withResolvers<never>();
    const timer = this.#options.clock.after(POD_ATTACH_AND_MOUNT_TIMEOUT_MS, () => {
      const left = waiting.filter(({ name }) => !state.volumes.has(name)).map(({ name }) => name);
      reject(new VolumeError(left[0] ?? '', unmountedMessage(left)));
    });
    const onAbort = (): void => reject(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
    try {
      await Promise.race([all, promise]);
    } finally {
      timer.cancel();
      signal?.removeEventListener('abort', onAbort);
    }
    if (state.ending.signal.aborted) throw new VolumeError('', 'the volumes of the pod are being taken down');
  }

  /** Undoes everything of the pod that is on disk or in the mount table. */
  async #tearDown(pod: PodRef, keepsEnds: boolean): Promise<void> {
    const { mounter, rootDir } = this.#options;
    const directory = podDir(rootDir, checkedUid(pod.uid));
    try {
      // What hides a volume of a driver goes before the driver unmounts it.
      const subPaths = join(directory, 'volume-subpaths');
      if (existsSync(subPaths)) await unmountBelow(subPaths, mounter);
      const { persistent } = this.#options;
      if (persistent !== undefined && hasPersistentVolumes(directory)) await (await persistent()).tearDown(pod);
      await unmountBelow(directory, mounter);
      const stays = keepsEnds && existsSync(join(directory, CONTAINERS));
      const hasLogs = this.#options.hasLogs?.(pod) === true && existsSync(directory);
      // Reads the mount table once more, and removes nothing while it shows a mount below.
      if (!stays && !hasLogs) return await removeTree(directory);
      const others = (await readdir(directory)).filter((name) => !stays || name !== CONTAINERS);
      for (const name of others) await removeTree(join(directory, name));
    } catch (error) {
      const message = `UnmountVolume.TearDown failed for pod ${pod.namespace}/${pod.name}: ${errorMessage(error)}`;
      throw new VolumeError('', message, { cause: error });
    }
  }

  #refresh(state: PodState, volumes: readonly PreparedVolume[]): Promise<void> {
    const { tracer } = this.#options;
    return this.#runAll(volumes, async ({ name, plugin, update }) => {
      if (update === undefined) return;
      try {
        await tracer.span('volume', 'MountVolume.Refresh', { volume: name, plugin }, () =>
          update(state.pod, this.#host),
        );
      } catch (error) {
        throw new VolumeError(name, mountFailure(name, error).message, { cause: error });
      }
    });
  }

  /** Works on all at once and waits for every one; several failures become one error with all messages. */
  async #runAll<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
    const results = await Promise.allSettled(items.map(work));
    const errors = results.flatMap((result): unknown[] => (result.status === 'rejected' ? [result.reason] : []));
    const [first] = errors;
    if (errors.length <= 1) {
      if (first !== undefined) throw first;
      return;
    }
    const volume = first instanceof VolumeError ? first.volume : '';
    throw new VolumeError(volume, errors.map(errorMessage).join('; '), { cause: new AggregateError(errors) });
  }

  /** Brings the pod's content up to date; a failure is an event, as each of the kubelet's attempts is, and rejects. */
  async #refreshNow(uid: string, cause: string): Promise<void> {
    const state = this.#pods.get(uid);
    if (state === undefined) return;
    const { tracer, recorder } = this.#options;
    const { namespace, name } = state.pod.metadata;
    try {
      await tracer.within({ pod: { uid, namespace, name }, cause }, () => this.update(state.pod));
    } catch (error) {
      if (!state.ending.signal.aborted) {
        recorder.event(podReference(state.pod), 'Warning', 'FailedMount', errorMessage(error));
      }
      throw error;
    }
  }

  /** Runs `body` when everything before it for the same pod has ended. */
  #serialize<T>(uid: string, body: () => Promise<T>): Promise<T> {
    const before = this.#queues.get(uid) ?? Promise.resolve();
    const mine = before.then(body, body);
    this.#queues.set(uid, mine);
    const done = (): void => {
      if (this.#queues.get(uid) === mine) this.#queues.delete(uid);
    };
    mine.then(done, done);
    return mine;
  }
}

function newState(pod: Pod): PodState {
  return {
    pod,
    volumes: new Map(),
    underWay: new Map(),
    ending: new AbortController(),
    objectsChanged: Promise.withResolvers(),
  };
}

/** Volumes that need API reads start first: requests of the others would delay them. */
function slowestFirst(volumes: readonly Volume[]): readonly Volume[] {
  const persistent = volumes.filter(isPersistent);
  return persistent.length === 0 ? volumes : [...persistent, ...volumes.filter((volume) => !isPersistent(volume))];
}

async function asVolumeError(volume: string, body: () => Promise<void> | void): Promise<void> {
  try {
    await body();
  } catch (error) {
    throw new VolumeError(volume, errorMessage(error), { cause: error });
  }
}

/** True when something that a downward API volume can show has changed. */
function downwardAPIChanged(before: Pod, after: Pod): boolean {
  if (before === after) return false;
  const visible = ({ metadata: { labels, annotations }, spec: { containers, initContainers = [] } }: Pod): string =>
    JSON.stringify([labels ?? {}, annotations ?? {}, [...containers, ...initContainers].map((c) => c.resources)]);
  return visible(before) !== visible(after);
}

/** A uid becomes a directory's name; whatever could be a path is refused. */
function checkedUid(uid: string): string {
  if (!/^[0-9A-Za-z][0-9A-Za-z._-]*$/.test(uid)) throw new Error(`"${uid}" is not a pod uid`);
  return uid;
}

/** Where below a pod's directory a driver, or a device, has something of it. */
const PERSISTENT_PLACES = [
  'volumes/kubernetes.io~csi',
  'plugins/kubernetes.io~csi',
  'volumes/kubernetes.io~local-volume',
  'volumeDevices',
];

/** Whether the pod's directory contains such volumes. */
function hasPersistentVolumes(directory: string): boolean {
  return PERSISTENT_PLACES.some((name) => existsSync(join(directory, name)));
}
