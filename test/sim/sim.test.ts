// The simulator itself: the same seed is the same history, the rules notice what they are there for, and a fixed set of
// seeds keeps them all.

import { describe, expect, it } from 'vitest';
import { BrokenRule, runHistory } from './history.ts';
import { FAULTS, type Fault } from './world/faults.ts';

/** Seeds that every run of the tests goes through. */
const SEEDS = Array.from({ length: 40 }, (_, index) => index + 1);
const STEPS = 2_000;

describe('a history', () => {
  it('is the same for the same seed, to the last thing that happened', async () => {
    const first = await runHistory({ seed: 7, steps: 3_000 });
    const second = await runHistory({ seed: 7, steps: 3_000 });
    expect(second).toEqual(first);
    expect((await runHistory({ seed: 8, steps: 3_000 })).digest).not.toBe(first.digest);
  });

  it('has a bit of everything', async () => {
    const reports = [];
    for (const seed of SEEDS.slice(0, 5)) reports.push(await runHistory({ seed, steps: 4_000 }));
    const reasons = new Set(reports.flatMap(({ recorded }) => [...recorded.keys()]));
    for (const reason of ['Started', 'Killing', 'BackOff', 'Unhealthy', 'SandboxChanged', 'FailedPostStartHook']) {
      expect(reasons).toContain(reason);
    }
  });
});

describe('a broken rule', () => {
  it.each(Object.entries(FAULTS) as [Fault, RegExp][])(
    'is noticed when %s, and again at the same step',
    async (fault, said) => {
      const broken = await firstBroken(fault);
      expect(broken.error.message).toMatch(said);
      expect(broken.error.message).toContain(`npm run sim -- --seed ${broken.seed} --steps ${STEPS}`);
      const again = await brokenBy(fault, broken.seed);
      expect(again?.step).toBe(broken.error.step);
      expect(again?.message).toBe(broken.error.message);
    },
  );
});

describe('a node with a random history', () => {
  it.each(SEEDS)('keeps every rule and comes to rest (seed %i)', async (seed) => {
    const { steps, events } = await runHistory({ seed, steps: STEPS });
    expect(steps).toBeGreaterThan(STEPS);
    expect(events).toBeGreaterThan(10);
  });
});

describe('a node whose storage driver is at its worst', () => {
  it('keeps every rule and comes to rest, and the driver does everything that drivers do wrong', async () => {
    /** How often what became of a call that makes or unmakes a volume. */
    const seen = new Map<string, number>();
    const count = (what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1);
    const onLine = (line: string): void => {
      const [, call = '', fate = 'done'] = /^\d+ csi Node(\w+)Volume .*?(?:: (\w+))?$/.exec(line) ?? [];
      if (call === 'Stage' || call === 'Publish') count(`making ${fate}`);
      if (call === 'Unstage' || call === 'Unpublish') count(`unmaking ${fate}`);
      if (/ csi dies when \S+ is staged$/.test(line)) count('dies between stage and publish');
    };
    for (const seed of SEEDS.slice(0, 10)) await runHistory({ seed, steps: STEPS, storage: true, onLine });
    // It fails with nothing or all of it done, answers when nobody waits any more, hangs, does a thing twice.
    const fates = ['done', 'refused', 'lost', 'late', 'never', 'twice'];
    const wanted = fates.flatMap((fate) => [`making ${fate}`, `unmaking ${fate}`]);
    expect([...seen.keys()]).toEqual(expect.arrayContaining([...wanted, 'dies between stage and publish']));
  }, 120_000);
});

async function brokenBy(fault: Fault, seed: number): Promise<BrokenRule | undefined> {
  try {
    await runHistory({ seed, steps: STEPS, faults: new Set([fault]) });
    return undefined;
  } catch (error) {
    if (error instanceof BrokenRule) return error;
    throw error;
  }
}

async function firstBroken(fault: Fault): Promise<{ error: BrokenRule; seed: number }> {
  for (const seed of SEEDS) {
    const error = await brokenBy(fault, seed);
    if (error !== undefined) return { error, seed };
  }
  throw new Error(`no rule noticed that ${fault}`);
}
