// Protects claims that pods use, and volumes that claims use, from removal: removes the protection finalizer when the
// object is no longer in use, and adds it to objects without it. Never deletes anything.

import type { ListOf } from '../../../client/api.ts';
import { resourcePath } from '../../../client/paths.ts';
import { type Change, objectKey } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import {
  claimNamesOf,
  isFinished,
  isOwnedBy,
  type PersistentVolume,
  type PersistentVolumeClaim,
} from '../../storage/objects.ts';
import { addFinalizer, CLAIMS, hasFinalizer, removeFinalizer, VOLUMES } from '../../storage/write.ts';

const CLAIM_PROTECTION = 'kubernetes.io/pvc-protection';
const VOLUME_PROTECTION = 'kubernetes.io/pv-protection';

const CLAIM = 'claim ';
const VOLUME = 'volume ';

/**
 * Whether a pod holds the claim back: any pod that has been placed, as its node may still use the volume. A claim that
 * was made for a pod does not wait for the object of a pod that has stopped.
 */
export function usesClaim(pod: Pod, claim: PersistentVolumeClaim): boolean {
  if (pod.metadata.namespace !== claim.metadata.namespace || (pod.spec.nodeName ?? '') === '') return false;
  return (pod.spec.volumes ?? []).some((volume) => {
    if (volume.persistentVolumeClaim?.claimName === claim.metadata.name) return true;
    const forPod = volume.ephemeral !== undefined && `${pod.metadata.name}-${volume.name}` === claim.metadata.name;
    return forPod && isOwnedBy(claim, pod) && !hasShutDown(pod);
  });
}

/** All its containers have ended and it is being deleted, or it has reached its end. */
function hasShutDown(pod: Pod): boolean {
  if (isFinished(pod)) return true;
  if (pod.metadata.deletionTimestamp === undefined || (pod.metadata.deletionGracePeriodSeconds ?? 0) > 0) return false;
  return (pod.status?.containerStatuses ?? []).every((status) => status.state?.terminated !== undefined);
}

export type Protection = 'add' | 'remove' | 'keep';

export function decideProtection(
  object: PersistentVolumeClaim | PersistentVolume,
  finalizer: string,
  inUse: () => boolean,
): Protection {
  const present = hasFinalizer(object, finalizer);
  if (object.metadata.deletionTimestamp === undefined) return present ? 'keep' : 'add';
  return present && !inUse() ? 'remove' : 'keep';
}

/** Keys are "claim <namespace>/<name>" and "volume <name>". */
export class VolumeProtection implements Controller {
  readonly name: string;
  readonly workers = 2;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Pick<Informers, 'persistentVolumes' | 'persistentVolumeClaims' | 'pods'>;

  constructor(
    context: ControllerContext,
    informers: Pick<Informers, 'persistentVolumes' | 'persistentVolumeClaims' | 'pods'>,
    protect: 'claims' | 'volumes',
  ) {
    this.name = `${protect === 'claims' ? 'persistentvolumeclaim' : 'persistentvolume'}-protection`;
    this.#context = context;
    this.#informers = informers;
    this.queue = new WorkQueue({ clock: context.clock, maxDelayMs: 60_000 });
    if (protect === 'volumes') {
      informers.persistentVolumes.onChange((changes) => {
        for (const { type, object } of changes) if (type !== 'removed') this.queue.add(`${VOLUME}${objectKey(object)}`);
      });
      return;
    }
    informers.persistentVolumeClaims.onChange((changes) => {
      for (const { type, object } of changes) if (type !== 'removed') this.queue.add(`${CLAIM}${objectKey(object)}`);
    });
    informers.pods.onChange((changes) => {
      for (const change of changes) this.#podChanged(change);
    });
  }

  #podChanged({ object }: Change<Pod>): void {
    for (const name of claimNamesOf(object)) {
      const key = `${object.metadata.namespace}/${name}`;
      const claim = this.#informers.persistentVolumeClaims.get(key);
      if (claim?.metadata.deletionTimestamp !== undefined) this.queue.add(`${CLAIM}${key}`);
    }
  }

  async sync(key: string): Promise<void> {
    const { client } = this.#context;
    if (key.startsWith(VOLUME)) {
      const volume = this.#informers.persistentVolumes.get(key.slice(VOLUME.length));
      if (volume === undefined) return;
      const decision = decideProtection(volume, VOLUME_PROTECTION, () => volume.status?.phase === 'Bound');
      if (decision === 'add') await addFinalizer(client, VOLUMES, volume, VOLUME_PROTECTION);
      else if (decision === 'remove') await removeFinalizer(client, VOLUMES, volume, VOLUME_PROTECTION);
      return;
    }
    const claim = this.#informers.persistentVolumeClaims.get(key.slice(CLAIM.length));
    if (claim === undefined) return;
    const inUse = (): boolean => this.#informers.pods.list().some((pod) => usesClaim(pod, claim));
    const decision = decideProtection(claim, CLAIM_PROTECTION, inUse);
    if (decision === 'add') await addFinalizer(client, CLAIMS, claim, CLAIM_PROTECTION);
    // The cache may lag behind a pod that has just been made: the server has the last word.
    else if (decision === 'remove' && !(await this.#usedAccordingToServer(claim))) {
      await removeFinalizer(client, CLAIMS, claim, CLAIM_PROTECTION);
    }
  }

  async #usedAccordingToServer(claim: PersistentVolumeClaim): Promise<boolean> {
    const { namespace = '' } = claim.metadata;
    const pods: ListOf<Pod> = await this.#context.client.list(resourcePath('v1', 'pods', { namespace }));
    return pods.items.some((pod) => usesClaim(pod, claim));
  }
}
