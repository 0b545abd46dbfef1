// CSI volumes of pods, put together: waits until the volume is attached, reads what the calls need, stages and
// publishes, applies fsGroup, and serves the volume while the pod has it (expansion, republishing,
// figures). Which call comes when is in node-volumes.ts.

import type { SecretReference } from 'kubernetes-types/core/v1';
import type { CSIDriverSpec } from 'kubernetes-types/storage/v1';
import type { Pod } from '../../../client/types.ts';
import { abortable } from '../../../lib/abort.ts';
import type { Clock, Timer } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { Tracer } from '../../../lib/trace.ts';
import type { EventRecorder, ObjectReader } from '../../ports/api.ts';
import type { CsiNode } from '../../ports/csi.ts';
import type { Mounter } from '../../ports/mounter.ts';
import type { PodRef } from '../../ports/runtime.ts';
import type { StorageObjects } from '../../ports/storage.ts';
import type { Claim } from '../claims.ts';
import { failedStep, VolumeStepError } from '../mount-failures.ts';
import { applyFsGroup } from '../ownership.ts';
import type { PreparedVolume } from '../registry.ts';
import type { VolumesInUse } from '../volumes-in-use.ts';
import { waitForAttachment } from './attachment.ts';
import { Expander, type MountedVolume } from './expander.ts';
import { attachmentName, CSI_PLUGIN, podBlockPlace, podPlace, uniqueVolumeName } from './layout.ts';
import { NodeVolumes } from './node-volumes.ts';
import { csiMessage } from './outcome.ts';
import {
  appliesFsGroup,
  type CsiVolume,
  type DriverToken,
  lifecycleProblem,
  publishVolumeContext,
  volumeCapability,
} from './volume.ts';

/** How often NodePublishVolume is repeated with requiresRepublish, with jitter. */
const REPUBLISH_MIN_MS = 60_000;
const REPUBLISH_SPREAD_MS = 30_000;
/** Expiry of a token whose tokenRequest names none, seconds. */
const DEFAULT_TOKEN_SECONDS = 3600;

export interface CsiVolumesOptions {
  readonly rootDir: string;
  readonly nodeName: string;
  readonly csi: CsiNode;
  readonly mounter: Mounter;
  readonly storage: StorageObjects;
  readonly objects: ObjectReader;
  readonly recorder: EventRecorder;
  readonly inUse: VolumesInUse;
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly onError: (message: string) => void;
  /** 0 ≤ x < 1; Math.random by default. */
  readonly random?: () => number;
}

type PublishContext = Readonly<Record<string, string>>;

/** A pod's CSI volumes, while this process serves them. */
interface MountedRecord {
  readonly mounted: MountedVolume;
  readonly publishContext: PublishContext;
  readonly volumeName: string;
  readonly ending: AbortController;
  timer: Timer | undefined;
}

export class CsiVolumes {
  readonly #options: CsiVolumesOptions;
  readonly #volumes: NodeVolumes;
  readonly #expander: Expander;
  /** By pod uid, then by the volume's name in the pod. */
  readonly #mountedByPod = new Map<string, Map<string, MountedRecord>>();
  /** Waiting for an attachment ends when the next try of the same volume begins. */
  readonly #attachWaits = new Map<string, AbortController>();
  /** Pods that need an attached volume, mounted or not yet, by the volume's name in node.status. */
  readonly #inUseBy = new Map<string, Set<string>>();

