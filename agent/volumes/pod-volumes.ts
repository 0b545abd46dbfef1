// The volume manager: sets up the volumes of each pod side by side, keeps what can change up to date, and takes it all
// down again. What one type does is in its own file; this one only orders and remembers.

import { readdir } from 'node:fs/promises';
import type { Container, EphemeralContainer, Pod } from '../../client/types.ts';
import type { Timer } from '../../lib/clock.ts';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import { VolumeError } from '../ports/node.ts';
import type { ContainerDevice, ContainerMount, PodRef, PodUID } from '../ports/runtime.ts';
import { makeMount, planMount, volumesInUse } from './container-mounts.ts';
import type { PodVolumesOptions, VolumeManager } from './options.ts';
import { type PreparedVolume, prepareVolume } from './registry.ts';
import { TokenCache } from './tokens.ts';
import { removeTree, unmountBelow } from './unmount.ts';
import { podDir, podsDir, type VolumeHost } from './volume-type.ts';

/** How often what a volume shows is compared with the API: the kubelet's resync, spread so that pods do not meet. */
const REFRESH_MIN_MS = 60_000;
const REFRESH_SPREAD_MS = 30_000;

interface MountedPod {
  /** The pod as last seen: labels and annotations may change. */
  pod: Pod;
  readonly volumes: Map<string, PreparedVolume>;
  timer: Timer | undefined;
}

export function createPodVolumes(options: PodVolumesOptions): VolumeManager {
  return new PodVolumeManager(options);
}

class PodVolumeManager implements VolumeManager {
  readonly #options: PodVolumesOptions;
  readonly #host: VolumeHost;
  readonly #pods = new Map<string, MountedPod>();
  /** The newest piece of work of each pod; the next one begins when it has ended. */
  readonly #queues = new Map<string, Promise<unknown>>();
  #closed = false;

  constructor(options: PodVolumesOptions) {
    this.#options = options;
    const { mounter, objects, clock } = options;
    this.#host = { mounter, objects, clock, tokens: new TokenCache(objects, clock) };
  }

