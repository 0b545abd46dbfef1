// Runs an experiment: every variation of its parameters, each so many times, in a world of its own: steps, then measures, then
// expectations. Whatever happens, the world is closed. It knows worlds by their interface alone, and waits on what a world
// observes, never on the clock of the wall.

import { type Clock, elapsedMs, type MonotonicMs, systemClock } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { milliseconds } from './duration.ts';
import { evaluate, type Scope } from './expression/evaluate.ts';
import { ObservationIndex } from './expression/index-of-observations.ts';
import { namesIn, parseExpression } from './expression/parse.ts';
import { ExpressionError } from './expression/token.ts';
import { show, toMeasured, type Value } from './expression/value.ts';
import { type ExperimentSource, type ParameterValues, WORLD_NAMES } from './load.ts';
import type {
  ExpectationResult,
  ExpectSpec,
  Experiment,
  ExperimentResult,
  ExperimentStep,
  MeasuredValue,
  RunResult,
} from './model.ts';
import type { World, WorldKind } from './world.ts';

export interface RunOptions {
  readonly source: ExperimentSource;
  readonly kind: WorldKind;
  /** "nodelet" with its version, or "kubelet v1.34.2". */
  readonly agent: string;
  /** A new one for each run. */
  readonly createWorld: (seed: number) => World;
  readonly repeat: number;
  readonly seed: number;
  /** Values by parameter; every combination is a variation. */
  readonly matrix: ReadonlyMap<string, readonly (string | number)[]>;
  readonly signal: AbortSignal;
  /** What happens, line by line. */
  readonly note: (line: string) => void;
  readonly clock?: Clock;
  /** How many times as long as the file says a condition is waited for before the run fails: for a slow machine. Default 1. */
  readonly patience?: number;
}

export interface Outcome {
  readonly result: ExperimentResult;
  /** By name: files beside the report. */
  readonly recordings: ReadonlyMap<string, string>;
}

/** What a step does, in a line. Pure. */
export function stepText(step: ExperimentStep): string {
  if (step.name !== undefined) return step.name;
  if ('apply' in step) {
    const [first] = step.apply;
    const more = step.apply.length > 1 ? ` and ${step.apply.length - 1} more` : '';
    return first === undefined ? 'apply nothing' : `apply ${first.kind} ${first.metadata.name}${more}`;
  }
  if ('delete' in step) return `delete ${step.delete.kind} ${step.delete.name}`;
  if ('patch' in step) return `patch ${step.patch.kind} ${step.patch.name}`;
  if ('exec' in step) return `exec in ${step.exec.pod}: ${step.exec.command.join(' ')}`;
  if ('kill' in step)
    return 'process' in step.kill ? `kill ${step.kill.process}` : `kill ${step.kill.pod}/${step.kill.container}`;
  if ('start' in step) return `start ${step.start.process}`;
  if ('cut' in step) return `cut ${step.cut.from}`;
  if ('heal' in step) return `heal ${step.heal.from}`;
  if ('fault' in step) return `faults of ${step.fault.on}`;
  if ('use' in step)
    return `use ${Object.entries(step.use)
      .map(([what, much]) => `${what} ${much}`)
      .join(', ')}`;
  if ('clock' in step) return `clock ${step.clock.add}`;
  if ('shutdown' in step) return 'shutdown';
  if ('wait' in step) return `wait until ${step.wait.until}`;
  return `sleep ${step.sleep}`;
}

/** Throws UserError where the experiment is not for worlds of the kind. What a lab can do can a lab in a virtual machine. */
export function checkOn({ on, metadata }: Experiment, file: string, kind: WorldKind): void {
  if (on.includes(kind) || (kind === 'vm' && on.includes('lab'))) return;
  throw new UserError(`${file}: ${metadata.name} runs on ${on.join(', ')}, not on ${kind}`);
}

/** Throws UserError with everything that a world cannot do of an experiment, by name. */
export function checkWorld(
  world: Pick<World, 'cannot'>,
  { steps, world: spec = {} }: Experiment,
  file: string,
  kind: WorldKind,
): void {
  const refused = world.cannot(spec, steps.filter(isWorldStep));
  if (refused.length > 0) throw new UserError([`${file} cannot run on ${kind}:`, ...refused].join('\n  '));
}

