// Which loop devices are attached to which images, read from sysfs. Changes nothing.

import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { isErrno } from './errors.ts';

export interface LoopDevice {
  /** /dev/loopN */
  readonly device: string;
  /** Of the image; the kernel marks one that was removed. */
  readonly image: string;
  readonly deleted: boolean;
  readonly readonly: boolean;
  /** Detached while it was open; the kernel removes it at the last close. */
  readonly autoclear: boolean;
}

const BLOCK = '/sys/block';
const DELETED = ' (deleted)';

async function attribute(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).replace(/\n$/, '');
  } catch (error) {
    // Not attached, or detached at this moment.
    if (isErrno(error, 'ENOENT', 'ENODEV', 'ENXIO')) return undefined;
    throw error;
  }
}

/** The image of a device (/dev/loopN), with " (deleted)" behind it when it was removed; undefined: nothing is attached. */
export function loopImage(device: string): Promise<string | undefined> {
  return attribute(`${BLOCK}/${basename(device)}/loop/backing_file`);
}

/** Every attached loop device of the machine. */
export async function listLoopDevices(): Promise<readonly LoopDevice[]> {
  const names = (await readdir(BLOCK)).filter((name) => /^loop\d+$/.test(name));
  const found = await Promise.all(
    names.map(async (name): Promise<LoopDevice | undefined> => {
      const file = await loopImage(name);
      if (file === undefined || file === '') return undefined;
      const deleted = file.endsWith(DELETED);
      const [readonly, autoclear] = await Promise.all(
        ['ro', 'loop/autoclear'].map(async (each) => (await attribute(`${BLOCK}/${name}/${each}`)) === '1'),
      );
      const image = deleted ? file.slice(0, -DELETED.length) : file;
      return { device: `/dev/${name}`, image, deleted, readonly: readonly === true, autoclear: autoclear === true };
    }),
  );
  return found.filter((each) => each !== undefined);
}
