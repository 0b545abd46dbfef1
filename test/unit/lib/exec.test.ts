import { expect, test } from 'vitest';
import { exec, execOk } from '../../../lib/exec.ts';

test('stdin, stdout, stderr and the exit code pass through', async () => {
  const result = await exec('sh', ['-c', 'cat; echo oops >&2; exit 3'], { stdin: 'hello' });
  expect(result).toMatchObject({ code: 3, stdout: 'hello', stderr: 'oops\n', timedOut: false });
});

test('a program past its time limit is killed, and the result says so', async () => {
  const result = await exec('sleep', ['1000'], { timeoutMs: 30 });
  expect(result).toMatchObject({ code: null, signal: 'SIGKILL', timedOut: true });
});

test('a program that prints for ever is read to its end but kept only up to the limit', async () => {
  const result = await exec('sh', ['-c', 'head -c 1000000 /dev/zero'], { maxOutputBytes: 1000 });
  expect(result.stdout.length).toBe(1000);
  expect(result.code).toBe(0);
});

test('a program that does not read its input is reported by its exit code', async () => {
  const result = await exec('true', [], { stdin: 'x'.repeat(1_000_000) });
  expect(result.code).toBe(0);
});

test('a program that does not exist rejects with ENOENT', async () => {
  await expect(exec('/nonexistent/program', [])).rejects.toMatchObject({ code: 'ENOENT' });
});

test('execOk names the command, the exit code and what it printed', async () => {
  await expect(execOk('sh', ['-c', 'echo broken >&2; exit 4'])).rejects.toThrow(
    'sh -c echo broken >&2; exit 4: exit 4: broken',
  );
});
