// kill -9 of any process of a lab at any moment, while 40 pods with data on volumes of every kind run and others come and
// go: nothing is lost, everything comes back, nothing is left.

import { LAB_PROCESSES, type LabProcess } from '../../../cli/lab/paths.ts';
import { labProcesses } from '../../../cli/lab/processes.ts';
import { systemClock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { type ProcessEntry, signalProcess } from '../../../lib/processes.ts';
import { nothingLeft, podResources } from '../../e2e/agent/harness.ts';
import { type PrivateLab, startLab, type TestLab } from '../../e2e/support/lab.ts';
import type { Campaign, CampaignContext, Figures } from '../campaign.ts';
import { DataStand } from '../node/stand.ts';
import { type Random, seededRandom } from '../random.ts';

const PODS = 40;
/** After so many kills everything has to come to rest, and the data is checked. */
const KILLS_BETWEEN_LOOKS = 25;

type Target = LabProcess | 'shim' | 'container' | 'helper';

const NAMED: readonly LabProcess[] = [...LAB_PROCESSES, 'csi-driver'];

function targetOf(lab: TestLab, entry: ProcessEntry): Target {
  const named = NAMED.find((name) => lab.lab.pid(name) === entry.pid);
  if (named !== undefined) return named;
  if (entry.comm.startsWith('containerd-shim')) return 'shim';
  return /^(sh|sleep|pause)$/.test(entry.comm) ? 'container' : 'helper';
}

/** Kills one process of a class chosen at random; the class is chosen first, or it would nearly always be a pod's. */
async function killOne(lab: TestLab, random: Random): Promise<Target | undefined> {
  const classes = new Map<Target, ProcessEntry[]>();
  for (const entry of await labProcesses(lab.root)) {
    const target = targetOf(lab, entry);
    classes.set(target, [...(classes.get(target) ?? []), entry]);
  }
  const [first, ...rest] = classes;
  if (first === undefined) return undefined;
  const [target, [one, ...others]] = random.pick([first, ...rest]);
  if (one === undefined) return undefined;
  return (await signalProcess(random.pick([one, ...others]), 'SIGKILL')) ? target : undefined;
}

/** Unrequested exits, as the lab's supervisor reports them. */
function unrequestedEnds(lab: PrivateLab): readonly string[] {
  return lab.lines.filter((line) => / ended \((?!SIGKILL)/.test(line));
}

async function run({ rounds, seed, directory, log }: CampaignContext): Promise<Figures> {
  const random = seededRandom(seed);
  const lab = await startLab({
    kills: true,
    csi: true,
    restart: { initialMs: 100, maxMs: 1000, factor: 2, resetMs: 10_000 },
  });
  const killed = new Map<Target, number>();
  let [tried, crashed, lost] = [0, 0, 0];
  const bad = (lines: readonly string[]): number => {
    for (const line of lines) log(line);
    return lines.length;
  };
  try {
    const before = await podResources(lab);
    const stand = new DataStand(lab, directory, random, log);
    await stand.start(PODS);
    stand.beginLoad();
    const look = async (): Promise<void> => {
      const late = await stand.settle();
      crashed += bad(late);
      if (late.length === 0) lost += bad(await stand.losses());
      log(`${tried} kills: ${[...killed].map(([target, count]) => `${target} ${count}`).join(', ')}`);
    };
    for (let round = 0; round < rounds; round++) {
      const target = await killOne(lab, random);
      if (target === undefined) continue;
      tried++;
      killed.set(target, (killed.get(target) ?? 0) + 1);
      await systemClock.sleep(random.below(1500));
      if (tried % KILLS_BETWEEN_LOOKS === 0) await look();
    }
    await stand.endLoad();
    await look();
    crashed += bad(unrequestedEnds(lab));
    crashed += bad(await stand.remove());
    lost += bad(await stand.hostLosses());
    await nothingLeft(lab, before).catch((error: unknown) => {
      crashed += bad([errorMessage(error)]);
    });
  } finally {
    await lab.stop().catch((error: unknown) => {
      crashed += bad([errorMessage(error)]);
    });
  }
  return { tried, refused: 0, crashed, lost };
}

export const campaign: Campaign = {
  name: 'kills',
  what: 'kill -9 of any process of a lab under load with 40 pods that have data on volumes of every kind; a round is a kill',
  quickRounds: 0,
  rounds: 200,
  run,
};
