// `nodelet apiserver` on a store that it must not touch, and from a snapshot: the command's output, and the log's last
// line. The cases themselves are the unit tests'.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { newestSnapshot } from '../../../apiserver/storage/snapshots.ts';
import { lastLine } from '../../../cli/lab/supervisor.ts';
import { isErrno } from '../../../lib/errors.ts';
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
    { timeout: 240_000, interval: 100 },
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
  // With it in a snapshot: the one that is taken at the stop is given up where it takes long.
  const saved = await exec(NODELET, ['apiserver', 'snapshot', 'save', join(root, 'saved.db'), '--root', root]);
  expect(saved).toMatchObject({ code: 0 });
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

/** Files below the server's directory that show `text`, by their path in it. */
async function showing(text: string): Promise<string[]> {
  const directory = join(root, 'apiserver');
  const files = await readdir(directory, { recursive: true, withFileTypes: true });
  const shown = await Promise.all(
    files
      .filter((file) => file.isFile())
      .map(async ({ parentPath, name }) => {
        try {
          return (await readFile(join(parentPath, name))).includes(text) ? [name] : [];
        } catch (error) {
          // The server has removed it meanwhile.
          if (isErrno(error, 'ENOENT')) return [];
          throw error;
        }
      }),
  );
  return shown.flat();
}

async function encryption(...providers: string[]): Promise<string> {
  const file = join(root, 'encryption.yaml');
  const keys = (name: string): string => Buffer.alloc(32, name).toString('base64');
  const list = providers.map((provider) => {
    const [kind = '', name] = provider.split(':');
    return name === undefined ? `  - ${kind}: {}` : `  - ${kind}: {keys: [{name: ${name}, secret: ${keys(name)}}]}`;
  });
  const head =
    'apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n';
  await writeFile(file, `${head}  providers:\n${list.join('\n')}\n`);
  return file;
}

it('Secrets that were plain are encrypted by kubectl replace, and no file shows them after that', async () => {
  const password = 'correct-horse-battery-staple';
  const shown = Buffer.from(password).toString('base64');
  const plain = run();
  await serving(plain);
  await kubectl('create', 'secret', 'generic', 'one', `--from-literal=password=${password}`);
  await kubectl('annotate', 'secret', 'one', 'a=b');
  await ended(plain, 'SIGTERM');
  expect(await showing(shown)).toContain('store.db');

  const config = await encryption('aescbc:key1', 'identity');
  const encrypted = run('--encryption-provider-config', config);
  await serving(encrypted);
  const secrets = join(root, 'secrets.json');
  await writeFile(secrets, (await kubectl('get', 'secrets', '-A', '-o', 'json')).stdout);
  expect(await kubectl('replace', '-f', secrets)).toMatchObject({ code: 0, stdout: 'secret/one replaced\n' });
  await rm(secrets);
  await vi.waitFor(async () => expect(await showing(shown)).toEqual([]), { timeout: 240_000, interval: 200 });
  expect(await showing('k8s:enc:aescbc:v1:key1:')).toContain('store.db');
  await ended(encrypted, 'SIGTERM');
  expect(await showing(shown)).toEqual([]);

  const other = run('--encryption-provider-config', await encryption('aescbc:key2'));
  await serving(other);
  const read = await kubectl('get', 'secret', 'one');
  expect(read.stderr).toContain(
    'unable to transform key "/registry/secrets/default/one": no matching key was found for the provided AES transformer',
  );
  await ended(other, 'SIGTERM');
  await writeFile(config, 'kind: Nothing\n');
  const [code, line] = await refusal('--encryption-provider-config', config);
  expect([code, line]).toEqual([
    1,
    `nodelet: error while parsing encryption provider configuration file ${JSON.stringify(config)}: ` +
      'no kind "Nothing" is registered for version "": expected EncryptionConfiguration of apiserver.config.k8s.io/v1',
  ]);
});

it('snapshots are saved from a running server and a stopped one, checked, and restored', async () => {
  const nodelet = (...args: string[]) => exec(NODELET, ['apiserver', 'snapshot', ...args]);
  const server = run();
  await serving(server);
  await kubectl('create', 'configmap', 'kept', '--from-literal=a=b');
  const online = join(root, 'online.db');
  const saved = await nodelet('save', online, '--root', root);
  expect([saved.stderr, saved.stdout]).toEqual([
    '',
    expect.stringMatching(/^snapshot of \d+ objects at revision \d+ saved at /),
  ]);
  const agent = join(root, 'kubeconfigs', 'agent.kubeconfig');
  expect((await nodelet('save', `${online}2`, '--kubeconfig', agent)).stderr).toMatch(
    /no snapshot was saved: .* replied 403/,
  );
  expect((await nodelet('restore', online, '--root', root)).stderr).toContain('another API server is using it');
  await kubectl('delete', 'configmap', 'kept');
  await ended(server, 'SIGTERM');
  const offline = join(root, 'offline.db');
  expect(await nodelet('save', offline, '--root', root)).toMatchObject({ code: 0 });

  const status = async (file: string) => JSON.parse((await nodelet('status', file, '-w', 'json')).stdout);
  const [before, after] = [await status(online), await status(offline)];
  expect(before).toMatchObject({ totalSize: (await stat(online)).size, hash: expect.stringMatching(/^[0-9a-f]{8}$/) });
  expect([after.totalKey, after.revision > before.revision]).toEqual([before.totalKey - 1, true]);
  expect((await nodelet('status', online)).stdout).toMatch(/^HASH +REVISION +TOTAL KEYS +TOTAL SIZE\n[0-9a-f]{8} /);
  const cut = join(root, 'cut.db');
  await writeFile(cut, (await readFile(online)).subarray(0, 20_000));
  expect(await nodelet('status', cut)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/cut\.db is damaged: /),
  });

  expect((await nodelet('restore', online, '--root', root)).stdout).toContain(`was restored from ${online}`);
  const restored = run();
  await serving(restored);
  expect((await kubectl('get', 'configmap', 'kept', '-o', 'jsonpath={.data.a}')).stdout).toBe('b');
  await ended(restored, 'SIGTERM');
});

it('a store on a disk that cannot be written to is named in one line', async () => {
  const mounted = join(root, 'apiserver');
  await mkdir(mounted);
  expect(await exec('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'nodelet-store', mounted])).toMatchObject({ code: 0 });
  try {
    const first = run();
    await serving(first);
    await ended(first, 'SIGTERM');
    await exec('mount', ['-o', 'remount,ro', mounted]);
    expect(await refusal()).toEqual([
      1,
      `nodelet: cannot open the API server's store ${store}: the file system is read-only`,
    ]);
  } finally {
    await exec('umount', [mounted]);
  }
});
