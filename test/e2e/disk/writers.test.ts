// Everything that writes small files, on a real file system without a free byte: the old content stays, nothing is left
// beside it, the error names cause and file, and what makes room goes on.

import { randomBytes } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { checkReserve, RESERVE_FILE } from '../../../agent/node/disk-reserve.ts';
import type { ContainerId } from '../../../agent/ports/runtime.ts';
import { PodFiles } from '../../../agent/runtime/files.ts';
import { LogRotation } from '../../../agent/runtime/logs/rotation.ts';
import { type Payload, writePayload } from '../../../agent/volumes/atomic-writer.ts';
import { type StagedNote, writeNote } from '../../../agent/volumes/csi/notes.ts';
import { AttachmentCache, type CachedAttachment } from '../../../cni/cache.ts';
import type { NodeRecord, Publication } from '../../../csi/driver/records.ts';
import { Store } from '../../../csi/driver/store.ts';
import { replaceTextFile, writeFileAtomic } from '../../../lib/atomic.ts';
import { epochMs, systemClock } from '../../../lib/clock.ts';
import { exec } from '../../../lib/exec.ts';
import { createLog } from '../../../lib/log.ts';
import { makePod } from '../../sim/fakes.ts';
import { type LoopDisk, makeLoopDisk } from '../../support/loop-disk.ts';

let disk: LoopDisk;
let directory: string;
let count = 0;

beforeAll(async () => {
  disk = await makeLoopDisk('writers', { megabytes: 16 });
});
afterAll(() => disk?.remove());
beforeEach(() => {
  directory = join(disk.path, `test-${count++}`);
  mkdirSync(directory);
});
afterEach(async () => {
  await disk.empty();
  rmSync(directory, { recursive: true });
});

const file = (name: string): string => join(directory, name);
const NO_ROOM = { code: 'ENOSPC' };

test('a file that is replaced keeps its content, and the error names the file and the reason', async () => {
  await writeFileAtomic(file('state.json'), 'old');
  await disk.fill();
  const failure: unknown = await writeFileAtomic(file('state.json'), 'x'.repeat(100_000)).catch((error) => error);
  expect(failure).toMatchObject(NO_ROOM);
  expect(String(failure)).toMatch(/no space left on device.*state\.json/);
  expect(readdirSync(directory)).toEqual(['state.json']);
  expect(readFileSync(file('state.json'), 'utf8')).toBe('old');
});

test('a record that gets shorter is written, one that gets longer is not', async () => {
  await replaceTextFile(file('record.json'), JSON.stringify({ targets: ['/a', '/b', '/c'] }), 0o600);
  await disk.fill();
  await replaceTextFile(file('record.json'), JSON.stringify({ targets: ['/a'] }), 0o600);
  expect(JSON.parse(readFileSync(file('record.json'), 'utf8'))).toEqual({ targets: ['/a'] });
  const longer = JSON.stringify({ targets: Array.from({ length: 100 }, (_, index) => `/${index}`) });
  await expect(replaceTextFile(file('record.json'), longer)).rejects.toMatchObject(NO_ROOM);
  await expect(replaceTextFile(file('none.json'), '{"targets":[]}')).rejects.toMatchObject(NO_ROOM);
  expect(JSON.parse(readFileSync(file('record.json'), 'utf8'))).toEqual({ targets: ['/a'] });
  expect(readdirSync(directory)).toEqual(['record.json']);
});

test('a projected volume shows its old files, however often the new ones are tried, and the new ones when there is room', async () => {
  const payload = (text: string): Payload =>
    new Map(['a', 'b/c'].map((name) => [name, { data: Buffer.from(text), mode: 0o644 }]));
  await writePayload(directory, payload('old'), { now: epochMs(0) });
  // Room for directories, and not for what is in them.
  await disk.fill(40_000);
  for (let tries = 1; tries < 10; tries++) {
    await expect(writePayload(directory, payload('new'.repeat(9000)), { now: epochMs(tries * 1000) })).rejects.toThrow(
      /no space left on device/,
    );
  }
  expect(readFileSync(file('b/c'), 'utf8')).toBe('old');
  expect(readdirSync(directory).filter((name) => name.startsWith('..1970'))).toHaveLength(1);
  await disk.empty();
  await writePayload(directory, payload('new'), { now: epochMs(60_000) });
  expect(readFileSync(file('a'), 'utf8')).toBe('new');
});

test('attachments and notes of volumes leave no halves', async () => {
  const cache = new AttachmentCache(directory);
  const entry: CachedAttachment = {
    containerId: 'c',
    netns: '/n',
    ifName: 'eth0',
    args: '',
    capabilityArgs: {},
    list: { cniVersion: '1.0.0', name: 'net', plugins: [], disableCheck: false, disableGC: false },
    state: 'adding',
    result: undefined,
    createdAt: epochMs(0),
  };
  const note: StagedNote = { driverName: 'd', volumeHandle: 'v'.repeat(9000) };
  cache.write(entry);
  writeNote(file('vol_data.json'), note);
  const before = readdirSync(directory, { recursive: true }).sort();
  await disk.fill();
  expect(() => cache.write({ ...entry, args: 'x'.repeat(9000), containerId: 'other' })).toThrow(/ENOSPC.*other/);
  expect(() => writeNote(file('vol_data.json'), { ...note, attachmentID: 'a' })).toThrow(/ENOSPC.*vol_data/);
  expect(readdirSync(directory, { recursive: true }).sort()).toEqual(before);
  cache.remove(entry);
  expect(cache.list()).toEqual({ entries: [], broken: [] });
});

