// `nodelet apiserver` on a store that it must not touch, and from a snapshot: the command's output, and the log's last
// line. The cases themselves are the unit tests'.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { newestSnapshot } from '../../../apiserver/storage/snapshots.ts';
import { lastLine } from '../../../cli/lab/supervisor.ts';
import { exec } from '../../../lib/exec.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
let root: string;
let log: string;
let store: string;
const running: ChildProcess[] = [];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-store-file-'));
  log = join(root, 'apiserver.log');
  store = join(root, 'apiserver', 'store.db');
  await writeFile(log, 'Error: of the day before\n');
});
afterEach(async () => {
  for (const child of running.splice(0)) await ended(child, 'SIGKILL');
  await rm(root, { recursive: true });
});

function run(...flags: string[]): ChildProcess {
  const output = openSync(log, 'a');
  const child = spawn(NODELET, ['apiserver', '--root', root, '--port', '0', ...flags], {
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  running.push(child);
  return child;
}

async function ended(child: ChildProcess, signal?: NodeJS.Signals): Promise<number | null> {
  if (signal !== undefined) child.kill(signal);
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode;
}

const kubectl = (...args: string[]) => exec('kubectl', ['--kubeconfig', join(root, 'kubeconfig'), ...args]);

async function serving(child: ChildProcess): Promise<void> {
  await vi.waitFor(
    async () => {
      if (child.exitCode !== null) throw new Error(await readFile(log, 'utf8'));
      expect((await kubectl('get', '--raw', '/readyz')).stdout).toBe('ok');
    },
    { timeout: 60_000, interval: 100 },
  );
}

/** The exit code and the last line of a run that ends by itself. */
async function refusal(...flags: string[]): Promise<[number | null, string]> {
  const { size } = await stat(log);
  const code = await ended(run(...flags));
  return [code, await lastLine(log, size)];
}

it('a damaged store is left as it is and named, with the snapshot that brings the objects back', async () => {
  const first = run();
  await serving(first);
  expect(await kubectl('create', 'configmap', 'kept', '--from-literal=a=b')).toMatchObject({ code: 0 });
  const second = await refusal();
  expect(second).toEqual([1, `nodelet: cannot open the API server's store ${store}: another API server is using it`]);
  expect(await ended(first, 'SIGTERM')).toBe(0);

  const snapshot = newestSnapshot(store) ?? '';
  const file = openSync(store, 'r+');
  writeSync(file, Buffer.alloc(64 * 1024, 0x5a), 0, 64 * 1024, 8192);
  closeSync(file);
  const damaged = readFileSync(store);
  const [code, line] = await refusal();
  expect(code).toBe(1);
  expect(line).toMatch(/^nodelet: the API server's store \S+store\.db is damaged: /);
  expect(line).toContain(`it was left as it is, or restore the newest snapshot with --restore ${snapshot}`);
  expect(readFileSync(store).equals(damaged)).toBe(true);

  const restored = run('--restore', snapshot);
  await serving(restored);
  expect((await kubectl('get', 'configmap', 'kept', '-o', 'jsonpath={.data.a}')).stdout).toBe('b');
  expect(await kubectl('create', 'configmap', 'more')).toMatchObject({ code: 0 });
  await ended(restored, 'SIGTERM');
  expect(await refusal('--restore', join(root, 'none'))).toEqual([
    1,
    `nodelet: cannot restore the API server's store ${store} from ${join(root, 'none')}: there is no such file`,
  ]);
});
