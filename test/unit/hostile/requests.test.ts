// The campaign "requests" as far as it is quick, and always the same; `npm run test:hostile -- requests` is the whole of it.

import { expect, test } from 'vitest';
import { campaign } from '../../hostile/campaigns/requests.ts';
import { runCampaign } from '../../hostile/run-campaign.ts';

const ROUNDS = 1500;

test('hostile requests of every kind crash nothing, change nothing elsewhere and leave nothing behind', async () => {
  const lines: string[] = [];
  const figures = await runCampaign(campaign, { rounds: ROUNDS, seed: 7, log: (line) => lines.push(line) });
  expect(figures, lines.join('\n')).toMatchObject({ tried: ROUNDS, crashed: 0, lost: 0 });
  // Not everything is refused: what is plausible reaches the store.
  expect(figures.refused).toBeGreaterThan(ROUNDS / 4);
  expect(figures.refused).toBeLessThan(ROUNDS * 0.9);
});
