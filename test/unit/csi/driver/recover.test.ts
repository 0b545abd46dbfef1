import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Mount } from '../../../../csi/driver/mounts.ts';
import type { NodeRecord, VolumeRecord } from '../../../../csi/driver/records.ts';
import { leftoverLoops, reconcile } from '../../../../csi/driver/recover.ts';
import { Store } from '../../../../csi/driver/store.ts';
import { parseMountInfo } from '../../../../lib/mountinfo.ts';

const capability = { type: 'mount', mode: 'SINGLE_NODE_WRITER', fsType: 'ext4', flags: [], group: '' } as const;
const loop = (device: string, image = '/state/volumes/v/data.img', readonly = false) => ({
  device,
  image,
  readonly,
  deleted: false,
  autoclear: false,
});
const mount = (path: string, source = '/dev/loop1'): Mount =>
  parseMountInfo(`43 27 7:1 / ${path} rw - ext4 ${source} rw`)[0] ?? expect.fail('no mount');
const record: NodeRecord = {
  volumeId: 'v',
  staging: { path: '/s', capability, readonly: false, done: true },
  publications: [{ target: '/t', capability, readonly: false, done: true }],
};

describe('a record after a restart', () => {
  it('stands when everything is mounted', () => {
    const reality = { mounts: [mount('/s'), mount('/t')], loops: [loop('/dev/loop1')], exists: () => true };
    expect(reconcile(record, reality)).toEqual(record);
  });
  it('is not done where the mount is gone and its place is not', () => {
    const now = reconcile(record, { mounts: [mount('/s')], loops: [loop('/dev/loop1')], exists: () => true });
    expect([now.staging?.done, now.publications[0]?.done]).toEqual([true, false]);
  });
  it('is not done where something else is mounted', () => {
    const mounts = [mount('/s', '/dev/loop7'), mount('/t')];
    const now = reconcile(record, { mounts, loops: [loop('/dev/loop1')], exists: () => true });
    expect([now.staging?.done, now.publications[0]?.done]).toEqual([false, true]);
  });
  it('is forgotten where neither mount nor place is left', () => {
    expect(reconcile(record, { mounts: [], loops: [], exists: () => false })).toEqual({
      volumeId: 'v',
      publications: [],
    });
  });
  it('never becomes done by itself, and is not frozen any more', () => {
    const half: NodeRecord = {
      ...record,
      staging: { path: '/s', capability, readonly: false, done: false },
      frozen: true,
    };
    const now = reconcile(half, {
      mounts: [mount('/s'), mount('/t')],
      loops: [loop('/dev/loop1')],
      exists: () => true,
    });
    expect([now.staging?.done, now.frozen]).toEqual([false, undefined]);
  });
  it('of a block volume stands with a device of its kind', () => {
    const block = { type: 'block', mode: 'SINGLE_NODE_WRITER' } as const;
    const staged: NodeRecord = {
      volumeId: 'v',
      staging: { path: '/s', capability: block, readonly: true, done: true },
      publications: [],
    };
    const with_ = (readonly: boolean) =>
      reconcile(staged, { mounts: [], loops: [loop('/dev/loop1', '/i', readonly)], exists: () => true }).staging?.done;
    expect([with_(true), with_(false)]).toEqual([true, false]);
  });
});

it('loop devices that nothing speaks of are released, mounted and foreign ones are not', () => {
  const image = (id: string) => `/state/volumes/${id}/data.img`;
  const loops = [
    loop('/dev/loop0', image('used')),
    loop('/dev/loop1', image('mounted')),
    loop('/dev/loop2', image('left')),
    loop('/dev/loop3', '/other'),
  ];
  const found = leftoverLoops(loops, [mount('/m', '/dev/loop1')], {
    directory: '/state',
    used: new Set([image('used')]),
  });
  expect(found.map((each) => each.device)).toEqual(['/dev/loop2']);
});

describe('the store', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'nodelet-store-'));
  });
  afterEach(() => rm(directory, { recursive: true }));
  const volume: VolumeRecord = {
    id: 'vol-1',
    name: 'one',
    capacityBytes: 1,
    capabilities: [capability],
    allocation: 'sparse',
  };

  it('has after a restart what was put into it, and not what was removed', async () => {
    const first = await Store.open(directory);
    await first.putVolume(volume);
    await first.putVolume({ ...volume, id: 'vol-2' });
    await first.putOnNode(record);
    await first.removeVolume('vol-2');
    const second = await Store.open(directory);
    expect(second.volumes()).toEqual([volume]);
    expect(second.onNode('v')).toEqual(record);
    await second.putOnNode({ volumeId: 'v', publications: [] });
    expect((await Store.open(directory)).allOnNode()).toEqual([]);
  });
  it('removes what an interrupted creation left', async () => {
    await mkdir(join(directory, 'volumes', 'half'), { recursive: true });
    await writeFile(join(directory, 'volumes', 'half', 'data.img.new'), 'x');
    await mkdir(join(directory, 'node'), { recursive: true });
    await writeFile(join(directory, 'node', 'v.json.tmp-1-1'), '{');
    const store = await Store.open(directory);
    expect(store.volumes()).toEqual([]);
    expect([await readdir(join(directory, 'volumes')), await readdir(join(directory, 'node'))]).toEqual([[], []]);
  });
  it('does not start on a damaged record, and names it', async () => {
    await mkdir(join(directory, 'node'), { recursive: true });
    await writeFile(join(directory, 'node', 'v.json'), '{"volumeId":');
    await expect(Store.open(directory)).rejects.toThrow(/node\/v\.json is damaged/);
  });
});
