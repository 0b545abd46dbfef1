// What stands between the agent and what it calls: links that are cut, wrapped CNI plugins; and the directory of a run.

import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { cniRuleFiles, cniWrapper } from '../../../../../cli/experiment/lab/faults.ts';
import { Link } from '../../../../../cli/experiment/lab/link.ts';
import { clearLeftRuns, makeRunDirectory } from '../../../../../cli/experiment/lab/run-directory.ts';
import type { FaultRule } from '../../../../../cli/experiment/model.ts';
import { systemClock } from '../../../../../lib/clock.ts';
import { exec } from '../../../../../lib/exec.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'experiment-between-'));
});
afterEach(() => rm(directory, { recursive: true }));

describe('a link', () => {
  let server: Server;
  let link: Link;
  const sockets: Socket[] = [];
  const to = (): string => join(directory, 'server.sock');
  beforeEach(async () => {
    // Answers each piece by the same.
    server = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined).pipe(socket);
    });
    await new Promise<void>((resolve) => server.listen(to(), resolve));
    link = new Link({ to: async () => ({ path: to() }) });
    await link.listenAt(join(directory, 'link.sock'));
  });
  afterEach(async () => {
    await link.close();
    for (const socket of sockets.splice(0)) socket.destroy();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });
  const client = () => {
    const socket = connect(join(directory, 'link.sock'));
    const got: string[] = [];
    socket.on('data', (bytes) => got.push(bytes.toString()));
    socket.on('error', () => undefined);
    return { socket, got: () => got.join('') };
  };

  test('passes bytes, holds them while it is cut, and goes on with all of them', async () => {
    const before = client();
    before.socket.write('one ');
    await vi.waitFor(() => expect(before.got()).toBe('one '));
    link.cut();
    const during = client();
    before.socket.write('two');
    during.socket.write('new');
    // The server's own end shows that nothing comes: it has one connection.
    const witness = connect(to());
    await new Promise<void>((resolve) => witness.once('connect', () => resolve()));
    expect([before.got(), during.got()]).toEqual(['one ', '']);
    expect(sockets.length).toBeLessThanOrEqual(2);
    link.heal();
    await vi.waitFor(() => expect([before.got(), during.got()]).toEqual(['one two', 'new']));
    witness.destroy();
    before.socket.destroy();
    during.socket.destroy();
  });

  test('ends with its server, and refuses while there is none', async () => {
    const one = client();
    one.socket.write('x');
    await vi.waitFor(() => expect(one.got()).toBe('x'));
    const closed = new Promise<void>((resolve) => one.socket.once('close', () => resolve()));
    for (const socket of sockets) socket.destroy();
    await closed;
    await rm(to());
    const two = client();
    await new Promise<void>((resolve) => two.socket.once('close', () => resolve()));
  });

  test('has a port of its own where that is wanted', async () => {
    const other = new Link({ to: async () => undefined });
    const port = await other.listenOnPort();
    const socket = connect(port, '127.0.0.1');
    await new Promise<void>((resolve) => socket.once('close', () => resolve()));
    await other.close();
  });
});

describe('a wrapped CNI plugin', () => {
  beforeEach(async () => {
    await mkdir(join(directory, 'real'));
    for (const name of ['bridge', 'loopback']) {
      await writeFile(join(directory, name), cniWrapper(directory), { mode: 0o755 });
      await writeFile(join(directory, 'real', name), `#!/bin/sh\necho ran >> ${directory}/ran\ncat\n`, { mode: 0o755 });
    }
  });
  const rules = async (...all: readonly FaultRule[]): Promise<void> => {
    for (const [index, rule] of all.entries()) {
      for (const [name, text] of cniRuleFiles(rule)) {
        const path = join(directory, 'rules', String(index), name);
        await mkdir(join(path, '..'), { recursive: true });
        await writeFile(path, text);
      }
    }
  };
  const run = (command = 'ADD', name = 'bridge', args = 'IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME=web') =>
    exec(join(directory, name), [], {
      stdin: '{"a":1}',
      env: { PATH: process.env['PATH'] ?? '', CNI_COMMAND: command, CNI_ARGS: args },
    });
  const times = async (): Promise<number> => {
    const text = await readFile(join(directory, 'ran'), 'utf8').catch(() => '');
    return text.split('\n').length - 1;
  };

  test('runs the plugin with its input where no rule holds', async () => {
    await rules({ call: 'DEL bridge', action: 'fail' }, { call: 'ADD bridge', pod: 'other', action: 'fail' });
    expect(await run()).toMatchObject({ code: 0, stdout: '{"a":1}' });
    expect(await run('ADD', 'loopback')).toMatchObject({ code: 0 });
  });

  test.each([
    ['the call', { call: 'ADD bridge' }],
    ['any call of the plugin', { call: '* bridge' }],
    ['the plugin', { call: 'bridge' }],
    ['the command', { call: 'ADD' }],
    ['the pod', { call: '*', pod: 'web' }],
    ['the pod with its namespace', { call: '*', pod: 'demo/w*' }],
  ] as const)('fails by %s, in the words of the rule', async (_, given) => {
    await rules({ ...given, action: 'fail', message: 'no "bridge" today', code: '11' });
    const { code, stdout } = await run();
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toEqual({ cniVersion: '1.0.0', code: 11, msg: 'no "bridge" today' });
    expect(await times()).toBe(0);
  });

  test('fails so often and no more', async () => {
    await rules({ call: 'ADD bridge', action: 'fail', times: 2 });
    const codes = [(await run()).code, (await run()).code, (await run()).code];
    expect(codes).toEqual([1, 1, 0]);
  });

  test('that is dropped has run', async () => {
    await rules({ call: 'ADD bridge', action: 'drop' });
    expect((await run()).code).toBe(1);
    expect(await times()).toBe(1);
  });

  test('is found through a link as well', async () => {
    await rules({ call: 'ADD bridge', action: 'fail' });
    await mkdir(join(directory, 'elsewhere'));
    await symlink(join(directory, 'bridge'), join(directory, 'elsewhere', 'bridge'));
    expect((await run('ADD', 'elsewhere/bridge')).code).toBe(1);
    expect((await run('DEL', 'elsewhere/bridge')).code).toBe(0);
  });
});

describe('the directory of a run', () => {
  const parent = (): string => join(directory, 'runs');
  const lines: string[] = [];

  test("is root's alone, and names its process", async () => {
    const made = await makeRunDirectory(parent());
    expect((await stat(parent())).mode & 0o777).toBe(0o700);
    expect(JSON.parse(await readFile(join(made, 'owner.json'), 'utf8'))).toMatchObject({ pid: process.pid });
    expect(await makeRunDirectory(parent())).not.toBe(made);
  });

  test('is removed by the next run when its process is gone, and only then', async () => {
    const mine = await makeRunDirectory(parent());
    const lost = await makeRunDirectory(parent());
    await writeFile(join(lost, 'owner.json'), '{"pid":999999999,"startTime":1}\n');
    const unknown = join(parent(), 'unknown');
    await mkdir(unknown);
    await clearLeftRuns(parent(), systemClock, (line) => lines.push(line));
    expect((await readdir(parent())).sort()).toEqual([mine, unknown].map((path) => path.split('/').at(-1)).sort());
    expect(lines[0]).toContain(lost);
  });

  test('is refused where others may write', async () => {
    await mkdir(parent(), { mode: 0o777 });
    const { chmod } = await import('node:fs/promises');
    await chmod(parent(), 0o777);
    await expect(makeRunDirectory(parent())).rejects.toThrow("root's alone");
  });
});
