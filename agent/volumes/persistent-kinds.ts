// What a PersistentVolume that no CSI driver serves is mounted as: the same types that pods name themselves, and local
// volumes. Loaded with the first claim.

import type { PersistentVolume } from 'kubernetes-types/core/v1';
import type { Pod, Stored } from '../../client/types.ts';
import { errorMessage } from '../../lib/errors.ts';
import { localVolume, mapLocalDevice } from './local.ts';
import { failedStep, VolumeStepError } from './mount-failures.ts';
import { type PreparedVolume, prepareVolume, settle } from './registry.ts';
import type { PlanInput, SourceVolume, VolumeHost } from './volume-type.ts';

/**
 * The volume behind a claim, where it is of a kind that no driver serves. Failures name the PersistentVolume. Throws an
 * Error for a kind that is not served here.
 */
export function preparePersistent(
  input: PlanInput,
  found: Stored<PersistentVolume>,
  readOnly: boolean,
): PreparedVolume {
  const { name } = found.metadata;
  const { hostPath, nfs, local, mountOptions = [], volumeMode } = found.spec ?? {};
  const volume: SourceVolume = {
    name,
    ...(hostPath === undefined ? {} : { hostPath }),
    ...(nfs === undefined ? {} : { nfs }),
    ...(local === undefined ? {} : { local }),
  };
  const failing = async (step: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (error instanceof VolumeStepError) throw error;
      throw failedStep(step, name, errorMessage(error), { cause: error });
    }
  };
  if (hostPath === undefined && nfs === undefined && local === undefined) {
    throw new Error(`PersistentVolume ${name} is of a kind that is not supported`);
  }
  const block = volumeMode === 'Block';
  if (block && local === undefined) throw new Error(`PersistentVolume ${name} cannot be used as a device`);
  const asPlanned = { ...input, volume, mountOptions, readOnly, block };
  const prepared = local === undefined ? prepareVolume(asPlanned) : settle(localVolume, asPlanned);
  const plan = { ...prepared.plan, readOnly: prepared.plan.readOnly || readOnly };
  if (block && local !== undefined) {
    const device = mapLocalDevice(input.podDir, name, local.path);
    const mount = (_: Pod, host: VolumeHost) => failing('MapVolume.MapPodDevice', () => device.map(host.mounter));
    return { ...prepared, name: input.volume.name, plan, device: device.place, mount, update: undefined };
  }
  const mount = (pod: Pod, host: VolumeHost) => failing('MountVolume.SetUp', () => prepared.mount(pod, host));
  return { ...prepared, name: input.volume.name, plan, mount };
}
