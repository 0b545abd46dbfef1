// Makes volumes for claims and deletes them when their claims are gone, as the external-provisioner does beside a CSI
// driver. Requests and the meaning of responses are decided in request.ts, topology.ts and delete.ts.

import { isAlreadyExists, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { objectKey } from '../../../client/store.ts';
import type { Node } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { isCsiError } from '../../../csi/client.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import {
  ANNOTATIONS,
  annotation,
  claimClass,
  isBound,
  type PersistentVolume,
  type PersistentVolumeClaim,
  requestedBytes,
  type StorageClass,
  volumeMode,
} from '../../storage/objects.ts';
import { claimSubject, OnceRecorder, volumeSubject } from '../../storage/once-recorder.ts';
import {
  addFinalizer,
  CLAIMS,
  deleteAsRead,
  patchAsRead,
  releaseFinalizer,
  removeFinalizer,
  VOLUMES,
} from '../../storage/write.ts';
import { driverMessage } from '../shared/driver-message.ts';
import { CONTROLLER_TIMEOUT_MS, DRIVER_BACKOFF, type Driver } from '../shared/drivers.ts';
import { ParameterError, readSecret, secretReference } from '../shared/secrets.ts';
import { attachedTo, finalizerDecision, shouldDelete } from './delete.ts';
import {
  classifyFailure,
  createRequest,
  PROVISIONER_FINALIZER,
  type ProvisionInput,
  persistentVolume,
  secretContext,
  shouldProvision,
  volumeNameFor,
} from './request.ts';
import { topologyRequirement } from './topology.ts';

type Needed = Pick<
  Informers,
  'persistentVolumes' | 'persistentVolumeClaims' | 'storageClasses' | 'csiNodes' | 'nodes' | 'volumeAttachments'
>;

const CLAIM = 'claim ';
const VOLUME = 'volume ';

/** A claim as it was at its first CreateVolume, which may still be under way. */
interface InProgress {
  readonly claim: PersistentVolumeClaim;
  readonly storageClass: StorageClass;
}

/** Of one driver. Keys are "claim <namespace>/<name>" and "volume <name>". */
export class Provisioner implements Controller {
  readonly name: string;
  readonly workers = 4;
  readonly queue: WorkQueue;
  readonly #driver: Driver;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #events: OnceRecorder;
  readonly #identity: string;
  readonly #inProgress = new Map<string, InProgress>();
  /** uids of volumes that the driver has deleted and whose objects are being deleted. */
  readonly #deleted = new Set<string>();

