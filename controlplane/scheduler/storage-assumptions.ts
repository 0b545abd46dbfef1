// The storage objects as the scheduler may see them: with the volumes that it has chosen for claims, and the nodes that it has
// chosen for claims' volumes, before the API server shows them. Without it two pods would get the same volume.

import { ANNOTATIONS, annotation, type PersistentVolume, type PersistentVolumeClaim } from '../storage/objects.ts';
import type { StorageView, VolumeStep } from './volumes.ts';

interface Assumption {
  readonly node: string;
  readonly steps: readonly VolumeStep[];
}

const keyOf = ({ metadata: { namespace, name } }: PersistentVolumeClaim): string => `${namespace}/${name}`;

export class AssumedStorage implements StorageView {
  readonly storageClass: StorageView['storageClass'];
  readonly csiDriver: StorageView['csiDriver'];
  readonly csiNode: StorageView['csiNode'];
  readonly capacities: StorageView['capacities'];
  readonly #view: StorageView;
  readonly #byPod = new Map<string, Assumption>();

  constructor(view: StorageView) {
    this.#view = view;
    this.storageClass = (name) => view.storageClass(name);
    this.csiDriver = (name) => view.csiDriver(name);
    this.csiNode = (name) => view.csiNode(name);
    this.capacities = () => view.capacities();
  }

  claim(key: string): PersistentVolumeClaim | undefined {
    const claim = this.#view.claim(key);
    if (claim === undefined || annotation(claim, ANNOTATIONS.selectedNode) !== undefined) return claim;
    for (const { node, steps } of this.#byPod.values()) {
      if (!steps.some((step) => step.kind === 'provision' && keyOf(step.claim) === key)) continue;
      const annotations = { ...claim.metadata.annotations, [ANNOTATIONS.selectedNode]: node };
      return { ...claim, metadata: { ...claim.metadata, annotations } };
    }
    return claim;
  }

  volume(name: string): PersistentVolume | undefined {
    const volume = this.#view.volume(name);
    return volume && this.#withClaim(volume, this.#reservations());
  }

  volumes(): readonly PersistentVolume[] {
    const reservations = this.#reservations();
    const volumes = this.#view.volumes();
    return reservations.size === 0 ? volumes : volumes.map((volume) => this.#withClaim(volume, reservations));
  }

  /** From now on, what the steps will bring about for the pod on the node is taken for done. */
  assume(podUid: string, node: string, steps: readonly VolumeStep[]): void {
    if (steps.length > 0) this.#byPod.set(podUid, { node, steps });
  }

  /** It is done, or will not be. */
  forget(podUid: string): void {
    this.#byPod.delete(podUid);
  }

  #reservations(): ReadonlyMap<string, PersistentVolumeClaim> {
    const steps = [...this.#byPod.values()].flatMap((assumption) => assumption.steps);
    return new Map(steps.flatMap((step) => (step.kind === 'reserve' ? [[step.volume.metadata.name, step.claim]] : [])));
  }

  #withClaim(volume: PersistentVolume, reservations: ReadonlyMap<string, PersistentVolumeClaim>): PersistentVolume {
    const claim = reservations.get(volume.metadata.name);
    if (claim === undefined || volume.spec?.claimRef?.uid !== undefined) return volume;
    return { ...volume, spec: { ...volume.spec, claimRef: claimReference(claim) } };
  }
}

export function claimReference({ metadata: { name, namespace = '', uid, resourceVersion } }: PersistentVolumeClaim) {
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', name, namespace, uid, resourceVersion };
}
