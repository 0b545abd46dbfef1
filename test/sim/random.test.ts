// A fixed set of random histories; each failure names its seed.

import { describe, expect, it } from 'vitest';
import { runHistory } from './random.ts';

describe('a node with a random history', () => {
  it.each(Array.from({ length: 25 }, (_, index) => index + 1))(
    'keeps its rules and comes to rest (seed %i)',
    async (seed) => {
      const history = await runHistory(seed, 60);
      expect(history.log).toHaveLength(60);
    },
  );
});
