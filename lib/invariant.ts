// Statements about the program that must hold whatever happens outside it, checked where they are relied on. A broken
// one is the program's own mistake: tests and the simulator stop at it, production counts it, logs it and goes on.
// Never use it to judge input: what comes from a client, a runtime or a file is refused with an error instead.

/** What is known about the place, for whoever reads the log line. */
export type InvariantFields = Readonly<Record<string, unknown>>;
/** Called for every violation that does not throw. */
export type InvariantReporter = (name: string, fields: InvariantFields) => void;

export class InvariantViolation extends Error {
  override name = 'InvariantViolation';
  readonly invariant: string;
  readonly fields: InvariantFields;
  constructor(invariant: string, fields: InvariantFields) {
    super(`invariant violated: ${invariant} ${JSON.stringify(fields)}`);
    this.invariant = invariant;
    this.fields = fields;
  }
}

/** One for the process: an invariant is checked deep inside, and read by the metrics and the log at the top. */
const violations = new Map<string, number>();
let strict = false;
let reporter: InvariantReporter | undefined;

/** Tests and the simulator: from now on a violation throws InvariantViolation. */
export function throwOnViolation(): void {
  strict = true;
}

/** Production: who logs a violation. The latest reporter counts. */
export function reportViolations(report: InvariantReporter): void {
  reporter = report;
}

/** How often each invariant was violated since the process started, by name; those that always held are not in it. */
export function invariantViolations(): ReadonlyMap<string, number> {
  return violations;
}

/**
 * States that `condition` holds. `name` is a short sentence in the affirmative ("an exited container stays exited");
 * `fields` is called only when it does not hold.
 */
export function invariant(condition: boolean, name: string, fields: () => InvariantFields): void {
  if (condition) return;
  violations.set(name, (violations.get(name) ?? 0) + 1);
  const found = fields();
  if (strict) throw new InvariantViolation(name, found);
  reporter?.(name, found);
}
