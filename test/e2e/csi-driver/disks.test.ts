// The loop-device driver on disks of several kinds: one that shares blocks between files, one that becomes full. And its registration
// with a kubelet.

import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { connectCsi } from '../../../csi/client.ts';
import { listLoopDevices } from '../../../csi/driver/loop-devices.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { type LoopDisk, makeLoopDisk } from '../../support/loop-disk.ts';
import { CAPABILITY, MiB, TestDriver, TestVolume } from './driver-process.ts';

const refusal = (code: string, words: RegExp) => ({ code, message: expect.stringMatching(words) });

describe('on a disk that can share blocks between files', () => {
  test('a snapshot and a volume made from it take none for what is in them', async () => {
    const driver = await TestDriver.startOn(async (root) => {
      await execOk('truncate', ['-s', '1G', join(root, 'disk')]);
      await execOk('mkfs.xfs', ['-q', '-m', 'reflink=1', join(root, 'disk')]);
      await mkdir(join(root, 'state'));
      await execOk('mount', ['-o', 'loop', join(root, 'disk'), join(root, 'state')]);
    });
    try {
      const volume = new TestVolume(driver, CAPABILITY, 256 * MiB);
      await volume.create();
      await volume.stage();
      await volume.publish();
      await writeFile(join(volume.target, 'noise'), randomBytes(64 * MiB), { flush: true });
      const used = async (): Promise<number> => {
        await execOk('sync', ['-f', driver.stateDir]);
        const { blocks, bfree, bsize } = await statfs(driver.stateDir);
        return (blocks - bfree) * bsize;
      };
      const before = await used();
      expect(before).toBeGreaterThan(64 * MiB);
      const { controller } = driver.client;
      const { snapshot } = await controller.CreateSnapshot({ name: 'shared', source_volume_id: volume.id });
      const snapshot_id = snapshot?.snapshot_id ?? '';
      const request = {
        name: 'from-shared',
        volume_capabilities: [CAPABILITY],
        volume_content_source: { snapshot: { snapshot_id } },
      };
      const { volume: copy } = await controller.CreateVolume(request);
      expect((await used()) - before).toBeLessThan(16 * MiB);
      await controller.DeleteVolume({ volume_id: copy?.volume_id ?? '' });
      await controller.DeleteSnapshot({ snapshot_id });
      await volume.down();
    } finally {
      await driver.end('SIGTERM');
      const retained = async () =>
        (await listLoopDevices()).filter(({ image }) => image.startsWith(`${driver.stateDir}/`));
      await expect.poll(retained).toEqual([]);
      await execOk('umount', [driver.stateDir]);
      await driver.remove();
    }
  });
});

