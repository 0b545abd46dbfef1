// The demo as a user runs it. Other tests use the machine meanwhile, so only what bears the demo lab's names has to be
// as it was; on a machine of its own the demo compares everything.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ExecResult, exec } from '../../../lib/exec.ts';

const TREE = fileURLToPath(new URL('../../..', import.meta.url));
const parent = mkdtempSync(join(tmpdir(), 'nodelet-demo-'));
let demo: ExecResult;
/** The second one: on Docker, without kubectl, after one that was killed. */
let withoutKubectl: ExecResult;
const DOCKER = ['--runtime', 'docker'];

const run = (root: string, env: NodeJS.ProcessEnv, ...more: readonly string[]): Promise<ExecResult> =>
  exec('npm', ['run', 'demo', '--', '--root', join(parent, root), '--compare', 'lab', ...more], {
    cwd: TREE,
    env,
    timeoutMs: 1_500_000,
  });

/** Starts a demo and ends it with SIGKILL once its node is Ready: what it leaves is the next one's to take away. */
async function killedWhileItRuns(root: string): Promise<void> {
  const child = spawn(
    join(TREE, 'bin/nodelet'),
    ['demo', '--root', join(parent, root), '--compare', 'lab', ...DOCKER],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  let output = '';
  for await (const chunk of child.stdout) {
    output += String(chunk);
    if (output.includes('is Ready')) child.kill('SIGKILL');
  }
  expect(output).toContain('is Ready');
}

beforeAll(async () => {
  demo = await run('with', process.env);
  // /usr/bin, where kubectl may be, cannot be left out of the path; a kubectl that does not run is as good as none.
  const front = join(parent, 'bin');
  mkdirSync(front);
  writeFileSync(join(front, 'kubectl'), '#!/bin/sh\nexit 127\n', { mode: 0o755 });
  await killedWhileItRuns('without');
  withoutKubectl = await run('without', { ...process.env, PATH: `${front}:${process.env['PATH'] ?? ''}` }, ...DOCKER);
}, 3_600_000);
afterAll(() => rmSync(parent, { recursive: true, force: true }));

test('npm run demo exits 0, and every check passed', () => {
  expect(demo.code, `${demo.stdout}\n${demo.stderr}`).toBe(0);
  expect(demo.stdout).not.toContain('FAIL');
  expect(demo.stdout).toMatch(/== done: 15 passed, 0 failed, in [\d.]+ s/);
});

test.each([
  ['volumes', /mount volume kube-api-access-\w+ \(kubernetes\.io\/projected\)/],
  ['sandbox', /RunPodSandbox/],
  [
    'CNI ADD with interface, IP and routes',
    /ADD network \S+: eth0 has \d+\.\d+\.\d+\.\d+\/24, route 0\.0\.0\.0\/0 via/,
  ],
  ['image', /ImageStatus nginx:stable|PullImage nginx:stable/],
  ['container', /CreateContainer web[\s\S]*StartContainer/],
  ['status', /status written to the API server/],
])('the demo prints the step "%s" with its time', (_step, line) => expect(demo.stdout).toMatch(line));

test.each([
  'HTTP GET http://',
  'the logs show the request',
  'exec "ip addr" shows the pod’s own interfaces',
  'exec "ps" shows only the pod',
  'the container came back with restartCount 1',
  'the pod is gone from the API server',
  'the deployment has three Ready pods on two nodes',
  'a pod reaches the Service by its name, http://web.demo.svc.cluster.local/',
  'requests answered meanwhile, 0 failed',
  'node-2 is NotReady',
  'evicted and made again on the other node',
  'the Service answers as before, from the other node',
  'node-2 is Ready again',
  'are as before',
])('the demo proves: %s', (claim) => {
  const line = demo.stdout.split('\n').find((candidate) => candidate.includes(claim));
  expect(line).toMatch(/ {2}ok {3}/);
});

test('on Docker, and where no kubectl runs, the demo holds all the same, with nodelet’s own client', () => {
  expect(withoutKubectl.code, `${withoutKubectl.stdout}\n${withoutKubectl.stderr}`).toBe(0);
  expect(withoutKubectl.stdout).toContain('with nodelet');
  expect(withoutKubectl.stdout).toContain('dockershim serves on');
  expect(withoutKubectl.stdout).toMatch(/== done: 8 passed, 0 failed/);
});

test('a demo first removes what a killed one has left under its root, and reports it', () => {
  expect(withoutKubectl.stdout).toMatch(/an earlier lab under \S+ did not end in order: removing/);
  expect(demo.stdout).not.toContain('did not end in order');
});
