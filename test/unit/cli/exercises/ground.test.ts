// A container runtime that an exercise starts in its own directory is part of the lab: without the lab's mark, `nodelet down`
// would take it for someone else's, and touch nothing.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, realpath, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { groundOf } from '../../../../cli/exercises/session.ts';
import { labPaths } from '../../../../cli/lab/paths.ts';
import { protectedBecause, protectionFacts } from '../../../../cli/lab/protected.ts';
import { removeTree } from '../../../../lib/remove-tree.ts';

let root: string;
let daemon: ChildProcess | undefined;

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'nodelet-ground-')));
});
afterEach(async () => {
  if (daemon?.kill('SIGKILL') === true) await once(daemon, 'exit');
  await removeTree(root);
});

/** A process that is called dockerd and has a file below the root open. */
async function startDaemon(env: NodeJS.ProcessEnv): Promise<number | undefined> {
  const file = join(root, 'daemon.json');
  await writeFile(file, 'open\n');
  daemon = spawn('bash', ['-c', `exec -a dockerd tail -f ${file}`], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  if (daemon.stdout !== null) await once(daemon.stdout, 'data');
  return daemon.pid;
}

test('a daemon with the environment of the exercise does not keep the lab from being taken down', async () => {
  await startDaemon({ ...groundOf(labPaths(root), 'two-runtimes').environment });
  expect(protectedBecause(await protectionFacts(root))).toBeUndefined();
});

test('one without it does: it may be anyone’s', async () => {
  const pid = await startDaemon(process.env);
  const because = `is in use by dockerd (process ${pid}), which has ${join(root, 'daemon.json')}`;
  expect(protectedBecause(await protectionFacts(root))).toBe(because);
});