  constructor(options: CsiVolumesOptions) {
    this.#options = options;
    const { rootDir, nodeName, csi, mounter, clock, onError, inUse } = options;
    this.#volumes = new NodeVolumes({
      rootDir,
      nodeName,
      csi,
      mounter,
      clock,
      onError,
      onReleased: (driver, handle) => this.#stopReportingInUse(driver, handle),
    });
    for (const { driver, handle } of this.#volumes.attachable()) void inUse.add(uniqueVolumeName(driver, handle));
    this.#expander = new Expander({
      volumes: this.#volumes,
      objects: options.storage,
      recorder: options.recorder,
      clock,
      tracer: options.tracer,
      onError,
      secrets: (volume) => this.#secrets(volume, 'expand'),
    });
  }

  /** What the manager mounts. `claim` is absent for an inline volume. */
  async prepare(
    pod: Pod,
    volumeName: string,
    volume: CsiVolume,
    claim: Claim | undefined,
    signal: AbortSignal,
  ): Promise<PreparedVolume> {
    const driver = await withVolumeName(
      volume,
      async () => (await this.#options.storage.csiDriver(volume.driver))?.spec,
    );
    const problem = lifecycleProblem(volume, driver);
    if (problem !== undefined) {
      throw failedStep('MountVolume.SetUp', volume.specName, problem);
    }
    const place = podPlace(this.#options.rootDir, pod.metadata.uid, volume.specName);
    const block = podBlockPlace(this.#options.rootDir, pod.metadata.uid, volume.specName);
    return {
      name: volumeName,
      plugin: CSI_PLUGIN,
      plan: { path: volume.block ? block.target : place.target, readOnly: volume.readOnly, managed: !volume.readOnly },
      ...(volume.block ? { device: block } : {}),
      update: undefined,
      mount: async (current) => {
        const attachment = this.#attachment(volume, driver);
        const context = attachment === '' ? {} : await this.#waitForAttach(current, volume, attachment, signal);
        signal.throwIfAborted();
        const mounted = await this.#options.tracer.span(
          'volume',
          'MountVolume.StageAndPublish',
          { volume: volumeName, driver: volume.driver },
          () => withVolumeName(volume, () => this.#mount(current, volume, driver, context)),
        );
        this.#recordMounted(volumeName, mounted, driver, context);
        if (claim === undefined) return;
        // A volume that could not grow is used as it is; the expander goes on trying, and has reported the failure as an event.
        await this.#expander
          .expandMounted(mounted, claim)
          .catch((error: unknown) => this.#options.onError(errorMessage(error)));
        this.#expander.follow(mounted, this.#unmountSignal(current, volumeName));
      },
    };
  }

  async tearDown(pod: PodRef): Promise<void> {
    for (const { ending, timer } of this.#mountedByPod.get(pod.uid)?.values() ?? []) {
      ending.abort();
      timer?.cancel();
    }
    this.#mountedByPod.delete(pod.uid);
    await this.#volumes.unpublishAll(pod.uid);
  }

  /** Volumes that pods have, for figures about them. */
  mounted(): readonly { readonly volumeName: string; readonly mounted: MountedVolume }[] {
    return [...this.#mountedByPod.values()].flatMap((volumes) => [...volumes.values()]);
  }

  get volumes(): NodeVolumes {
    return this.#volumes;
  }

  close(): void {
    this.#volumes.close();
    for (const { ending, timer } of [...this.#mountedByPod.values()].flatMap((volumes) => [...volumes.values()])) {
      ending.abort();
      timer?.cancel();
    }
    for (const trying of this.#attachWaits.values()) trying.abort();
  }

  async #mount(
    pod: Pod,
    volume: CsiVolume,
    driver: CSIDriverSpec | undefined,
    publishContext: PublishContext,
  ): Promise<MountedVolume> {
    const { rootDir } = this.#options;
    const find = () => this.#volumes.driver(volume.driver, (why, options) => driverMissing(volume, why, options));
    const capabilities = await find()
      .capabilities()
      .catch((error: unknown) => {
        throw driverMissing(volume, csiMessage(error), { cause: error });
      });
    const [stageSecrets, publishSecrets, tokens] = await Promise.all([
      this.#secrets(volume, 'stage'),
      this.#secrets(volume, 'publish'),
      this.#tokens(pod, driver),
    ]);
    const fsGroup = pod.spec.securityContext?.fsGroup;
    const capability = volumeCapability(volume, capabilities, fsGroup);
    const { uid } = pod.metadata;
    const place = volume.block ? podBlockPlace(rootDir, uid, volume.specName) : podPlace(rootDir, uid, volume.specName);
    await this.#volumes.publish({
      volume,
      podUid: uid,
      attachment: this.#attachment(volume, driver),
      capability,
      publishContext,
      volumeContext: publishVolumeContext(volume, pod, driver, tokens),
      stageSecrets,
      publishSecrets,
    });
    if (fsGroup !== undefined && appliesFsGroup(volume, driver, capabilities, fsGroup)) {
      await this.#giveToGroup(volume, place.target, fsGroup, pod);
    }
    return { volume, pod, path: place.target, capability, driver: find };
  }

  async #giveToGroup(volume: CsiVolume, path: string, fsGroup: number, pod: Pod): Promise<void> {
    try {
      const policy = pod.spec.securityContext?.fsGroupChangePolicy;
      await applyFsGroup(path, { gid: fsGroup, policy, tracer: this.#options.tracer });
    } catch (error) {
      const why = `applyFSGroup failed for vol ${volume.handle}: ${errorMessage(error)}`;
      throw failedStep('MountVolume.SetUp', volume.specName, why, { cause: error });
    }
  }

  /** The VolumeAttachment's name; '' where nothing is attached. Without a CSIDriver object attaching is required. */
  #attachment({ lifecycle, handle, driver: name }: CsiVolume, driver: CSIDriverSpec | undefined): string {
    if (lifecycle === 'Ephemeral' || driver?.attachRequired === false) return '';
    return attachmentName(handle, name, this.#options.nodeName);
  }

  async #waitForAttach(
    pod: Pod,
    volume: CsiVolume,
    attachment: string,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, string>>> {
    const { storage, clock } = this.#options;
    signal.throwIfAborted();
    const key = `${pod.metadata.uid}/${volume.specName}`;
    this.#attachWaits.get(key)?.abort();
    const trying = new AbortController();
    this.#attachWaits.set(key, trying);
    // Before the mount, so that the volume is not detached during it.
    const reported = this.#reportInUse(pod, volume, signal);
    try {
      const both = AbortSignal.any([signal, trying.signal]);
      const context = await waitForAttachment(attachment, volume, storage, clock, both);
      await abortable(reported, signal);
      return context;
    } finally {
      if (signal.aborted) this.#attachWaits.delete(key);
    }
  }

  /** Resolves when node.status names the volume; it does as long as a pod needs it or any part of it is mounted. */
  #reportInUse({ metadata: { uid } }: Pod, { driver, handle }: CsiVolume, signal: AbortSignal): Promise<void> {
    const name = uniqueVolumeName(driver, handle);
    const pods = this.#inUseBy.get(name) ?? new Set<string>();
    this.#inUseBy.set(name, pods);
    if (!pods.has(uid)) {
      pods.add(uid);
      const gone = (): void => {
        pods.delete(uid);
        if (!this.#volumes.has(driver, handle)) this.#stopReportingInUse(driver, handle);
      };
      signal.addEventListener('abort', gone, { once: true });
    }
    return this.#options.inUse.add(name);
  }

  #stopReportingInUse(driver: string, handle: string): void {
    const name = uniqueVolumeName(driver, handle);
    if ((this.#inUseBy.get(name)?.size ?? 0) > 0) return;
    this.#inUseBy.delete(name);
    this.#options.inUse.delete(name);
  }

  async #secrets(volume: CsiVolume, use: 'stage' | 'publish' | 'expand'): Promise<Record<string, string>> {
    const reference: SecretReference | undefined = volume.secrets[use];
    if (reference === undefined) return {};
    const { namespace = '', name = '' } = reference;
    const failed = (why: string, cause?: unknown): VolumeStepError =>
      secretMissing(volume, use, `${namespace}/${name}`, why, cause);
    let secret: Awaited<ReturnType<ObjectReader['secret']>>;
    try {
      secret = await this.#options.objects.secret(namespace, name);
    } catch (error) {
      throw failed(errorMessage(error), error);
    }
    if (secret === undefined) throw failed(`secrets "${name}" not found`);
    const decoded = Object.entries(secret.data ?? {}).map(([key, value]) => [
      key,
      Buffer.from(value, 'base64').toString('utf8'),
    ]);
    return Object.fromEntries(decoded);
  }

  async #tokens(pod: Pod, driver: CSIDriverSpec | undefined): Promise<DriverToken[]> {
    return await Promise.all(
      (driver?.tokenRequests ?? []).map(async ({ audience, expirationSeconds = DEFAULT_TOKEN_SECONDS }) => {
        const request = { expirationSeconds, ...(audience === '' ? {} : { audience }) };
        return { audience, ...(await this.#options.objects.serviceAccountToken(pod, request)) };
      }),
    );
  }

  #recordMounted(
    volumeName: string,
    mounted: MountedVolume,
    driver: CSIDriverSpec | undefined,
    publishContext: PublishContext,
  ): void {
    const { uid } = mounted.pod.metadata;
    const ofPod = this.#mountedByPod.get(uid) ?? new Map<string, MountedRecord>();
    this.#mountedByPod.set(uid, ofPod);
    const ending = ofPod.get(volumeName)?.ending ?? new AbortController();
    ofPod.get(volumeName)?.timer?.cancel();
    const record: MountedRecord = { mounted, publishContext, volumeName, ending, timer: undefined };
    ofPod.set(volumeName, record);
    if (driver?.requiresRepublish === true) this.#republishLater(record, driver);
  }

  #unmountSignal(pod: Pod, volumeName: string): AbortSignal {
    return this.#mountedByPod.get(pod.metadata.uid)?.get(volumeName)?.ending.signal ?? AbortSignal.abort();
  }

  #republishLater(record: MountedRecord, driver: CSIDriverSpec): void {
    const { clock, random = Math.random, tracer, onError } = this.#options;
    const { pod, volume } = record.mounted;
    record.timer = clock.after(REPUBLISH_MIN_MS + random() * REPUBLISH_SPREAD_MS, () => {
      if (record.ending.signal.aborted) return;
      const { uid, namespace, name } = pod.metadata;
      tracer
        .within({ pod: { uid, namespace, name }, cause: 'requiresRepublish' }, () =>
          this.#mount(pod, volume, driver, record.publishContext),
        )
        // What is mounted stays as it was.
        .catch((error: unknown) => onError(errorMessage(error)))
        .finally(() => {
          if (!record.ending.signal.aborted) this.#republishLater(record, driver);
        });
    });
  }
}

/** Failures name the volume by its PersistentVolume, as the kubelet does. */
async function withVolumeName<T>(volume: CsiVolume, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof VolumeStepError) throw error;
    const step = volume.block ? 'MapVolume.SetUpDevice' : 'MountVolume.SetUp';
    throw failedStep(step, volume.specName, errorMessage(error), { cause: error });
  }
}

