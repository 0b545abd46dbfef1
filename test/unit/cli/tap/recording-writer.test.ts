// The queue before the disk: limited, never blocking, and counting what it lost.

import { expect, test } from 'vitest';
import { parseRecord } from '../../../../cli/tap/format.ts';
import { RecordingWriter } from '../../../../cli/tap/recording-writer.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

class Disk {
  text = '';
  room = Number.POSITIVE_INFINITY;
  /** While it is set, writes wait for it. */
  stuck: Promise<void> | undefined;
  async append(bytes: Buffer): Promise<number> {
    await this.stuck;
    if (this.room <= 0) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    const taken = bytes.subarray(0, Math.min(bytes.length, this.room));
    this.room -= taken.length;
    this.text += taken.toString();
    return taken.length;
  }
}

function stand(maxQueueBytes?: number) {
  const disk = new Disk();
  const clock = new VirtualClock();
  const losses: string[] = [];
  const writer = new RecordingWriter({
    file: disk,
    clock,
    at: () => 7,
    onLoss: (why) => losses.push(why),
    ...(maxQueueBytes === undefined ? {} : { maxQueueBytes }),
  });
  return { disk, clock, losses, writer };
}

const line = (text: string): string => `${JSON.stringify({ record: 'call', text })}\n`;

test('lines are written in order', async () => {
  const { disk, writer } = stand();
  const lines = Array.from({ length: 100 }, (_, index) => line(`${index}`));
  for (const each of lines) writer.add(each);
  await writer.close();
  expect(disk.text).toBe(lines.join(''));
  expect(writer.lost).toEqual({ lines: 0, bytes: 0 });
});

test('a full disk loses lines, which are counted and written when there is room again', async () => {
  const { disk, clock, losses, writer } = stand();
  writer.add(line('first'));
  await expect.poll(() => writer.queuedBytes).toBe(0);
  disk.room = 10;
  writer.add(line('torn'));
  await expect.poll(() => writer.lost.lines).toBe(1);
  expect(losses).toEqual([expect.stringContaining('ENOSPC')]);
  disk.room = Number.POSITIVE_INFINITY;
  writer.add(line('last'));
  await clock.advance(250);
  await writer.close();
  const lines = disk.text.split('\n');
  expect(lines[0]).toBe(line('first').trim());
  expect(parseRecord(lines[1] ?? '')).toEqual({ damage: 'is cut off or no JSON' });
  expect(parseRecord(lines[2] ?? '')).toMatchObject({ record: 'lost', at: 7, lines: 1, bytes: line('torn').length });
  expect(lines[3]).toBe(line('last').trim());
});

test('a disk that is stuck blocks no caller: the queue has a limit, and what is beyond is counted', async () => {
  const { disk, losses, writer } = stand(1000);
  let free = (): void => undefined;
  disk.stuck = new Promise((resolve) => {
    free = resolve;
  });
  const each = line('x'.repeat(50));
  for (let index = 0; index < 1000; index++) writer.add(each);
  expect(writer.queuedBytes).toBeLessThanOrEqual(1000);
  expect(writer.lost.lines).toBe(1000 - Math.floor(1000 / each.length));
  expect(losses).toHaveLength(1);
  free();
  await writer.close();
  expect(disk.text).toContain(`"lines":${writer.lost.lines}`);
});

test('a disk that stays full does not hold up the end', async () => {
  const { disk, writer } = stand();
  disk.room = 0;
  writer.add(line('x'));
  writer.add(line('y'));
  await writer.close();
  expect(writer.lost.lines).toBe(2);
  expect(disk.text).toBe('');
});
