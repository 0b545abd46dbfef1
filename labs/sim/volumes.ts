// The volumes of a simulated node: the agent's own volume manager, with claims and CSI, on the simulated disk, mount
// table and driver; and what is to be found there by who wants to know.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { podUID } from '../../agent/model/pod-uid.ts';
import type { EventRecorder, FollowedObjects, ObjectReader } from '../../agent/ports/api.ts';
import type { CsiNode } from '../../agent/ports/csi.ts';
import type { Mounter } from '../../agent/ports/mounter.ts';
import type { PodUID } from '../../agent/ports/runtime.ts';
import type { StorageObjects } from '../../agent/ports/storage.ts';
import { volumesInUse } from '../../agent/volumes/container-mounts.ts';
import { CsiVolumes } from '../../agent/volumes/csi/csi-volumes.ts';
import { podPlace } from '../../agent/volumes/csi/layout.ts';
import { findStagedNotes } from '../../agent/volumes/csi/notes.ts';
import type { PersistentVolumes, VolumeManager } from '../../agent/volumes/options.ts';
import { createPersistentVolumes } from '../../agent/volumes/persistent.ts';
import { createPodVolumes } from '../../agent/volumes/pod-volumes.ts';
import { podDir, podsDir, volumeDir } from '../../agent/volumes/volume-type.ts';
import type { VolumesInUse } from '../../agent/volumes/volumes-in-use.ts';
import type { Pod } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { SimCsi } from './csi-driver.ts';
import type { SimKernel } from './kernel.ts';

type Volume = NonNullable<Pod['spec']['volumes']>[number];

/** What one agent needs to have volumes; all of it as this agent sees it. */
export interface AgentVolumesParts {
  readonly nodeName: string;
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly log: Log;
  readonly recorder: EventRecorder;
  readonly objects: ObjectReader;
  readonly followed?: FollowedObjects;
  readonly storage: StorageObjects;
  readonly mounter: Mounter;
  readonly csi: CsiNode;
  readonly random: () => number;
  /** What the Node's status is to name. */
  readonly inUse: VolumesInUse;
}

export class SimVolumes {
  readonly #root: string;
  readonly #kernel: SimKernel;
  readonly #csi: SimCsi;

  constructor(root: string, kernel: SimKernel, csi: SimCsi) {
    this.#root = root;
    this.#kernel = kernel;
    this.#csi = csi;
  }

  /** The volume manager of one agent, put together as agent/compose/storage.ts does. */
  forAgent(parts: AgentVolumesParts): VolumeManager {
    const rootDir = this.#root;
    let csiVolumes: CsiVolumes | undefined;
    let persistent: PersistentVolumes | undefined;
    const load = (): PersistentVolumes => {
      csiVolumes ??= new CsiVolumes({ ...parts, rootDir, onError: (message) => parts.log('warn', message) });
      persistent ??= createPersistentVolumes({ ...parts, rootDir, csi: csiVolumes });
      return persistent;
    };
    // What an agent before this one staged may have no user any more.
    if (existsSync(join(rootDir, 'plugins/kubernetes.io/csi'))) load();
    const manager = createPodVolumes({ ...parts, rootDir, persistent: async () => load() });
    return {
      ...bound(manager),
      close: () => {
        manager.close();
        csiVolumes?.close();
      },
    };
  }

  /** Pods that have a directory. */
  onDisk(): readonly PodUID[] {
    return readdirSync(podsDir(this.#root)).map(podUID);
  }

  /** Whether a pod has anything there but what its containers wrote when they ended. */
  has(uid: PodUID): boolean {
    const directory = podDir(this.#root, uid);
    return existsSync(directory) && readdirSync(directory).some((name) => name !== 'containers');
  }

  /** Whether everything that the pod's containers mount is there. */
  areUp(pod: Pod): boolean {
    const used = volumesInUse(pod);
    return (pod.spec.volumes ?? []).every((volume) => !used.has(volume.name) || this.#isUp(pod, volume));
  }

  #isUp(pod: Pod, volume: Volume): boolean {
    const { uid } = pod.metadata;
    const at = (plugin: string): string => volumeDir(podDir(this.#root, uid), `kubernetes.io/${plugin}`, volume.name);
    const { persistentVolumeClaim: claim } = volume;
    if (claim !== undefined) {
      return this.#csi.published.has(podPlace(this.#root, uid, claim.claimName.replace('claim', 'pv')).target);
    }
    if (volume.csi !== undefined) return this.#csi.published.has(podPlace(this.#root, uid, volume.name).target);
    if (volume.secret !== undefined) {
      return this.#kernel.isMountPoint(at('secret')) && existsSync(join(at('secret'), '..data'));
    }
    if (volume.configMap !== undefined) return existsSync(join(at('configmap'), '..data'));
    if (volume.emptyDir?.medium === 'Memory') return this.#kernel.isMountPoint(at('empty-dir'));
    return volume.emptyDir === undefined || existsSync(at('empty-dir'));
  }

  /** What a pod's volume shows of the ConfigMap `settings`; undefined where it has none, or shows nothing of it. */
  shownSettings({ metadata, spec }: Pod): string | undefined {
    const volume = spec.volumes?.find(({ configMap }) => configMap !== undefined);
    if (volume === undefined) return undefined;
    const path = join(volumeDir(podDir(this.#root, metadata.uid), 'kubernetes.io/configmap', volume.name), 'key');
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  }

  /** Whatever is left of any volume. */
  leftovers(): string[] {
    return [
      ...this.onDisk().map((uid) => `directory of ${uid}`),
      ...this.#kernel.paths.map((path) => `mount ${path}`),
      ...[...this.#csi.published.keys()].map((path) => `publication ${path}`),
      ...[...this.#csi.staged.keys()].map((volume) => `${volume} is staged`),
      ...findStagedNotes(this.#root).map(({ volumeHandle }) => `note of ${volumeHandle}`),
    ];
  }
}

/** The methods of an object, to be spread. */
function bound(manager: VolumeManager): VolumeManager {
  return {
    mountAll: (pod, signal) => manager.mountAll(pod, signal),
    containerMounts: (pod, container, env) => manager.containerMounts(pod, container, env),
    unmountAll: (pod, options) => manager.unmountAll(pod, options),
    listPods: () => manager.listPods(),
    podChanged: (pod) => manager.podChanged?.(pod),
    update: (pod) => manager.update(pod),
    counts: () => manager.counts(),
    close: () => manager.close(),
  };
}
