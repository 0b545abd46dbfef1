// The hostile tester's run as far as it is quick, with the same seed each time; `npm run test:hostile` is the whole of it, with another
// seed each time.

import { describe, expect, test } from 'vitest';
import { loadCampaigns, runCampaign } from './run-campaign.ts';

const quick = (await loadCampaigns()).filter(({ quickRounds }) => quickRounds > 0);

/** For giving up only: a campaign may take a minute of processor time. */
const LIMIT_MS = 1_800_000;

describe('the hostile tester finds nothing', () => {
  test.for(quick)('$name: $what', { timeout: LIMIT_MS }, async (campaign) => {
    const lines: string[] = [];
    const seed = 1;
    const figures = await runCampaign(campaign, {
      rounds: campaign.quickRounds,
      seed,
      log: (line) => lines.push(line),
    });
    expect(figures, [`seed ${seed}`, ...lines].join('\n')).toMatchObject({ crashed: 0, lost: 0 });
    expect(figures.tried).toBeGreaterThan(0);
  });
});
