// A lab with several nodes as a program: without controllers and scheduler, for which others take the place, and taken down after everything
// that could have done so has been killed.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MARKER_NAME } from '../../../cli/lab/marker.ts';
import { labPaths } from '../../../cli/lab/paths.ts';
import { labProcesses } from '../../../cli/lab/processes.ts';
import { controlplaneProgram } from '../../../cli/lab/programs.ts';
import { readLabState } from '../../../cli/lab/state.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { compareWithMachine, type MachineSnapshot, snapshotMachine } from '../../../lib/machine.ts';
import { type ProcessEntry, signalProcess } from '../../../lib/processes.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { eventually, FOREVER, shellPod } from '../agent/harness.ts';
import { guardLab } from '../support/guardian.ts';
import { kubectlOptions, labNames, SETTLE_MS } from '../support/lab.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));

let root: string;
/** What is in front of PATH. */
let front: string;
let before: MachineSnapshot;
let guardian: Awaited<ReturnType<typeof guardLab>>;
let up: ChildProcess;
let standIn: ChildProcess | undefined;
let output = '';

const kubectl = (...args: string[]): Promise<string> =>
  execOk('kubectl', ['--kubeconfig', join(root, 'kubeconfig'), ...args], kubectlOptions());

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-e2e-'));
  front = await mkdtemp(join(tmpdir(), 'nodelet-front-'));
  guardian = await guardLab(root);
  before = await snapshotMachine({ directories: [root] });
  const flags = ['--nodes', '2', '--without', 'controllers,scheduler', '--images', 'build', '--root', root];
  up = spawn(NODELET, ['up', ...flags], { stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [up.stdout, up.stderr]) stream?.on('data', (data: Buffer) => (output += data.toString()));
  const isUp = (): true | undefined => {
    if (up.exitCode !== null) throw new Error(output);
    return output.includes('The lab is up') ? true : undefined;
  };
  await eventually('the lab to be up', isUp, 550_000);
});

afterAll(async () => {
  standIn?.kill('SIGKILL');
  up?.kill('SIGKILL');
  await exec(NODELET, ['down', '--root', root]);
  await guardian?.dismiss();
  await removeTree(root);
  await removeTree(front);
});

test('another controller manager and another scheduler take the place of the lab’s', async () => {
  const paths = labPaths(root);
  expect((await labProcesses(root)).some(({ argv }) => argv.includes('controlplane'))).toBe(false);
  expect((await exec('kubectl', ['--kubeconfig', paths.kubeconfig, 'get', 'serviceaccount', 'default'])).code).toBe(1);
  const state = await readLabState(paths);
  if (state === undefined) throw new Error('the lab has no state');
  const program = controlplaneProgram(paths, state);
  standIn = spawn(program.command, program.args, { stdio: 'ignore' });
  await eventually(
    'the default service account',
    async () => (await kubectl('get', 'serviceaccount', 'default')) || undefined,
  );
  const pods = ['node-1', 'node-2'].map((node) =>
    shellPod(`on-${node}`, FOREVER, { nodeSelector: { 'kubernetes.io/hostname': node } }),
  );
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: pods });
  await execOk('kubectl', ['--kubeconfig', paths.kubeconfig, 'apply', '-f', '-'], { ...kubectlOptions(), stdin: list });
  await kubectl('wait', '--for=condition=Ready', 'pod/on-node-1', 'pod/on-node-2', '--timeout=110s');
});

/** Everything that the lab can have left, one line each. */
async function leftOver(): Promise<readonly string[]> {
  const left = await compareWithMachine(before, {
    directories: [root],
    mentioning: labNames(labPaths(root)),
    settleMs: SETTLE_MS,
  });
  const processes = await labProcesses(root);
  return [...left, ...processes.map(({ pid, argv }) => `left behind: process ${pid} ${argv.join(' ')}`)];
}

const programs = async (): Promise<readonly ProcessEntry[]> =>
  (await labProcesses(root)).filter(({ argv }) => argv.some((word) => word.endsWith('cli/main.ts')));

test('down takes everything away after up was killed, parts of the nodes, and another down half-way', async () => {
  const ended = once(up, 'exit');
  up.kill('SIGKILL');
  standIn?.kill('SIGKILL');
  await ended;
  const own = await labProcesses(root);
  const ofOne = own.filter(({ argv }) => argv.some((word) => word.includes('/nodes/node-1/containerd')));
  const agents = own.filter(({ argv }) => argv.includes('--hostname-override') && argv.includes('node-2'));
  expect(ofOne.length).toBeGreaterThan(0);
  for (const entry of [...ofOne, ...agents]) await signalProcess(entry, 'SIGKILL');
  // It ends the lab's programs first, then removes links, and the marker last: it is held where it first calls `ip`.
  const held = join(front, 'held');
  const script = `#!/bin/sh\necho $$ > ${held}.new && mv ${held}.new ${held}\nexec sleep 100000\n`;
  await writeFile(join(front, 'ip'), script, { mode: 0o755 });
  const env = { ...process.env, PATH: `${front}:${process.env['PATH']}` };
  const first = spawn(NODELET, ['down', '--root', root], { stdio: 'ignore', env });
  const over = once(first, 'exit');
  const ip = await eventually('its first call of ip', async () => Number(await readFile(held, 'utf8')));
  expect(await programs()).toEqual([]);
  first.kill('SIGKILL');
  expect(await over).toEqual([null, 'SIGKILL']);
  process.kill(ip, 'SIGKILL');
  expect(existsSync(join(root, MARKER_NAME))).toBe(true);
  await execOk(NODELET, ['down', '--root', root]);
  expect(await leftOver()).toEqual([]);
});

test('down takes everything away after up was killed half-way', async () => {
  const flags = ['--nodes', '2', '--images', 'build', '--root', root];
  up = spawn(NODELET, ['up', ...flags], { stdio: 'ignore' });
  const ended = once(up, 'exit');
  await eventually('the first of a node’s programs', async () =>
    (await programs()).find(({ argv }) => argv.includes('--hostname-override')),
  );
  up.kill('SIGKILL');
  expect(await ended).toEqual([null, 'SIGKILL']);
  await execOk(NODELET, ['down', '--root', root]);
  expect(await leftOver()).toEqual([]);
});
