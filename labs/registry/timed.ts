// Images whose pull takes a known time, for experiments: "sim/pull-20s" takes 20 s, and so does "sim/pull-20s-two", another one. The simulator has
// the same names. Pure.

const NAME = /^sim\/pull-(\d{1,4})(ms|s|m)(?:-[a-z0-9-]+)?$/;
const UNIT_MS = { ms: 1, s: 1000, m: 60_000 } as const;

/** Tags of each of them. */
export const TIMED_TAGS: readonly string[] = ['1', 'latest'];

/** How long a pull of the repository takes, ms; undefined where it is none of them. */
export function timedPullMs(repository: string): number | undefined {
  const [, digits, unit] = NAME.exec(repository) ?? [];
  if (digits === undefined || (unit !== 'ms' && unit !== 's' && unit !== 'm')) return undefined;
  return Number(digits) * UNIT_MS[unit];
}
