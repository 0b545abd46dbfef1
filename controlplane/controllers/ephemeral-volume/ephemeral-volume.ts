// Makes the claims of generic ephemeral volumes: one per volume, named <pod>-<volume>, owned by its pod, and gone with
// it. Binding and provisioning them is as for any other claim.

import { isAlreadyExists, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { objectKey } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { isOwnedBy, type PersistentVolumeClaim, type PodVolume } from '../../storage/objects.ts';
import { OnceRecorder } from '../../storage/once-recorder.ts';
import { CLAIMS, deleteAsRead } from '../../storage/write.ts';

type Needed = Pick<Informers, 'pods' | 'persistentVolumeClaims'>;

/** The claim for one of the pod's volumes. */
export function claimFor(pod: Pod, volume: PodVolume): object | undefined {
  const template = volume.ephemeral?.volumeClaimTemplate;
  if (template === undefined) return undefined;
  const { name, namespace, uid } = pod.metadata;
  const { labels, annotations } = template.metadata ?? {};
  const owner = { apiVersion: 'v1', kind: 'Pod', name, uid, controller: true, blockOwnerDeletion: true };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: `${name}-${volume.name}`,
      namespace,
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ownerReferences: [owner],
    },
    spec: template.spec,
  };
}

/** Keys are pods, "namespace/name". */
export class EphemeralVolumeController implements Controller {
  readonly name = 'ephemeral-volume';
  readonly workers = 2;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #events: OnceRecorder;

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    this.#events = new OnceRecorder(context.recorder, context.clock);
    this.queue = new WorkQueue({ clock: context.clock, maxDelayMs: 60_000 });
    informers.pods.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type === 'removed') this.#events.forget(object.metadata.uid);
        if ((object.spec.volumes ?? []).some((volume) => volume.ephemeral !== undefined)) {
          this.queue.add(objectKey(object));
        }
      }
    });
    informers.persistentVolumeClaims.onChange((changes) => {
      for (const { object } of changes) {
        const owner = ownerOf(object);
        if (owner !== undefined) this.queue.add(`${object.metadata.namespace}/${owner.name}`);
      }
    });
  }

  async sync(key: string): Promise<void> {
    const pod = this.#informers.pods.get(key);
    if (pod === undefined || pod.metadata.deletionTimestamp === undefined) await this.#removeOrphans(key, pod);
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return;
    for (const volume of pod.spec.volumes ?? []) {
      if (volume.ephemeral !== undefined) await this.#ensureClaim(pod, volume);
    }
  }

  async #ensureClaim(pod: Pod, volume: PodVolume): Promise<void> {
    const { namespace } = pod.metadata;
    const name = `${pod.metadata.name}-${volume.name}`;
    const existing = this.#informers.persistentVolumeClaims.get(`${namespace}/${name}`);
    if (existing !== undefined) {
      if (isOwnedBy(existing, pod)) return;
      const why = `ephemeral volume: PVC "${name}" was not created for pod "${pod.metadata.name}" (pod is not owner)`;
      this.#events.event({ ...pod, kind: 'Pod', apiVersion: 'v1' }, 'Warning', 'FailedBinding', why);
      return;
    }
    try {
      await this.#context.client.create(
        resourcePath('v1', 'persistentvolumeclaims', { namespace }),
        claimFor(pod, volume),
      );
    } catch (error) {
      // The watch will bring it.
      if (!isAlreadyExists(error)) throw error;
    }
  }

  /** Claims whose pod is gone, or has been replaced by another of its name. There is no garbage collector here. */
  async #removeOrphans(key: string, pod: Pod | undefined): Promise<void> {
    for (const claim of this.#informers.persistentVolumeClaims.list()) {
      const owner = ownerOf(claim);
      if (owner === undefined || `${claim.metadata.namespace}/${owner.name}` !== key) continue;
      if (owner.uid === pod?.metadata.uid || claim.metadata.deletionTimestamp !== undefined) continue;
      if (await this.#exists(claim, owner)) continue;
      await deleteAsRead(this.#context.client, CLAIMS, claim);
    }
  }

  /** The cache of pods may lag behind that of claims: before data is deleted, the API server is read. */
  async #exists(
    claim: PersistentVolumeClaim,
    owner: { readonly name: string; readonly uid: string },
  ): Promise<boolean> {
    const { namespace = '' } = claim.metadata;
    try {
      const pod = await this.#context.client.get<Pod>(resourcePath('v1', 'pods', { namespace, name: owner.name }));
      return pod.metadata.uid === owner.uid;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }
}

function ownerOf(claim: PersistentVolumeClaim): { readonly name: string; readonly uid: string } | undefined {
  return (claim.metadata.ownerReferences ?? []).find((owner) => owner.controller === true && owner.kind === 'Pod');
}
