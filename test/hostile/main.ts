// `npm run test:hostile -- [--seed N] [--rounds N] [--write] [name…]`: a hostile tester's run against nodelet, campaign by
// campaign. Ends with a table; --write puts it into docs/security.md. Exit code 0 only if nothing crashed or was lost.

import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { writeFileAtomic } from '../../lib/atomic.ts';
import { figuresTable, type Row, withTable } from './report.ts';
import { loadCampaigns, runCampaign } from './run-campaign.ts';

const SECURITY_PAGE = fileURLToPath(new URL('../../docs/security.md', import.meta.url));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    rounds: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});

function count(name: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new RangeError(`--${name} must be a whole number, not "${text}"`);
  return Number(text);
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const seed = count('seed', values.seed);
const all = await loadCampaigns();
const unknown = positionals.filter((name) => !all.some((campaign) => campaign.name === name));
if (unknown.length > 0) throw new RangeError(`no campaign ${unknown.join(', ')}: ${all.map((c) => c.name).join(', ')}`);
const chosen = all.filter(({ name }) => positionals.length === 0 || positionals.includes(name));

const rows: Row[] = [];
for (const campaign of chosen) {
  const rounds = values.rounds === undefined ? campaign.rounds : count('rounds', values.rounds);
  say(`== ${campaign.name}: ${rounds} rounds, seed ${seed}`);
  const began = performance.now();
  const figures = await runCampaign(campaign, { rounds, seed, log: (line) => say(`   ${line}`) });
  rows.push({ campaign, rounds, figures, seconds: (performance.now() - began) / 1000 });
}
const table = figuresTable(rows);
say(`\n${table}`);
if (values.write) {
  if (chosen.length < all.length) throw new Error('--write wants every campaign: the table is written whole');
  await writeFileAtomic(SECURITY_PAGE, withTable(await readFile(SECURITY_PAGE, 'utf8'), table));
}
process.exitCode = rows.every(({ figures }) => figures.crashed + figures.lost === 0) ? 0 : 1;
