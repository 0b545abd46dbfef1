// Expands volumes whose claims request more: ControllerExpandVolume, the PersistentVolume's new capacity, and the claim's
// conditions while the node has yet to expand the filesystem, as the external-resizer does beside a CSI driver. The
// node's part is the kubelet's.

import { objectKey } from '../../../client/store.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { isCsiError } from '../../../csi/client.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import {
  capacityBytes,
  formatBinary,
  type PersistentVolume,
  type PersistentVolumeClaim,
} from '../../storage/objects.ts';
import { claimSubject, OnceRecorder } from '../../storage/once-recorder.ts';
import { CLAIMS, patchAsRead, VOLUMES } from '../../storage/write.ts';
import { Cooldown } from '../shared/cooldown.ts';
import { csiCapability } from '../shared/csi-volume.ts';
import { driverMessage } from '../shared/driver-message.ts';
import { CONTROLLER_TIMEOUT_MS, DRIVER_BACKOFF, type Driver } from '../shared/drivers.ts';
import { readSecret } from '../shared/secrets.ts';
import { decideExpansion, isInfeasible, NODE_MUST_RESIZE, type ResizeStatus, resizeConditions } from './decide.ts';

type Needed = Pick<Informers, 'persistentVolumes' | 'persistentVolumeClaims'>;

interface Grown {
  readonly bytes: bigint;
  readonly nodeMustResize: boolean;
}

/** Of one driver. Keys are claims, "namespace/name". */
export class Expander implements Controller {
  readonly name: string;
  readonly workers = 2;
  readonly queue: WorkQueue;
  readonly #driver: Driver;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #events: OnceRecorder;
  readonly #cooldown: Cooldown;

  constructor(driver: Driver, context: ControllerContext, informers: Needed) {
    this.name = `expander ${driver.name}`;
    this.#driver = driver;
    this.#context = context;
    this.#informers = informers;
    this.#events = new OnceRecorder(context.recorder, context.clock);
    this.#cooldown = new Cooldown(context.clock);
    this.queue = new WorkQueue({ clock: context.clock, ...DRIVER_BACKOFF });
    informers.persistentVolumeClaims.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type !== 'removed') this.queue.add(objectKey(object));
        else {
          this.#events.forget(object.metadata.uid);
          this.#cooldown.forget(objectKey(object));
        }
      }
    });
    informers.persistentVolumes.onChange((changes) => {
      for (const { type, object } of changes) {
        const { namespace = '', name = '' } = object.spec?.claimRef ?? {};
        if (type !== 'removed' && name !== '') this.queue.add(`${namespace}/${name}`);
      }
    });
  }

  async sync(key: string): Promise<void> {
    const claim = this.#informers.persistentVolumeClaims.get(key);
    const volume = this.#informers.persistentVolumes.get(claim?.spec?.volumeName ?? '');
    if (claim === undefined || volume?.spec?.csi?.driver !== this.#driver.name) return;
    const decision = decideExpansion(claim, volume);
    if (decision.kind !== 'expand') return;
    const operation = `${claim.metadata.uid} ${decision.bytes}`;
    const left = this.#cooldown.remaining(key, operation);
    if (left > 0) {
      this.queue.addAfter(key, left);
      return;
    }
    const begun = await this.#begin(claim, volume, decision.bytes);
    try {
      const grown = await this.#expand(volume, decision.bytes);
      await this.#finish(begun, volume, grown);
      this.#cooldown.forget(key);
    } catch (error) {
      if (isCsiError(error)) this.#cooldown.failed(key, operation);
      await this.#fail(begun, volume, error);
      throw error;
    }
  }

  async #begin(claim: PersistentVolumeClaim, volume: PersistentVolume, bytes: bigint): Promise<PersistentVolumeClaim> {
    const size = formatBinary(bytes);
    const status = claim.status?.allocatedResourceStatuses?.['storage'];
    if (status === 'ControllerResizeInProgress' && claim.status?.allocatedResources?.['storage'] === size) return claim;
    const message = `External resizer is resizing volume ${volume.metadata.name}`;
    this.#events.event(claimSubject(claim), 'Normal', 'Resizing', message);
    return await this.#patchStatus(claim, 'ControllerResizeInProgress', {
      allocatedResources: { storage: size },
      conditions: resizeConditions(claim, { type: 'Resizing' }, this.#now()),
    });
  }

  async #expand(volume: PersistentVolume, bytes: bigint): Promise<Grown> {
    const { controller } = await this.#driver.capabilities();
    // A driver that expands volumes on the node alone: there is no call of its controller.
    if (!controller.has('EXPAND_VOLUME')) return { bytes, nodeMustResize: true };
    const { spec = {} } = volume;
    const answer = await this.#driver.client.controller.ControllerExpandVolume(
      {
        volume_id: spec.csi?.volumeHandle ?? '',
        capacity_range: { required_bytes: bytes.toString() },
        secrets: await readSecret(this.#context.client, spec.csi?.controllerExpandSecretRef),
        volume_capability: csiCapability(spec, spec.csi?.fsType ?? '', controller.has('SINGLE_NODE_MULTI_WRITER')),
      },
      { deadlineMs: CONTROLLER_TIMEOUT_MS },
    );
    const got = BigInt(answer.capacity_bytes);
    return { bytes: got < bytes ? bytes : got, nodeMustResize: answer.node_expansion_required };
  }

  async #finish(claim: PersistentVolumeClaim, volume: PersistentVolume, grown: Grown): Promise<void> {
    const size = formatBinary(grown.bytes);
    if (capacityBytes(volume) < grown.bytes) {
      await patchAsRead(this.#context.client, VOLUMES, volume, { spec: { capacity: { storage: size } } });
    }
    if (grown.nodeMustResize) {
      const condition = { type: 'FileSystemResizePending', message: NODE_MUST_RESIZE } as const;
      const conditions = resizeConditions(claim, condition, this.#now());
      await this.#patchStatus(claim, 'NodeResizePending', { conditions });
      const message = 'Require file system resize of volume on node';
      this.#events.event(claimSubject(claim), 'Normal', 'FileSystemResizeRequired', message);
      return;
    }
    const conditions = resizeConditions(claim, undefined, this.#now());
    await this.#patchStatus(claim, null, { conditions, capacity: { storage: size } });
    this.#events.event(claimSubject(claim), 'Normal', 'VolumeResizeSuccessful', 'Resize volume succeeded');
  }

  async #fail(claim: PersistentVolumeClaim, volume: PersistentVolume, error: unknown): Promise<void> {
    if (!isCsiError(error)) return;
    const message = `resize volume "${volume.metadata.name}" by resizer "${this.#driver.name}" failed: ${driverMessage(error)}`;
    this.#events.event(claimSubject(claim), 'Warning', 'VolumeResizeFailed', message);
    if (!isInfeasible(error.code)) return;
    await this.#patchStatus(claim, 'ControllerResizeInfeasible', {});
  }

  async #patchStatus(
    claim: PersistentVolumeClaim,
    resize: ResizeStatus | null,
    status: object,
  ): Promise<PersistentVolumeClaim> {
    const allocatedResourceStatuses = { storage: resize };
    return await patchAsRead(
      this.#context.client,
      CLAIMS,
      claim,
      { status: { ...status, allocatedResourceStatuses } },
      'status',
    );
  }

  #now(): string {
    return rfc3339(this.#context.clock.now());
  }
}
