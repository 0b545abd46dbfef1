// What every controller runs on: a queue that is worked off until the process stops.

import { expect, it } from 'vitest';
import { WorkQueue } from '../../../client/workqueue.ts';
import { runController } from '../../../controlplane/runtime.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';

it('a controller that is stopped ends the sync that is under way, and begins none', async () => {
  const queue = new WorkQueue({ clock: new VirtualClock() });
  const stop = new AbortController();
  const sync = Promise.withResolvers<void>();
  const begun: string[] = [];
  let isOver = false;
  const controller = {
    ...{ name: 'c', workers: 1, queue },
    sync: (key: string) => {
      begun.push(key);
      return sync.promise;
    },
  };
  const over = runController(controller, () => undefined, stop.signal).then(() => {
    isOver = true;
  });
  queue.add('a');
  queue.add('b');
  await settle();
  stop.abort(new Error('stopped'));
  await settle();
  expect([begun, isOver]).toEqual([['a'], false]);
  sync.resolve();
  await over;
  expect(begun).toEqual(['a']);
});
