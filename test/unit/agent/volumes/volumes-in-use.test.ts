import { expect, test } from 'vitest';
import { nextStatus } from '../../../../agent/node/status.ts';
import { VolumesInUse } from '../../../../agent/volumes/volumes-in-use.ts';
import { statusInput } from '../node/fixtures.ts';

test('a volume in use is reported in node.status, and its user waits for that', async () => {
  const inUse = new VolumesInUse();
  let changes = 0;
  inUse.changed.subscribe(() => {
    changes++;
  });
  let notified = false;
  const telling = inUse.add('b').then(() => {
    notified = true;
  });
  void inUse.add('a');
  void inUse.add('a');
  expect(inUse.list()).toEqual(['a', 'b']);
  expect(changes).toBe(2);
  inUse.written(['a']);
  await Promise.resolve();
  expect(notified).toBe(false);
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
])('a status with %j is written as %j', (before, now, output) => {
  const known = before === undefined ? {} : { volumesInUse: before };
  expect(nextStatus(known, statusInput({ volumesInUse: now })).volumesInUse).toEqual(output);
});