/** Every combination of the values. Pure. */
export function variationsOf(matrix: RunOptions['matrix']): ParameterValues[] {
  let variations: ParameterValues[] = [{}];
  for (const [name, values] of matrix) {
    variations = variations.flatMap((variation) => values.map((value) => ({ ...variation, [name]: value })));
  }
  return variations;
}

/** Rejects with UserError when the world cannot do what the experiment needs; a step that fails is part of the result. */
export async function runExperiment(options: RunOptions): Promise<Outcome> {
  const { source, kind, agent, clock = systemClock, repeat, signal, note } = options;
  const { experiment } = source;
  checkOn(experiment, source.file, kind);
  const startedAt = rfc3339(clock.now());
  const variations = variationsOf(options.matrix);
  // All are read before the first is run: a mistake in one of them comes at once.
  const varied = await Promise.all(
    variations.map(async (values) => ({
      values: { ...defaultsOf(experiment), ...values },
      experiment: await source.vary(values),
    })),
  );
  const runs: RunResult[] = [];
  const recordings = new Map<string, string>();
  const total = varied.length * repeat;
  for (const each of varied) {
    for (let count = 0; count < repeat && !signal.aborted; count++) {
      const number = runs.length + 1;
      if (total > 1) note(`run ${number} of ${total}${textOf(each.values)}`);
      const run = new Run(options, each.experiment, options.seed + count, clock);
      const { result, files } = await run.go(each.values, count + 1);
      const prefix = total > 1 ? `run-${number}-` : '';
      for (const [name, text] of files) recordings.set(`${prefix}${name}`, text);
      runs.push({ ...result, recordings: [...files.keys()].map((name) => `${prefix}${name}`) });
    }
  }
  const verdict = signal.aborted ? 'interrupted' : runs.every(isPassed) ? 'passed' : 'failed';
  return { result: { version: 1, experiment, world: kind, agent, startedAt, verdict, runs }, recordings };
}

function textOf(values: ParameterValues): string {
  const texts = Object.entries(values).map(([name, value]) => `${name}=${value}`);
  return texts.length === 0 ? '' : `: ${texts.join(', ')}`;
}

function defaultsOf({ parameters = {} }: Experiment): ParameterValues {
  return Object.fromEntries(Object.entries(parameters).map(([name, parameter]) => [name, parameter.default]));
}

function isPassed({ failure, expectations }: RunResult): boolean {
  return (
    failure === undefined && expectations.every(({ outcome }) => outcome === 'met' || outcome === 'not checked here')
  );
}

/** One run of one variation. */
class Run {
  readonly #options: RunOptions;
  readonly #experiment: Experiment;
  readonly #seed: number;
  readonly #clock: Clock;
  readonly #world: World;
  readonly #index: ObservationIndex;

  constructor(options: RunOptions, experiment: Experiment, seed: number, clock: Clock) {
    this.#options = options;
    this.#experiment = experiment;
    this.#seed = seed;
    this.#clock = clock;
    this.#world = options.createWorld(seed);
    this.#index = new ObservationIndex(this.#world.observations);
  }

