// Conditions that hold whatever happens outside the program, checked where the code relies on them. A violation is a bug
// of this program: tests and the simulator stop at it, production counts it, logs it and continues. Never use it to
// validate input: what comes from a client, a runtime or a file is refused with an error instead.

/** The values that explain a violation, for the log. */
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

/** One map for the process: checks are deep inside, the readers (metrics, log) at the top. */
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
