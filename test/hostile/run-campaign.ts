// Finds and runs campaigns: each has a directory of its own, which is removed when it left nothing mounted there.

import { mkdtemp, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { removeTree } from '../../lib/remove-tree.ts';
import type { Campaign, Figures } from './campaign.ts';

const DIRECTORY = fileURLToPath(new URL('campaigns', import.meta.url));

function isCampaign(value: unknown): value is Campaign {
  return typeof value === 'object' && value !== null && 'run' in value && 'name' in value && 'rounds' in value;
}

/** Every campaign, by name. Throws when a file in campaigns/ exports none as `campaign`. */
export async function loadCampaigns(): Promise<readonly Campaign[]> {
  const files = (await readdir(DIRECTORY)).filter((name) => name.endsWith('.ts')).toSorted();
  return Promise.all(
    files.map(async (file) => {
      const { campaign }: { campaign?: unknown } = await import(join(DIRECTORY, file));
      if (!isCampaign(campaign)) throw new Error(`test/hostile/campaigns/${file} exports no campaign`);
      return campaign;
    }),
  );
}

/** Runs one campaign in a directory of its own, which goes afterwards; one that is still mounted into stays, by name. */
export async function runCampaign(
  campaign: Campaign,
  options: { readonly rounds: number; readonly seed: number; readonly log: (line: string) => void },
): Promise<Figures> {
  const directory = await mkdtemp(join(tmpdir(), `nodelet-hostile-${campaign.name}-`));
  try {
    return await campaign.run({ ...options, directory });
  } finally {
    await removeTree(directory);
  }
}
