// How much capacity is left for volumes, looked up.

import { availableCapacity, checkCapacity, type Pool } from './capacity.ts';
import { freeBytes } from './images.ts';
import type { Work } from './work.ts';

async function readPool({ store, driver }: Work): Promise<Pool> {
  const { poolBytes } = driver.options;
  const capacities = [
    ...store.volumes().map((volume) => volume.capacityBytes),
    ...store.snapshots().map((snapshot) => snapshot.sizeBytes),
  ];
  return {
    freeBytes: await freeBytes(store.stateDir),
    provisionedBytes: capacities.reduce((sum, bytes) => sum + bytes, 0),
    ...(poolBytes === undefined ? {} : { poolBytes }),
  };
}

/** Capacity that a new volume may have, bytes. */
export async function readAvailableCapacity(work: Work): Promise<number> {
  return availableCapacity(await readPool(work));
}

/** Throws RESOURCE_EXHAUSTED; `capacityBytes` and `diskBytes` as checkRoom has them. */
export async function requireCapacity(work: Work, capacityBytes: number, diskBytes = capacityBytes): Promise<void> {
  checkCapacity(await readPool(work), capacityBytes, diskBytes);
}
