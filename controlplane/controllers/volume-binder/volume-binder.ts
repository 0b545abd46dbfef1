// Binds claims to volumes and keeps both sides consistent; requests provisioning. decide.ts decides; the provisioner
// makes and deletes volumes.

import { isNotFound } from '../../../client/errors.ts';
import { type Change, objectKey } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import {
  ANNOTATIONS,
  annotation,
  claimNamesOf,
  type PersistentVolume,
  type PersistentVolumeClaim,
  refersTo,
} from '../../storage/objects.ts';
import { claimSubject, OnceRecorder, volumeSubject } from '../../storage/once-recorder.ts';
import { CLAIMS, patchAsRead, pathOf, VOLUMES } from '../../storage/write.ts';
import { decideClaim, decideVolume, type EventText, type VolumePhase } from './decide.ts';

type Needed = Pick<Informers, 'persistentVolumes' | 'persistentVolumeClaims' | 'storageClasses' | 'pods'>;

const CLAIM = 'claim ';
const VOLUME = 'volume ';

/** Keys are "claim <namespace>/<name>" and "volume <name>". */
export class VolumeBinder implements Controller {
  readonly name = 'volume-binder';
  readonly workers = 4;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #events: OnceRecorder;

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    this.#events = new OnceRecorder(context.recorder, context.clock);
    this.queue = new WorkQueue({ clock: context.clock, maxDelayMs: 60_000 });
    informers.persistentVolumeClaims.onChange((changes) => {
      for (const change of changes) this.#claimChanged(change);
    });
    informers.persistentVolumes.onChange((changes) => {
      for (const change of changes) this.#volumeChanged(change);
    });
    informers.storageClasses.onChange((changes) => {
      if (changes.length > 0) this.#queueUnbound();
    });
    informers.pods.onChange((changes) => {
      for (const change of changes) this.#podChanged(change);
    });
  }

  #claimChanged({ type, object }: Change<PersistentVolumeClaim>): void {
    if (type === 'removed') this.#events.forget(object.metadata.uid);
    else this.queue.add(`${CLAIM}${objectKey(object)}`);
    // The volume follows: bound, or released.
    for (const volume of this.#informers.persistentVolumes.list()) {
      const reference = volume.spec?.claimRef;
      if (reference?.name === object.metadata.name && reference.namespace === object.metadata.namespace) {
        this.queue.add(`${VOLUME}${volume.metadata.name}`);
      }
    }
  }

  #volumeChanged({ type, object }: Change<PersistentVolume>): void {
    if (type === 'removed') this.#events.forget(object.metadata.uid);
    else this.queue.add(`${VOLUME}${object.metadata.name}`);
    const reference = object.spec?.claimRef;
    if (reference === undefined) {
      this.#queueUnbound();
      return;
    }
    this.queue.add(`${CLAIM}${reference.namespace ?? ''}/${reference.name ?? ''}`);
  }

  #podChanged(change: Change<Pod>): void {
    // Only a pod's coming and its being placed change what a claim waits for.
    const moved = change.type !== 'modified' || change.old.spec.nodeName !== change.object.spec.nodeName;
    if (!moved) return;
    const { namespace } = change.object.metadata;
    for (const name of claimNamesOf(change.object)) {
      const claim = this.#informers.persistentVolumeClaims.get(`${namespace}/${name}`);
      if (claim !== undefined && (claim.spec?.volumeName ?? '') === '') this.queue.add(`${CLAIM}${namespace}/${name}`);
    }
  }

  #queueUnbound(): void {
    for (const claim of this.#informers.persistentVolumeClaims.list()) {
      if (claim.status?.phase !== 'Bound') this.queue.add(`${CLAIM}${objectKey(claim)}`);
    }
  }

  async sync(key: string): Promise<void> {
    if (key.startsWith(CLAIM)) {
      const claim = this.#informers.persistentVolumeClaims.get(key.slice(CLAIM.length));
      if (claim !== undefined) await this.#syncClaim(claim);
    } else {
      const volume = this.#informers.persistentVolumes.get(key.slice(VOLUME.length));
      if (volume !== undefined) await this.#syncVolume(volume);
    }
  }

  async #syncClaim(claim: PersistentVolumeClaim): Promise<void> {
    const { persistentVolumes: volumes, storageClasses } = this.#informers;
    const decision = decideClaim(claim, {
      volumes: volumes.list(),
      volume: (name) => volumes.get(name),
      classes: storageClasses.list(),
      waitingPods: this.#waitingPods(claim),
    });
    switch (decision.kind) {
      case 'bind':
        await this.#bind(decision.volume, claim);
        return;
      case 'assign-class':
        await this.#patchClaim(claim, { spec: { storageClassName: decision.name } });
        return;
      case 'lost':
        if (claim.status?.phase === 'Lost') return;
        await this.#patchClaim(claim, { status: { phase: 'Lost', accessModes: null, capacity: null } }, 'status');
        this.#recordForClaim(claim, decision.event);
        return;
      case 'provision':
        await this.#requestProvisioning(claim, decision.provisioner);
        this.#recordForClaim(claim, decision.event);
        return;
      case 'wait':
        if (decision.event !== undefined) this.#recordForClaim(claim, decision.event);
    }
  }

  #waitingPods({ metadata }: PersistentVolumeClaim): string[] {
    return this.#informers.pods
      .list()
      .filter((pod) => pod.metadata.namespace === metadata.namespace && (pod.spec.nodeName ?? '') === '')
      .filter((pod) => claimNamesOf(pod).includes(metadata.name))
      .map((pod) => pod.metadata.name)
      .sort();
  }

  #recordForClaim(claim: PersistentVolumeClaim, event: EventText): void {
    this.#events.event(claimSubject(claim), event.type, event.reason, event.message);
  }

  async #requestProvisioning(claim: PersistentVolumeClaim, provisioner: string): Promise<void> {
    const { storageProvisioner, betaStorageProvisioner } = ANNOTATIONS;
    if (annotation(claim, storageProvisioner) === provisioner) return;
    const annotations = { [storageProvisioner]: provisioner, [betaStorageProvisioner]: provisioner };
    await this.#patchClaim(claim, { metadata: { annotations } });
  }

  /** Four writes, in an order in which each can be the last one before a crash: the next sync finishes the work. */
  async #bind(volume: PersistentVolume, claim: PersistentVolumeClaim): Promise<void> {
    const bound = await this.#bindVolume(volume, claim);
    await this.#setPhase(bound, 'Bound');
    const { bindCompleted, boundByController } = ANNOTATIONS;
    const { name, namespace } = claim.metadata;
    let pair = claim;
    if (annotation(claim, bindCompleted) === undefined || claim.spec?.volumeName !== volume.metadata.name) {
      const chosen = (claim.spec?.volumeName ?? '') === '' ? { [boundByController]: 'yes' } : {};
      pair = await this.#patchClaim(claim, {
        metadata: { annotations: { [bindCompleted]: 'yes', ...chosen } },
        spec: { volumeName: volume.metadata.name },
      });
    }
    if (pair.status?.phase === 'Bound') return;
    const { accessModes = [], capacity = {} } = volume.spec ?? {};
    await this.#patchClaim(pair, { status: { phase: 'Bound', accessModes, capacity } }, 'status');
    this.#context.log(`volume-binder: claim ${namespace}/${name} is bound to volume ${volume.metadata.name}`);
  }

  async #bindVolume(volume: PersistentVolume, claim: PersistentVolumeClaim): Promise<PersistentVolume> {
    if (refersTo(volume, claim) && volume.spec?.claimRef?.uid === claim.metadata.uid) return volume;
    const { name, namespace, uid, resourceVersion } = claim.metadata;
    const chosen = volume.spec?.claimRef === undefined ? { [ANNOTATIONS.boundByController]: 'yes' } : {};
    const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', name, namespace, uid, resourceVersion };
    return await patchAsRead(this.#context.client, VOLUMES, volume, {
      metadata: { annotations: chosen },
      spec: { claimRef },
    });
  }

  async #patchClaim(
    claim: PersistentVolumeClaim,
    change: Parameters<typeof patchAsRead>[3],
    subresource?: string,
  ): Promise<PersistentVolumeClaim> {
    return await patchAsRead(this.#context.client, CLAIMS, claim, change, subresource);
  }

  async #setPhase(volume: PersistentVolume, phase: VolumePhase, event?: EventText): Promise<void> {
    if (volume.status?.phase === phase) return;
    const status = {
      phase,
      lastPhaseTransitionTime: rfc3339(this.#context.clock.now()),
      message: event?.message ?? null,
      reason: event?.reason ?? null,
    };
    await patchAsRead(this.#context.client, VOLUMES, volume, { status }, 'status');
    if (event !== undefined) this.#events.event(volumeSubject(volume), event.type, event.reason, event.message);
  }

  async #syncVolume(volume: PersistentVolume): Promise<void> {
    const claim = await this.#claimOf(volume);
    const decision = decideVolume(volume, claim);
    switch (decision.kind) {
      case 'claim':
        if (claim !== undefined) this.queue.add(`${CLAIM}${objectKey(claim)}`);
        return;
      case 'phase':
        await this.#setPhase(volume, decision.phase, decision.event);
        return;
      case 'unbind':
        await this.#unbind(volume);
    }
  }

  /** The claim that the volume names. One that is not in the cache is read from the API server: a release cannot be undone. */
  async #claimOf(volume: PersistentVolume): Promise<PersistentVolumeClaim | undefined> {
    const reference = volume.spec?.claimRef;
    if (reference?.name === undefined || reference.namespace === undefined) return undefined;
    const { name, namespace, uid } = reference;
    const known = this.#informers.persistentVolumeClaims.get(`${namespace}/${name}`);
    if (known !== undefined && (uid ?? known.metadata.uid) === known.metadata.uid) return known;
    if ((uid ?? '') === '' || volume.status?.phase === 'Released' || volume.status?.phase === 'Failed') return known;
    try {
      const metadata = { name, namespace, uid: '', resourceVersion: '' };
      return await this.#context.client.get<PersistentVolumeClaim>(pathOf(CLAIMS, { metadata }));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #unbind(volume: PersistentVolume): Promise<void> {
    const byController = annotation(volume, ANNOTATIONS.boundByController) !== undefined;
    const freed = await patchAsRead(this.#context.client, VOLUMES, volume, {
      metadata: { annotations: { [ANNOTATIONS.boundByController]: null } },
      spec: { claimRef: byController ? null : { uid: null, resourceVersion: null } },
    });
    await this.#setPhase(freed, 'Available');
  }
}
