// Many pods at once: the floor, a lab, and a lab whose agent runs without tricks, in turns.

import { cpus } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import type { RunningLab } from '../../cli/lab/lab.ts';
import { runtimeIdle } from './lab.ts';
import type { BenchPods } from './pods.ts';
import { agentCpuMs } from './processes.ts';
import { machineQuiet } from './quiet.ts';
import type { Amount, Row } from './report.ts';
import type { Limits, Sides } from './starts.ts';
import { anotherRound, Rounds, roundText, turnsOf } from './turns.ts';

/** After a burst's end, ms: what is recorded of it is written meanwhile. */
const EVENTS_MS = 1_500;

type Name = 'floor' | 'burst' | 'share' | 'plain' | 'plainShare';
type Turn = (round: number) => Promise<Partial<Record<Name, number>>>;

/** The goals compare the floor and the lab; the agent without tricks takes part in every third round. */
const PLAIN_EVERY = 3;

export interface BurstOptions extends Limits {
  readonly pods: number;
  /** Of the lab's agent, and of the one without tricks. */
  readonly agent: number;
  readonly plainAgent: number;
}

export async function measureBursts(
  { floor, template, lab, plainLab, pods, plainPods, say }: Sides,
  options: BurstOptions,
): Promise<{ readonly rows: readonly Row[]; readonly amounts: readonly Amount[] }> {
  const all = Array.from({ length: options.pods }, (_, index) => index);
  const timed = async <T>(work: (index: number) => Promise<T>): Promise<readonly [number, readonly T[]]> => {
    const began = performance.now();
    const results = await Promise.all(all.map(work));
    return [performance.now() - began, results];
  };
  /** Percent of what all processors could do meanwhile. */
  const withAgent = async (
    on: RunningLab,
    of: BenchPods,
    agent: number,
    round: number,
  ): Promise<readonly [number, number]> => {
    const before = agentCpuMs(agent);
    const [ms] = await timed((index) => of.create(`burst-${round}-${index}`));
    const share = ((agentCpuMs(agent) - before) / (ms * cpus().length)) * 100;
    await timed((index) => of.delete(`burst-${round}-${index}`));
    await runtimeIdle(on);
    // Events wait for quiet.
    await setTimeout(EVENTS_MS);
    return [ms, share];
  };
  const compared: readonly Turn[] = [
    async () => {
      const [ms, made] = await timed(() => floor.start(template));
      await Promise.all(made.map((pod) => floor.remove(pod)));
      return { floor: ms };
    },
    async (round) => {
      const [burst, share] = await withAgent(lab, pods, options.agent, round);
      return { burst, share };
    },
  ];
  const withoutTricks: Turn = async (round) => {
    const [plain, plainShare] = await withAgent(plainLab, plainPods, options.plainAgent, round);
    return { plain, plainShare };
  };
  const rounds = new Rounds<Name>();
  for (let round = 0; anotherRound(round, options, performance.now()); round++) {
    let found: Partial<Record<Name, number>> = {};
    for (const turn of [...turnsOf(compared, round), ...(round % PLAIN_EVERY === 0 ? [withoutTricks] : [])]) {
      await machineQuiet();
      found = { ...found, ...(await turn(round)) };
    }
    if (round > 0) rounds.add(found);
    say(`burst ${round}: ${roundText(found)}`);
  }
  const count = options.pods;
  return {
    rows: [
      { name: `floor: burst of ${count}`, samples: rounds.samples('floor') },
      { name: `nodelet: burst of ${count}`, ...rounds.pairs('burst', 'floor'), ratioLimit: 1.15 },
      { name: `no tricks: burst of ${count}`, ...rounds.pairs('plain', 'floor') },
    ],
    amounts: [
      { name: 'agent’s share of the CPU in a burst', unit: '% of the CPU', samples: rounds.samples('share'), limit: 6 },
      { name: 'the same without tricks', unit: '% of the CPU', samples: rounds.samples('plainShare') },
    ],
  };
}
