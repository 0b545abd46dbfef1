// The API server as a process on a disk of its own that is filled under load: what must go on goes on, what cannot is
// refused with its cause, over kill -9 and an orderly stop, and all is well by itself once there is room again.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ApiClient, type WatchEvent } from '../../../client/api.ts';
import { ApiError } from '../../../client/errors.ts';
import { loadKubeconfig } from '../../../client/kubeconfig.ts';
import { systemClock } from '../../../lib/clock.ts';
import { Tracer } from '../../../lib/trace.ts';
import { type LoopDisk, makeLoopDisk } from '../../support/loop-disk.ts';
import { freePort } from '../support/ports.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
const CONFIGMAPS = '/api/v1/namespaces/default/configmaps';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases';

interface Obj {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
  readonly data?: Readonly<Record<string, string>>;
}

let disk: LoopDisk;
let root: string;
let log: string;
let port = 0;
let server: ChildProcess | undefined;
let client: ApiClient | undefined;

/** Its log is on the same disk. */
async function start(): Promise<void> {
  const output = openSync(log, 'a');
  const flags = ['--root', root, '--port', String(port), '--node-name', 'n1'];
  const child = spawn(NODELET, ['apiserver', ...flags], { stdio: ['ignore', output, output] });
  closeSync(output);
  server = child;
  await vi.waitFor(
    async () => {
      client?.close();
      client = new ApiClient(await loadKubeconfig(join(root, 'kubeconfig')), {
        tracer: new Tracer(),
        clock: systemClock,
        userAgent: 'test',
      });
      await client.list('/api/v1/namespaces', {}, { timeoutMs: 60_000 });
    },
    { timeout: 240_000, interval: 100 },
  );
  // The port is its own: no other server has responded.
  expect(child.exitCode, await readFile(log, 'utf8')).toBeNull();
}

async function stop(signal: NodeJS.Signals): Promise<void> {
  client?.close();
  const child = server;
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, 'exit');
}

function api(): ApiClient {
  if (client === undefined) throw new Error('no server');
  return client;
}

const configMap = (name: string, bytes: number, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...more },
  data: { x: 'x'.repeat(bytes) },
});

function shown({ type, object }: WatchEvent<Obj>): string {
  return `${type} ${object.metadata !== undefined && 'name' in object.metadata ? object.metadata.name : ''}`;
}

/** Undefined when it works. */
async function failure(work: Promise<unknown>): Promise<ApiError | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** Writes until the store is full; returns the names that were stored and the refusal. */
async function writeUntilFull(prefix: string): Promise<{ names: string[]; refusal: ApiError }> {
  const names: string[] = [];
  for (let i = 0; i < 2000; i++) {
    // Other programs take every free byte, all the time.
    await disk.fill();
    const name = `${prefix}-${i}`;
    const refusal = await failure(api().create(CONFIGMAPS, configMap(name, 60_000)));
    if (refusal !== undefined) return { names, refusal };
    names.push(name);
  }
  throw new Error('the disk never got full');
}

const list = async (): Promise<string[]> =>
  (await api().list<Obj>(CONFIGMAPS)).items.map(({ metadata }) => metadata.name).sort();

beforeAll(async () => {
  disk = await makeLoopDisk('apiserver', { megabytes: 64 });
  root = join(disk.path, 'lab');
  log = join(root, 'apiserver.log');
  await mkdir(root);
  port = await freePort();
  await start();
});
afterAll(async () => {
  await stop('SIGKILL');
  await disk.remove();
});

