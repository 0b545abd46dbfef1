// The shim in Perl and the one in TypeScript must be the same program to the container runtime and to the agent.

import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { shimScript } from '../../../cni/shim/install.ts';
import { type ExecResult, exec } from '../../../lib/exec.ts';

let directory = '';
let socket = '';
let server: Server | undefined;
let requests: string[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-shims-'));
  socket = join(directory, 'cni.sock');
  requests = [];
});
afterEach(async () => {
  await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
  server = undefined;
  await rm(directory, { recursive: true, force: true });
});

/** Answers every whole request with this text. */
async function listen(answer: string): Promise<void> {
  server = createServer((connection) => {
    let text = '';
    connection.on('data', (chunk) => {
      text += chunk.toString('latin1');
      const head = /^nodelet-cni 1 (\d+) (\d+)\n/.exec(text);
      if (head === null || text.length < head[0].length + Number(head[1]) + Number(head[2])) return;
      const env = text.slice(head[0].length, head[0].length + Number(head[1]));
      requests.push(`${env.split('\0').sort().join(' ').trim()} | ${text.slice(head[0].length + Number(head[1]))}`);
      connection.end(answer);
    });
  });
  await new Promise<void>((resolve) => server?.listen(socket, resolve));
}

async function run(node: string | undefined, command: string, stdin: string): Promise<ExecResult> {
  const path = join(directory, node === undefined ? 'perl' : 'node');
  await writeFile(path, await shimScript(socket, node));
  await chmod(path, 0o755);
  const env = { PATH: process.env['PATH'], CNI_COMMAND: command, CNI_NETNS: '/n s', OTHER: 'x' };
  return await exec(path, [], { stdin, env });
}

describe('both shims', () => {
  test.each<[what: string, answer: string | undefined, command: string]>([
    ['pass a result on', '0 14\n{"ips":["ü"]}', 'ADD'],
    ['pass an error and its exit code on', '1 11\n{"code":12}', 'DEL'],
    ['pass an empty result on', '0 0\n', 'DEL'],
    ['say their versions without the agent', undefined, 'VERSION'],
  ])('%s', async (_, answer, command) => {
    if (answer !== undefined) await listen(answer);
    const stdin = JSON.stringify({ cniVersion: '1.0.0', name: 'x'.repeat(100_000) });
    const perl = await run(undefined, command, stdin);
    const node = await run(process.execPath, command, stdin);
    expect(node).toEqual(perl);
    if (answer !== undefined) expect(perl.stdout).toBe(answer.slice(answer.indexOf('\n') + 1));
    expect(requests[1]).toEqual(requests[0]);
    if (answer !== undefined) expect(requests[0]).toContain('CNI_COMMAND=ADD CNI_NETNS=/n s'.replace('ADD', command));
  });

  test.each<[what: string, answer: string | undefined]>([
    ['no agent', undefined],
    ['an agent that closes', ''],
    ['half an answer', '0 100\n{}'],
  ])('ask for another try with %s', async (_, answer) => {
    if (answer !== undefined) await listen(answer);
    for (const node of [undefined, process.execPath]) {
      const { code, stdout } = await run(node, 'ADD', '{}');
      expect(code).toBe(1);
      expect(JSON.parse(stdout)).toMatchObject({ code: 11, msg: expect.stringContaining(socket) });
    }
  });
});
