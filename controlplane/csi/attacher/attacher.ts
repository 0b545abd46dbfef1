// Carries out VolumeAttachments of one driver over CSI (ControllerPublishVolume, ControllerUnpublishVolume) and writes
// down what came of it: what the external-attacher does beside a CSI driver. Which attachments there are is decided by
// the attach/detach controller.

import { isNotFound } from '../../../client/errors.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { isCsiError } from '../../../csi/client.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { annotation, type PersistentVolume, type VolumeAttachment } from '../../storage/objects.ts';
import {
  ATTACHMENTS,
  addFinalizer,
  hasFinalizer,
  patchAsRead,
  pathOf,
  removeFinalizer,
  VOLUMES,
} from '../../storage/write.ts';
import { Cooldown } from '../shared/cooldown.ts';
import { csiCapability } from '../shared/csi-volume.ts';
import { driverMessage } from '../shared/driver-message.ts';
import { CONTROLLER_TIMEOUT_MS, DRIVER_BACKOFF, type Driver } from '../shared/drivers.ts';
import { readSecret } from '../shared/secrets.ts';

type Needed = Pick<Informers, 'volumeAttachments' | 'persistentVolumes' | 'csiNodes'>;

const NODE_ID = 'csi.alpha.kubernetes.io/node-id';
const ATTACHMENT = 'attachment ';
const VOLUME = 'volume ';
/** Longer messages do not fit into a status. */
const MAX_MESSAGE = 1024;

/** "external-attacher/" and the driver's name in characters that a finalizer may have. */
export function attacherFinalizer(driver: string): string {
  const clean = driver.replace(/[^a-zA-Z0-9-]/g, '-');
  return `external-attacher/${clean.endsWith('-') ? `${clean}X` : clean}`;
}

export type AttachmentStep = 'attach' | 'detach' | 'done';

export function decideAttachment(one: VolumeAttachment, finalizer: string): AttachmentStep {
  if (one.metadata.deletionTimestamp !== undefined) return hasFinalizer(one, finalizer) ? 'detach' : 'done';
  return one.status?.attached === true ? 'done' : 'attach';
}

/** Of one driver. Keys are "attachment <name>" and "volume <name>". */
export class CsiAttacher implements Controller {
  readonly name: string;
  readonly workers = 4;
  readonly queue: WorkQueue;
  readonly #driver: Driver;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #finalizer: string;
  readonly #cooldown: Cooldown;

