// Types the commands of an exercise's solution.sh: each paragraph is printed as a person would type it, then run, in one
// shell with the exercise's environment. One that does not end in time is named, and ends with all that the shell has started.

import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { Clock, Timer } from '../../lib/clock.ts';
import { isErrno, UserError } from '../../lib/errors.ts';
import { quoted } from './environment.ts';
import { type Session, sourceOf } from './session.ts';

/** Where the script writes the number of the command that it begins. Commands and what they start have it closed. */
const PROGRESS = 3;

/** Paragraphs of commands and of comments, without the first line that names the shell. Pure. */
export function paragraphsOf(script: string): readonly string[] {
  return script
    .replace(/^#!.*\n/, '')
    .split(/\n{2,}/)
    .map((part) => part.replace(/^\n+|\s+$/g, ''))
    .filter((part) => part !== '');
}

/** "$ " before the first line that is no comment, "> " before those after it. Pure. */
export function typed(paragraph: string): string {
  let prompt = '$ ';
  const lines = paragraph.split('\n').map((line) => {
    if (prompt === '$ ' && line.startsWith('#')) return line;
    const shown = `${prompt}${line}`;
    prompt = '> ';
    return shown;
  });
  return lines.join('\n');
}

/** Without the comments before it. Pure. */
function commandOf(paragraph: string): string {
  return paragraph.replace(/^(?:#.*\n)+/, '');
}

/** The script that shows and runs the paragraphs; it ends at the first command that fails. Pure. */
export function typingScript(environment: string, paragraphs: readonly string[]): string {
  const parts = paragraphs.map((paragraph, index) =>
    [
      `echo ${index} >&${PROGRESS}`,
      `printf '%s\\n' ${quoted(`\n${typed(paragraph)}`)}`,
      // Braces are no subshell: what a command sets stays set.
      `{\n${paragraph}\n} ${PROGRESS}>&-`,
    ].join('\n'),
  );
  return ['set -euo pipefail', `. ${quoted(environment)}`, ...parts, ''].join('\n');
}

export interface TypingOptions {
  /** How long one command may take, ms. */
  readonly limitMs: number;
  readonly clock: Clock;
  /** Ends the command that runs, and the typing. */
  readonly signal?: AbortSignal;
  /** The whole environment; by default this process's. */
  readonly env?: NodeJS.ProcessEnv;
  /** Gets the output; by default it goes where this process's own goes. */
  readonly onOutput?: (text: string) => void;
}

/** A process and those that it has started and that have made no group of their own. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (!isErrno(error, 'ESRCH')) throw error;
  }
}

/** Runs bash until its end. `script`: a file. Rejects with UserError that names the command which failed or took too long. */
async function runScript(script: string, paragraphs: readonly string[], options: TypingOptions): Promise<void> {
  const { limitMs, clock, signal, onOutput, env = process.env } = options;
  const output = onOutput === undefined ? 'inherit' : 'pipe';
  const child = spawn('bash', [script], { detached: true, env, stdio: ['ignore', output, output, 'pipe'] });
  const [, stdout, stderr, progress] = child.stdio;
  for (const stream of [stdout, stderr]) stream?.on('data', (chunk: Buffer) => onOutput?.(chunk.toString('utf8')));
  let command = 'bash';
  let late = false;
  let timer: Timer | undefined;
  createInterface({ input: progress as Readable }).on('line', (line) => {
    command = commandOf(paragraphs[Number(line)] ?? command);
    timer?.cancel();
    timer = clock.after(limitMs, () => {
      late = true;
      killGroup(child.pid);
    });
  });
  const stop = (): void => killGroup(child.pid);
  signal?.addEventListener('abort', stop, { once: true });
  try {
    const code = await new Promise<number | NodeJS.Signals | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (exit, by) => resolve(exit ?? by));
    });
    if (late) throw new UserError(`a command did not end within ${limitMs / 1000} s: ${command}`);
    if (signal?.aborted === true) throw new UserError(`interrupted in this command: ${command}`);
    if (code !== 0)
      throw new UserError(`a command failed (${typeof code === 'number' ? `exit ${code}` : code}): ${command}`);
  } finally {
    timer?.cancel();
    signal?.removeEventListener('abort', stop);
  }
}

/**
 * Types the paragraphs in a shell with the environment of a file. `script`: the file that bash runs: its own input stays free
 * for commands.
 */
export async function typeCommands(
  script: string,
  environment: string,
  paragraphs: readonly string[],
  options: TypingOptions,
): Promise<void> {
  await writeFile(script, typingScript(environment, paragraphs));
  await runScript(script, paragraphs, options);
}

/** Types an exercise's solution. Rejects with UserError that names the command which failed or took too long. */
export async function typeSolution(
  { exercise, machine }: Pick<Session, 'exercise' | 'machine'>,
  options: TypingOptions,
): Promise<void> {
  const { directory } = machine;
  const solution = await readFile(join(sourceOf(exercise), 'solution.sh'), 'utf8');
  await typeCommands(join(directory, '.solution.sh'), join(directory, 'env'), paragraphsOf(solution), options);
}
