// The commands of simulated containers, on a virtual clock.

import { expect, test } from 'vitest';
import { VirtualClock } from '../../../../labs/sim/clock.ts';
import { parseCommand } from '../../../../labs/sim/shell/parse.ts';
import { commandOf } from '../../../../labs/sim/shell/processes.ts';
import { ShellProcess } from '../../../../labs/sim/shell/run.ts';

interface Ran {
  readonly code: number | 'running';
  readonly afterMs: number;
  readonly printed: string;
  readonly bytes: number;
  readonly ports: readonly number[];
}

const DISK_BYTES = 3 * 1024 ** 2;

async function runScript(
  script: string,
  { termMs, limitMs = 60_000 }: { termMs?: number; limitMs?: number } = {},
): Promise<Ran> {
  const clock = new VirtualClock();
  const killed = new AbortController();
  const files = new Map([['/etc/one', 'alpha beta']]);
  const filled = new Map<string, number>();
  let printed = '';
  let bytes = 0;
  const ports: number[] = [];
  const shell = new ShellProcess(
    {
      clock,
      files: {
        read: (path) => files.get(path),
        write: (path, text, append) => void files.set(path, append ? (files.get(path) ?? '') + text : text),
        fill: (path, size, append) => {
          const before = append ? (filled.get(path) ?? 0) : 0;
          if (before + size > DISK_BYTES) return false;
          filled.set(path, before + size);
          return true;
        },
        remove: (path) => void files.delete(path),
      },
      environment: new Map([['NAME', 'web']]),
      takeMemory: (more) => {
        bytes += more;
      },
      listen: (port) => void ports.push(port),
      print: (text) => {
        printed += text;
      },
      lookUp: async (name) => {
        await clock.sleep(10);
        return name === 'db' ? ['10.96.0.2'] : [];
      },
    },
    killed.signal,
  );
  let code: number | 'running' = 'running';
  let afterMs = limitMs;
  shell.run(parseCommand(['sh', '-c', script])).then(
    (value) => {
      code = value;
      afterMs = clock.monotonic();
    },
    () => undefined,
  );
  if (termMs !== undefined) clock.after(termMs, () => shell.term());
  await clock.advance(limitMs);
  killed.abort();
  return { code, afterMs, printed, bytes, ports };
}

test.each<[string, number | 'running', number]>([
  ['sleep 2; exit 3', 3, 2000],
  ['sleep 0.5', 0, 500],
  ['sleep 2m', 'running', 60_000],
  ['false', 1, 0],
  ['true && exit 4', 4, 0],
  ['false || exit 5', 5, 0],
  ['false && exit 6; exit 7', 7, 0],
  ['! true', 1, 0],
  ['if test -f /etc/one; then exit 8; else exit 9; fi', 8, 0],
  ['if [ -f /no ]; then exit 8; else exit 9; fi', 9, 0],
  ['until grep -q gamma /etc/one; do sleep 1; echo gamma > /etc/one; done; exit 2', 2, 1000],
  ['while true; do sleep 10; done', 'running', 60_000],
  ['touch /a; rm -f /a; test -f /a', 1, 0],
  ['test "$NAME" = web', 0, 0],
  ["test '$NAME' = web", 1, 0],
  ['sleep 1 & sleep 2 & wait; exit 1', 1, 2000],
  ['{ sleep 1; exit 2; }', 2, 1000],
  ['# a comment\nsleep 1\nexit 3', 3, 1000],
  ['head -c 2m /dev/zero > /big && exit 3', 3, 0],
  ['head -c 2m /dev/zero > /big; head -c 2m /dev/zero >> /big || exit 3', 3, 0],
  ['getent ahosts db; exit $?', 0, 0],
  ['getent ahosts nobody; exit $?', 2, 0],
])('%s', async (script, code, ms) => {
  const ran = await runScript(script);
  expect(ran.code).toBe(code);
  // Each command takes a millisecond.
  expect(ran.afterMs).toBeGreaterThanOrEqual(ms);
  expect(ran.afterMs).toBeLessThanOrEqual(ms + 20);
});

test.each<[string, string, number | 'running', number]>([
  ['is ignored without a trap', 'sleep infinity', 'running', 60_000],
  ['is acted on at once by a shell that waits', "trap 'exit 7' TERM; sleep infinity & wait", 7, 5000],
  ['waits for the command in the foreground', "trap 'exit 7' TERM; sleep 20; exit 1", 7, 20_000],
  ['runs the commands of its trap', "trap 'sleep 3; exit 7' TERM; sleep infinity & wait", 7, 8000],
])('TERM %s', async (_, script, code, ms) => {
  const ran = await runScript(script, { termMs: 5000 });
  expect(ran.code).toBe(code);
  expect(Math.abs(ran.afterMs - ms)).toBeLessThan(20);
});

test('output, memory and ports', async () => {
  const ran = await runScript(
    "echo hello $NAME; cat /etc/one; x=$(head -c 50m /dev/zero | tr '\\0' x); httpd -p 8080 -h /; exit 0",
  );
  expect(ran).toMatchObject({ code: 0, printed: 'hello web\nalpha beta', bytes: 50 * 1024 ** 2, ports: [8080] });
});

test.each([
  ['ls', 'the command ls is not simulated; there are :'],
  ['head -c 2M /dev/zero > /big', 'with a size such as 100m'],
  ['cat /a | grep b', '"|" is not simulated'],
  ['x=$(date)', 'command substitution is not simulated'],
  ['x=1', 'the assignment x=1 is not simulated'],
  ['for i in 1 2; do true; done', '"for" is not simulated'],
  ['if true; then exit 1', '"fi" is expected, not "the end"'],
  ['sleep', 'sleep needs seconds'],
  ['exit x', 'exit needs a number'],
  ["trap 'exit 0' INT", "trap is used as trap 'commands' TERM"],
  ['echo "open', 'a quote has no end'],
])('%s is refused by name', (script, message) => {
  expect(() => parseCommand(['sh', '-c', script])).toThrow(message);
});

test('a command without a shell, and images with a command of their own', () => {
  expect(() => parseCommand(['python3', 'x.py'])).toThrow('the command python3 is not simulated');
  expect(commandOf('busybox:stable', ['sleep', '5'], undefined)).toMatchObject({ words: ['sleep', '5'] });
  expect(commandOf('nginx:stable', undefined, undefined).kind).toBe('list');
  expect(() => commandOf('redis:7', undefined, undefined)).toThrow(
    'the image redis:7 is not simulated without a command',
  );
});
