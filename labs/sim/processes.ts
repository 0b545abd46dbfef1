// The processes inside simulated containers: how long they run, what they say to TERM, whether they answer probes. Each
// container of a pod has habits of its own, thrown once.

import type { ContainerRuntime, ContainerSpec } from '../../agent/ports/runtime.ts';
import { type Clock, type MonotonicMs, plusMs, type Timer } from '../../lib/clock.ts';
import type { ContainerConfig__Output } from '../../proto/gen/runtime/v1/ContainerConfig.ts';
import type { PodSandboxConfig__Output } from '../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import type { Dice } from './dice.ts';

export type ProbeKind = 'startup' | 'liveness' | 'readiness';

type ExecOutcome = Awaited<ReturnType<ContainerRuntime['execSync']>>;

interface Habits {
  /** A server runs until it is stopped, a job until it is through, a crasher not for long. */
  readonly nature: 'server' | 'job' | 'crasher';
  /** ms from TERM to the end; undefined where TERM is not heard. */
  readonly termMs: number | undefined;
  /** Of a hundred jobs, how many fail. */
  readonly failures: number;
  readonly startupMs: number;
}

export interface Process {
  /** From then on it answers probes of its startup. */
  readonly startedUpAt: MonotonicMs;
  readonly termMs: number | undefined;
  /** What TERM does, instead of the end after `termMs`. */
  readonly term?: () => void;
  /** Whether it answers each kind of probe well, once it has started up. */
  readonly well: Readonly<Record<ProbeKind, boolean>>;
  /** From now on it does, or does not, answer probes of the kind well. */
  readonly flip: (kind: ProbeKind) => void;
  /** Whether it has not answered them well at any time since `time`. */
  readonly wrongSince: (kind: ProbeKind, time: MonotonicMs) => boolean;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  readonly resolveEnded: () => void;
  timer: Timer | undefined;
  /** It is on its way to crash. */
  crashes: boolean;
}

/** What a simulated runtime runs in its containers. */
export interface ProcessTable {
  /** A process begins; `end` is called when it ends by itself. */
  begin(
    spec: ContainerSpec,
    end: (exitCode: number, reason: string) => void,
    config: ContainerConfig__Output,
    sandbox: PodSandboxConfig__Output | undefined,
  ): Process;
  /** Runs a command beside the process. */
  exec(process: Process, command: readonly string[], limitMs: number): Promise<ExecOutcome>;
}

export class Processes implements ProcessTable {
  readonly #clock: Clock;
  readonly #dice: Dice;
  readonly #habits = new Map<string, Habits>();
  /** Servers run, jobs succeed, everybody is well. */
  calm = false;

  constructor(clock: Clock, dice: Dice) {
    this.#clock = clock;
    this.#dice = dice;
  }

  #habitsOf(spec: ContainerSpec): Habits {
    const { namespace, name } = spec.pod.metadata;
    const key = `${namespace}/${name}/${spec.container.name}`;
    let habits = this.#habits.get(key);
    if (habits === undefined) {
      const dice = this.#dice;
      const restarts = 'restartPolicy' in spec.container ? spec.container.restartPolicy : spec.pod.spec.restartPolicy;
      const isJob = (spec.type === 'init' && restarts !== 'Always') || spec.type === 'ephemeral';
      habits = {
        nature: isJob ? 'job' : dice.weighted({ server: 6, job: restarts === 'Always' ? 1 : 4, crasher: 2 }),
        termMs: dice.chance(0.2) ? undefined : dice.pick([0, 0, 10, 300, 3_000, 20_000]),
        failures: dice.pick([0, 0, 20, 50]),
        startupMs: dice.pick([0, 0, 200, 5_000, 25_000]),
      };
      this.#habits.set(key, habits);
    }
    return habits;
  }

  /** A process begins; `end` is called when it ends by itself. */
  begin(spec: ContainerSpec, end: (exitCode: number, reason: string) => void): Process {
    const habits = this.#habitsOf(spec);
    const { promise, resolve } = Promise.withResolvers<void>();
    const well = { startup: true, liveness: true, readiness: true };
    const begin = this.#clock.monotonic();
    const flippedAt = { startup: begin, liveness: begin, readiness: begin };
    const process: Process = {
      startedUpAt: plusMs(this.#clock.monotonic(), habits.startupMs),
      termMs: habits.termMs,
      well,
      flip: (kind) => {
        well[kind] = !well[kind];
        flippedAt[kind] = this.#clock.monotonic();
      },
      wrongSince: (kind, time) => !well[kind] && flippedAt[kind] <= time,
      ended: promise,
      resolveEnded: resolve,
      timer: undefined,
      crashes: false,
    };
    const plan = this.#plan(habits);
    process.crashes = plan !== undefined && plan.exitCode !== 0;
    if (plan !== undefined) process.timer = this.#clock.after(plan.afterMs, () => end(plan.exitCode, plan.reason));
    return process;
  }

  #plan({ nature, failures }: Habits): { afterMs: number; exitCode: number; reason: string } | undefined {
    const dice = this.#dice;
    if (nature === 'server') return undefined;
    if (nature === 'crasher') {
      if (this.calm) return undefined;
      const oom = dice.chance(0.2);
      const afterMs = dice.pick([0, 20, 1_000, 15_000, 700_000]);
      return { afterMs, exitCode: oom ? 137 : 1, reason: oom ? 'OOMKilled' : 'Error' };
    }
    const failed = !this.calm && dice.below(100) < failures;
    const afterMs = dice.pick([0, 50, 2_000, 30_000]);
    return { afterMs, exitCode: failed ? 3 : 0, reason: failed ? 'Error' : 'Completed' };
  }

  /** What a probe of the process finds. */
  isWell(process: Process, kind: ProbeKind): boolean {
    const startedUp = this.#clock.monotonic() >= process.startedUpAt;
    // One that is not ready does no harm, and stays so.
    return startedUp && ((this.calm && kind !== 'readiness') || process.well[kind]);
  }

  /** Runs a command beside the process; commands differ by one word: a probe's kind, or what a hook comes to. */
  async exec(process: Process, [word = '']: readonly string[], limitMs: number): Promise<ExecOutcome> {
    const clock = this.#clock;
    const none = Buffer.alloc(0);
    const done = (exitCode: number): ExecOutcome => ({ stdout: none, stderr: none, exitCode, timedOut: false });
    if (word === 'startup' || word === 'liveness' || word === 'readiness')
      return done(this.isWell(process, word) ? 0 : 1);
    if (word === 'fails') return done(1);
    if (word !== 'slow' && word !== 'hangs') return done(0);
    const wantedMs = word === 'slow' ? 7_000 : Number.POSITIVE_INFINITY;
    const ended = await Promise.race([clock.sleep(Math.min(limitMs, wantedMs)), process.ended.then(() => true)]);
    // It goes with the container it runs in.
    if (ended === true) return done(137);
    return wantedMs <= limitMs ? done(0) : { ...done(137), timedOut: true };
  }
}
