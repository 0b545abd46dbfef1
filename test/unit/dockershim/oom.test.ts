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
  type PodKills,
  type PodOomRecord,
  parseOomRecord,
} from '../../../dockershim/translate/oom.ts';
import { removeTree } from '../../../lib/remove-tree.ts';

const POD = '/kubepods.slice/kubepods-podu1.slice';
const RECORD: PodOomRecord = { cgroup: POD, total: 4, ofEnded: 1, open: ['a', 'b', 'c'], killed: ['z'] };

type Ends = readonly [id: string, exitCode: number, options?: Partial<EndedContainer>][];

test.each<[why: string, ended: Ends, kills: PodKills | undefined, killed: string[], after: PodKills]>([
  ['ended with 137, and a kill is new', [['a', 137]], { total: 5, ofEnded: 2 }, ['a'], { total: 5, ofEnded: 2 }],
  ['ended with 137, and no kill is new', [['a', 137]], { total: 4, ofEnded: 1 }, [], { total: 4, ofEnded: 1 }],
  ['the new kill was in a container that runs', [['a', 137]], { total: 5, ofEnded: 1 }, [], { total: 5, ofEnded: 1 }],
  ['another exit code: a child’s end, not its own', [['a', 1]], { total: 5, ofEnded: 2 }, [], { total: 5, ofEnded: 2 }],
  ['Docker knows', [['a', 137, { oomKilled: true }]], { total: 6, ofEnded: 3 }, [], { total: 6, ofEnded: 3 }],
  [
    'Docker knows of the one, and the other ended at the same time',
    [
      ['a', 137, { oomKilled: true }],
      ['b', 137],
    ],
    { total: 5, ofEnded: 2 },
    [],
    { total: 5, ofEnded: 2 },
  ],
  [
    'only the one with 137',
    [
      ['a', 0],
      ['b', 137],
    ],
    { total: 5, ofEnded: 2 },
    ['b'],
    { total: 5, ofEnded: 2 },
  ],
  [
    'both with 137: nobody can tell',
    [
      ['a', 137],
      ['b', 137],
    ],
    { total: 5, ofEnded: 2 },
    ['a', 'b'],
    { total: 5, ofEnded: 2 },
  ],
  [
    'both with 137, and the end of one was reported before the kill',
    [
      ['a', 137, { totalAtEnd: 4 }],
      ['b', 137, { totalAtEnd: 5 }],
    ],
    { total: 5, ofEnded: 2 },
    ['b'],
    { total: 5, ofEnded: 2 },
  ],
  ['the pod’s cgroup is gone', [['a', 137]], undefined, [], { total: 4, ofEnded: 1 }],
  ['counts that are behind', [['a', 137]], { total: 3, ofEnded: 0 }, [], { total: 4, ofEnded: 1 }],
])('%s', (_why, ends, kills, killed, after) => {
  const ended = ends.map(([id, exitCode, options]) => ({
    ...{ id, exitCode, oomKilled: false, totalAtEnd: undefined },
    ...options,
  }));
  const ids = ended.map(({ id }) => id);
  expect(afterEnds(RECORD, ended, kills)).toEqual({
    ...{ cgroup: POD, ...after },
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

test('two end with 137 between two looks: the count when the end was reported tells which of them was killed', async () => {
  const oom = shim();
  await oom.sandboxStarted('s', 1);
  await start(oom, 'a', 2);
  await start(oom, 'b', 3);
  ended('a', 137);
  oom.ended('s', 'a');
  kills('', 1);
  ended('b', 137);
  oom.ended('s', 'b');
  oom.ended('other', 'b');
  expect(await oom.wasKilled('s', 'b')).toBe(true);
  expect(await oom.wasKilled('s', 'a')).toBe(false);
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