/** The kubelet's message where a volume's driver is not registered. */
function driverMissing(
  { block, lifecycle, specName }: CsiVolume,
  why: string,
  options: Parameters<typeof failedStep>[3],
): VolumeStepError {
  const failed = (step: string, what: string): VolumeStepError =>
    failedStep(step, specName, `kubernetes.io/csi: ${what}: ${why}`, options);
  if (block) return failed('MapVolume.SetUpDevice', 'blockMapper.SetUpDevice failed to get CSI client');
  return lifecycle === 'Ephemeral'
    ? failed('MountVolume.SetUp', 'mounter.SetUpAt failed to get CSI client')
    : failed('MountVolume.MountDevice', 'attacher.MountDevice failed to create newCsiDriverClient');
}

/** The kubelet's message where a call's secret cannot be read. */
function secretMissing(
  { block, specName }: CsiVolume,
  use: 'stage' | 'publish' | 'expand',
  secret: string,
  why: string,
  cause?: unknown,
): VolumeStepError {
  const field = { stage: 'NodeStageSecretRef', publish: 'NodePublishSecretRef', expand: 'NodeExpandSecretRef' }[use];
  if (block)
    return failedStep('MapVolume.SetUpDevice', specName, `failed to get ${field} ${secret}: ${why}`, { cause });
  const step = use === 'stage' ? 'MountVolume.MountDevice' : 'MountVolume.SetUp';
  return failedStep(step, specName, `fetching ${field} ${secret} failed: ${why}`, { cause });
}
