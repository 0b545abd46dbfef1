// Containers that the kernel killed for memory and Docker does not know of: what is decided, and what is read and kept. proc
// and the cgroups are directories of the test.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ContainerState, OomKills } from '../../../dockershim/oom-kills.ts';
import {
  afterEnds,
  cgroupOf,
  containerCgroup,
  type EndedContainer,
  oomKills,
  type PodOomRecord,
  parseOomRecord,
} from '../../../dockershim/translate/oom.ts';
import { removeTree } from '../../../lib/remove-tree.ts';

const POD = '/kubepods.slice/kubepods-podu1.slice';
const RECORD: PodOomRecord = { cgroup: POD, seen: 1, open: ['a', 'b', 'c'], killed: ['z'] };

const end = (id: string, exitCode: number, oomKilled = false): EndedContainer => ({ id, exitCode, oomKilled });

test.each<[why: string, ended: readonly EndedContainer[], kills: number | undefined, killed: string[], seen: number]>([
  ['ended with 137, and a kill is new', [end('a', 137)], 2, ['a'], 2],
  ['ended with 137, and no kill is new', [end('a', 137)], 1, [], 1],
  ['another exit code: the kill was a child’s, or not its own', [end('a', 1)], 2, [], 2],
  ['Docker knows it', [end('a', 137, true)], 3, [], 3],
  ['Docker knows the one, and the other ended at the same time', [end('a', 137, true), end('b', 137)], 2, [], 2],
  ['only the one with 137', [end('a', 0), end('b', 137)], 2, ['b'], 2],
  ['both with 137: nobody can tell', [end('a', 137), end('b', 137)], 2, ['a', 'b'], 2],
  ['the pod’s cgroup is gone', [end('a', 137)], undefined, [], 1],
  ['a count that is behind does not bring old kills back', [end('a', 137)], 0, [], 1],
])('%s', (_why, ended, kills, killed, seen) => {
  const ids = ended.map(({ id }) => id);
  expect(afterEnds(RECORD, ended, kills)).toEqual({
    cgroup: POD,
    seen,
    open: RECORD.open.filter((id) => !ids.includes(id)),
    killed: ['z', ...killed],
  });
});

test('the kernel’s texts', () => {
  expect(oomKills('low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 1\n')).toBe(2);
  expect(oomKills('low 0\n')).toBe(0);
  expect(cgroupOf(`0::${POD}/docker-a.scope\n`)).toBe(`${POD}/docker-a.scope`);
  expect(cgroupOf(`0::${POD}/docker-a.scope (deleted)\n`)).toBeUndefined();
  expect(cgroupOf('5:memory:/kubepods/podu1/a\n')).toBeUndefined();
  expect(containerCgroup(POD, `${POD}/docker-a.scope`)).toBe(`${POD}/docker-a.scope`);
  expect(containerCgroup(POD, `${POD}/docker-a.scope/init.scope`)).toBe(`${POD}/docker-a.scope`);
  expect(containerCgroup(POD, '/')).toBeUndefined();
  expect(containerCgroup(POD, `${POD}2/docker-a.scope`)).toBeUndefined();
});

test('a record is read as it was written, and nothing else is taken for one', () => {
  expect(parseOomRecord(JSON.stringify(RECORD))).toEqual(RECORD);
  for (const text of ['', '{', 'null', '{}', JSON.stringify({ ...RECORD, open: [1] })]) {
    expect(parseOomRecord(text)).toBeUndefined();
  }
});

let directory = '';
const states = new Map<string, ContainerState>();

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nodelet-oom-'));
  states.clear();
  processIn(1, 'pause');
  kills('', 0);
});

afterEach(() => removeTree(directory));

/** A process in one of the pod's cgroups. */
function processIn(pid: number, name: string): void {
  mkdirSync(join(directory, 'proc', String(pid)), { recursive: true });
  writeFileSync(join(directory, 'proc', String(pid), 'cgroup'), `0::${POD}/docker-${name}.scope\n`);
}

/** The kernel's count of the pod ('') or of a container. */
function kills(name: string, count: number): void {
  const cgroup = join(directory, 'cgroup', POD, name === '' ? '' : `docker-${name}.scope`);
  mkdirSync(cgroup, { recursive: true });
  writeFileSync(join(cgroup, 'memory.events'), `oom ${count}\noom_kill ${count}\n`);
}

const STATE: ContainerState = {
  ...{ Status: 'created', Running: false, Paused: false, Restarting: false, OOMKilled: false, Dead: false },
  ...{ Pid: 0, ExitCode: 0, Error: '', StartedAt: '', FinishedAt: '' },
};

