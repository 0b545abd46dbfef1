// The log of failures in a flood.

import { expect, it } from 'vitest';
import { FailureLog } from '../../../dns/server/failure-log.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

it('has a hundred lines a second, and says how many more there were', async () => {
  const clock = new VirtualClock();
  const lines: string[] = [];
  const log = new FailureLog(clock, (line) => lines.push(line));
  for (let turn = 0; turn < 5000; turn++) log.add(() => `failure ${turn}`);
  expect([lines.length, lines.at(-1)]).toEqual([100, 'failure 99']);
  await clock.advance(1000);
  log.add(() => 'one more');
  expect(lines.slice(100)).toEqual(['plugin/errors: 4900 more failures are not listed', 'one more']);
});
