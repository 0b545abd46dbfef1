// The commands of `nodelet lab`. Each opens the lab and the exercise that is under way, does one thing, and prints.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EXERCISES, findExercise } from '../../labs/exercises/index.ts';
import { type Exercise, type Finding, isSolved } from '../../labs/exercises/model.ts';
import { systemClock } from '../../lib/clock.ts';
import { UserError } from '../../lib/errors.ts';
import { poll } from '../../lib/retry.ts';
import { runDown } from '../lab/down.ts';
import type { LabPaths } from '../lab/paths.ts';
import { labAt } from '../lab/take-root.ts';
import { beginExercise } from './begin.ts';
import { endExercise } from './end.ts';
import { quoted } from './environment.ts';
import { renderFindings } from './report.ts';
import { runningLab, startLabInBackground } from './running-lab.ts';
import { restartAgent } from './saved.ts';
import { openSession, type Session, sourceOf } from './session.ts';
import { typeSolution } from './solve.ts';
import { type Current, readCurrent, removeCurrent, writeCurrent } from './state.ts';
import { type ExerciseText, parseText, renderMarkdown, renderStep } from './text.ts';

const MAX_WIDTH = 100;
/** For giving up only: how long after a solution's last command nothing may be missing any more. ms */
const SETTLED_MS = 60_000;
const LOOK_MS = 200;

export interface LabCommand {
  readonly root: string;
  readonly say: (line: string) => void;
  /** Of the terminal. */
  readonly width: number;
}

function widthOf({ width }: LabCommand): number {
  return Math.min(width, MAX_WIDTH);
}

function assertRoot(): void {
  if (process.getuid?.() !== 0) throw new UserError('must be root: exercises look at and change this machine');
}

async function textOf(exercise: Exercise): Promise<ExerciseText> {
  return parseText(await readFile(join(sourceOf(exercise), 'README.md'), 'utf8'));
}

/** "nodelet lab check", with the root where it is not the default one. */
function hintAt(paths: LabPaths, command: string): string {
  return `nodelet lab ${command}${paths.isDefaultRoot ? '' : ` --root ${quoted(paths.root)}`}`;
}

async function current(command: LabCommand): Promise<{ paths: LabPaths; state: Current; exercise: Exercise }> {
  const paths = await labAt(command.root);
  const state = await readCurrent(paths);
  if (state === undefined) {
    throw new UserError(
      `no exercise is under way under ${paths.root}: "nodelet lab list", then "nodelet lab start NAME"`,
    );
  }
  const exercise = findExercise(state.name);
  if (exercise === undefined) throw new UserError(`this nodelet has no exercise ${state.name}`);
  return { paths, state, exercise };
}

async function withSession<T>(paths: LabPaths, exercise: Exercise, work: (session: Session) => Promise<T>): Promise<T> {
  const state = await runningLab(paths);
  if (state === undefined)
    throw new UserError(`the lab under ${paths.root} does not run: "nodelet lab stop" ends the exercise`);
  const session = await openSession(exercise, paths, state);
  try {
    return await work(session);
  } finally {
    session.close();
  }
}

/** One line an exercise; `*` marks the one that is under way. */
export async function listExercises(command: LabCommand): Promise<void> {
  const underWay = (await readCurrent(await labAt(command.root)))?.name;
  const longest = Math.max(...EXERCISES.map(({ name }) => name.length));
  for (const { name, title, minutes } of EXERCISES) {
    const mark = name === underWay ? '*' : ' ';
    command.say(`${mark} ${name.padEnd(longest)}  ${String(minutes).padStart(2)} min  ${title}`);
  }
}

export async function startExercise(command: LabCommand, name: string): Promise<void> {
  assertRoot();
  const { say } = command;
  const exercise = findExercise(name);
  if (exercise === undefined) throw new UserError(`there is no exercise "${name}": see "nodelet lab list"`);
  const paths = await labAt(command.root);
  const before = await readCurrent(paths);
  if (before !== undefined) {
    throw new UserError(`the exercise ${before.name} is under way: end it with "${hintAt(paths, 'stop')}" first`);
  }
  let startedLab = false;
  const running = await runningLab(paths);
  const runtime = running?.runtime ?? 'containerd';
  if (exercise.runtime !== undefined && runtime !== exercise.runtime) {
    throw new UserError(`${name} needs a lab on ${exercise.runtime}, and the one under ${paths.root} is on ${runtime}`);
  }
  if (running === undefined) {
    say(`No lab runs under ${paths.root}: starting one in the background. "${hintAt(paths, 'stop')}" stops it.`);
    await startLabInBackground(paths, say);
    startedLab = true;
  }
  await writeCurrent(paths, { name, step: 1, hints: 0, startedLab });
  await withSession(paths, exercise, async (session) => {
    await beginExercise(session);
    await showBeginning(command, session);
  });
}

