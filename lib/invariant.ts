// Assertions about the program itself, stated where the code can see them. A broken one throws in tests and in the
// simulator; in production it is counted and reported, and the program goes on: it never ends a process that people use.

export type InvariantMode = 'throw' | 'count';

/** Reports a broken invariant where it does not throw. */
export type ReportInvariant = (name: string, fields: Readonly<Record<string, unknown>>) => void;

/** What the code took for certain is not so: a bug of ours, never of the input. */
export class InvariantError extends Error {
  override name = 'InvariantError';
}

const broken = new Map<string, number>();
let mode: InvariantMode = 'throw';
let report: ReportInvariant = () => undefined;

/** Production's mode: counts, and reports with `to`. Until it is called, a broken invariant throws. */
export function countInvariants(to: ReportInvariant): void {
  mode = 'count';
  report = to;
}

/** The mode of tests and of the simulator, and the mode at first. */
export function throwInvariants(): void {
  mode = 'throw';
  report = () => undefined;
}

/** How often each invariant was found broken in this process, by its name. */
export function brokenInvariants(): ReadonlyMap<string, number> {
  return broken;
}

/** States that `condition` holds. `name` says what should be true; `fields` say where it is not. */
export function invariant(condition: unknown, name: string, fields: Readonly<Record<string, unknown>> = {}): void {
  if (condition) return;
  broken.set(name, (broken.get(name) ?? 0) + 1);
  if (mode === 'throw') throw new InvariantError(`${name} ${JSON.stringify(fields)}`);
  report(name, fields);
}
