// Staging and publishing: which calls a volume's driver gets, in which order, never two at once, and what is undone
// when the last pod has gone. The truth is in the notes on disk and the mount table; memory only saves looking.

import { lstatSync, mkdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { isCsiError } from '../../../csi/client.ts';
import { resolvesWithin } from '../../../lib/abort.ts';
import type { Clock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { mountAt } from '../../../lib/mountinfo.ts';
import type { CsiNode, CsiNodeDriver, VolumeCapability } from '../../ports/csi.ts';
import type { Mounter } from '../../ports/mounter.ts';
import { failedStep, stepFailed, type VolumeStepError } from '../mount-failures.ts';
import { mapDevice, unmapDevice } from './block.ts';
import {
  blockStagingPlace,
  podBlockPlace,
  podPlace,
  type StagingPlace,
  stagingPlace,
  stagingRoot,
  volumeKey,
} from './layout.ts';
import {
  findPodNotes,
  findStagedNotes,
  type PodNote,
  removeEmpty,
  removeNote,
  type StagedNote,
  writeNote,
} from './notes.ts';
import { csiMessage, isFinal, notRegistered } from './outcome.ts';
import { Serial } from './serial.ts';
import { Unstaging } from './unstaging.ts';
import { type CsiVolume, exclusivityProblem, type VolumeUser } from './volume.ts';

/** How long undoing waits for a driver that is not registered before it fails. */
const DRIVER_WAIT_MS = 10_000;

export interface NodeVolumesOptions {
  readonly rootDir: string;
  readonly nodeName: string;
  readonly csi: CsiNode;
  readonly mounter: Mounter;
  readonly clock: Clock;
  /** A staged volume could not be unstaged yet. */
  readonly onError: (message: string) => void;
  /** Nothing of the volume is on the node any more. */
  readonly onReleased: (driver: string, handle: string) => void;
}

/** What is to be published, with everything that had to be looked up. */
export interface PublishRequest {
  readonly volume: CsiVolume;
  readonly podUid: string;
  readonly attachment: string;
  readonly capability: VolumeCapability;
  readonly publishContext: Readonly<Record<string, string>>;
  readonly volumeContext: Readonly<Record<string, string>>;
  readonly stageSecrets: Readonly<Record<string, string>>;
  readonly publishSecrets: Readonly<Record<string, string>>;
}

interface Staged {
  readonly note: StagedNote;
  /** NodeStageVolume has succeeded in this process. */
  confirmed: boolean;
}

interface User {
  readonly podUid: string;
  note: PodNote;
}

export class NodeVolumes {
  readonly #options: NodeVolumesOptions;
  readonly #serial = new Serial();
  /** By volume key. */
  readonly #staged = new Map<string, Staged>();
  /** By volume key: who uses it, by pod and name. */
  readonly #users = new Map<string, Map<string, User>>();
  readonly #unstaging: Unstaging;
  readonly #closing = new AbortController();

  /** Reads what is on disk. What is staged and used by no pod is unstaged as soon as its driver is there. */
  constructor(options: NodeVolumesOptions) {
    this.#options = options;
    const { csi, clock, onError } = options;
    this.#unstaging = new Unstaging({
      csi,
      clock,
      driverOf: (key) => (this.#users.has(key) ? undefined : this.#staged.get(key)?.note.driverName),
      unstage: (key) => this.#serial.run(key, () => this.#unstage(key)),
      onError,
      signal: this.#closing.signal,
    });
    for (const { podUid, note } of findPodNotes(options.rootDir)) this.#addUser({ podUid, note });
    for (const note of findStagedNotes(options.rootDir)) {
      const key = volumeKey(note.driverName, note.volumeHandle);
      this.#staged.set(key, { note, confirmed: false });
      if (!this.#users.has(key)) void this.#unstaging.untilDone(key);
    }
  }

  /** The driver, or the failure that names the step it was needed for: `until` it is registered. */
  driver(name: string, failed: (why: string, options: { readonly until: Promise<void> }) => Error): CsiNodeDriver {
    const driver = this.#options.csi.driver(name);
    if (driver !== undefined) return driver;
    throw failed(notRegistered(name), { until: this.#options.csi.registered(name) });
  }

  /** Whether anything of the volume is on the node, or may be. */
  has(driver: string, handle: string): boolean {
    const key = volumeKey(driver, handle);
    return this.#users.has(key) || this.#staged.has(key);
  }

  /** Attached volumes that this node had when the process began, for a pod or staged still: not to be detached. */
  attachable(): readonly { readonly driver: string; readonly handle: string }[] {
    const used = [...this.#users.values()].flatMap((users) => [...users.values()].map(({ note }) => note));
    const staged = [...this.#staged.values()].map(({ note }) => note);
    return [...used, ...staged]
      .filter(({ attachmentID }) => attachmentID !== '')
      .map(({ driverName: driver, volumeHandle: handle }) => ({ driver, handle }));
  }

  /** Runs `body` when no other call for the volume is under way. */
  serialize<T>(volume: Pick<CsiVolume, 'driver' | 'handle'>, body: () => Promise<T>): Promise<T> {
    return this.#serial.run(volumeKey(volume.driver, volume.handle), body);
  }

  busy(volume: Pick<CsiVolume, 'driver' | 'handle'>): boolean {
    return this.#serial.busy(volumeKey(volume.driver, volume.handle));
  }

  /** Where the volume is staged; undefined when its driver does not stage. */
  stagingPath(volume: CsiVolume): string | undefined {
    const key = volumeKey(volume.driver, volume.handle);
    return this.#staged.has(key) ? this.#stagingPlace(volume).path : undefined;
  }

  /** Stages the volume unless it is, and publishes it to the pod. Idempotent. Rejects with VolumeStepError. */
  async publish(request: PublishRequest): Promise<void> {
    const { volume, podUid } = request;
    const key = volumeKey(volume.driver, volume.handle);
    await this.#serial.run(key, async () => {
      const conflict = exclusivityProblem(volume.accessModes, podUid, this.#usersOf(key));
      if (conflict !== undefined) throw failedStep(firstStep(volume), volume.specName, conflict);
      const driver = this.driver(volume.driver, (why, options) => setUpFailed(volume, why, options));
      const user = this.#recordUse(key, request);
      const stages = volume.lifecycle === 'Persistent' && (await driver.capabilities()).has('STAGE_UNSTAGE_VOLUME');
      const staging = stages ? await this.#stage(key, driver, request) : '';
      await this.#publish(user, driver, request, staging);
      if (volume.block) {
        await mapDevice(podBlockPlace(this.#options.rootDir, podUid, volume.specName), this.#options.mounter);
      }
    });
  }

  /** Undoes everything of one pod, side by side. Rejects with what would not go. */
  async unpublishAll(podUid: string): Promise<void> {
    const mine = [...this.#users].flatMap(([key, users]) =>
      [...users.values()].flatMap((user) => (user.podUid === podUid ? [{ key, user }] : [])),
    );
    const results = await Promise.allSettled(
      mine.map(async ({ key, user }) => {
        await this.#awaitDriver(user.note);
        await this.#serial.run(key, () => this.#unpublish(key, user));
        if (this.#users.has(key)) return;
        if (this.#staged.has(key)) await this.#unstaging.untilDoneOrTimeout(key);
        else this.#released(user.note);
      }),
    );
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [errorMessage(result.reason)] : []));
    if (failures.length > 0) throw new Error(failures.join('; '));
  }

  /** After a start, drivers register in their own time: the first pods to be undone need not fail for that. */
  async #awaitDriver({ driverName, phase }: PodNote): Promise<void> {
    const { csi, clock } = this.#options;
    if (phase !== 'published' || csi.driver(driverName) !== undefined) return;
    await resolvesWithin(clock, DRIVER_WAIT_MS, csi.registered(driverName), this.#closing.signal);
  }

  /** Stops trying. What is staged stays. */
  close(): void {
    this.#closing.abort();
  }

  #stagingPlace(volume: Pick<CsiVolume, 'block' | 'driver' | 'handle' | 'specName'>): StagingPlace {
    const { rootDir } = this.#options;
    return volume.block
      ? blockStagingPlace(rootDir, volume.specName)
      : stagingPlace(rootDir, volume.driver, volume.handle);
  }

  #addUser(user: User): User {
    const key = volumeKey(user.note.driverName, user.note.volumeHandle);
    const users = this.#users.get(key) ?? new Map<string, User>();
    const name = `${user.podUid}/${user.note.specVolID}`;
    const known = users.get(name);
    if (known !== undefined) return known;
    this.#users.set(key, users.set(name, user));
    return user;
  }

  #removeUser(key: string, user: User): void {
    const users = this.#users.get(key);
    users?.delete(`${user.podUid}/${user.note.specVolID}`);
    if (users?.size === 0) this.#users.delete(key);
  }

  #usersOf(key: string): VolumeUser[] {
    const users = this.#users.get(key)?.values() ?? [];
    return [...users].map(({ podUid, note }) => ({ podUid, phase: note.phase }));
  }

  /** The pod's use of the volume, noted before anything is done for it. */
  #recordUse(key: string, { volume, podUid, attachment }: PublishRequest): User {
    const known = this.#users.get(key)?.get(`${podUid}/${volume.specName}`);
    if (known !== undefined) return known;
    const note: PodNote = {
      specVolID: volume.specName,
      driverName: volume.driver,
      volumeHandle: volume.handle,
      nodeName: this.#options.nodeName,
      attachmentID: attachment,
      volumeLifecycleMode: volume.lifecycle,
      volumeMode: volume.block ? 'Block' : 'Filesystem',
      phase: 'referenced',
    };
    // Seen at the next start: there is something to be looked after.
    mkdirSync(stagingRoot(this.#options.rootDir), { recursive: true, mode: 0o750 });
    writeNote(this.#podPlace(podUid, note).note, note);
    return this.#addUser({ podUid, note });
  }

  #podPlace(podUid: string, { specVolID, volumeMode }: PodNote): { readonly note: string; readonly target: string } {
    const { rootDir } = this.#options;
    return volumeMode === 'Block' ? podBlockPlace(rootDir, podUid, specVolID) : podPlace(rootDir, podUid, specVolID);
  }

  #setPhase(user: User, phase: PodNote['phase']): void {
    if (user.note.phase === phase) return;
    user.note = { ...user.note, phase };
    writeNote(this.#podPlace(user.podUid, user.note).note, user.note);
  }

  /** Resolves to the staging path. */
  async #stage(key: string, driver: CsiNodeDriver, request: PublishRequest): Promise<string> {
    const { volume } = request;
    const place = this.#stagingPlace(volume);
    const known = this.#staged.get(key);
    if (known?.confirmed === true) return place.path;
    const note: StagedNote = {
      driverName: volume.driver,
      volumeHandle: volume.handle,
      ...(volume.block ? { specVolID: volume.specName } : {}),
      attachmentID: request.attachment,
    };
    if (known === undefined) writeNote(place.note, note);
    mkdirSync(place.path, { recursive: true, mode: 0o750 });
    const staged = known ?? { note, confirmed: false };
    this.#staged.set(key, staged);
    try {
      await driver.node.NodeStageVolume({
        volume_id: volume.handle,
        publish_context: { ...request.publishContext },
        staging_target_path: place.path,
        volume_capability: request.capability,
        secrets: { ...request.stageSecrets },
        volume_context: { ...volume.attributes },
      });
    } catch (error) {
      // Never staged before, and the call has failed finally: there is nothing to undo.
      if (known === undefined && isFinal(error)) this.#dropStaged(key, place);
      const step = volume.block ? 'MapVolume.SetUpDevice' : 'MountVolume.MountDevice';
      throw failedStep(step, volume.specName, csiMessage(error), { cause: error });
    }
    staged.confirmed = true;
    return place.path;
  }

  async #publish(user: User, driver: CsiNodeDriver, request: PublishRequest, staging: string): Promise<void> {
    const { volume, podUid } = request;
    const { target } = this.#podPlace(podUid, user.note);
    const before = user.note.phase;
    mkdirSync(dirname(target), { recursive: true, mode: 0o750 });
    this.#setPhase(user, 'published');
    try {
      await driver.node.NodePublishVolume({
        volume_id: volume.handle,
        publish_context: { ...request.publishContext },
        staging_target_path: staging,
        target_path: target,
        volume_capability: request.capability,
        readonly: volume.readOnly,
        secrets: { ...request.publishSecrets },
        volume_context: { ...request.volumeContext },
      });
    } catch (error) {
      if (before === 'referenced' && isFinal(error) && removeEmpty(target)) this.#setPhase(user, 'referenced');
      throw setUpFailed(volume, csiMessage(error), { cause: error });
    }
  }

  async #unpublish(key: string, user: User): Promise<void> {
    const { rootDir, mounter } = this.#options;
    const { note, podUid } = user;
    const place = this.#podPlace(podUid, note);
    if (note.volumeMode === 'Block') await unmapDevice(podBlockPlace(rootDir, podUid, note.specVolID), mounter);
    if (note.phase === 'published') {
      const failed = (why: string, cause?: ErrorOptions): Error =>
        new Error(stepFailed('UnmountVolume.TearDown', note.specVolID, why), cause);
      const driver = this.driver(note.driverName, (why) => failed(why));
      await this.#undo(place.target, failed, () =>
        driver.node.NodeUnpublishVolume({ volume_id: note.volumeHandle, target_path: place.target }),
      );
    }
    await this.#clear(place.target);
    if (note.volumeMode === 'Block') removeEmpty(dirname(place.target));
    removeNote(place.note);
    this.#removeUser(key, user);
  }

  /** Makes the call. A volume that the driver reports as NOT_FOUND is undone when nothing of it is mounted. */
  async #undo(
    path: string,
    failed: (why: string, options: ErrorOptions) => Error,
    call: () => Promise<unknown>,
  ): Promise<void> {
    try {
      await call();
    } catch (error) {
      const gone = isCsiError(error, 'NOT_FOUND') && mountAt(await this.#options.mounter.list(), path) === undefined;
      if (!gone) throw failed(csiMessage(error), { cause: error });
    }
  }

  /** Takes away the mount point; a driver that leaves its mount has it unmounted here. */
  async #clear(path: string): Promise<void> {
    const { mounter } = this.#options;
    if (removeEmpty(path)) return;
    if (mountAt(await mounter.list(), path) !== undefined) await mounter.unmount(path);
    if (removeEmpty(path)) return;
    // The place of a device is a file.
    if (lstatSync(path).isDirectory()) throw new Error(`${path} cannot be removed: the driver left something in it`);
    rmSync(path);
  }

  async #unstage(key: string): Promise<void> {
    const staged = this.#staged.get(key);
    // A new user came while we were in the queue.
    if (staged === undefined || this.#users.has(key)) return;
    const { driverName, volumeHandle, specVolID = '' } = staged.note;
    const block = staged.note.specVolID !== undefined;
    const place = this.#stagingPlace({ block, driver: driverName, handle: volumeHandle, specName: specVolID });
    const step = block ? 'UnmapVolume.TearDownDevice' : 'UnmountDevice';
    const failed = (why: string, cause?: ErrorOptions): Error => new Error(stepFailed(step, volumeHandle, why), cause);
    const driver = this.driver(driverName, (why) => failed(why));
    staged.confirmed = false;
    await this.#undo(place.path, failed, () =>
      driver.node.NodeUnstageVolume({ volume_id: volumeHandle, staging_target_path: place.path }),
    );
    await this.#clear(place.path);
    this.#dropStaged(key, place);
    this.#released(staged.note);
  }

  #dropStaged(key: string, place: StagingPlace): void {
    removeEmpty(place.path);
    removeNote(place.note);
    const directory = dirname(place.note);
    // Of a device: <name>/data, <name>/dev, <name>.
    if (directory.endsWith('/data')) {
      removeEmpty(`${dirname(directory)}/dev`);
      removeEmpty(dirname(directory));
    }
    this.#staged.delete(key);
  }

  #released({ driverName, volumeHandle }: StagedNote | PodNote): void {
    this.#options.onReleased(driverName, volumeHandle);
  }
}

/** The kubelet's first step of a volume, named in errors. */
function firstStep({ block }: Pick<CsiVolume, 'block'>): string {
  return block ? 'MapVolume.SetUpDevice' : 'MountVolume.SetUp';
}

function setUpFailed(
  volume: Pick<CsiVolume, 'block' | 'specName'>,
  why: string,
  options: Parameters<typeof failedStep>[3],
): VolumeStepError {
  return failedStep(volume.block ? 'MapVolume.MapPodDevice' : 'MountVolume.SetUp', volume.specName, why, options);
}
