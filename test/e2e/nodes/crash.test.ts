// A lab with several nodes as a program: without controllers and scheduler, for which others take the place, and taken down after everything
// that could have done so has been killed.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { labPaths } from '../../../cli/lab/paths.ts';
import { labProcesses } from '../../../cli/lab/processes.ts';
import { controlplaneProgram } from '../../../cli/lab/programs.ts';
import { readLabState } from '../../../cli/lab/state.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { compareWithMachine, type MachineSnapshot, snapshotMachine } from '../../../lib/machine.ts';
import { signalProcess } from '../../../lib/processes.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { eventually, FOREVER, shellPod } from '../agent/harness.ts';
import { guardLab } from '../support/guardian.ts';
import { kubectlOptions, labNames, SETTLE_MS } from '../support/lab.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));

let root: string;
let before: MachineSnapshot;
let guardian: Awaited<ReturnType<typeof guardLab>>;
let up: ChildProcess;
let standIn: ChildProcess | undefined;
let output = '';

const kubectl = (...args: string[]): Promise<string> =>
  execOk('kubectl', ['--kubeconfig', join(root, 'kubeconfig'), ...args], kubectlOptions());

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-e2e-'));
  guardian = await guardLab(root);
  before = await snapshotMachine({ directories: [root] });
  const flags = ['--nodes', '2', '--without', 'controllers,scheduler', '--images', 'build', '--root', root];
  up = spawn(NODELET, ['up', ...flags], { stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [up.stdout, up.stderr]) stream?.on('data', (data: Buffer) => (output += data.toString()));
  await eventually('the lab to be up', () => {
    if (up.exitCode !== null) throw new Error(output);
    return output.includes('The lab is up') ? true : undefined;
  });
});

afterAll(async () => {
  standIn?.kill('SIGKILL');
  up?.kill('SIGKILL');
  await exec(NODELET, ['down', '--root', root]);
  await guardian?.dismiss();
  await removeTree(root);
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
  await kubectl('wait', '--for=condition=Ready', 'pod/on-node-1', 'pod/on-node-2', '--timeout=60s');
});

test('down takes everything away after up was killed, and containerd and the shims of a node', async () => {
  const ended = once(up, 'exit');
  up.kill('SIGKILL');
  standIn?.kill('SIGKILL');
  await ended;
  const own = await labProcesses(root);
  const ofOne = own.filter(({ argv }) => argv.some((word) => word.includes('/nodes/node-1/containerd')));
  expect(ofOne.length).toBeGreaterThan(0);
  for (const entry of ofOne) await signalProcess(entry, 'SIGKILL');
  await execOk(NODELET, ['down', '--root', root]);
  const left = await compareWithMachine(before, {
    directories: [root],
    mentioning: labNames(labPaths(root)),
    settleMs: SETTLE_MS,
  });
  expect(left).toEqual([]);
  expect(await labProcesses(root)).toEqual([]);
});
