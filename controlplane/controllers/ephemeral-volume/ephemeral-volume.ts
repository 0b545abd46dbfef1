// Makes the claims of generic ephemeral volumes. Binding and provisioning them is as for any other claim, and they go with their pods by
// the garbage collector. claims.ts decides.

import { resourcePath } from '../../../client/paths.ts';
import { objectKey } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { claimNamesOf, type PersistentVolumeClaim } from '../../storage/objects.ts';
import { OnceRecorder } from '../../storage/once-recorder.ts';
import { volumeSteps } from './claims.ts';

type Needed = Pick<Informers, 'pods' | 'persistentVolumeClaims'>;

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
        // A pod's volumes do not change.
        else if (type === 'added') this.#queuePod(object);
      }
    });
    informers.persistentVolumeClaims.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type !== 'removed') continue;
        // Someone deleted it, or it was in the way of another one, and there is a pod that needs it.
        for (const pod of informers.pods.list()) if (needs(pod, object)) this.#queuePod(pod);
      }
    });
  }

  #queuePod(pod: Pod): void {
    if ((pod.spec.volumes ?? []).some((volume) => volume.ephemeral !== undefined)) this.queue.add(objectKey(pod));
  }

  async sync(key: string): Promise<void> {
    const pod = this.#informers.pods.get(key);
    if (pod === undefined) return;
    const { namespace = '' } = pod.metadata;
    const claims = this.#informers.persistentVolumeClaims;
    for (const step of volumeSteps(pod, (name) => claims.get(`${namespace}/${name}`))) {
      if (step.kind === 'refuse') throw this.#failed(pod, step.volume, step.message);
      try {
        await this.#context.client.create(resourcePath('v1', 'persistentvolumeclaims', { namespace }), step.claim);
      } catch (error) {
        throw this.#failed(pod, step.volume, `create PVC ${step.name}: ${errorMessage(error)}`);
      }
    }
  }

  /** It is tried again: the claim that is in the way may go. */
  #failed(pod: Pod, volume: string, why: string): Error {
    const subject = { ...pod, kind: 'Pod', apiVersion: 'v1' };
    this.#events.event(subject, 'Warning', 'FailedBinding', `ephemeral volume ${volume}: ${why}`);
    return new Error(`pod ${objectKey(pod)}, ephemeral volume ${volume}: ${why}`);
  }
}

function needs(pod: Pod, { metadata }: PersistentVolumeClaim): boolean {
  return pod.metadata.namespace === metadata.namespace && claimNamesOf(pod).includes(metadata.name);
}