async function showBeginning(command: LabCommand, { exercise, machine, paths }: Session): Promise<void> {
  const text = await textOf(exercise);
  const width = widthOf(command);
  const shell = `. ${quoted(join(machine.directory, 'env'))}`;
  command.say(`\n${text.title}\n\n${renderMarkdown(text.introduction, width)}\n`);
  command.say(`The commands of this exercise are for a root shell set up for it:\n\n    ${shell}\n`);
  command.say(renderStep(text, 1, width));
  command.say(`\n"${hintAt(paths, 'step')}" shows the next step, "${hintAt(paths, 'check')}" whether you are done.`);
}

/** The next step, or the one of a number. */
export async function showStep(command: LabCommand, number: number | undefined): Promise<void> {
  const { paths, state, exercise } = await current(command);
  const text = await textOf(exercise);
  const wanted = number ?? state.step + 1;
  if (wanted > text.steps.length && number === undefined) {
    command.say(`That was the last step: "${hintAt(paths, 'check')}" looks at the machine.`);
    return;
  }
  if (wanted < 1 || wanted > text.steps.length)
    throw new UserError(`${exercise.name} has steps 1 to ${text.steps.length}`);
  await writeCurrent(paths, { ...state, step: wanted });
  command.say(renderStep(text, wanted, widthOf(command)));
}

/** Resolves with whether it is solved. */
export async function checkExercise(command: LabCommand): Promise<boolean> {
  assertRoot();
  const { paths, exercise } = await current(command);
  const findings: readonly Finding[] = await withSession(paths, exercise, ({ machine }) => exercise.check(machine));
  command.say(renderFindings(exercise, findings));
  return isSolved(findings);
}

export async function showHint(command: LabCommand): Promise<void> {
  const { paths, state, exercise } = await current(command);
  const { hints } = exercise;
  const hint = hints[state.hints];
  if (hint === undefined) {
    command.say(`There are no more hints: "${hintAt(paths, 'solve')}" types the solution.`);
    return;
  }
  await writeCurrent(paths, { ...state, hints: state.hints + 1 });
  command.say(`Hint ${state.hints + 1} of ${hints.length}: ${renderMarkdown(hint, widthOf(command))}`);
}

/**
 * Types the solution, and checks when it has taken effect. Resolves with whether it is solved. `limitMs`: for each command. Rejects with UserError when
 * one fails, or takes longer.
 */
export async function solveExercise(command: LabCommand, limitMs: number, signal: AbortSignal): Promise<boolean> {
  assertRoot();
  const { paths, exercise } = await current(command);
  try {
    await withSession(paths, exercise, (session) => typeSolution(session, { limitMs, clock: systemClock, signal }));
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    throw new UserError(`${error.message}\n"${hintAt(paths, 'reset')}" begins the exercise again`, { cause: error });
  }
  command.say('');
  // What the last command began may go on for a moment: a status that is being written, an endpoint.
  await withSession(paths, exercise, ({ machine }) =>
    poll(async () => isSolved(await exercise.check(machine)), {
      clock: systemClock,
      everyMs: LOOK_MS,
      limitMs: SETTLED_MS,
      signal,
    }),
  );
  return checkExercise(command);
}

export async function resetExercise(command: LabCommand): Promise<void> {
  assertRoot();
  const { paths, state, exercise } = await current(command);
  await withSession(paths, exercise, async (session) => {
    await endExercise(session);
    await writeCurrent(paths, { ...state, step: 1, hints: 0 });
    await beginExercise(session);
    command.say(`${exercise.name} is at its beginning again.`);
    await showBeginning(command, session);
  });
}

export async function stopExercise(command: LabCommand): Promise<void> {
  assertRoot();
  const { paths, state, exercise } = await current(command);
  if ((await runningLab(paths)) !== undefined) {
    await withSession(paths, exercise, endExercise);
    await removeCurrent(paths);
    command.say(`${exercise.name} is over; nothing of it is left.`);
    if (!state.startedLab) return;
    command.say('stopping the lab that was started for it');
  }
  // With a lab that does not run any more, its exercises go as well.
  await runDown({ root: paths.root, say: command.say });
}

export async function showStatus(command: LabCommand): Promise<void> {
  const { paths, state, exercise } = await current(command);
  const text = await textOf(exercise);
  const { say } = command;
  say(`${exercise.name}: ${exercise.title}`);
  say(`step ${state.step} of ${text.steps.length}, ${state.hints} of ${exercise.hints.length} hints shown`);
  const runs = (await runningLab(paths)) !== undefined;
  say(
    `the lab under ${paths.root} ${runs ? 'runs' : 'does not run'}${state.startedLab ? ', started for exercises' : ''}`,
  );
  say(`shell: . ${quoted(join(paths.exercisesDir, exercise.name, 'env'))}`);
}

export async function restartLabAgent(command: LabCommand): Promise<void> {
  assertRoot();
  const paths = await labAt(command.root);
  if ((await runningLab(paths)) === undefined) throw new UserError(`no lab runs under ${paths.root}`);
  await restartAgent(paths);
}
