// How much room the disk has for volumes, looked up.

import { availableCapacity } from './capacity.ts';
import { DriverError } from './errors.ts';
import { freeBytes, imageSize } from './images.ts';
import type { Work } from './work.ts';

/** Room that is left for new volumes, bytes. */
export async function roomLeft(work: Work): Promise<number> {
  const { store, driver } = work;
  const sized = [
    ...store.volumes().map((each) => ({ path: store.volumeImage(each.id), capacityBytes: each.capacityBytes })),
    ...store.snapshots().map((each) => ({ path: store.snapshotImage(each.id), capacityBytes: each.sizeBytes })),
  ];
  const images = await Promise.all(
    sized.map(async ({ path, capacityBytes }) => ({
      capacityBytes,
      allocatedBytes: (await imageSize(path))?.allocatedBytes ?? 0,
    })),
  );
  const { poolBytes } = driver.options;
  return availableCapacity({
    freeBytes: await freeBytes(store.stateDir),
    images,
    ...(poolBytes === undefined ? {} : { poolBytes }),
  });
}

export async function requireRoom(work: Work, bytes: number): Promise<void> {
  const room = await roomLeft(work);
  if (bytes > room) throw new DriverError('RESOURCE_EXHAUSTED', `${bytes} bytes are needed, and ${room} are left`);
}