  async go(
    parameters: ParameterValues,
    repeat: number,
  ): Promise<{ result: RunResult; files: ReadonlyMap<string, string> }> {
    const beganAt = this.#clock.monotonic();
    checkWorld(this.#world, this.#experiment, this.#options.source.file, this.#options.kind);
    let failure: string | undefined;
    let measures: ReadonlyMap<string, Value> = new Map();
    let expectations: readonly ExpectationResult[] = [];
    let files: ReadonlyMap<string, string> = new Map();
    let worldMs = 0;
    try {
      failure = await this.#steps();
      worldMs = this.#world.now();
      measures = this.#measure();
      expectations = this.#experiment.expect.map((each) => this.#expectation(each, measures));
      files = await this.#world.recordings();
    } finally {
      await this.#world.close();
    }
    const result: RunResult = {
      parameters,
      repeat,
      seed: this.#seed,
      worldMs,
      wallMs: elapsedMs(beganAt, this.#clock.monotonic()),
      measures: Object.fromEntries(
        [...measures].map(([name, value]): [string, MeasuredValue] => [name, toMeasured(value)]),
      ),
      expectations,
      ...(failure === undefined ? {} : { failure }),
      recordings: [],
    };
    return { result, files };
  }

  /** Why it ended before the last step; undefined where it did not. */
  async #steps(): Promise<string | undefined> {
    const { steps, world: spec = {} } = this.#experiment;
    try {
      await this.#world.start(spec, this.#options.signal);
    } catch (error) {
      return this.#problem('the world did not start', error);
    }
    for (const [index, step] of steps.entries()) {
      const text = stepText(step);
      this.#options.note(text);
      this.#index.addStep({ type: 'step', at: this.#world.now(), index, text, phase: 'began' });
      try {
        this.#options.signal.throwIfAborted();
        await this.#step(step);
      } catch (error) {
        return this.#problem(`step ${index + 1}, ${text}`, error);
      }
      this.#index.addStep({ type: 'step', at: this.#world.now(), index, text, phase: 'ended' });
    }
    return undefined;
  }

  #problem(where: string, error: unknown): string {
    if (this.#options.signal.aborted) return `${where}: interrupted`;
    if (error instanceof UserError || error instanceof TimeoutError) return `${where}: ${error.message}`;
    // A mistake of this program and not of the experiment: the stack says where.
    return `${where}: ${error instanceof Error ? (error.stack ?? error.message) : errorMessage(error)}`;
  }

  async #step(step: ExperimentStep): Promise<void> {
    if ('sleep' in step) await this.#world.sleep(milliseconds(step.sleep));
    else if ('wait' in step) await this.#wait(step.wait);
    else await this.#world.perform(step);
  }

  async #wait(wait: { readonly until: string; readonly timeout: string }): Promise<void> {
    const { patience = 1 } = this.#options;
    const until = parseExpression(wait.until);
    const limitMs = milliseconds(wait.timeout) * patience;
    const beganAt = this.#world.now();
    const scope = this.#scope(new Map());
    while (evaluate(until, scope) !== true) {
      const leftMs = limitMs - elapsedMs(beganAt, this.#world.now());
      if (leftMs <= 0)
        throw new TimeoutError(`not true within ${patience === 1 ? '' : `${patience} x `}${wait.timeout}`);
      await this.#world.changed(leftMs);
      this.#options.signal.throwIfAborted();
    }
  }

  #scope(measures: ReadonlyMap<string, Value>): Scope {
    const names = new Map<string, Value>(WORLD_NAMES.map((name) => [name, name === this.#options.kind]));
    for (const [name, value] of measures) names.set(name, value);
    return { index: this.#index, elapsed: (): MonotonicMs => this.#world.now(), names };
  }

  /** What cannot be computed has no value; the expectations about it say why. */
  #measure(): ReadonlyMap<string, Value> {
    const measures = new Map<string, Value>();
    for (const { name, value } of this.#experiment.measure) {
      try {
        measures.set(name, evaluate(parseExpression(value), this.#scope(measures)));
      } catch (error) {
        if (!(error instanceof ExpressionError)) throw error;
        this.#options.note(`${name} has no value: ${error.message}`);
      }
    }
    return measures;
  }

  #expectation({ that, because, on }: ExpectSpec, measures: ReadonlyMap<string, Value>): ExpectationResult {
    const reason = because === undefined ? {} : { because };
    const base = { that, ...reason };
    if (on?.includes(this.#options.kind) === false) return { ...base, outcome: 'not checked here', detail: '' };
    const expression = parseExpression(that);
    const names = [...namesIn(expression)].filter((name) => measures.has(name));
    const detail = names.map((name) => `${name} = ${show(measures.get(name) ?? null)}`).join(', ');
    try {
      const value = evaluate(expression, this.#scope(measures));
      if (value === true) return { ...base, outcome: 'met', detail };
      const unknown = value === null ? `it has no value${detail === '' ? '' : ': '}` : '';
      return {
        ...base,
        outcome: value === false || value === null ? 'not met' : 'error',
        detail: `${unknown}${detail}`,
      };
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      return { ...base, outcome: 'error', detail: `${error.message}${detail === '' ? '' : `; ${detail}`}` };
    }
  }
}

/** A condition did not come true. */
class TimeoutError extends Error {
  override name = 'TimeoutError';
}

function isWorldStep(step: ExperimentStep): step is Parameters<World['perform']>[0] {
  return !('wait' in step) && !('sleep' in step);
}
