// Waiting until a volume is attached to this node: the VolumeAttachment's status, and its attachment metadata.

import type { VolumeAttachment } from 'kubernetes-types/storage/v1';
import type { Stored } from '../../../client/types.ts';
import { abortable } from '../../../lib/abort.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { StorageObjects } from '../../ports/storage.ts';
import { failedStep } from '../mount-failures.ts';

/** The kubelet's limit for one wait. */
const WAIT_MS = 600_000;

export type AttachmentState =
  | { readonly kind: 'attached'; readonly publishContext: Readonly<Record<string, string>> }
  | { readonly kind: 'waiting' }
  | { readonly kind: 'failed'; readonly why: string };

/** Pure. */
export function attachmentState(attachment: Stored<VolumeAttachment> | undefined): AttachmentState {
  // The attach/detach controller creates it.
  if (attachment === undefined) return { kind: 'waiting' };
  if (attachment.metadata.deletionTimestamp !== undefined) {
    return { kind: 'failed', why: 'volume attachment is being deleted' };
  }
  const { attached = false, attachError, attachmentMetadata = {} } = attachment.status ?? {};
  if (attached) return { kind: 'attached', publishContext: attachmentMetadata };
  if (attachError !== undefined) return { kind: 'failed', why: attachError.message ?? 'unknown error' };
  return { kind: 'waiting' };
}

/**
 * Resolves to publish_context. Rejects with VolumeStepError: FailedAttachVolume with the driver's message; another try is
 * due when the attachment has changed.
 */
export async function waitForAttachment(
  name: string,
  volume: { readonly specName: string; readonly driver: string; readonly handle: string },
  objects: Pick<StorageObjects, 'followAttachment'>,
  clock: Clock,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  const done = new AbortController();
  const { promise, resolve, reject } = Promise.withResolvers<AttachmentState>();
  const changed = Promise.withResolvers<void>();
  let failure: string | undefined;
  const until = AbortSignal.any([signal, done.signal]);
  objects.followAttachment(
    name,
    (attachment) => {
      const state = attachmentState(attachment);
      if (failure !== undefined) {
        // The failure has been reported; any change is a reason to try again.
        if (state.kind === 'failed' && state.why === failure) return;
        changed.resolve();
        done.abort();
      } else if (state.kind !== 'waiting') {
        if (state.kind === 'failed') failure = state.why;
        else done.abort();
        resolve(state);
      }
    },
    until,
  );
  const timer = clock.after(WAIT_MS, () => {
    done.abort();
    const what = `timed out waiting for external-attacher of ${volume.driver} CSI driver to attach volume ${volume.handle}`;
    reject(failedStep('AttachVolume.Attach', volume.specName, what));
  });
  try {
    const state = await abortable(promise, signal);
    if (state.kind === 'attached') return state.publishContext;
    const why = state.kind === 'failed' ? state.why : 'not attached';
    throw failedStep('AttachVolume.Attach', volume.specName, why, { until: changed.promise });
  } finally {
    timer.cancel();
  }
}
