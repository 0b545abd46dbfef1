import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { exec } from '../../../lib/exec.ts';
import { resolveRelative } from '../../../lib/relative-imports.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const conditions: string[] = [];
const next = (specifier: string): { url: string } => ({ url: `next:${specifier}` });

describe('an import', () => {
  test.each([
    ['./b.ts', 'file:///tree/lib/a.ts', 'file:///tree/lib/b.ts'],
    ['../c/d.ts', 'file:///tree/lib/a.ts', 'file:///tree/c/d.ts'],
    ['../c/d.ts', 'file:///with%20space/lib/a.ts', 'file:///with%20space/c/d.ts'],
  ])('of %j in %s is resolved by its text', (specifier, parentURL, url) => {
    const context = { conditions, importAttributes: {}, parentURL };
    expect(resolveRelative(specifier, context, next)).toEqual({ url, format: 'module-typescript', shortCircuit: true });
  });

  test.each<[string, string | undefined]>([
    ['yaml', 'file:///tree/lib/a.ts'],
    ['node:fs', 'file:///tree/lib/a.ts'],
    ['./data.json', 'file:///tree/lib/a.ts'],
    ['./b.ts?copy=1', 'file:///tree/lib/a.ts'],
    ['.hidden.ts', 'file:///tree/lib/a.ts'],
    ['./b.ts', 'file:///tree/node_modules/p/a.js'],
    ['./b.ts', undefined],
  ])('of %j in %s is left to Node', (specifier, parentURL) => {
    const context = { conditions, importAttributes: {}, parentURL };
    expect(resolveRelative(specifier, context, next)).toEqual({ url: `next:${specifier}` });
  });
});

/** With the hook in a process of its own: the hook of this one would stay. */
function run(code: string): ReturnType<typeof exec> {
  const hook = pathToFileURL(join(ROOT, 'lib/relative-imports.ts')).href;
  const program = `const { resolveRelativeImports } = await import('${hook}'); resolveRelativeImports(); ${code}`;
  return exec(process.execPath, ['--input-type=module', '--eval', program], { cwd: ROOT });
}

test('a module has one identity, whether the hook or Node has resolved it', async () => {
  const { stdout, stderr } = await run(`
    const before = await import('${pathToFileURL(join(ROOT, 'lib/errors.ts')).href}');
    const { UserError } = await import('./lib/errors.ts');
    const { parseTricks } = await import('./lib/tricks.ts');
    try { parseTricks('x'); } catch (error) { console.log(error instanceof before.UserError, UserError === before.UserError); }
  `);
  expect(stderr).toBe('');
  expect(stdout).toBe('true true\n');
});

test('a file that is missing is named', async () => {
  const { code, stderr } = await run(`await import('./lib/no-such-file.ts');`);
  expect(code).toBe(1);
  expect(stderr).toContain('no-such-file.ts');
});

test('no source file is a link, which would be loaded twice: by its own name and by this one', () => {
  const places = readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
    .flatMap(({ name }) => readdirSync(join(ROOT, name), { withFileTypes: true, recursive: true }));
  expect(places.filter((entry) => entry.isSymbolicLink()).map(({ name }) => name)).toEqual([]);
});

describe('the command', () => {
  const version = (tricks: string): ReturnType<typeof exec> =>
    exec(process.execPath, [join(ROOT, 'cli/main.ts'), 'kubeconfig', '--help'], {
      env: { ...process.env, NODELET_TRICKS: tricks },
    });

  test.each(['', 'none'])('is the same with NODELET_TRICKS %j', async (tricks) => {
    expect(await version(tricks)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Usage: nodelet kubeconfig'),
    });
  });

  test('refuses a trick that is none', async () => {
    const { code, stderr } = await version('import');
    expect(code).toBe(1);
    expect(stderr).toContain('NODELET_TRICKS: no trick "import"');
  });
});
