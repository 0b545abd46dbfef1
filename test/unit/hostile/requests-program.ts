// The campaign of requests.test.ts in a process of its own: finding what stays in memory goes through the whole heap several times,
// and the heap of a worker that has run other tests is ten times as large.
//
//   node requests-program.ts ROUNDS SEED
//
// Prints {figures, lines}.

import { throwOnViolation } from '../../../lib/invariant.ts';
import { campaign } from '../../hostile/campaigns/requests.ts';
import { runCampaign } from '../../hostile/run-campaign.ts';

throwOnViolation();
const [rounds, seed] = process.argv.slice(2).map(Number);
if (rounds === undefined || seed === undefined) throw new RangeError('usage: requests-program.ts ROUNDS SEED');
const lines: string[] = [];
const figures = await runCampaign(campaign, { rounds, seed, log: (line) => lines.push(line) });
process.stdout.write(JSON.stringify({ figures, lines }));
