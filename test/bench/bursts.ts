// Many pods at once: the floor, a lab, and a lab whose agent runs without tricks, in turns.

import { cpus } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import type { RunningLab } from '../../cli/lab/lab.ts';
import { runtimeIdle } from './lab.ts';
import type { BenchPods } from './pods.ts';
import { agentCpuMs } from './processes.ts';
import type { Amount, Row } from './report.ts';
import type { Limits, Sides } from './starts.ts';
import { anotherRound, turnsOf } from './turns.ts';

/** After a burst's end, ms: what is recorded of it is written meanwhile. */
const EVENTS_MS = 1_500;

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
  const times: Record<'floor' | 'burst' | 'share' | 'plain' | 'plainShare', number[]> = {
    floor: [],
    burst: [],
    share: [],
    plain: [],
    plainShare: [],
  };
  const turns = [
    async () => {
      const [ms, made] = await timed(() => floor.start(template));
      await Promise.all(made.map((pod) => floor.remove(pod)));
      return { floor: ms };
    },
    async (round: number) => {
      const [burst, share] = await withAgent(lab, pods, options.agent, round);
      return { burst, share };
    },
    async (round: number) => {
      const [plain, plainShare] = await withAgent(plainLab, plainPods, options.plainAgent, round);
      return { plain, plainShare };
    },
  ];
  for (let round = 0; anotherRound(round, options, performance.now()); round++) {
    let found: Partial<Record<keyof typeof times, number>> = {};
    for (const turn of turnsOf(turns, round)) found = { ...found, ...(await turn(round)) };
    if (round === 0) continue;
    for (const [key, samples] of Object.entries(times)) samples.push(Reflect.get(found, key));
    say(
      `burst ${round}: ${Object.entries(found)
        .map(([key, value]) => `${key} ${value.toFixed(0)}`)
        .join(', ')}`,
    );
  }
  const count = options.pods;
  return {
    rows: [
      { name: `floor: burst of ${count}`, samples: times.floor },
      { name: `nodelet: burst of ${count}`, samples: times.burst, floor: times.floor, ratioLimit: 1.15 },
      { name: `no tricks: burst of ${count}`, samples: times.plain, floor: times.floor },
    ],
    amounts: [
      { name: 'agent’s share of the CPU in a burst', unit: '% of the CPU', samples: times.share, limit: 6 },
      { name: 'the same without tricks', unit: '% of the CPU', samples: times.plainShare },
    ],
  };
}
