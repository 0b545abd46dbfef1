import { expect, test } from 'vitest';
import { Gate } from '../../../lib/gate.ts';

test('so many at once, the others in their order; a failure makes room, too', async () => {
  const gate = new Gate(2);
  const begun: number[] = [];
  const ends = [0, 1, 2, 3].map(() => Promise.withResolvers<number>());
  const results = ends.map(({ promise }, index) =>
    gate.run(() => {
      begun.push(index);
      return promise;
    }),
  );
  const settled = Promise.allSettled(results);
  await Promise.resolve();
  expect(begun).toEqual([0, 1]);
  ends[1]?.reject(new Error('no'));
  await expect(results[1]).rejects.toThrow('no');
  expect(begun).toEqual([0, 1, 2]);
  for (const [index, end] of ends.entries()) end.resolve(index);
  expect((await settled).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  expect(await gate.run(() => 'free again')).toBe('free again');
});
