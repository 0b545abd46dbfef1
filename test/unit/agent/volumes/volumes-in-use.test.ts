import { expect, test } from 'vitest';
import { nextStatus } from '../../../../agent/node/status.ts';
import { VolumesInUse } from '../../../../agent/volumes/volumes-in-use.ts';
import { statusInput } from '../node/fixtures.ts';

test('a volume in use is told to the cluster, and whoever adds it knows when it has been', async () => {
  const inUse = new VolumesInUse();
  let changes = 0;
  inUse.changed.subscribe(() => {
    changes++;
  });
  let told = false;
  const telling = inUse.add('b').then(() => {
    told = true;
  });
  void inUse.add('a');
  void inUse.add('a');
  expect(inUse.list()).toEqual(['a', 'b']);
  expect(changes).toBe(2);
  inUse.written(['a']);
  await Promise.resolve();
  expect(told).toBe(false);
  inUse.written(['a', 'b']);
  await telling;
  await inUse.add('b');
  inUse.delete('b');
  inUse.delete('b');
  expect(inUse.list()).toEqual(['a']);
  expect(changes).toBe(3);
});

test.each([
  [undefined, [], undefined],
  [undefined, ['a'], ['a']],
  [['a'], ['a', 'b'], ['a', 'b']],
  [['a'], [], []],
])('a status that said %j says %j', (before, now, said) => {
  const known = before === undefined ? {} : { volumesInUse: before };
  expect(nextStatus(known, statusInput({ volumesInUse: now })).volumesInUse).toEqual(said);
});
