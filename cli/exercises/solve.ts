// Types the commands of an exercise's solution.sh: each paragraph is printed as a person would type it, then run, in one
// shell with the exercise's environment.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { quoted } from './environment.ts';
import { type Session, sourceOf } from './session.ts';

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

/** The script that shows and runs the paragraphs; it ends at the first command that fails. Pure. */
export function typingScript(environment: string, paragraphs: readonly string[]): string {
  const parts = paragraphs.map((paragraph) => `printf '%s\\n' ${quoted(`\n${typed(paragraph)}`)}\n${paragraph}`);
  return ['set -euo pipefail', `. ${quoted(environment)}`, ...parts, ''].join('\n');
}

/** Writes the script for bash into the exercise's directory, and returns its path: its own input stays free for commands. */
export async function writeSolution(session: Pick<Session, 'exercise' | 'machine'>): Promise<string> {
  const { directory } = session.machine;
  const script = await readFile(join(sourceOf(session.exercise), 'solution.sh'), 'utf8');
  const path = join(directory, '.solution.sh');
  await writeFile(path, typingScript(join(directory, 'env'), paragraphsOf(script)));
  return path;
}
