// `nodelet apiserver snapshot`: copies of the store, taken while the server runs or when it is stopped.

import { createWriteStream, existsSync, renameSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Command } from 'commander';
import type { ClusterAccess } from '../../client/kubeconfig.ts';
import { systemClock } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { DEFAULT_ROOT, labPaths } from '../lab/paths.ts';

interface Flags {
  readonly root: string;
  readonly kubeconfig?: string;
}

const storeOf = (root: string): string => join(labPaths(root).root, 'apiserver', 'store.db');

export function snapshotCommand(): Command {
  const command = new Command('snapshot').description('copies of the store: save, status, restore');
  command
    .command('save <file>')
    .description('save a snapshot, from the server where it runs, else from its file')
    .option('--root <dir>', 'directory of the server', DEFAULT_ROOT)
    .option('--kubeconfig <file>', 'how to reach a server elsewhere, as system:masters')
    .action(async (file: string, flags: Flags) => {
      const { snapshotStatus } = await import('../../apiserver/storage/snapshot-status.ts');
      await save(file, flags);
      const { revision, totalKey } = await snapshotStatus(file);
      process.stdout.write(`snapshot of ${totalKey} objects at revision ${revision} saved at ${file}\n`);
    });
  command
    .command('status <file>')
    .description('check a snapshot, and print what it holds')
    .option('-w, --write-out <format>', 'table or json', 'table')
    .action(async (file: string, { writeOut }: { writeOut: string }) => {
      if (writeOut !== 'table' && writeOut !== 'json') throw new UserError(`"${writeOut}" is not table or json`);
      const { snapshotStatus } = await import('../../apiserver/storage/snapshot-status.ts');
      const status = await snapshotStatus(file);
      const table = (): string =>
        ['HASH', 'REVISION', 'TOTAL KEYS', 'TOTAL SIZE']
          .map((title) => title.padEnd(12))
          .join('')
          .trimEnd() +
        `\n${Object.values(status)
          .map((value) => String(value).padEnd(12))
          .join('')
          .trimEnd()}`;
      process.stdout.write(`${writeOut === 'json' ? JSON.stringify(status) : table()}\n`);
    });
  command
    .command('restore <file>')
    .description('put a snapshot in the place of the store of a server that is stopped; what was there is kept')
    .option('--root <dir>', 'directory of the server', DEFAULT_ROOT)
    .action(async (file: string, { root }: Flags) => {
      const { restoreStore } = await import('../../apiserver/storage/restore.ts');
      process.stdout.write(`${restoreStore(storeOf(root), file, systemClock.now())}\n`);
    });
  return command;
}

/** The file has its name once it is whole. */
async function save(file: string, { root, kubeconfig }: Flags): Promise<void> {
  const { loadKubeconfig } = await import('../../client/kubeconfig.ts');
  const partial = `${file}.part`;
  try {
    if (kubeconfig !== undefined) await download(await loadKubeconfig(kubeconfig), partial);
    else if (await isRunning(storeOf(root))) await download(await loadKubeconfig(labPaths(root).kubeconfig), partial);
    else await copyStopped(storeOf(root), partial);
    renameSync(partial, file);
  } catch (error) {
    rmSync(partial, { force: true });
    throw new UserError(`no snapshot was saved: ${errorMessage(error)}`);
  }
}

async function isRunning(store: string): Promise<boolean> {
  if (!existsSync(store)) throw new Error(`there is no store ${store}`);
  const { assertNotInUse } = await import('../../apiserver/storage/file.ts');
  try {
    assertNotInUse(store);
    return false;
  } catch (error) {
    if (error instanceof UserError) return true;
    throw error;
  }
}

async function copyStopped(path: string, to: string): Promise<void> {
  const { copyStore } = await import('../../apiserver/storage/take-snapshot.ts');
  const { Store } = await import('../../apiserver/storage/store.ts');
  const store = new Store(path, { clock: systemClock });
  try {
    await copyStore(store, to);
  } finally {
    store.close();
  }
}

async function download(access: ClusterAccess, to: string): Promise<void> {
  const { SNAPSHOT_PATH } = await import('../../apiserver/http/snapshot.ts');
  const { server, ca, clientCert: cert, clientKey: key, token } = access;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const call = request(new URL(SNAPSHOT_PATH, server), { ca, cert, key, headers }, (response) => {
    if (response.statusCode === 200) {
      pipeline(response, createWriteStream(to, { mode: 0o600, flush: true })).then(resolve, reject);
      return;
    }
    response.setEncoding('utf8');
    let text = '';
    response.on('data', (part: string) => {
      text += part;
    });
    response.on('end', () => reject(new Error(`${server} replied ${response.statusCode}: ${text.slice(0, 500)}`)));
  });
  call.on('error', reject);
  call.end();
  return promise;
}
