// The helper must be indistinguishable from lib/exec for its callers, and must not outlive or lose anything.

import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, afterEach, expect, test } from 'vitest';
import { monotonicMs } from '../../../lib/clock.ts';
import { isErrno } from '../../../lib/errors.ts';
import { type Exec, type ExecOptions, exec } from '../../../lib/exec.ts';
import { createExecHelper, type ExecHelper, RESTART_AFTER_MS } from '../../../lib/exec-helper.ts';

const shared = createExecHelper();
afterAll(() => shared.close());
const others: ExecHelper[] = [];
afterEach(() => {
  for (const helper of others.splice(0)) helper.close();
});
function ownHelper(options: Parameters<typeof createExecHelper>[0] = {}): ExecHelper {
  const helper = createExecHelper(options);
  others.push(helper);
  return helper;
}

/** Whether a file of the process has this text. */
function has(pid: number, file: 'cmdline' | 'stat', text: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8').includes(text);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH')) return false; // Gone meanwhile.
    throw error;
  }
}

function pidsOf(word: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => has(pid, 'cmdline', word));
}

/** Helpers of this process; other processes have their own, which come and go. */
function helperPids(): number[] {
  return pidsOf('exec-helper.pl').filter((pid) => has(pid, 'stat', ` ${process.pid} `));
}

type Case = [what: string, file: string, args: readonly string[], options?: ExecOptions];
const same: readonly Case[] = [
  ['stdin, stdout, stderr and the exit code', 'sh', ['-c', 'cat; echo oops >&2; exit 3'], { stdin: 'hello' }],
  [
    'exactly the environment given',
    'env',
    [],
    { env: { A: 'x=y', PATH: '/usr/bin:/bin', EMPTY: '', NONE: undefined } },
  ],
  ['the directory given', 'pwd', [], { cwd: '/usr/bin' }],
  ['arguments with blanks, newlines and quotes', 'printf', ['%s|', 'a b', 'c\nd', '"e"', '', 'ü']],
  ['bytes that are not text', 'sh', ['-c', 'od -An -tx1'], { stdin: Buffer.from([0, 255, 10, 0]) }],
  ['output that is long, kept up to the limit', 'sh', ['-c', 'head -c 1000000 /dev/zero'], { maxOutputBytes: 1000 }],
  ['long output whole', 'sh', ['-c', 'head -c 300000 /dev/zero | tr "\\0" x; head -c 200000 /dev/zero >&2']],
  ['an input that is not read', 'true', [], { stdin: 'x'.repeat(1_000_000) }],
  ['an input of many pipes full', 'sh', ['-c', 'wc -c'], { stdin: 'x'.repeat(1_000_000) }],
  ['an end by a signal', 'sh', ['-c', 'kill -USR1 $$']],
  ['outputs closed before the end', 'sh', ['-c', 'exec >&- 2>&-; sleep 0.05; exit 7']],
  ['signals as a program expects them', 'sh', ['-c', 'grep -E "^Sig(Ign|Blk)" /proc/self/status']],
  ['no descriptors but the three', 'sh', ['-c', 'ls /proc/self/fd | wc -l']],
];
test.each(same)('a program sees and says the same as without a helper: %s', async (...[, file, args, options]) => {
  expect(await shared.exec(file, args, options)).toEqual(await exec(file, args, options));
});

const failures: readonly Case[] = [
  ['a program that does not exist', '/nonexistent/program', []],
  ['a name that is nowhere in PATH', 'no-such-program-anywhere', []],
  ['a file that cannot be executed', '/etc/passwd', []],
  ['a directory that does not exist', 'true', [], { cwd: '/nonexistent' }],
];
test.each(failures)('what cannot be started rejects alike: %s', async (...[, file, args, options]) => {
  const failure = (run: Exec) =>
    run(file, args, options).then(String, (error: NodeJS.ErrnoException) => [error.code, error.errno, error.message]);
  expect(await failure(shared.exec)).toEqual(await failure(exec));
});

test('a program past its time limit is killed, also when a child of it holds its output open', async () => {
  const result = await shared.exec('sh', ['-c', 'sleep 2 & sleep 1000'], { timeoutMs: 30 });
  expect(result).toMatchObject({ code: null, signal: 'SIGKILL', timedOut: true });
});

