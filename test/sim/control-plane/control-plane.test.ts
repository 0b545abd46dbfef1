// The whole control plane under the simulator: the same seed is the same history, seeds keep every rule, and controllers that
// are broken on purpose are found.

import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ApiObject } from '../../../client/types.ts';
import { GarbageCollector } from '../../../controlplane/controllers/garbage-collector/garbage-collector.ts';
import { Expectations } from '../../../controlplane/controllers/shared/expectations.ts';
import type { Deployment } from '../../../controlplane/controllers/shared/objects.ts';
import { BrokenControlPlane, type ControlPlaneHistoryOptions, runControlPlaneHistory } from './history.ts';

/** Seeds that every run of the tests goes through: split, a pair, alone, and a pair. */
const SEEDS = [1, 2, 3, 4];

afterEach(() => {
  vi.restoreAllMocks();
});

describe('a control plane with a random history', () => {
  it.each(SEEDS)('keeps every rule, comes to rest, and leaves nothing (seed %i)', async (seed) => {
    const report = await runControlPlaneHistory({ seed });
    expect(report.writes).toBeGreaterThan(500);
  });

  it('is the same for the same seed', async () => {
    const short = { seed: 6, badMs: 30_000, fairMs: 10_000 };
    const first = await runControlPlaneHistory(short);
    expect(await runControlPlaneHistory(short)).toEqual(first);
    expect((await runControlPlaneHistory({ ...short, seed: 7 })).digest).not.toBe(first.digest);
  });
});

interface Mutant {
  readonly what: string;
  /** Where it is looked for, in this order: not every history is one in which it shows. */
  readonly seeds: readonly number[];
  readonly found: RegExp;
  readonly mutate?: () => void;
  readonly options?: Partial<ControlPlaneHistoryOptions>;
}

/** A rolling update as if every pod might be away. */
function withoutMaxUnavailable(object: ApiObject): ApiObject {
  if (object.kind !== 'Deployment') return object;
  const unknown: unknown = object;
  const { spec } = unknown as Deployment;
  if (spec.strategy?.type === 'Recreate') return object;
  const strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: '100%' } };
  const changed: unknown = { ...object, spec: { ...spec, strategy } };
  return changed as ApiObject;
}

const MUTANTS: readonly Mutant[] = [
  {
    what: 'controllers have no expectations',
    seeds: [6, 2, 1, 5, 4, 9, 7],
    found: /active pods where \d+ are wanted/,
    mutate: () => vi.spyOn(Expectations.prototype, 'unsatisfiedForMs').mockReturnValue(undefined),
  },
  {
    what: 'maxUnavailable is ignored',
    seeds: [8, 7, 4, 10, 3, 6, 12, 14, 15, 18],
    found: /are available where \d+ must be/,
    options: { shown: withoutMaxUnavailable },
  },
  {
    what: 'the garbage collector does nothing',
    seeds: [1, 2, 3, 4, 5, 8, 9],
    found: /is left|waits to be deleted/,
    options: { badMs: 20_000, fairMs: 20_000, convergenceMs: 60_000 },
    mutate: () => vi.spyOn(GarbageCollector.prototype, 'sync').mockResolvedValue(undefined),
  },
];

describe('a broken controller', () => {
  it.each(MUTANTS)('is found: $what', async ({ seeds, found, mutate, options }) => {
    mutate?.();
    const messages: string[] = [];
    for (const seed of seeds) {
      const error = await runControlPlaneHistory({ seed, ...options }).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (error === undefined) continue;
      if (!(error instanceof BrokenControlPlane)) throw error;
      const [first = ''] = error.message.split('\n');
      expect(error.message).toContain(`npm run sim -- --control-plane --seed ${seed}`);
      messages.push(first);
      if (found.test(first)) return;
    }
    throw new Error(`no rule found it; others were broken: ${messages.join('; ')}`);
  });
});