describe('the API server on a full disk', () => {
  let refusal: ApiError;
  const before: string[] = [];

  it('refuses what needs room with the cause and what to do, and stores nothing of it', async () => {
    for (let i = 0; i < 10; i++) await api().create(CONFIGMAPS, configMap(`early-${i}`, 200_000));
    await api().create(CONFIGMAPS, configMap('held', 50_000, { finalizers: ['example.com/hold'] }));
    await api().create(LEASES, { metadata: { name: 'l' }, spec: { leaseDurationSeconds: 40 } });
    await disk.fill();
    const result = await writeUntilFull('under-load');
    refusal = result.refusal;
    before.push(...(await list()));
    expect(before).toEqual(expect.arrayContaining([...result.names, 'early-0', 'held']));
    expect(before.filter((name) => name.startsWith('under-load'))).toHaveLength(result.names.length);
    expect(refusal.code).toBe(500);
    expect(refusal.message).toContain(`the API server's store is full: no space left on the disk of ${root}/apiserver`);
    expect(refusal.message).toContain('delete objects');
    expect(server?.exitCode).toBeNull();
  });

  it('reads, watches, deletes, renews leases, takes finalizers away and makes objects smaller', async () => {
    const { metadata } = await api().list<Obj>(CONFIGMAPS);
    const events: WatchEvent<Obj>[] = [];
    const ended = new AbortController();
    const query = { resourceVersion: metadata.resourceVersion ?? '' };
    const watching = (async () => {
      for await (const event of api().watch<Obj>(CONFIGMAPS, query, ended.signal)) events.push(event);
    })().catch((error: unknown) => {
      if (!ended.signal.aborted) throw error;
    });
    expect((await api().get<Obj>(`${CONFIGMAPS}/early-3`)).data?.['x']).toHaveLength(200_000);
    for (let i = 0; i < 200; i++) {
      const renewTime = new Date(1_700_000_000_000 + i * 1000).toISOString().replace('Z', '000Z');
      await api().patch(`${LEASES}/l`, { spec: { renewTime } }, 'merge');
    }
    expect((await api().patch<Obj>(`${CONFIGMAPS}/early-1`, { data: { x: 'small' } }, 'merge')).data).toEqual({
      x: 'small',
    });
    await api().delete(`${CONFIGMAPS}/held`);
    await api().patch(`${CONFIGMAPS}/held`, { metadata: { finalizers: null } }, 'merge');
    expect((await failure(api().get(`${CONFIGMAPS}/held`)))?.code).toBe(404);
    await api().delete(`${CONFIGMAPS}/early-2`);
    await expect
      .poll(() => events.map(shown))
      .toEqual(['MODIFIED early-1', 'MODIFIED held', 'DELETED held', 'DELETED early-2']);
    ended.abort();
    await watching;
  });

  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    it(`starts again after ${signal}, with everything that was stored, and deletes`, async () => {
      await writeUntilFull(`before-${signal.toLowerCase()}`);
      const stored = await list();
      await stop(signal);
      // Other programs take whatever it has freed.
      await expect
        .poll(async () => {
          await disk.fill();
          return disk.free();
        })
        .toBeLessThan(4096);
      await start();
      expect(await list()).toEqual(stored);
      for (const name of stored.slice(0, 5)) await api().delete(`${CONFIGMAPS}/${name}`);
      expect(await list()).toEqual(stored.slice(5));
    });
  }

  it('takes objects again without a restart once there is room, and keeps room aside anew', async () => {
    await writeUntilFull('last');
    const pid = server?.pid;
    await disk.empty();
    await api().create(CONFIGMAPS, configMap('after', 500_000));
    expect(server?.pid).toBe(pid);
    expect(server?.exitCode).toBeNull();
    await expect.poll(() => readFile(log, 'utf8')).toContain('there is room again on the disk');
    await disk.fill();
    await writeUntilFull('again');
    for (const name of await list()) await api().delete(`${CONFIGMAPS}/${name}`);
    expect(await list()).toEqual([]);
  });

  it('has everything that holds Secrets or keys for its owner alone', () => {
    const files = ['apiserver/store.db', 'apiserver/store.db-wal', 'kubeconfig', 'pki/sa.key', 'pki/ca.key'];
    for (const file of files) expect([file, statSync(join(root, file)).mode & 0o077]).toEqual([file, 0]);
    expect(statSync(join(root, 'apiserver')).mode & 0o077).toBe(0);
  });
});

describe('the API server that cannot start', () => {
  it('reports on a full disk that there is no room for a first store', async () => {
    const empty = await makeLoopDisk('first', { megabytes: 16 });
    const elsewhere = await mkdtemp(join(tmpdir(), 'nodelet-first-'));
    try {
      await empty.fill();
      const output = join(elsewhere, 'log');
      const file = openSync(output, 'a');
      const child = spawn(NODELET, ['apiserver', '--root', join(empty.path, 'lab'), '--port', '0'], {
        stdio: ['ignore', file, file],
      });
      closeSync(file);
      const [code] = await once(child, 'exit');
      expect(code).toBe(1);
      expect(await readFile(output, 'utf8')).toMatch(/ENOSPC|no space left/i);
    } finally {
      await empty.remove();
      await rm(elsewhere, { recursive: true });
    }
  });
});
