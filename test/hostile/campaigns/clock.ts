// The wall clock of a running lab set forward and back, by seconds to days: no container restarts for it, no pod is lost,
// and what is asked for afterwards is done. libfaketime stands between nodelet's processes and the clock; the machine's
// own is never touched, and containers and containerd keep it.

import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { apply, FOREVER, gone, nodeWhen, ready, shellPod } from '../../e2e/agent/harness.ts';
import { type PrivateLab, startLab } from '../../e2e/support/lab.ts';
import type { Campaign, CampaignContext, Figures } from '../campaign.ts';
import { KIND_COUNT } from '../node/pods.ts';
import { DataStand } from '../node/stand.ts';
import { seededRandom } from '../random.ts';

const LIBRARY = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1';

/** Offsets from the machine's clock, in seconds. */
const OFFSETS = [0, -3, 7, -50, 61, -240, 900, -3300, 3600, -86_400, 86_400, 259_200] as const;

/**
 * The lab's certificates are valid from five minutes before it was made, as kubeadm's are. With a clock further back than
 * that TLS refuses them, here as everywhere: such a jump is taken back after a moment, and all must be well again.
 */
const NOT_YET_VALID_SECONDS = -290;

/** The environment with which a program takes the time from `file`; its monotonic clock stays what it is. */
function fakedClock(file: string): Readonly<Record<string, string>> {
  return {
    LD_PRELOAD: LIBRARY,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
}

/** Starts a lab whose processes take the time from `file`. This process keeps the machine's. */
async function startFakedLab(file: string): Promise<PrivateLab> {
  const environment = fakedClock(file);
  const before = Object.keys(environment).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, environment);
  try {
    return await startLab({ csi: true });
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}

async function run({ rounds, seed, directory, log }: CampaignContext): Promise<Figures> {
  if (!existsSync(LIBRARY)) throw new Error(`${LIBRARY} is missing: apt-get install libfaketime`);
  const random = seededRandom(seed);
  const file = join(directory, 'offset');
  await writeFile(file, '+0s\n');
  const lab = await startFakedLab(file);
  let [tried, crashed, lost] = [0, 0, 0];
  const bad = (lines: readonly string[]): number => {
    for (const line of lines) log(line);
    return lines.length;
  };
  try {
    const stand = new DataStand(lab, directory, random, log);
    await stand.start(KIND_COUNT);
    const before = await stand.lives();
    for (let round = 0; round < rounds; round++) {
      const offset = random.pick(OFFSETS);
      await writeFile(file, `${offset < 0 ? '' : '+'}${offset}s\n`);
      tried++;
      if (offset < NOT_YET_VALID_SECONDS) {
        await systemClock.sleep(1000 + random.below(10_000));
        await writeFile(file, '+0s\n');
      }
      const pod = `after-${round}`;
      try {
        await apply(lab, shellPod(pod, FOREVER));
        await ready(lab, pod);
        await systemClock.sleep(random.below(5000));
        await lab.kubectl('delete', 'pod', pod, '--wait=false');
        await gone(lab, pod);
        await nodeWhen(lab, 'Ready', ({ status }) => status === 'True');
      } catch (error) {
        crashed += bad([`clock at ${offset} s: ${errorMessage(error).slice(0, 1000)}`]);
      }
      const late = await stand.settle();
      crashed += bad(late.map((line) => `clock at ${offset} s: ${line}`));
      const now = await stand.lives();
      crashed += bad([...now].filter(([name, life]) => before.get(name) !== life).map((each) => each.join(': ')));
      if (late.length === 0) lost += bad(await stand.losses());
      log(
        `clock at ${offset} s: ${crashed === 0 && lost === 0 ? 'nothing happened' : `${crashed} crashed, ${lost} lost`}`,
      );
    }
    crashed += bad(lab.lines.filter((line) => / ended \(/.test(line)));
    await writeFile(file, '+0s\n');
    crashed += bad(await stand.remove());
    lost += bad(await stand.hostLosses());
  } finally {
    await lab.stop().catch((error: unknown) => {
      crashed += bad([errorMessage(error)]);
    });
  }
  return { tried, refused: 0, crashed, lost };
}

export const campaign: Campaign = {
  name: 'clock',
  what: 'the wall clock of a running lab set forward (to 3 days) and back (to a day); a round is a jump, a pod started and one ended after it',
  quickRounds: 0,
  rounds: 40,
  run,
};
