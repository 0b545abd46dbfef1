// Loop devices: attaching, growing and detaching through losetup; lib/loop-devices.ts lists them. Knows
// nothing about volumes.

import { mkdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { type Exec, execOk } from '../../lib/exec.ts';
import { loopImage } from '../../lib/loop-devices.ts';
import { poll } from '../../lib/retry.ts';
import { DriverError } from './errors.ts';

export { type LoopDevice, listLoopDevices } from '../../lib/loop-devices.ts';

/** Which kinds of failure `losetup --find --show` has, from its error output. Pure. */
export function attachFailure(output: string): 'no device left' | { readonly lost: string } | 'other' {
  const lost = /device node (\/dev\/loop\d+) \((\d+):(\d+)\) is lost/.exec(output);
  if (lost?.[1] !== undefined) return { lost: lost[1] };
  return /(cannot find an unused loop device|could not find any free loop device|no free loop device)/i.test(output)
    ? 'no device left'
    : 'other';
}

const LOOP_MAJOR = '7';

/**
 * Attaches an image to a free loop device and returns that. Throws RESOURCE_EXHAUSTED when there is none, with what can
 * be done about it.
 */
export async function attachLoop(image: string, readonly: boolean, run: Exec): Promise<string> {
  const args = ['--find', '--show', ...(readonly ? ['--read-only'] : []), image];
  for (let attempt = 0; ; attempt++) {
    const result = await run('losetup', args);
    if (result.code === 0) return result.stdout.trim();
    const output = result.stderr.trim();
    const failure = attachFailure(output);
    if (failure === 'no device left') {
      throw new DriverError(
        'RESOURCE_EXHAUSTED',
        `no loop device is free for ${basename(image)}: detach some (losetup -a), or allow more (max_loop of the loop module). losetup: ${output}`,
      );
    }
    // The kernel has the device, and this /dev (a container's) lacks its node.
    if (failure !== 'other' && attempt === 0) {
      await mkdir('/dev', { recursive: true });
      await execOk(
        'mknod',
        ['-m', '0600', failure.lost, 'b', LOOP_MAJOR, failure.lost.slice('/dev/loop'.length)],
        {},
        run,
      );
      continue;
    }
    throw new DriverError('INTERNAL', `losetup ${args.join(' ')}: ${output}`);
  }
}

/** Makes the kernel read the image's new size. */
export async function refreshLoop(device: string, run: Exec): Promise<void> {
  await execOk('losetup', ['--set-capacity', device], {}, run);
}

type WaitingClock = Pick<Clock, 'monotonic' | 'sleep'>;
const GONE_MS = 2_000;
const LOOK_MS = 10;

/** Waits at most `limitMs` until the device has another image than this one, or none. Whether that is so. */
export function whenReleased(
  device: string,
  image: string | undefined,
  limitMs: number,
  clock: WaitingClock = systemClock,
): Promise<boolean> {
  const isReleased = async (): Promise<boolean> => {
    const now = await loopImage(device);
    return now === undefined || now === '' || now !== image;
  };
  return poll(isReleased, { clock, everyMs: LOOK_MS, limitMs });
}

/**
 * No error when it is detached already. A process that has it open (udev opens every new device) keeps it for a moment,
 * which is waited for; a mount in another mount namespace keeps it until it is unmounted.
 */
export async function detachLoop(device: string, run: Exec, clock: WaitingClock = systemClock): Promise<void> {
  const image = await loopImage(device);
  const result = await run('losetup', ['--detach', device]);
  if (result.code !== 0) {
    if (/no such device/i.test(result.stderr)) return;
    throw new DriverError('INTERNAL', `losetup --detach ${device}: ${result.stderr.trim()}`);
  }
  await whenReleased(device, image, GONE_MS, clock);
}
