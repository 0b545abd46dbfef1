// Who asks while a call is in flight gets its result.

import { expect, test } from 'vitest';
import { singleFlight } from '../../../lib/single-flight.ts';

test('callers share the call that is in flight, its rejection too; the next caller makes another', async () => {
  const calls: PromiseWithResolvers<string>[] = [];
  const shared = singleFlight(() => {
    const call = Promise.withResolvers<string>();
    calls.push(call);
    return call.promise;
  });
  const first = [shared(), shared()];
  expect(calls).toHaveLength(1);
  calls[0]?.resolve('a');
  expect(await Promise.all(first)).toEqual(['a', 'a']);
  const second = [shared(), shared()];
  expect(calls).toHaveLength(2);
  calls[1]?.reject(new Error('b'));
  expect((await Promise.allSettled(second)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const third = shared();
  calls[2]?.resolve('c');
  expect(await third).toBe('c');
});
