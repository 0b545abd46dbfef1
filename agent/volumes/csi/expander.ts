// Grows volumes that pods use: when a claim's PersistentVolume has become larger than what the claim has, the driver is
// called to make the rest of it usable, and the claim's status updated. One expander per mounted claim.

import type { Pod } from '../../../client/types.ts';
import { isCsiError } from '../../../csi/client.ts';
import { sleepUnlessAborted } from '../../../lib/abort.ts';
import { type BackoffEntry, nextBackoff } from '../../../lib/backoff.ts';
import type { Clock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { quantityValue } from '../../../lib/quantity.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import type { Tracer } from '../../../lib/trace.ts';
import { podReference } from '../../model/event-reference.ts';
import type { EventRecorder } from '../../ports/api.ts';
import type { CsiNodeDriver, VolumeCapability } from '../../ports/csi.ts';
import type { StorageObjects } from '../../ports/storage.ts';
import type { Claim } from '../claims.ts';
import { MOUNT_BACKOFF, stepFailed } from '../mount-failures.ts';
import { expandedStatus, expandingStatus, expansionDue, expansionFailedStatus } from './expansion.ts';
import { volumeKey } from './layout.ts';
import type { NodeVolumes } from './node-volumes.ts';
import { csiMessage, isInfeasible } from './outcome.ts';
import type { CsiVolume } from './volume.ts';

export interface ExpanderOptions {
  readonly volumes: NodeVolumes;
  readonly objects: StorageObjects;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly onError: (message: string) => void;
  readonly secrets: (volume: CsiVolume) => Promise<Record<string, string>>;
}

/** A volume as it is mounted for one pod. */
export interface MountedVolume {
  readonly volume: CsiVolume;
  readonly pod: Pod;
  /** target_path */
  readonly path: string;
  readonly capability: VolumeCapability;
  readonly driver: () => CsiNodeDriver;
}

export class Expander {
  readonly #options: ExpanderOptions;
  /** Sizes that a driver would not give a volume while it is in use, by volume key: it is called again at the next mount. */
  readonly #refused = new Map<string, string>();
  constructor(options: ExpanderOptions) {
    this.#options = options;
  }

  /** Watches the claim until `signal` aborts. A volume that is read-only or whose driver cannot expand is ignored. */
  follow(mounted: MountedVolume, signal: AbortSignal): void {
    const { claim } = mounted.volume;
    if (claim === undefined || mounted.volume.readOnly) return;
    let newest: Claim | undefined;
    let working = false;
    let again = false;
    const work = async (): Promise<void> => {
      again = true;
      if (working) return;
      working = true;
      let pause: BackoffEntry | undefined;
      // Not `retry`: the claim may change while a try or its pause lasts, and then it is another thing that is tried.
      while (again && newest !== undefined && !signal.aborted) {
        again = false;
        if (await this.#tryExpand(mounted, newest)) pause = undefined;
        else {
          pause = nextBackoff(MOUNT_BACKOFF, pause, this.#options.clock.monotonic());
          await sleepUnlessAborted(this.#options.clock, pause.delayMs, signal);
          again = true;
        }
      }
      working = false;
    };
    this.#options.objects.followClaim(
      claim.namespace,
      claim.name,
      (state) => {
        newest = state?.metadata.uid === claim.uid ? state : undefined;
        void work();
      },
      signal,
    );
  }

  /** True when there is nothing left to do for this state of the claim. */
  async #tryExpand(mounted: MountedVolume, claim: Claim): Promise<boolean> {
    const { pod } = mounted;
    try {
      await this.#options.tracer.within({ pod: { ...pod.metadata }, cause: 'persistentvolumeclaim changed' }, () =>
        this.expand(mounted, claim),
      );
      return true;
    } catch (error) {
      if (isInfeasible(error) || isCsiError(error, 'FAILED_PRECONDITION')) return true;
      this.#options.onError(errorMessage(error));
      return false;
    }
  }

  /** What a driver would not do while the volume was in use is worth another try: it has just been mounted. */
  async expandMounted(mounted: MountedVolume, claim: Claim): Promise<void> {
    this.#refused.delete(volumeKey(mounted.volume.driver, mounted.volume.handle));
    await this.expand(mounted, claim);
  }

  /** Expands the volume where that is due. Rejects with the driver's failure, after the event for it. */
  async expand(mounted: MountedVolume, claim: Claim): Promise<void> {
    const { volume, path, capability } = mounted;
    const { objects, volumes } = this.#options;
    // Without a request for more than it has, the PersistentVolume need not be read.
    const requested = claim.spec?.resources?.requests?.['storage'];
    const capacity = claim.status?.capacity?.['storage'];
    if (requested === undefined || capacity === undefined || quantityValue(requested) <= quantityValue(capacity))
      return;
    const current = await objects.volume(volume.specName);
    const size = current === undefined ? undefined : expansionDue(claim, current);
    const key = volumeKey(volume.driver, volume.handle);
    if (size === undefined || volume.readOnly || this.#refused.get(key) === size) return;
    const driver = mounted.driver();
    if (!(await driver.capabilities()).has('EXPAND_VOLUME')) return;
    const expanding = expandingStatus(claim);
    const noted = expanding === undefined ? claim : await objects.patchClaimStatus(claim, expanding);
    const secrets = await this.#options.secrets(volume);
    try {
      await volumes.serialize(volume, async () => {
        const staging = volumes.stagingPath(volume);
        await driver.node.NodeExpandVolume({
          volume_id: volume.handle,
          volume_path: path,
          capacity_range: { required_bytes: String(quantityValue(size)) },
          staging_target_path: staging ?? '',
          volume_capability: capability,
          secrets,
        });
      });
    } catch (error) {
      if (isCsiError(error, 'FAILED_PRECONDITION')) this.#refused.set(key, size);
      await this.#failed(mounted, noted, error);
      throw error;
    }
    await objects.patchClaimStatus(noted, expandedStatus(noted, size));
    this.#event(
      mounted,
      noted,
      'Normal',
      'FileSystemResizeSuccessful',
      `MountVolume.NodeExpandVolume succeeded for volume "${volume.specName}"`,
    );
  }

  async #failed(mounted: MountedVolume, claim: Claim, error: unknown): Promise<void> {
    const message = stepFailed('NodeExpandVolume.NodeExpandVolume', mounted.volume.specName, csiMessage(error));
    this.#event(mounted, claim, 'Warning', 'VolumeResizeFailed', message);
    const now = rfc3339(this.#options.clock.now());
    const status = expansionFailedStatus(claim, csiMessage(error), isInfeasible(error), now);
    await this.#options.objects.patchClaimStatus(claim, status).catch((patchError: unknown) => {
      this.#options.onError(`the failure to expand is not in the claim's status: ${errorMessage(patchError)}`);
    });
  }

  /** On the pod and on the claim, as the kubelet does. */
  #event({ pod }: MountedVolume, claim: Claim, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { recorder } = this.#options;
    recorder.event(podReference(pod), type, reason, message);
    recorder.event({ ...claim, apiVersion: 'v1', kind: 'PersistentVolumeClaim' }, type, reason, message);
  }
}