  constructor(driver: Driver, context: ControllerContext, informers: Needed) {
    this.name = `provisioner ${driver.name}`;
    this.#driver = driver;
    this.#context = context;
    this.#informers = informers;
    this.#events = new OnceRecorder(context.recorder, context.clock);
    this.#identity = `${context.clock.now()}-${driver.name}`;
    this.queue = new WorkQueue({ clock: context.clock, ...DRIVER_BACKOFF });
    const { persistentVolumeClaims, persistentVolumes, storageClasses, volumeAttachments } = informers;
    persistentVolumeClaims.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type === 'removed') this.#events.forget(object.metadata.uid);
        this.queue.add(`${CLAIM}${objectKey(object)}`);
      }
    });
    persistentVolumes.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type === 'removed') {
          this.#events.forget(object.metadata.uid);
          this.#deleted.delete(object.metadata.uid);
        } else this.queue.add(`${VOLUME}${object.metadata.name}`);
      }
    });
    storageClasses.onChange((changes) => {
      if (changes.length === 0) return;
      for (const claim of persistentVolumeClaims.list()) this.queue.add(`${CLAIM}${objectKey(claim)}`);
    });
    volumeAttachments.onChange((changes) => {
      for (const { type, object } of changes) {
        const volume = object.spec.source.persistentVolumeName;
        if (type === 'removed' && volume !== undefined) this.queue.add(`${VOLUME}${volume}`);
      }
    });
  }

  async sync(key: string): Promise<void> {
    if (key.startsWith(CLAIM)) await this.#syncClaim(key.slice(CLAIM.length));
    else {
      const volume = this.#informers.persistentVolumes.get(key.slice(VOLUME.length));
      if (volume !== undefined) await this.#syncVolume(volume);
    }
  }

  async #syncClaim(key: string): Promise<void> {
    const known = this.#informers.persistentVolumeClaims.get(key);
    const storageClass = known === undefined ? undefined : this.#informers.storageClasses.get(claimClass(known) ?? '');
    const unfinished = this.#inProgress.get(key);
    // A CreateVolume that was sent before the claim was deleted is completed: otherwise the volume would leak.
    const same = unfinished === undefined || unfinished.claim.metadata.uid === known?.metadata.uid;
    if (known !== undefined && same && shouldProvision(known, storageClass, this.#driver.name)) {
      if (storageClass !== undefined) await this.#provision(key, { claim: known, storageClass });
    } else if (unfinished !== undefined) {
      const bound = known !== undefined && same && (known.spec?.volumeName ?? '') !== '';
      if (bound) this.#inProgress.delete(key);
      else {
        await this.#provision(key, unfinished);
        // Another claim of that name may wait its turn.
        if (!same) this.queue.add(`${CLAIM}${key}`);
      }
    }
  }

  async #provision(key: string, { claim, storageClass }: InProgress): Promise<void> {
    if (await this.#exists(volumeNameFor(claim))) {
      this.#inProgress.delete(key);
      return;
    }
    const { namespace, name } = claim.metadata;
    const message = `External provisioner is provisioning volume for claim "${namespace}/${name}"`;
    if (!this.#inProgress.has(key)) this.#events.event(claimSubject(claim), 'Normal', 'Provisioning', message);
    const selected = annotation(claim, ANNOTATIONS.selectedNode);
    const node = selected === undefined ? undefined : this.#informers.nodes.get(selected);
    if (selected !== undefined && node === undefined && !this.#inProgress.has(key)) {
      await this.#reschedule(claim, `failed to get target node: node "${selected}" not found`);
      return;
    }
    try {
      const input = await this.#input(claim, storageClass, node);
      const made = await this.#create(key, input, node !== undefined);
      await this.#keep(input, made);
      this.#inProgress.delete(key);
      const succeeded = `Successfully provisioned volume ${volumeNameFor(claim)}`;
      this.#events.event(claimSubject(claim), 'Normal', 'ProvisioningSucceeded', succeeded);
    } catch (error) {
      if (error instanceof Rescheduled) await this.#reschedule(claim, error.message);
      else throw this.#failed(claim, storageClass, error);
    }
  }

  #failed(claim: PersistentVolumeClaim, storageClass: StorageClass, error: unknown): unknown {
    const message = `failed to provision volume with StorageClass "${storageClass.metadata.name}": ${driverMessage(error)}`;
    this.#events.event(claimSubject(claim), 'Warning', 'ProvisioningFailed', message);
    return error;
  }

  /** Lets the scheduler choose another node. */
  async #reschedule(claim: PersistentVolumeClaim, why: string): Promise<void> {
    this.#events.event(claimSubject(claim), 'Warning', 'ProvisioningFailed', why);
    await patchAsRead(this.#context.client, CLAIMS, claim, {
      metadata: { annotations: { [ANNOTATIONS.selectedNode]: null } },
    });
  }

  async #exists(name: string): Promise<boolean> {
    if (this.#informers.persistentVolumes.get(name) !== undefined) return true;
    try {
      await this.#context.client.get(resourcePath('v1', 'persistentvolumes', { name }));
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  async #input(
    claim: PersistentVolumeClaim,
    storageClass: StorageClass,
    node: Node | undefined,
  ): Promise<ProvisionInput> {
    const { controller, topology } = await this.#driver.capabilities();
    if (!controller.has('CREATE_DELETE_VOLUME')) {
      throw new ParameterError(`CSI driver ${this.#driver.name} does not support dynamic provisioning`);
    }
    const { nodes, csiNodes } = this.#informers;
    const requirement = topology
      ? topologyRequirement({
          driver: this.#driver.name,
          nodes: nodes.list(),
          csiNodes: csiNodes.list(),
          allowedTopologies: storageClass.allowedTopologies ?? [],
          claimName: claim.metadata.name,
          ...(node === undefined ? {} : { selectedNode: node }),
        })
      : undefined;
    const reference = secretReference('provisioner', storageClass.parameters ?? {}, secretContext(claim));
    const cloneOf = this.#cloneSource(claim, controller.has('CLONE_VOLUME'));
    return {
      claim,
      storageClass,
      driver: this.#driver.name,
      singleNodeModes: controller.has('SINGLE_NODE_MULTI_WRITER'),
      secrets: await readSecret(this.#context.client, reference),
      ...(requirement === undefined ? {} : { requirement }),
      ...(cloneOf === undefined ? {} : { cloneOf }),
    };
  }

  /** The volume_id to copy, where the claim names a claim to copy from. */
  #cloneSource(claim: PersistentVolumeClaim, supported: boolean): string | undefined {
    const source = claim.spec?.dataSourceRef ?? claim.spec?.dataSource;
    if (source === undefined) return undefined;
    if (source.kind !== 'PersistentVolumeClaim' || (source.apiGroup ?? '') !== '') {
      throw new ParameterError(`the data source ${source.kind} "${source.name}" is not supported`);
    }
    if (!supported) throw new ParameterError(`CSI driver does not support clone operations: ${this.#driver.name}`);
    const from = this.#informers.persistentVolumeClaims.get(`${claim.metadata.namespace}/${source.name}`);
    if (from === undefined || !isBound(from)) {
      throw new Error(
        `error getting PVC ${source.name} (namespace "${claim.metadata.namespace}") from api server: it is not there or not bound`,
      );
    }
    const volume = this.#informers.persistentVolumes.get(from.spec?.volumeName ?? '');
    const csi = volume?.spec?.csi;
    if (csi?.driver !== this.#driver.name) {
      throw new ParameterError(`the source volume of PVC ${source.name} is not of the driver ${this.#driver.name}`);
    }
    if (volumeMode(from.spec) !== volumeMode(claim.spec)) {
      throw new ParameterError(`the volume mode of source PVC ${source.name} differs from the claim's`);
    }
    if (requestedBytes(claim) < requestedBytes(from)) {
      throw new ParameterError(
        `new PVC request must be greater than or equal in size to the specified PVC data source`,
      );
    }
    return csi.volumeHandle;
  }

  /** CreateVolume. A call that may still be under way is recorded. Throws Rescheduled when another node must be chosen. */
  async #create(key: string, input: ProvisionInput, nodeChosen: boolean) {
    const request = createRequest(input);
    const { claim, storageClass } = input;
    const { topology } = await this.#driver.capabilities();
    this.#inProgress.set(key, { claim, storageClass });
    try {
      const { volume } = await this.#driver.client.controller.CreateVolume(request, {
        deadlineMs: CONTROLLER_TIMEOUT_MS,
      });
      if (volume === null) throw new Error(`the driver ${this.#driver.name} answered CreateVolume without a volume`);
      return volume;
    } catch (error) {
      if (!isCsiError(error)) throw error;
      const outcome = classifyFailure(error.code, nodeChosen && topology);
      if (outcome !== 'background') this.#inProgress.delete(key);
      if (outcome === 'reschedule') throw new Rescheduled(driverMessage(error));
      throw error;
    }
  }

  /** Writes the PersistentVolume; a volume that is too small is deleted instead. */
  async #keep(input: ProvisionInput, made: Parameters<typeof persistentVolume>[1]): Promise<void> {
    const wanted = requestedBytes(input.claim);
    const got = BigInt(made.capacity_bytes);
    if (got !== 0n && got < wanted) {
      const { secrets } = input;
      await this.#driver.client.controller.DeleteVolume({ volume_id: made.volume_id, secrets: { ...secrets } });
      throw new Error(`created volume capacity ${got} less than requested capacity ${wanted}`);
    }
    try {
      const body = persistentVolume(input, made, this.#identity);
      await this.#context.client.create(resourcePath('v1', 'persistentvolumes'), body);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }

  async #syncVolume(volume: PersistentVolume): Promise<void> {
    const { client } = this.#context;
    const finalizer = finalizerDecision(volume, this.#driver.name);
    if (finalizer === 'add') await addFinalizer(client, VOLUMES, volume, PROVISIONER_FINALIZER);
    if (finalizer === 'remove') await removeFinalizer(client, VOLUMES, volume, PROVISIONER_FINALIZER);
    // The change itself brings the volume back here.
    if (finalizer !== 'keep' || !shouldDelete(volume, this.#driver.name)) return;
    try {
      await this.#delete(volume);
    } catch (error) {
      this.#events.event(volumeSubject(volume), 'Warning', 'VolumeFailedDelete', driverMessage(error));
      throw error;
    }
  }

  async #delete(volume: PersistentVolume): Promise<void> {
    const { client } = this.#context;
    if (!this.#deleted.has(volume.metadata.uid)) await this.#deleteBehind(volume);
    await deleteAsRead(client, VOLUMES, volume);
    await releaseFinalizer(client, VOLUMES, volume, PROVISIONER_FINALIZER);
  }

  /** The driver's volume of the object. */
  async #deleteBehind(volume: PersistentVolume): Promise<void> {
    const { client } = this.#context;
    const node = attachedTo(volume, this.#informers.volumeAttachments.list());
    if (node !== undefined)
      throw new Error(`persistentvolume ${volume.metadata.name} is still attached to node ${node}`);
    const name = annotation(volume, ANNOTATIONS.deletionSecretName) ?? '';
    const namespace = annotation(volume, ANNOTATIONS.deletionSecretNamespace) ?? '';
    const secrets = await readSecret(client, name === '' ? undefined : { name, namespace });
    const volume_id = volume.spec?.csi?.volumeHandle ?? '';
    await this.#driver.client.controller.DeleteVolume({ volume_id, secrets }, { deadlineMs: CONTROLLER_TIMEOUT_MS });
    this.#context.log(`${this.name}: volume ${volume.metadata.name} (${volume_id}) is deleted`);
    this.#deleted.add(volume.metadata.uid);
  }
}

/** CreateVolume failed because of where the volume should have been. */
class Rescheduled extends Error {
  override name = 'Rescheduled';
}
