// Full disks: a node whose only file system is filled to the last byte under load, again and again.

import type { Campaign } from '../campaign.ts';
import { SmallDiskLab } from '../disks/full-disk.ts';

export const campaign: Campaign = {
  name: 'disks',
  what:
    'a round fills the file system of a node (agent, containerd, CSI driver, volumes, logs) to the last byte while pods come ' +
    'and go, kills the agent, and frees it',
  // It needs a lab and minutes: test/e2e/disk runs one round.
  quickRounds: 0,
  rounds: 3,
  async run({ rounds, log }) {
    const figures = { tried: 0, refused: 0, crashed: 0, lost: 0 };
    const small = await SmallDiskLab.start();
    try {
      for (let round = 1; round <= rounds; round++) {
        const { tried, refused, crashed, lost } = await small.round((line) => log(`${round}: ${line}`));
        figures.tried += tried;
        figures.refused += refused;
        figures.crashed += crashed.length;
        figures.lost += lost.length;
        for (const line of lost) log(`${round}: LOST: ${line}`);
      }
    } finally {
      await small.stop();
    }
    return figures;
  },
};
