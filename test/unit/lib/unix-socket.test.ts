import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Clock, epochMs, type MonotonicMs, monotonicMs, systemClock } from '../../../lib/clock.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { listenOnSocket, removeDeadSockets, removeStaleSocket } from '../../../lib/unix-socket.ts';

let directory: string;
let path: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-unix-socket-'));
  path = join(directory, 'a.sock');
});
afterEach(() => removeTree(directory));

/** The socket of a process that was killed. */
async function leaveSocket(): Promise<void> {
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => console.log('listens'))`;
  const child = spawn(process.execPath, ['--eval', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect((await stat(path)).isSocket()).toBe(true);
}

it('listens with mode 0600 where nothing is, and where a killed process has left its socket', async () => {
  for (const leave of [async () => undefined, leaveSocket]) {
    await leave();
    const server = createServer();
    await listenOnSocket(server, path);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await new Promise((resolve) => server.close(resolve));
  }
});

it('leaves the socket of a living process alone, and says so in the words of its caller', async () => {
  const server = createServer();
  await listenOnSocket(server, path);
  await expect(listenOnSocket(createServer(), path)).rejects.toThrow(`another process serves on ${path}`);
  await expect(removeStaleSocket(path, 'one agent is enough')).rejects.toThrow('one agent is enough');
  expect((await stat(path)).isSocket()).toBe(true);
  await new Promise((resolve) => server.close(resolve));
});

it('removes nothing that is no socket', async () => {
  await writeFile(path, 'precious');
  await expect(removeStaleSocket(path)).rejects.toThrow(`${path} is there and is no socket`);
  expect((await stat(path)).size).toBe(8);
});

it('names the path that cannot be listened on', async () => {
  const missing = join(directory, 'missing/a.sock');
  await expect(listenOnSocket(createServer(), missing)).rejects.toThrow(`cannot listen on ${missing}: `);
});

/** That many milliseconds from now; a second passes with each sleep, in which `slept` is called. */
function later(ms: number, slept: () => unknown): Clock {
  let passed = 0;
  const sleep = async (): Promise<void> => {
    await slept();
    passed += 1_000;
  };
  const monotonic = (): MonotonicMs => monotonicMs(performance.now() + passed);
  return { ...systemClock, now: () => epochMs(Date.now() + ms), monotonic, sleep };
}

it('removes the sockets of a directory that no process listens on, and nothing else', async () => {
  await leaveSocket();
  const server = createServer();
  const living = join(directory, 'b.sock');
  await listenOnSocket(server, living);
  await writeFile(join(directory, 'c.sock'), 'precious');
  const never = (): never => expect.fail('an old socket is not waited for');
  await removeDeadSockets(directory, later(60_000, never));
  expect((await readdir(directory)).sort()).toEqual(['b.sock', 'c.sock']);
  await new Promise((resolve) => server.close(resolve));
  await removeDeadSockets(join(directory, 'missing'), later(60_000, never));
});

it('waits for a socket that was bound just now, before it calls it dead', async () => {
  await leaveSocket();
  const server = createServer();
  await removeDeadSockets(
    directory,
    later(0, () => listenOnSocket(server, path)),
  );
  expect(await readdir(directory)).toEqual(['a.sock']);
  await new Promise((resolve) => server.close(resolve));
  await leaveSocket();
  let pauses = 0;
  await removeDeadSockets(
    directory,
    later(0, () => {
      pauses += 1;
    }),
  );
  expect([pauses, await readdir(directory)]).toEqual([1, []]);
});
