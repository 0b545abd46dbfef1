// A stream at a limited rate, in virtual time.

import { expect, it } from 'vitest';
import { paced } from '../../../../labs/registry/pace.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

async function collect(stream: AsyncIterable<Uint8Array>, sizes: number[]): Promise<void> {
  for await (const piece of stream) sizes.push(piece.length);
}

it('gives out a tenth of a second’s bytes at once, whatever the chunks are', async () => {
  const clock = new VirtualClock();
  const sizes: number[] = [];
  const chunks = [Buffer.alloc(250), Buffer.alloc(150)];
  const done = collect(paced(chunks, 1000, clock, new AbortController().signal), sizes);
  const sum = (): number => sizes.reduce((a, b) => a + b, 0);
  await clock.advance(0);
  expect(sum()).toBe(100);
  await clock.advance(150);
  expect(sum()).toBeLessThanOrEqual(250);
  expect(sum()).toBeGreaterThan(100);
  await clock.advance(1000);
  await done;
  expect(sum()).toBe(400);
});

it('ends when its reader is gone', async () => {
  const clock = new VirtualClock();
  const gone = new AbortController();
  const done = collect(paced([Buffer.alloc(10_000)], 1000, clock, gone.signal), []);
  await clock.advance(0);
  gone.abort(new Error('the client is gone'));
  await expect(done).rejects.toThrow('the client is gone');
});
