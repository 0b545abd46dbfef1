// There is one recursive removal, lib/remove-tree.ts, which never crosses a mount point. Any other would.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/** What runs on a user's machine. */
const PRODUCTION = [
  'agent',
  'apiserver',
  'bin',
  'cli',
  'client',
  'cni',
  'controlplane',
  'csi',
  'dns',
  'labs',
  'lib',
  'netpol',
  'proto',
  'scripts',
];

/** Shell that runs where there may be no Node yet, on directories of its own within the project. */
const BEFORE_NODE: readonly string[] = ['scripts/gen-proto', 'scripts/kubectls'];

/**
 * The disk of a simulated machine: a directory in memory that its world has made and where nothing is ever mounted. Removal is a
 * part of what is simulated there, and synchronous: the order in which real asynchronous calls end follows from no seed.
 */
const SIMULATED: readonly string[] = ['labs/sim/cri/output.ts', 'labs/sim/files.ts', 'labs/sim/kernel.ts'];

const FORBIDDEN: readonly RegExp[] = [
  // rm(path, { recursive: true }), and rmdir's old option of the same name; also over several lines.
  /\brm(?:dir)?(?:Sync)?\s*\([^;]*?\brecursive\b/,
  // fs.rm by another name.
  /\brm(?:Sync)? as \w+/,
  /\brimraf\b/,
  // By a program: in a shell's words, and as arguments of exec.
  /\brm\s+(?:--?\w[\w-]*\s+)*-(?:\w*[rR]\w*|-recursive)\b/,
  /['"]rm['"]\s*,\s*\[\s*['"]-(?:\w*[rR]|-recursive)/,
  /\bfind\b[^\n]*-delete\b/,
  /\bfind\b[^\n]*-exec\s+rm\b/,
];

function forbiddenIn(text: string): string | undefined {
  for (const pattern of FORBIDDEN) {
    const found = pattern.exec(text);
    if (found !== null) return found[0];
  }
  return undefined;
}

function files(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return entry.name === 'gen' || entry.name === 'node_modules' ? [] : files(path);
    return entry.isFile() ? [path] : [];
  });
}

test('production code has one recursive removal', () => {
  const all = PRODUCTION.flatMap(files).filter((path) => !BEFORE_NODE.includes(path) && !SIMULATED.includes(path));
  expect(all.length).toBeGreaterThan(300);
  const wrong = all.flatMap((path) => {
    const found = forbiddenIn(readFileSync(path, 'utf8'));
    return found === undefined ? [] : [`${path}: ${found}`];
  });
  expect(wrong).toEqual([]);
});

test.for([
  'await rm(path, { recursive: true, force: true });',
  'rmSync(join(root, "a"), {\n  force: true,\n  recursive: true,\n});',
  'rmdirSync(path, { recursive: true })',
  "import { rm as remove } from 'node:fs/promises';",
  "await execOk('rm', ['-rf', path]);",
  'rm -rf "$directory"',
  'rm -f -R /x',
  'rm --recursive /x',
  'find "$directory" -xdev -delete',
  "find /x -name y -exec rm {} ';'",
])('the look finds %j', (text) => expect(forbiddenIn(text)).toBeDefined());

test.for([
  'await rm(file, { force: true });',
  'mkdirSync(path, { recursive: true });\nawait rm(file);',
  'await rm(file);\nawait mkdir(path, { recursive: true });',
  'await removeTree(path);',
  'rm -f $file',
])('the look lets %j pass', (text) => expect(forbiddenIn(text)).toBeUndefined());
