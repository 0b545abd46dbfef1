// A control plane that begins to lead acts on what there is then, not on what a lagging watch had shown it while it waited.

import { afterEach, expect, it, vi } from 'vitest';
import { Informers } from '../../../controlplane/informers.ts';
import { runLeaderChange } from './leader-change.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

it('a new leader counts no pod again that the one before has counted', async () => {
  expect(await runLeaderChange()).toEqual({ broken: [], succeeded: 3, leaders: ['plane-1', 'plane-2'] });
});

it('is found: a new leader trusts the cache of its wait', async () => {
  vi.spyOn(Informers.prototype, 'relist').mockResolvedValue(undefined);
  const { broken } = await runLeaderChange();
  expect(broken[0]).toMatch(/^job a\/counted counts 2 succeeded pods of 1$/);
});