describe('on a disk that becomes full', () => {
  const READ_ONLY = /read-only after an error/;
  const FULL = { abnormal: true, message: expect.stringMatching(/disk that holds the volumes is full/) };
  const NORMAL = { abnormal: false, message: expect.any(String) };
  let disk: LoopDisk;
  let driver: TestDriver;

  const startOn = async (megabytes: number): Promise<void> => {
    disk = await makeLoopDisk('csi', { megabytes });
    driver = await TestDriver.startOn(async (root) => {
      await mkdir(join(root, 'state'));
      await execOk('mount', ['--bind', disk.path, join(root, 'state')]);
    });
  };
  afterEach(async () => {
    await driver?.end('SIGTERM');
    const retained = async () =>
      (await listLoopDevices()).filter(({ image }) => image.startsWith(`${driver.stateDir}/`));
    try {
      await expect.poll(retained).toEqual([]);
    } finally {
      await execOk('umount', ['--lazy', driver.stateDir]);
      await driver.remove();
      await disk.remove();
    }
  });

  const filler = () => join(driver.stateDir, 'filler');
  const fillUp = async (): Promise<void> => {
    await execOk('fallocate', ['--length', String((await disk.free()) - MiB / 2), filler()]);
  };
  const up = async (volume: TestVolume): Promise<void> => {
    await volume.stage();
    await volume.publish();
  };
  const look = (volume: TestVolume) =>
    driver.client.node.NodeGetVolumeStats({ volume_id: volume.id, volume_path: volume.target });
  const write = (volume: TestVolume, name: string, bytes: Buffer) =>
    writeFile(join(volume.target, name), bytes, { flush: true });
  /** Deletes volumes and whatever of them is staged or published. */
  const takeDown = async (...volumes: TestVolume[]): Promise<void> => {
    for (const volume of volumes) await volume.down();
  };

  test('with more capacity than the disk has, a full disk makes the volume abnormal, and an ext4 is repaired when it is staged again', async () => {
    await startOn(128);
    const { controller } = driver.client;
    const [used, waiting, late] = [1, 2, 3].map(() => new TestVolume(driver, CAPABILITY, 96 * MiB));
    if (used === undefined || waiting === undefined || late === undefined) throw new Error('there are three');
    await used.create();
    await up(used);
    const kept = randomBytes(4 * MiB);
    await write(used, 'kept', kept);
    await waiting.create();
    const capacity = await controller.GetCapacity({});
    // What is free, although two volumes together have more than the disk.
    for (const bytes of [capacity.available_capacity, capacity.maximum_volume_size?.value]) {
      expect(Number(bytes)).toBeGreaterThan(96 * MiB);
      expect(Number(bytes)).toBeLessThan(128 * MiB);
    }
    expect((await look(used)).volume_condition).toEqual(NORMAL);

    await fillUp();
    const stats = await look(used);
    expect(stats.volume_condition).toEqual(FULL);
    expect(stats.usage).toHaveLength(2);
    expect((await controller.ControllerGetVolume({ volume_id: used.id })).status?.volume_condition).toEqual(FULL);
    await expect(late.create()).rejects.toMatchObject(refusal('RESOURCE_EXHAUSTED', /are free/));
    await expect(waiting.stage()).rejects.toMatchObject(refusal('RESOURCE_EXHAUSTED', /is full/));
    await expect(write(used, 'new', randomBytes(16 * MiB))).rejects.toThrow(/EIO|ENOSPC/);
    // New directories need blocks of the filesystem's own: when those cannot be written, the kernel closes an ext4.
    for (let made = 0; (await look(used)).volume_condition?.message.match(READ_ONLY) === null; made++) {
      expect(made).toBeLessThan(50);
      await exec('sh', ['-c', `for i in $(seq 100); do mkdir -p $0/${made}/$i/a; done; sync -f $0`, used.target]);
    }
    expect((await readFile(join(used.target, 'kept'))).equals(kept)).toBe(true);

    await rm(filler());
    expect((await look(used)).volume_condition?.message).toMatch(READ_ONLY);
    await used.unpublish();
    await used.unstage();
    await up(used);
    expect((await look(used)).volume_condition).toEqual(NORMAL);
    const device = (await driver.loops()).find((loop) => loop.image.includes(used.id))?.device ?? '';
    expect(await execOk('dumpe2fs', ['-h', device])).toMatch(/^Filesystem state:\s+clean$/m);
    expect((await readFile(join(used.target, 'kept'))).equals(kept)).toBe(true);
    await write(used, 'after', randomBytes(MiB));
    await up(waiting);
    await write(waiting, 'after', randomBytes(MiB));
    await takeDown(used, waiting);
  });

  test('an xfs volume is written to again as soon as there is room, and has what was written before', async () => {
    await startOn(400);
    const volume = new TestVolume(driver, { ...CAPABILITY, mount: { fs_type: 'xfs' } }, 304 * MiB);
    await volume.create();
    await up(volume);
    const kept = randomBytes(4 * MiB);
    await write(volume, 'kept', kept);
    await fillUp();
    expect((await look(volume)).volume_condition).toEqual(FULL);
    await expect(write(volume, 'new', randomBytes(16 * MiB))).rejects.toThrow(/EIO|ENOSPC/);
    await rm(filler());
    expect((await look(volume)).volume_condition).toEqual(NORMAL);
    await write(volume, 'after', randomBytes(MiB));
    expect((await readFile(join(volume.target, 'kept'))).equals(kept)).toBe(true);
    await takeDown(volume);
  });
});

describe('registration', () => {
  test('reports name, socket and version to the kubelet, receives the registration status, and ends with the driver', async () => {
    const { credentials } = await import('@grpc/grpc-js');
    const { loadProto } = await import('../../../proto/load.ts');
    const { unaryCaller } = await import('../../../proto/unary.ts');
    const { Tracer } = await import('../../../lib/trace.ts');
    const root = `/tmp/nodelet-csi-reg-${process.pid}`;
    await mkdir(root);
    const driver = await TestDriver.start('--registration-dir', join(root, 'plugins_registry'));
    const path = join(root, 'plugins_registry', 'loop.csi.nodelet-reg.sock');
    try {
      const { Registration } = loadProto('plugin-registration').pluginregistration;
      const client = new Registration(`unix:${path}`, credentials.createInsecure());
      const call = unaryCaller(new Tracer(), 'csi');
      const info = await call(client, 'GetInfo', {});
      expect(info).toEqual({
        type: 'CSIPlugin',
        name: 'loop.csi.nodelet',
        endpoint: driver.socket,
        supported_versions: ['1.0.0'],
      });
      await call(client, 'NotifyRegistrationStatus', { plugin_registered: false, error: 'not today' });
      client.close();
      const calls = await driver.calls();
      expect(calls.at(-1)).toMatchObject({ method: 'NotifyRegistrationStatus', request: { error: 'not today' } });
      const csi = connectCsi(`unix://${info.endpoint}`);
      expect((await csi.identity.GetPluginInfo({})).name).toBe('loop.csi.nodelet');
      csi.close();
      expect(await driver.end('SIGTERM')).toBe(0);
      expect(existsSync(path)).toBe(false);
      expect(existsSync(driver.socket)).toBe(false);
    } finally {
      await driver.remove();
      await execOk('rm', ['-rf', root]);
    }
  });
});