  constructor(driver: Driver, context: ControllerContext, informers: Needed) {
    this.name = `attacher ${driver.name}`;
    this.#driver = driver;
    this.#context = context;
    this.#informers = informers;
    this.#finalizer = attacherFinalizer(driver.name);
    this.#cooldown = new Cooldown(context.clock);
    this.queue = new WorkQueue({ clock: context.clock, ...DRIVER_BACKOFF });
    informers.volumeAttachments.onChange((changes) => {
      for (const { type, object } of changes) {
        if (object.spec.attacher !== driver.name) continue;
        const key = `${ATTACHMENT}${object.metadata.name}`;
        if (type !== 'removed') this.queue.add(key);
        else {
          this.#cooldown.forget(key);
          this.queue.add(`${VOLUME}${object.spec.source.persistentVolumeName ?? ''}`);
        }
      }
    });
    informers.persistentVolumes.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type !== 'removed' && object.metadata.deletionTimestamp !== undefined) {
          this.queue.add(`${VOLUME}${object.metadata.name}`);
        }
      }
    });
    // A node that has the driver at last may be what an attachment waits for.
    informers.csiNodes.onChange((changes) => {
      const nodes = new Set(changes.map(({ object }) => object.metadata.name));
      for (const one of nodes.size === 0 ? [] : informers.volumeAttachments.list()) {
        const waits =
          one.spec.attacher === driver.name && one.status?.attached !== true && nodes.has(one.spec.nodeName);
        if (waits) this.queue.add(`${ATTACHMENT}${one.metadata.name}`);
      }
    });
  }

  async sync(key: string): Promise<void> {
    if (key.startsWith(VOLUME)) {
      await this.#releaseVolume(key.slice(VOLUME.length));
      return;
    }
    const one = this.#informers.volumeAttachments.get(key.slice(ATTACHMENT.length));
    if (one === undefined) return;
    const step = decideAttachment(one, this.#finalizer);
    if (step === 'done') return;
    const operation = `${one.metadata.uid} ${step}`;
    const left = this.#cooldown.remaining(key, operation);
    if (left > 0) {
      this.queue.addAfter(key, left);
      return;
    }
    try {
      await (step === 'attach' ? this.#attach(one) : this.#detach(one));
      this.#cooldown.forget(key);
    } catch (error) {
      if (isCsiError(error)) this.#cooldown.failed(key, operation);
      throw error;
    }
  }

  /** Removes the finalizer of a deleted volume that is attached nowhere. */
  async #releaseVolume(name: string): Promise<void> {
    const volume = this.#informers.persistentVolumes.get(name);
    if (volume?.metadata.deletionTimestamp === undefined) return;
    const attached = this.#informers.volumeAttachments
      .list()
      .some(({ spec }) => spec.attacher === this.#driver.name && spec.source.persistentVolumeName === name);
    if (!attached) await removeFinalizer(this.#context.client, VOLUMES, volume, this.#finalizer);
  }

  async #attach(one: VolumeAttachment): Promise<void> {
    const { controller } = await this.#driver.capabilities();
    if (!controller.has('PUBLISH_UNPUBLISH_VOLUME')) {
      await this.#writeStatus(one, { attached: true, attachError: null });
      return;
    }
    const { client } = this.#context;
    let withFinalizer: VolumeAttachment | undefined;
    try {
      const volume = this.#volumeOf(one);
      if (volume.metadata.deletionTimestamp !== undefined) {
        throw new Error(`PersistentVolume "${volume.metadata.name}" is marked for deletion`);
      }
      const nodeId = this.#nodeId(one);
      // Both must outlive the attachment: they contain what to detach, and from which node.
      await addFinalizer(client, VOLUMES, volume, this.#finalizer);
      withFinalizer = await this.#addFinalizer(one, nodeId);
      const request = await this.#request(volume, nodeId, controller.has('SINGLE_NODE_MULTI_WRITER'));
      const answer = await this.#driver.client.controller.ControllerPublishVolume(request, {
        deadlineMs: CONTROLLER_TIMEOUT_MS,
      });
      const attachmentMetadata = answer.publish_context;
      await this.#writeStatus(withFinalizer, { attached: true, attachmentMetadata, attachError: null });
    } catch (error) {
      if (isCsiError(error) || withFinalizer === undefined)
        await this.#writeError(withFinalizer ?? one, 'attachError', error);
      throw error;
    }
  }

  #volumeOf(one: VolumeAttachment): PersistentVolume {
    const name = one.spec.source.persistentVolumeName ?? '';
    const volume = this.#informers.persistentVolumes.get(name);
    if (volume?.spec?.csi === undefined)
      throw new Error(`persistentvolume "${name}" not found, or it is no CSI volume`);
    return volume;
  }

  /** How the driver calls the node; noted down on the attachment, as CSINode may be gone when it is detached. */
  #nodeId(one: VolumeAttachment): string {
    const { nodeName } = one.spec;
    const entry = this.#informers.csiNodes.get(nodeName)?.spec.drivers.find(({ name }) => name === this.#driver.name);
    const nodeId = entry?.nodeID ?? annotation(one, NODE_ID);
    if (nodeId === undefined) throw new Error(`CSINode ${nodeName} does not contain driver ${this.#driver.name}`);
    return nodeId;
  }

  async #addFinalizer(one: VolumeAttachment, nodeId: string): Promise<VolumeAttachment> {
    if (hasFinalizer(one, this.#finalizer) && annotation(one, NODE_ID) === nodeId) return one;
    const finalizers = [...new Set([...(one.metadata.finalizers ?? []), this.#finalizer])];
    return await patchAsRead(this.#context.client, ATTACHMENTS, one, {
      metadata: { finalizers, annotations: { [NODE_ID]: nodeId } },
    });
  }

  async #request(volume: PersistentVolume, node_id: string, singleNodeModes: boolean) {
    const { spec = {} } = volume;
    const { csi } = spec;
    return {
      volume_id: csi?.volumeHandle ?? '',
      node_id,
      volume_capability: csiCapability(spec, csi?.fsType ?? '', singleNodeModes),
      readonly: csi?.readOnly ?? false,
      secrets: await readSecret(this.#context.client, csi?.controllerPublishSecretRef),
      volume_context: { ...csi?.volumeAttributes },
    };
  }

  async #detach(one: VolumeAttachment): Promise<void> {
    try {
      const volume = this.#volumeOf(one);
      const secrets = await readSecret(this.#context.client, volume.spec?.csi?.controllerPublishSecretRef);
      await this.#driver.client.controller.ControllerUnpublishVolume(
        { volume_id: volume.spec?.csi?.volumeHandle ?? '', node_id: this.#nodeId(one), secrets },
        { deadlineMs: CONTROLLER_TIMEOUT_MS },
      );
    } catch (error) {
      await this.#writeError(one, 'detachError', error);
      throw error;
    }
    const done = await this.#writeStatus(one, { attached: false, detachError: null, attachmentMetadata: null });
    if (done !== undefined) await removeFinalizer(this.#context.client, ATTACHMENTS, done, this.#finalizer);
  }

  async #writeError(one: VolumeAttachment, field: 'attachError' | 'detachError', error: unknown): Promise<void> {
    const message = driverMessage(error).slice(0, MAX_MESSAGE);
    // The same message is not written again: the write would requeue the key before its back-off.
    if (one.status?.[field]?.message === message) return;
    await this.#writeStatus(one, { [field]: { message, time: rfc3339(this.#context.clock.now()) } });
  }

  /** Undefined when the object has been deleted. */
  async #writeStatus(one: VolumeAttachment, status: object): Promise<VolumeAttachment | undefined> {
    const { client } = this.#context;
    try {
      const body = { status: { attached: one.status?.attached ?? false, ...status } };
      return await client.patch<VolumeAttachment>(pathOf(ATTACHMENTS, one, 'status'), body, 'merge');
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}
