// The events of a volume that could not be mounted, and when it is tried again: the kubelet's messages, reasons and back-off.
// Pure.

import type { BackoffPolicy } from '../../lib/backoff.ts';
import { errorMessage } from '../../lib/errors.ts';

/** The kubelet's pauses between tries of one volume: 500 ms, doubling, at most 2 min 2 s. */
export const MOUNT_BACKOFF: BackoffPolicy = {
  initialMs: 500,
  maxMs: 122_000,
  factor: 2,
  resetMs: Number.POSITIVE_INFINITY,
};

/** How long a pod's start waits for its volumes before it reports the missing ones, ms; mounting is retried all the while. */
export const POD_ATTACH_AND_MOUNT_TIMEOUT_MS = 123_000;

export interface MountFailure {
  readonly reason: 'FailedMount' | 'FailedMapVolume' | 'FailedAttachVolume';
  /** The event's message. */
  readonly message: string;
  /** As soon as this resolves, another try is worth it, whatever is left of the pause. */
  readonly until?: Promise<void>;
}

/** A failure with its own message for the event, because it was another step than MountVolume.SetUp. */
export class VolumeStepError extends Error implements MountFailure {
  override name = 'VolumeStepError';
  readonly reason: MountFailure['reason'];
  readonly until?: Promise<void>;
  constructor(message: string, options: ErrorOptions & Partial<Pick<MountFailure, 'reason' | 'until'>> = {}) {
    super(message, options);
    this.reason = options.reason ?? 'FailedMount';
    if (options.until !== undefined) this.until = options.until;
  }
}

/** The kubelet's frame around a failure: `MountVolume.MountDevice failed for volume "pvc-1" : …`. */
export function stepFailed(step: string, volume: string, why: string): string {
  return `${step} failed for volume "${volume}" : ${why}`;
}

/** The kubelet's reasons: devices are mapped, volumes are attached, everything else is mounting. */
function reasonOf(step: string): MountFailure['reason'] {
  if (step.startsWith('MapVolume.')) return 'FailedMapVolume';
  return step.startsWith('AttachVolume.') ? 'FailedAttachVolume' : 'FailedMount';
}

/** The failure of one step of one volume, as its event has it. */
export function failedStep(
  step: string,
  volume: string,
  why: string,
  options: ErrorOptions & Pick<MountFailure, 'until'> = {},
): VolumeStepError {
  return new VolumeStepError(stepFailed(step, volume, why), { ...options, reason: reasonOf(step) });
}

export function mountFailure(volume: string, error: unknown): MountFailure {
  if (error instanceof VolumeStepError) return error;
  return { reason: 'FailedMount', message: stepFailed('MountVolume.SetUp', volume, errorMessage(error)) };
}

/** The error of a sync whose volumes were not mounted in time. */
export function unmountedMessage(volumes: readonly string[]): string {
  return (
    `Unable to attach or mount volumes: unmounted volumes=[${volumes.join(' ')}], unattached volumes=[], ` +
    'failed to process volumes=[]: context deadline exceeded'
  );
}

/** The error of a volume whose claim or PersistentVolume could not be read. */
export function unprocessedMessage(volume: string, why: string): string {
  return (
    `Unable to attach or mount volumes: unmounted volumes=[${volume}], unattached volumes=[], ` +
    `failed to process volumes=[${volume}]: ${why}`
  );
}