test('an abort ends the program and rejects', async () => {
  const stop = new AbortController();
  const marker = `marker-${process.pid}`;
  const running = shared.exec('sh', ['-c', `: ${marker}; sleep 1000; :`], { signal: stop.signal });
  const outcome = expect(running).rejects.toMatchObject({ name: 'AbortError' });
  await expect.poll(() => pidsOf(marker).length).toBe(1);
  stop.abort();
  await outcome;
  await expect.poll(() => pidsOf(marker).length).toBe(0);
});

test('nothing is run for a caller that has given up already', async () => {
  const running = shared.exec('true', [], { signal: AbortSignal.abort() });
  await expect(running).rejects.toMatchObject({ name: 'AbortError' });
});

test('many programs at once keep their outputs apart', async () => {
  const numbers = Array.from({ length: 40 }, (_, index) => index);
  const results = await Promise.all(
    numbers.map((n) => shared.exec('sh', ['-c', `cat; echo err${n} >&2; exit ${n}`], { stdin: `in${n}` })),
  );
  expect(results.map(({ code, stdout, stderr }) => [code, stdout, stderr])).toEqual(
    numbers.map((n) => [n, `in${n}`, `err${n}\n`]),
  );
});

test('a text with a NUL byte is refused instead of becoming two', async () => {
  await expect(shared.exec('true', ['a\0b'])).rejects.toThrow('a NUL byte in "a\\u0000b"');
});

test('a helper that dies fails what it ran; programs are started directly until a new one is tried', async () => {
  const before = new Set(helperPids());
  const mine = () => helperPids().filter((candidate) => !before.has(candidate));
  const messages: string[] = [];
  let now = 0;
  const helper = ownHelper({ onMissing: (message) => messages.push(message), now: () => monotonicMs(now) });
  await helper.exec('true', []);
  const [pid = 0] = mine();
  const lost = helper.exec('sleep', ['1000']);
  const rejected = expect(lost).rejects.toThrow('the outcome of sleep is unknown: the exec helper has ended');
  process.kill(pid, 'SIGKILL');
  await rejected;
  expect(messages).toEqual([expect.stringContaining('SIGKILL')]);
  now += RESTART_AFTER_MS - 1;
  expect((await helper.exec('echo', ['directly'])).stdout).toBe('directly\n');
  expect(mine()).toEqual([]);
  now += 1;
  expect((await helper.exec('echo', ['again'])).stdout).toBe('again\n');
  expect(mine()).toHaveLength(1);
});

test('programs that never end hold up no other', async () => {
  const stop = new AbortController();
  const endless = Array.from({ length: 20 }, () => shared.exec('sleep', ['1000'], { signal: stop.signal }));
  const rejected = expect(Promise.allSettled(endless)).resolves.toHaveLength(20);
  expect(await shared.exec('sh', ['-c', 'cat; exit 4'], { stdin: 'text' })).toMatchObject({ code: 4, stdout: 'text' });
  stop.abort();
  await rejected;
});

test('a closed helper ends, and runs nothing more', async () => {
  const before = new Set(helperPids());
  const helper = createExecHelper();
  await helper.exec('true', []);
  const [pid] = helperPids().filter((candidate) => !before.has(candidate));
  helper.close();
  await expect(helper.exec('true', [])).rejects.toThrow('closed');
  expect(pid).toBeDefined();
  await expect.poll(() => helperPids().includes(pid ?? 0)).toBe(false);
});

test('an idle helper does not keep its process from ending', async () => {
  const script = `
    import { createExecHelper } from ${JSON.stringify(import.meta.resolve('../../../lib/exec-helper.ts'))};
    const { stdout } = await createExecHelper().exec('sh', ['-c', 'sleep 0.1; echo waited']);
    process.stdout.write(stdout);`;
  const result = await exec(process.execPath, ['--input-type=module', '-e', script], { timeoutMs: 300_000 });
  expect(result).toMatchObject({ code: 0, stdout: 'waited\n' });
});

test('without Perl programs are started directly, which is reported once', async () => {
  const messages: string[] = [];
  const helper = ownHelper({ perl: '/nonexistent/perl', onMissing: (message) => messages.push(message) });
  expect((await helper.exec('echo', ['one'])).stdout).toBe('one\n');
  expect((await helper.exec('echo', ['two'])).stdout).toBe('two\n');
  expect(messages).toEqual([expect.stringContaining('ENOENT')]);
});
