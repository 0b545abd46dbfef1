// `nodelet up --csi`: a lab with volumes, and a machine that is as before when it goes, in order or not.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readPidFile } from '../../../cli/lab/child.ts';
import { LAB_PROCESSES, type LabPaths, labPaths } from '../../../cli/lab/paths.ts';
import { listLoopDevices } from '../../../csi/driver/loop-devices.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { compareWithMachine, type MachineSnapshot, snapshotMachine } from '../../../lib/machine.ts';
import { labNames, SETTLE_MS } from '../support/lab.ts';

/** For giving up only. */
const LIMIT_MS = 300_000;
const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));

const OBJECTS = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 32Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  containers:
  - name: user
    image: busybox:stable
    command: [sh, -c, 'echo kept >>/data/file; echo there >/scratch/file; while true; do sleep 1; done']
    volumeMounts:
    - {name: data, mountPath: /data}
    - {name: scratch, mountPath: /scratch}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: scratch, csi: {driver: loop.csi.nodelet, volumeAttributes: {size: 16Mi}}}
`;

describe('a lab with --csi', () => {
  let paths: LabPaths;
  let before: MachineSnapshot;
  let up: ChildProcess;
  /** It has ended, and all its output was read. */
  let ended: Promise<unknown>;

  const start = async (...flags: string[]): Promise<() => string> => {
    let output = '';
    // One lab of the machine has the proxy, which is needed elsewhere.
    const parts = ['--csi', '--without', 'proxy'];
    up = spawn(NODELET, ['up', '--root', paths.root, '--images', 'build', ...parts, ...flags]);
    ended = once(up, 'close');
    up.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    up.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    await expect
      .poll(() => (up.exitCode === null ? output : `ended: ${output}`), { timeout: LIMIT_MS })
      .toMatch(/The lab is up\.|^ended/);
    expect(up.exitCode, output).toBeNull();
    return () => output;
  };
  const kubectl = (args: readonly string[], stdin?: string): Promise<string> =>
    execOk('kubectl', ['--kubeconfig', paths.kubeconfig, ...args], {
      timeoutMs: LIMIT_MS + 60_000,
      ...(stdin === undefined ? {} : { stdin }),
    });
  const runPod = async (): Promise<void> => {
    await kubectl(['apply', '-f', '-'], OBJECTS);
    await kubectl(['wait', '--for=condition=Ready', 'pod/user', `--timeout=${LIMIT_MS}ms`]);
  };
  const ownLoops = async () => (await listLoopDevices()).filter((loop) => loop.image.startsWith(`${paths.root}/`));
  const left = (settleMs = SETTLE_MS) =>
    compareWithMachine(before, { directories: [paths.root], mentioning: labNames(paths), settleMs });

  beforeEach(async () => {
    paths = labPaths(await mkdtemp(join(tmpdir(), 'nodelet-csi-lab-')));
    before = await snapshotMachine({ directories: [paths.root] });
  });
  afterEach(async () => {
    up.kill('SIGKILL');
    await ended;
    await exec(NODELET, ['down', '--root', paths.root], { timeoutMs: LIMIT_MS });
    await rm(paths.root, { recursive: true, force: true });
  });

  test('has classes and a driver, runs a pod with a claim and an inline volume, and leaves nothing after Ctrl-C', async () => {
    const output = await start();
    expect(output()).toContain('storage classes: loop, loop-xfs');
    expect(await kubectl(['get', 'storageclasses', '--no-headers'])).toMatch(
      /^loop \(default\)\s+loop\.csi\.nodelet\s+Delete\s+WaitForFirstConsumer\s+true/,
    );
    await runPod();
    expect(await kubectl(['get', 'csinodes', '-o', 'jsonpath={.items[0].spec.drivers[0].name}'])).toBe(
      'loop.csi.nodelet',
    );
    await expect
      .poll(() => kubectl(['exec', 'user', '--', 'cat', '/data/file', '/scratch/file']).catch(String))
      .toBe('kept\nthere\n');
    expect(await ownLoops()).toHaveLength(2);
    up.kill('SIGINT');
    await ended;
    expect(output().trimEnd().split('\n').at(-1)).toBe('stopped; nothing is left');
    expect(await left()).toEqual([]);
  });

  test('of which everything was killed is taken down by nodelet down, loop devices too', async () => {
    await start();
    await runPod();
    up.kill('SIGKILL');
    await ended;
    for (const name of [...LAB_PROCESSES, 'csi-driver'] as const) {
      const id = await readPidFile(paths.pidFile(name));
      // One that has ended by itself meanwhile is no matter.
      if (id !== undefined) await exec('kill', ['-KILL', String(id.pid)]);
    }
    expect((await left(0)).filter((line) => line.startsWith('left behind: loop device'))).toHaveLength(2);
    const down = await exec(NODELET, ['down', '--root', paths.root], { timeoutMs: LIMIT_MS });
    expect([down.code, down.stderr]).toEqual([0, '']);
    expect(await left()).toEqual([]);
  });

  // Two starts of a lab: for giving up only.
  test('that is kept has its volumes, and what is in them, at the next start', { timeout: 1_800_000 }, async () => {
    await start('--keep');
    await runPod();
    up.kill('SIGINT');
    await ended;
    // Another mount namespace that is just being made has the file system for a moment, and with it the device.
    await expect.poll(ownLoops).toEqual([]);
    await start('--keep');
    await expect
      .poll(
        async () =>
          (await exec('kubectl', ['--kubeconfig', paths.kubeconfig, 'exec', 'user', '--', 'cat', '/data/file'])).stdout,
        {
          timeout: LIMIT_MS,
          interval: 500,
        },
      )
      .toBe('kept\nkept\n');
    await kubectl(['delete', 'pod', 'user', '--grace-period=1']);
    await kubectl(['delete', 'pvc', 'data', `--timeout=${LIMIT_MS}ms`]);
    await expect.poll(ownLoops, { timeout: LIMIT_MS }).toEqual([]);
    await expect.poll(() => readdir(join(paths.csi.stateDir, 'volumes')), { timeout: LIMIT_MS }).toEqual([]);
  });
});
