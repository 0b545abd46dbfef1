// Volumes that have to be looked up before it is known what they are: claims, generic ephemeral volumes (claims of the
// pod's own) and inline CSI volumes. Finds the PersistentVolume and hands it to whoever serves its kind. Loaded with
// the first such volume of the node.

import type { NodeSelector } from 'kubernetes-types/core/v1';
import { errorMessage } from '../../lib/errors.ts';
import type { Mounter } from '../ports/mounter.ts';
import type { PodRef } from '../ports/runtime.ts';
import type { StorageObjects } from '../ports/storage.ts';
import {
  boundVolumeName,
  type Claim,
  type ClaimReference,
  checkBinding,
  checkUse,
  claimReference,
  type PV,
} from './claims.ts';
import type { CsiVolumes } from './csi/csi-volumes.ts';
import { inlineCsiVolume, persistentCsiVolume } from './csi/volume.ts';
import { tearDownLocal } from './local.ts';
import { stepFailed, unprocessedMessage, VolumeStepError } from './mount-failures.ts';
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
  /** Whether this node is one that a volume's node affinity names; any is by default. */
  readonly nodeMatches?: (selector: NodeSelector) => boolean;
}

export function createPersistentVolumes({
  rootDir,
  mounter,
  storage,
  csi,
  nodeMatches = () => true,
}: PersistentVolumesOptions): PersistentVolumes {
  /** The claim and its volume, or the failure that says why there is none yet. */
  async function resolve(input: PlanInput, signal: AbortSignal): Promise<{ claim: Claim; volume: PV }> {
    const { pod, volume } = input;
    const reference = claimReference(pod, volume);
    const { namespace, name } = reference;
    let claim: Claim | undefined;
    try {
      claim = await storage.claim(namespace, name);
      const volumeName = boundVolumeName(pod, reference, claim);
      if (claim === undefined) throw new Error('PVC is not bound');
      const found = checkBinding(claim, volumeName, await storage.volume(volumeName));
      checkUse(pod, volume, found.spec?.volumeMode);
      return { claim, volume: found };
    } catch (error) {
      const why = `error processing PVC ${namespace}/${name}: ${errorMessage(error)}`;
      throw new VolumeStepError(unprocessedMessage(volume.name, why), {
        cause: error,
        until: changeOf(reference, claim, signal),
      });
    }
  }

  /** Resolves when the claim is not what it was. */
  function changeOf({ namespace, name }: ClaimReference, seen: Claim | undefined, signal: AbortSignal): Promise<void> {
    return new Promise((resolveChange) => {
      const done = new AbortController();
      storage.followClaim(
        namespace,
        name,
        (now) => {
          if (now?.metadata.resourceVersion === seen?.metadata.resourceVersion) return;
          done.abort();
          resolveChange();
        },
        AbortSignal.any([signal, done.signal]),
      );
    });
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
        const step = 'MountVolume.NodeAffinity check';
        throw new VolumeStepError(stepFailed(step, name, 'no matching NodeSelectorTerms'));
      }
      const readOnly = volume.persistentVolumeClaim?.readOnly === true;
      if (found.spec?.csi !== undefined) {
        return await csi.prepare(pod, volume.name, persistentCsiVolume(found, claim, readOnly), claim, signal);
      }
      return preparePersistent(input, found, readOnly);
    },
    async tearDown(pod: PodRef) {
      const results = await Promise.allSettled([csi.tearDown(pod), tearDownLocal(podDir(rootDir, pod.uid), mounter)]);
      const failures = results.flatMap((result) => (result.status === 'rejected' ? [errorMessage(result.reason)] : []));
      if (failures.length > 0) throw new Error(failures.join('; '));
    },
  };
}
