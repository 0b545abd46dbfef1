// Volumes whose kind depends on API objects: claims, generic ephemeral volumes (claims of the
// pod's own) and inline CSI volumes. Finds the PersistentVolume and passes it to the plugin of its kind. Loaded with
// the first such volume of the node.

import type { NodeSelector } from 'kubernetes-types/core/v1';
import { errorMessage } from '../../lib/errors.ts';
import { podReference } from '../model/event-reference.ts';
import type { EventRecorder } from '../ports/api.ts';
import type { Mounter } from '../ports/mounter.ts';
import type { PodRef } from '../ports/runtime.ts';
import type { StorageObjects } from '../ports/storage.ts';
import {
  boundVolumeName,
  type Claim,
  type ClaimReference,
  checkBinding,
  checkUse,
  claimFailure,
  claimReference,
  fetchFailed,
  type PV,
  volumeGroup,
} from './claims.ts';
import { mappedMessages } from './csi/block.ts';
import type { CsiVolumes } from './csi/csi-volumes.ts';
import { inlineCsiVolume, persistentCsiVolume } from './csi/volume.ts';
import { tearDownLocal } from './local.ts';
import { failedStep, unprocessedMessage, VolumeStepError } from './mount-failures.ts';
import type { PersistentVolumes } from './options.ts';
import { preparePersistent } from './persistent-kinds.ts';
import type { PreparedVolume } from './registry.ts';
import { type PlanInput, podDir } from './volume-type.ts';

export interface PersistentVolumesOptions {
  /** The agent's root. */
  readonly rootDir: string;
  readonly mounter: Mounter;
  readonly storage: StorageObjects;
  readonly csi: CsiVolumes;
  readonly recorder: EventRecorder;
  /** Whether this node is one that a volume's node affinity names; any is by default. */
  readonly nodeMatches?: (selector: NodeSelector) => boolean;
}

async function fetched<T>(reference: ClaimReference, what: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw fetchFailed(reference, what, errorMessage(error), error);
  }
}

export function createPersistentVolumes({
  rootDir,
  mounter,
  storage,
  csi,
  recorder,
  nodeMatches = () => true,
}: PersistentVolumesOptions): PersistentVolumes {
  /** The claim and its volume, or the failure with the reason why there is none yet. */
  async function resolve(input: PlanInput, signal: AbortSignal): Promise<{ claim: Claim; volume: PV }> {
    const { pod, volume } = input;
    const reference = claimReference(pod, volume);
    const { namespace, name } = reference;
    let claim: Claim | undefined;
    try {
      claim = await fetched(reference, 'PVC', () => storage.claim(namespace, name));
      const volumeName = boundVolumeName(pod, reference, claim);
      if (claim === undefined) throw claimFailure(reference, 'PVC is not bound');
      const bound = await fetched(reference, `PV ${volumeName}`, () => storage.volume(volumeName));
      const found = checkBinding(reference, claim, volumeName, bound);
      checkUse(pod, volume, found.spec?.volumeMode);
      return { claim, volume: found };
    } catch (error) {
      throw new VolumeStepError(unprocessedMessage(volume.name, errorMessage(error)), {
        cause: error,
        until: claimChange(reference, claim, signal),
      });
    }
  }

  /** Resolves when the claim is not what it was. */
  function claimChange(
    { namespace, name }: ClaimReference,
    lastSeen: Claim | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    return new Promise((resolveChange) => {
      const done = new AbortController();
      storage.followClaim(
        namespace,
        name,
        (now) => {
          if (now?.metadata.resourceVersion === lastSeen?.metadata.resourceVersion) return;
          done.abort();
          resolveChange();
        },
        AbortSignal.any([signal, done.signal]),
      );
    });
  }

  /** The same, with the events that a pod with a new device gets. */
  function withDeviceEvents(prepared: PreparedVolume, { metadata: { name } }: PV): PreparedVolume {
    const { device } = prepared;
    if (device === undefined) return prepared;
    return {
      ...prepared,
      async mount(pod, host) {
        await prepared.mount(pod, host);
        for (const message of mappedMessages(name, device)) {
          recorder.event(podReference(pod), 'Normal', 'SuccessfulMountVolume', message);
        }
      },
    };
  }

  return {
    async prepare(input, signal): Promise<PreparedVolume> {
      const { pod, volume } = input;
      if (volume.csi !== undefined) {
        return await csi.prepare(pod, volume.name, inlineCsiVolume(pod, volume), undefined, signal);
      }
      const { claim, volume: found } = await resolve(input, signal);
      const affinity = found.spec?.nodeAffinity?.required;
      if (affinity !== undefined && !nodeMatches(affinity)) {
        const { name } = found.metadata;
        const verb = found.spec?.volumeMode === 'Block' ? 'Map' : 'Mount';
        throw failedStep(`${verb}Volume.NodeAffinity check`, name, 'no matching NodeSelectorTerms');
      }
      const readOnly = volume.persistentVolumeClaim?.readOnly === true;
      const prepared =
        found.spec?.csi === undefined
          ? preparePersistent(input, found, readOnly)
          : await csi.prepare(pod, volume.name, persistentCsiVolume(found, claim, readOnly), claim, signal);
      const group = volumeGroup(found);
      return { ...withDeviceEvents(prepared, found), ...(group === undefined ? {} : { group }) };
    },
    async tearDown(pod: PodRef) {
      const results = await Promise.allSettled([csi.tearDown(pod), tearDownLocal(podDir(rootDir, pod.uid), mounter)]);
      const failures = results.flatMap((result) => (result.status === 'rejected' ? [errorMessage(result.reason)] : []));
      if (failures.length > 0) throw new Error(failures.join('; '));
    },
  };
}