test('a hosts file that containers have mounted is never empty', async () => {
  const settings = { rootDir: directory, podLogsDir: file('logs'), containerLogsDir: file('links') };
  const files = new PodFiles({ ...settings, clusterDomain: 'cluster.local', resolvConf: '' });
  const pod = makePod('p');
  const path = files.writeHosts(pod, ['10.0.0.1']) ?? '';
  expect(readFileSync(path, 'utf8')).toContain('10.0.0.1');
  await disk.fill();
  const aliases = Array.from({ length: 500 }, (_, index) => ({
    ip: '10.9.9.9',
    hostnames: [`host-${index}.example.com`],
  }));
  const longer = makePod('p', { hostAliases: aliases });
  expect(() => files.writeHosts(longer, ['10.0.0.2'])).toThrow(/ENOSPC.*etc-hosts/);
  expect(readFileSync(path, 'utf8')).toMatch(/localhost/);
  files.writeHosts(pod, ['10.0.0.2']);
  expect(readFileSync(path, 'utf8')).toContain('10.0.0.2');
  expect(readFileSync(path, 'utf8')).not.toContain('host-1');
});

test('a log is rotated though there is no room to compress the former ones, and the oldest goes in its turn', async () => {
  const names = ['0.log', '0.log.20240101-000000', '0.log.20240101-000001'];
  for (const name of names) writeFileSync(file(name), randomBytes(200_000));
  await disk.fill();
  const reopened: string[] = [];
  const rotation = new LogRotation({
    runtime: {
      listPods: async () => [],
      containerLogPath: () => '',
      reopenContainerLog: async (id) => void reopened.push(id),
    },
    clock: systemClock,
    maxSizeBytes: 1,
    maxFiles: 4,
  });
  await rotation.rotate(file('0.log'), 'c' as ContainerId);
  expect(reopened).toEqual(['c']);
  const left = readdirSync(directory).sort();
  expect(left).toEqual([...names.slice(1), expect.stringMatching(/^0\.log\.2[0-9]{7}-[0-9]{6}$/)]);
  writeFileSync(file('0.log'), '');
  await rotation.rotate(file('0.log'), 'c' as ContainerId);
  expect(readdirSync(directory)).not.toContain('0.log.20240101-000000');
});

test('a log on the full disk loses lines and nothing else, and reports how many', async () => {
  const descriptor = openSync(file('agent.log'), 'a');
  const log = createLog('agent', { text: false, write: (bytes) => writeSync(descriptor, bytes) });
  log('info', 'before');
  await disk.fill();
  for (let line = 0; line < 5000; line++) log('info', `line ${line} of many`);
  await disk.empty();
  log('info', 'after');
  closeSync(descriptor);
  const lines = readFileSync(file('agent.log'), 'utf8').split('\n').filter(Boolean);
  const parsed = lines.flatMap((line) => {
    try {
      return [JSON.parse(line) as { msg: string; lines?: number; error?: string }];
    } catch {
      // The one that the last bytes of the disk were for.
      return [];
    }
  });
  expect(lines.length - parsed.length).toBeLessThanOrEqual(1);
  expect(parsed[0]?.msg).toBe('before');
  expect(parsed.at(-1)?.msg).toBe('after');
  expect(parsed.at(-2)).toMatchObject({ msg: 'lines of this log were lost', error: 'ENOSPC' });
  expect(parsed.at(-2)?.lines).toBeGreaterThan(4000);
});

test('the CSI driver removes the record of one publication of two, and then the last', async () => {
  const store = await Store.open(directory);
  const publication = (target: string): Publication => ({
    target,
    capability: { type: 'block', mode: 'SINGLE_NODE_WRITER' },
    readonly: false,
    done: true,
  });
  const record: NodeRecord = { volumeId: 'v', publications: [publication('/a'), publication('/b')] };
  await store.putOnNode(record);
  await disk.fill();
  await store.putOnNode({ ...record, publications: [publication('/a')] });
  expect((await Store.open(directory)).onNode('v')?.publications).toEqual([publication('/a')]);
  await store.putOnNode({ ...record, publications: [] });
  expect((await Store.open(directory)).onNode('v')).toBeUndefined();
});

test('the disk reserve is freed on a full disk, and reserved again when there is space', async () => {
  const logs: string[] = [];
  const look = () => checkReserve({ directory, exec, log: (_level, message) => void logs.push(message) });
  const before = await disk.free();
  await look();
  expect(readdirSync(directory)).toEqual([RESERVE_FILE]);
  const taken = before - (await disk.free());
  expect(taken).toBeGreaterThan(100_000);
  await disk.fill();
  expect(() => writeFileSync(file('status'), 'x')).toThrow(/ENOSPC/);
  rmSync(file('status'), { force: true });
  await look();
  writeFileSync(file('status'), 'x');
  expect(await disk.free()).toBeGreaterThan(taken / 2);
  await look();
  expect(readdirSync(directory)).toEqual(['status']);
  expect(logs).toHaveLength(1);
  await disk.empty();
  await look();
  expect(readdirSync(directory).sort()).toEqual([RESERVE_FILE, 'status']);
});
