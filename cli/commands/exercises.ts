// `nodelet lab`: guided exercises. The commands' work is cli/exercises/run.ts.

import { Command, InvalidArgumentError } from 'commander';
import type { LabCommand } from '../exercises/run.ts';
import { rootOfShell } from '../exercises/shell-root.ts';
import { stopSignal } from './signals.ts';

const DEFAULT_WIDTH = 100;
/** Commands of solutions wait two minutes at most by themselves, and an emulated machine is slow. */
const SOLVE_SECONDS = 300;

type Run = typeof import('../exercises/run.ts');
interface Flags {
  readonly root: string;
}

function context({ root }: Flags): LabCommand {
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  return { root, say, width: process.stdout.columns ?? DEFAULT_WIDTH };
}

function stepNumber(text: string): number {
  if (!/^\d{1,3}$/.test(text)) throw new InvalidArgumentError('give the number of a step');
  return Number(text);
}

function seconds(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('give a number of seconds, 1 or more');
  return Number(text);
}

function subcommand(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .option('--root <dir>', 'the lab’s directory', rootOfShell(process.env))
    .exitOverride();
}

/** One without arguments. `false` is exit code 1. */
function plain(name: string, description: string, work: (run: Run, command: LabCommand) => Promise<unknown>): Command {
  return subcommand(name, description).action(async (flags: Flags) => {
    const done = await work(await import('../exercises/run.ts'), context(flags));
    if (done === false) process.exitCode = 1;
  });
}

export function exercisesCommand(): Command {
  const lab = new Command('lab')
    .description('guided exercises on a real node (docs/exercises.md)')
    .enablePositionalOptions();
  lab.addCommand(plain('list', 'the exercises', (run, command) => run.listExercises(command)));
  lab.addCommand(
    subcommand('start', 'begin an exercise; starts a lab where none runs')
      .argument('<name>', 'see "nodelet lab list"')
      .action(async (name: string, flags: Flags) => {
        const { startExercise } = await import('../exercises/run.ts');
        await startExercise(context(flags), name);
      }),
  );
  lab.addCommand(
    subcommand('step', 'show the next step, or the one of a number')
      .argument('[number]', 'which step', stepNumber)
      .action(async (number: number | undefined, flags: Flags) => {
        const { showStep } = await import('../exercises/run.ts');
        await showStep(context(flags), number);
      }),
  );
  lab.addCommand(
    plain(
      'check',
      'look at the machine: what is there, what is missing; exit code 0 when it is solved',
      (run, command) => run.checkExercise(command),
    ),
  );
  lab.addCommand(plain('hint', 'show the next hint', (run, command) => run.showHint(command)));
  lab.addCommand(
    subcommand('solve', 'type the solution’s commands, then check')
      .option('--timeout <seconds>', 'how long each command may take', seconds, SOLVE_SECONDS)
      .action(async (flags: Flags & { readonly timeout: number }) => {
        const { solveExercise } = await import('../exercises/run.ts');
        if (!(await solveExercise(context(flags), flags.timeout * 1000, stopSignal()))) process.exitCode = 1;
      }),
  );
  lab.addCommand(plain('status', 'which exercise is under way, and where', (run, command) => run.showStatus(command)));
  lab.addCommand(
    plain('reset', 'bring the exercise back to its beginning', (run, command) => run.resetExercise(command)),
  );
  lab.addCommand(
    plain('stop', 'end the exercise and remove everything of it; stops the lab that "start" started', (run, command) =>
      run.stopExercise(command),
    ),
  );
  lab.addCommand(
    plain('restart-agent', 'end the lab’s agent; its supervisor starts it again', (run, command) =>
      run.restartLabAgent(command),
    ),
    { hidden: true },
  );
  lab.addCommand(
    new Command('kubectl')
      .description('what exercises need of kubectl')
      .helpOption(false)
      .allowUnknownOption()
      .passThroughOptions()
      .argument('[words...]', 'as for kubectl')
      .action(async (words: readonly string[]) => {
        const { runKubectl } = await import('../exercises/kubectl.ts');
        const print = (text: string): void => void process.stdout.write(text);
        process.exitCode = await runKubectl(words, process.env['KUBECONFIG'], print);
      }),
    { hidden: true },
  );
  return lab;
}