  mountAll(pod: Pod): Promise<void> {
    return this.#alone(pod.metadata.uid, async () => {
      const state = this.#pods.get(pod.metadata.uid) ?? { pod, volumes: new Map(), timer: undefined };
      const changed = metadataChanged(state.pod, pod);
      state.pod = pod;
      this.#pods.set(pod.metadata.uid, state);
      const used = volumesInUse(pod);
      const waiting = (pod.spec.volumes ?? []).filter(({ name }) => used.has(name) && !state.volumes.has(name));
      const old = [...state.volumes.values()];
      await Promise.all([
        this.#together(waiting, (volume) => this.#setUp(state, volume)),
        changed ? this.#refresh(state, old) : undefined,
      ]);
      this.#schedule(state);
    });
  }

  update(pod: Pod): Promise<void> {
    return this.#alone(pod.metadata.uid, async () => {
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
  ): Promise<{ readonly mounts: readonly ContainerMount[]; readonly devices: readonly ContainerDevice[] }> {
    const [device] = container.volumeDevices ?? [];
    if (device !== undefined) {
      throw new VolumeError(device.name, `block volume "${device.name}" is not supported`);
    }
    const volumes = this.#pods.get(pod.metadata.uid)?.volumes ?? new Map<string, PreparedVolume>();
    const at = { podDir: podDir(this.#options.rootDir, pod.metadata.uid), container: container.name };
    const recursive = this.#options.recursiveReadOnlyMounts?.(pod) ?? false;
    const mounts: ContainerMount[] = [];
    for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
      try {
        mounts.push(await makeMount(planMount(mount, index, at, volumes, env, recursive), this.#options.mounter));
      } catch (error) {
        throw new VolumeError(mount.name, errorMessage(error), { cause: error });
      }
    }
    return { mounts, devices: [] };
  }

  unmountAll(pod: PodRef): Promise<void> {
    return this.#alone(pod.uid, () =>
      this.#options.tracer.span('volume', 'UnmountVolumes', {}, async () => {
        this.#pods.get(pod.uid)?.timer?.cancel();
        this.#pods.delete(pod.uid);
        this.#host.tokens.forget(pod.uid);
        const directory = podDir(this.#options.rootDir, checkedUid(pod.uid));
        try {
          await unmountBelow(directory, this.#options.mounter);
          await removeTree(directory);
        } catch (error) {
          const message = `UnmountVolume.TearDown failed for pod ${pod.namespace}/${pod.name}: ${errorMessage(error)}`;
          throw new VolumeError('', message, { cause: error });
        }
      }),
    );
  }

  async listPods(): Promise<readonly PodUID[]> {
    try {
      const entries = await readdir(podsDir(this.#options.rootDir), { withFileTypes: true });
      // The directory's name is the uid: this is where disk turns back into an id.
      return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name as PodUID);
    } catch (error) {
      if (isErrno(error, 'ENOENT')) return [];
      throw error;
    }
  }

  close(): void {
    this.#closed = true;
    for (const state of this.#pods.values()) state.timer?.cancel();
  }

  async #setUp(state: MountedPod, volume: NonNullable<Pod['spec']['volumes']>[number]): Promise<void> {
    const { name } = volume;
    const { tracer, rootDir, allocatable } = this.#options;
    await this.#failing(name, () =>
      tracer.span('volume', 'MountVolume.SetUp', { volume: name }, async (span) => {
        const prepared = prepareVolume({
          pod: state.pod,
          volume,
          podDir: podDir(rootDir, checkedUid(state.pod.metadata.uid)),
          allocatable: allocatable?.() ?? {},
        });
        span.set({ plugin: prepared.plugin, path: prepared.plan.path });
        await prepared.mount(state.pod, this.#host);
        state.volumes.set(name, prepared);
      }),
    );
  }

  #refresh(state: MountedPod, volumes: readonly PreparedVolume[]): Promise<void> {
    const { tracer } = this.#options;
    return this.#together(volumes, async ({ name, plugin, update }) => {
      if (update === undefined) return;
      await this.#failing(name, () =>
        tracer.span('volume', 'MountVolume.Refresh', { volume: name, plugin }, () => update(state.pod, this.#host)),
      );
    });
  }

  /** Words a failure as the kubelet's event. */
  async #failing(volume: string, body: () => Promise<void>): Promise<void> {
    try {
      await body();
    } catch (error) {
      const message = `MountVolume.SetUp failed for volume "${volume}" : ${errorMessage(error)}`;
      throw new VolumeError(volume, message, { cause: error });
    }
  }

  /** Works on all at once and waits for every one; several failures become one that tells them all. */
  async #together<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
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

  #schedule(state: MountedPod): void {
    if (state.timer !== undefined || this.#closed) return;
    if (![...state.volumes.values()].some(({ update }) => update !== undefined)) return;
    const { clock, random = Math.random, tracer, onRefreshFailure } = this.#options;
    const { uid, namespace, name } = state.pod.metadata;
    state.timer = clock.after(REFRESH_MIN_MS + random() * REFRESH_SPREAD_MS, () => {
      state.timer = undefined;
      if (this.#pods.get(uid) !== state || this.#closed) return;
      void tracer
        .within({ pod: { uid, namespace, name }, cause: 'volume resync' }, () => this.update(state.pod))
        .catch((error: unknown) =>
          onRefreshFailure?.(state.pod, error instanceof Error ? error : new Error(String(error))),
        )
        .finally(() => {
          if (this.#pods.get(uid) === state) this.#schedule(state);
        });
    });
  }

  /** Runs `body` when everything before it for the same pod has ended. */
  #alone<T>(uid: string, body: () => Promise<T>): Promise<T> {
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

/** True when something that a downward API volume can show has changed. */
function metadataChanged(before: Pod, after: Pod): boolean {
  if (before === after) return false;
  const shown = ({ metadata: { labels, annotations } }: Pod): string =>
    JSON.stringify([labels ?? {}, annotations ?? {}]);
  return shown(before) !== shown(after);
}

/** A uid becomes a directory's name; whatever could be a path is refused. */
function checkedUid(uid: string): string {
  if (!/^[0-9A-Za-z][0-9A-Za-z._-]*$/.test(uid)) throw new Error(`"${uid}" is not a pod uid`);
  return uid;
}
