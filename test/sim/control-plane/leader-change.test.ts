// Two control planes, of which one leads: the one that follows acts on what there is then, and the one before has ended its work.

import { afterEach, expect, it, vi } from 'vitest';
import { Informers } from '../../../controlplane/informers.ts';
import { leaderIsStoppedAtWork, leaderLeavesAfterCount, leaderStandsStillAtWork, REPLICAS } from './leader-change.ts';

/** Which of them leads first is drawn. */
const LEADERS = ['plane-1', 'plane-2'];

afterEach(() => {
  vi.restoreAllMocks();
});

it('a new leader counts no pod again that the one before has counted', async () => {
  const { broken, succeeded, leaders } = await leaderLeavesAfterCount();
  expect({ broken, succeeded, leaders: leaders.toSorted() }).toEqual({ broken: [], succeeded: 3, leaders: LEADERS });
});

it('is found: a new leader trusts the cache of its wait', async () => {
  vi.spyOn(Informers.prototype, 'relist').mockResolvedValue(undefined);
  const { broken } = await leaderLeavesAfterCount();
  expect(broken[0]).toMatch(/^job a\/counted counts 2 succeeded pods of 1$/);
});

it('a leader that is stopped keeps its lease until its work has ended', async () => {
  const { broken, by, leaders } = await leaderIsStoppedAtWork();
  expect({ broken, leaders: leaders.toSorted() }).toEqual({ broken: [], leaders: LEADERS });
  expect(by).toEqual({ [leaders[0] ?? '']: REPLICAS });
});

it('a leader that stood still goes on for a moment when it wakes, and what it made too many is removed', async () => {
  const { broken, by, leaders } = await leaderStandsStillAtWork();
  expect({ broken, leaders: leaders.toSorted() }).toEqual({ broken: [], leaders: LEADERS });
  const [before = 0, after = 0] = leaders.map((leader) => by[leader]);
  expect(before).toBeGreaterThan(1);
  expect(before + after).toBeGreaterThan(REPLICAS);
});
