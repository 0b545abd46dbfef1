// Every exercise is whole: text with steps, a solution in whose commands those of the text are, in their order, hints, and
// manifests that can be read.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseWorld } from '../../../../cli/exercises/begin.ts';
import { EXERCISES_SOURCE, namespaceOf } from '../../../../cli/exercises/session.ts';
import { paragraphsOf, typingScript } from '../../../../cli/exercises/solve.ts';
import { commandsOf, parseText } from '../../../../cli/exercises/text.ts';
import { EXERCISES } from '../../../../labs/exercises/index.ts';
import { exec } from '../../../../lib/exec.ts';

/** Whether `part` is in `all`, in its order. */
function inOrder(part: readonly string[], all: readonly string[]): string | undefined {
  let at = 0;
  return part.find((line) => {
    const found = all.indexOf(line, at);
    at = found + 1;
    return found < 0;
  });
}

it('there are at least 15, each directory is one of them, and none is there twice', () => {
  const names = EXERCISES.map(({ name }) => name);
  expect(names.length).toBeGreaterThanOrEqual(15);
  expect(new Set(names).size).toBe(names.length);
  const directories = readdirSync(EXERCISES_SOURCE, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(directories.map(({ name }) => name).sort()).toEqual([...names].sort());
});

describe.each(EXERCISES)('$name', (exercise) => {
  const directory = join(EXERCISES_SOURCE, exercise.name);
  const text = readFileSync(join(directory, 'README.md'), 'utf8');
  const solution = readFileSync(join(directory, 'solution.sh'), 'utf8');

  it('has a text with steps, hints, a title and a lesson', () => {
    expect(parseText(text).steps.length).toBeGreaterThanOrEqual(3);
    expect(exercise.hints.length).toBeGreaterThanOrEqual(3);
    expect(exercise.title.length).toBeLessThan(80);
    expect(exercise.lesson).toMatch(/\.$/);
  });
  it('the commands of the text are in the solution, in their order', () => {
    // What explain says of a broken world is exit code 1, which ends a script.
    const lines = solution.split('\n').map((line) => line.replace(/ \|\| true$/, ''));
    const commands = commandsOf(text).map((line) => line.replace(/ \|\| true$/, ''));
    expect(commands.length).toBeGreaterThan(0);
    expect(inOrder(commands, lines)).toBeUndefined();
  });
  it('every paragraph of the solution is a complete command', async () => {
    // One program starts them all: this process is large, and takes long to fork.
    const each = 'for paragraph; do bash -n -c "$paragraph" || printf "in: %s\\n" "$paragraph"; done';
    const parsed = await exec('bash', ['-c', each, 'bash', ...paragraphsOf(solution)]);
    expect(parsed).toMatchObject({ stdout: '', stderr: '', code: 0 });
    expect((await exec('bash', ['-n', '-c', typingScript('/env', paragraphsOf(solution))])).code).toBe(0);
  });
  it('its manifests can be read, and name its own namespace if any', () => {
    for (const name of readdirSync(directory).filter((file) => file.endsWith('.yaml'))) {
      for (const manifest of parseWorld(readFileSync(join(directory, name), 'utf8'))) {
        expect(manifest.metadata.name).toMatch(/^[a-z-]+$/);
        const { namespace } = { namespace: undefined, ...manifest.metadata };
        expect([undefined, namespaceOf(exercise.name)]).toContain(namespace);
      }
    }
    expect(existsSync(join(directory, 'exercise.ts'))).toBe(true);
  });
});
