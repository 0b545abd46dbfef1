// How often a method is called in two recordings, and whether that differs by more than chance. Pure.

export interface Rate {
  readonly method: string;
  readonly calls: readonly [a: number, b: number];
  /** Calls a second. */
  readonly perSecond: readonly [a: number, b: number];
  readonly verdict: 'equal' | 'different' | 'only in A' | 'only in B' | 'too few calls to say';
}

/** Rates differ when one is more than this many times the other. */
const FACTOR = 2;
/** Standard deviations between two counts that chance does not explain. */
const SIGMAS = 3;
/** One has none where the other's rate would have let this many be expected: it never calls the method. */
const EXPECTED = 5;

function verdictOf(a: number, b: number, secondsA: number, secondsB: number): Rate['verdict'] {
  const expectedB = secondsA > 0 ? (a / secondsA) * secondsB : 0;
  const expectedA = secondsB > 0 ? (b / secondsB) * secondsA : 0;
  if (b === 0) return expectedB >= EXPECTED ? 'only in A' : 'too few calls to say';
  if (a === 0) return expectedA >= EXPECTED ? 'only in B' : 'too few calls to say';
  const factor = Math.max(expectedB / b, b / expectedB);
  // Counts of independent events have about the variance of their size.
  const sigmas = Math.abs(b - expectedB) / Math.sqrt(b + expectedB * Math.max(1, secondsB / secondsA));
  return factor > FACTOR && sigmas > SIGMAS ? 'different' : 'equal';
}

/** `seconds` is how long each recording is. */
export function compareRates(
  a: ReadonlyMap<string, number>,
  b: ReadonlyMap<string, number>,
  seconds: readonly [a: number, b: number],
): Rate[] {
  return [...new Set([...a.keys(), ...b.keys()])].sort().map((method) => {
    const calls = [a.get(method) ?? 0, b.get(method) ?? 0] as const;
    const perSecond = [calls[0] / Math.max(seconds[0], 0.001), calls[1] / Math.max(seconds[1], 0.001)] as const;
    return { method, calls, perSecond, verdict: verdictOf(calls[0], calls[1], seconds[0], seconds[1]) };
  });
}