const shim = (): OomKills =>
  new OomKills({
    directory: join(directory, 'state'),
    stateOf: async (id) => states.get(id),
    log: () => undefined,
    cgroupRoot: join(directory, 'cgroup'),
    procRoot: join(directory, 'proc'),
  });

async function start(oom: OomKills, id: string, pid: number): Promise<void> {
  states.set(id, STATE);
  await oom.starting('s', id);
  processIn(pid, id);
  kills(id, 0);
  states.set(id, { ...STATE, Status: 'running', Running: true, Pid: pid });
}

/** Ended, its cgroup gone with it. */
function ended(id: string, exitCode: number, OOMKilled = false): void {
  states.set(id, { ...STATE, Status: 'exited', ExitCode: exitCode, OOMKilled });
  rmSync(join(directory, 'cgroup', POD, `docker-${id}.scope`), { recursive: true });
}

test('a container whose cgroup went with it: the pod’s count tells, and an earlier kill of the pod does not count', async () => {
  kills('', 4);
  const oom = shim();
  await oom.sandboxStarted('s', 1);
  await start(oom, 'a', 2);
  await start(oom, 'b', 3);
  ended('b', 137);
  expect(await oom.wasKilled('s', 'b')).toBe(false);
  kills('', 5);
  ended('a', 137);
  expect(await oom.wasKilled('s', 'a')).toBe(true);
  expect(await oom.wasKilled('s', 'b')).toBe(false);
  expect(await oom.wasKilled('other', 'a')).toBe(false);
});

test('a child that was killed in a container which goes on is not counted for another container', async () => {
  const oom = shim();
  await oom.sandboxStarted('s', 1);
  await start(oom, 'a', 2);
  await start(oom, 'b', 3);
  kills('a', 2);
  kills('', 2);
  ended('b', 137);
  expect(await oom.wasKilled('s', 'b')).toBe(false);
  // Docker has seen that, and it is none of the next container's doing.
  ended('a', 137, true);
  await start(oom, 'c', 4);
  ended('c', 137);
  expect(await oom.wasKilled('s', 'c')).toBe(false);
});

test('one that is about to be started has not ended', async () => {
  const oom = shim();
  await oom.sandboxStarted('s', 1);
  await start(oom, 'a', 2);
  states.set('b', STATE);
  await oom.starting('s', 'b');
  ended('a', 1);
  expect(await oom.wasKilled('s', 'a')).toBe(false);
  kills('', 1);
  states.set('b', { ...STATE, Status: 'exited', ExitCode: 137 });
  expect(await oom.wasKilled('s', 'b')).toBe(true);
});

test('a kill is known to the next shim, whether this one has seen the end or not', async () => {
  const first = shim();
  await first.sandboxStarted('s', 1);
  await start(first, 'a', 2);
  kills('', 1);
  ended('a', 137);
  const second = shim();
  expect(await second.wasKilled('s', 'a')).toBe(true);
  rmSync(join(directory, 'cgroup'), { recursive: true });
  const third = shim();
  expect(await third.wasKilled('s', 'a')).toBe(true);
  await third.forgetContainer('s', 'a');
  expect(await third.wasKilled('s', 'a')).toBe(false);
});

test('records go with their sandboxes', async () => {
  const oom = shim();
  await oom.collectGarbage(async () => []);
  await oom.sandboxStarted('s', 1);
  await oom.sandboxStarted('t', 1);
  await oom.sandboxStarted('u', 1);
  writeFileSync(join(directory, 'state', 's.json.tmp-1-1'), '{');
  expect((await readdir(join(directory, 'state'))).toSorted()).toEqual([
    's.json',
    's.json.tmp-1-1',
    't.json',
    'u.json',
  ]);
  await oom.collectGarbage(async () => ['s', 't']);
  expect((await readdir(join(directory, 'state'))).toSorted()).toEqual(['s.json', 't.json']);
  await oom.forgetSandbox('t');
  expect(await readdir(join(directory, 'state'))).toEqual(['s.json']);
});

test('a machine with cgroup v1 has no record', async () => {
  writeFileSync(join(directory, 'proc', '1', 'cgroup'), '5:memory:/kubepods/podu1/pause\n');
  const oom = shim();
  await oom.sandboxStarted('s', 1);
  await start(oom, 'a', 2);
  ended('a', 137);
  expect(await oom.wasKilled('s', 'a')).toBe(false);
  await oom.collectGarbage(async () => []);
});
