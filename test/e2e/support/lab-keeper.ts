// Keeps the labs that test files share, in vitest's own process: a file takes one over a socket (shared-lab.ts), has it for
// itself while it runs, and hands it on clean. As many are started as files need one at the same time. A lab that leaves
// anything on the machine when it is stopped at the end fails the run.

import { mkdtemp } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestProject } from 'vitest/node';
import { errorMessage } from '../../../lib/errors.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { LeasePool } from '../../support/lease-pool.ts';
import { type PrivateLab, startLab } from './lab.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The socket of the keeper. */
    labKeeper: string;
  }
}

/** What the keeper answers: the root of the lab, or why there is none. */
export type Lease = { readonly root: string } | { readonly error: string };
/** What a test file sends before it disconnects: the lab is as it was. Without it the lab is stopped. */
export const CLEAN = 'clean';

/** One connection is one lease. */
async function lend(socket: Socket, labs: LeasePool<PrivateLab>): Promise<void> {
  let clean = false;
  const hungUp = new Promise<void>((resolve) => {
    // A reset is an end like any other; `close` follows.
    socket.on('error', () => undefined);
    socket.once('close', () => resolve());
  });
  createInterface({ input: socket }).on('line', (line) => {
    clean = line === CLEAN;
  });
  let lab: PrivateLab;
  try {
    lab = await labs.take();
  } catch (error) {
    const answer: Lease = { error: errorMessage(error) };
    socket.end(`${JSON.stringify(answer)}\n`);
    return;
  }
  const answer: Lease = { root: lab.root };
  socket.write(`${JSON.stringify(answer)}\n`);
  await hungUp;
  labs.give(lab, clean);
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'nodelet-labs-'));
  const path = join(directory, 'keeper.sock');
  const labs = new LeasePool(
    () => startLab(),
    (lab) => lab.stop(),
  );
  const leases: Promise<void>[] = [];
  const server = createServer((socket) => void leases.push(lend(socket, labs)));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  project.provide('labKeeper', path);
  return async () => {
    server.close();
    const problems = await labs.close();
    await removeTree(directory);
    if (problems.length === 0) return;
    // vitest only shows what a teardown throws.
    process.exitCode = 1;
    throw new AggregateError(problems, problems.map(errorMessage).join('\n'));
  };
}
