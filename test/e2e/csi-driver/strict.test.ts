// What the specification leaves to a plugin, and this driver does not let pass: the wrong order, calls at the same time,
// arguments that do not belong together. And what it does beyond the Controller's volumes: inline volumes, limits, conditions.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CsiError } from '../../../csi/client.ts';
import { listLoopDevices } from '../../../csi/driver/loop-devices.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { CAPABILITY, MiB, TestDriver, TestVolume } from './driver-process.ts';

const refusal = (code: string, words: RegExp) => ({ code, message: expect.stringMatching(words) });
const NODELET = new URL('../../../bin/nodelet', import.meta.url).pathname;

/** "OK", or the code that the call failed with. */
const outcome = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'OK',
    (error) => error.code,
  );

/** Repeats a call as a CO does, while another one for its volume is under way. */
async function untilItsTurn(call: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof CsiError) || error.code !== 'ABORTED') throw error;
    }
  }
}

describe('the loop-device driver', () => {
  let driver: TestDriver;
  beforeAll(async () => {
    driver = await TestDriver.start(
      '--pool-size',
      '8Gi',
      '--require-secret',
      'ControllerExpandVolume:token=open sesame',
    );
  });
  afterAll(async () => {
    await driver?.remove();
  });

  /** A volume that is published; its test takes it down. */
  const published = async (): Promise<TestVolume> => {
    const volume = new TestVolume(driver);
    await volume.create();
    await volume.stage();
    await volume.publish();
    return volume;
  };

  test('refuses to unstage what is published, to delete what is staged, and to stage twice', async () => {
    const volume = await published();
    await expect(volume.unstage()).rejects.toMatchObject(refusal('FAILED_PRECONDITION', /still published/));
    await expect(volume.delete()).rejects.toMatchObject(refusal('FAILED_PRECONDITION', /in use/));
    const elsewhere = { ...volume.common, staging_target_path: await driver.directory('elsewhere') };
    const { node } = driver.client;
    await expect(node.NodeStageVolume(elsewhere)).rejects.toMatchObject(refusal('FAILED_PRECONDITION', /is staged at/));
    const request = { ...elsewhere, target_path: join(driver.root, 'second') };
    await expect(node.NodePublishVolume(request)).rejects.toMatchObject(refusal('FAILED_PRECONDITION', /is staged at/));
    await volume.down();
  });

  test('answers ABORTED to a second call for a volume, and returns its condition during the first', async () => {
    const volume = await published();
    await driver.faults({ method: 'NodeUnpublishVolume', when: 1, action: 'hold' });
    // Whichever of the two comes first: the other is ABORTED.
    const first = untilItsTurn(() => volume.unpublish());
    await expect.poll(() => outcome(volume.publish())).toBe('ABORTED');
    await expect(volume.unstage()).rejects.toMatchObject(refusal('ABORTED', /NodeUnpublishVolume has not ended/));
    await expect(volume.delete()).rejects.toMatchObject(refusal('ABORTED', /pending/));
    await driver.client.node.NodeGetVolumeStats({ volume_id: volume.id, volume_path: volume.staging });
    await driver.faults();
    await first;
    await volume.down();
  });

  test('refuses parameters, contexts and flags that it does not know', async () => {
    const { controller, node } = driver.client;
    const request = { name: 'unknown', volume_capabilities: [CAPABILITY] };
    const create = (parameters: Record<string, string>) => controller.CreateVolume({ ...request, parameters });
    await expect(create({ alocation: 'full' })).rejects.toMatchObject(refusal('INVALID_ARGUMENT', /alocation/));
    await expect(create({ allocation: 'some' })).rejects.toMatchObject(refusal('INVALID_ARGUMENT', /sparse/));
    const volume = new TestVolume(driver);
    await volume.create();
    const bare = node.NodeStageVolume({ ...volume.common, volume_context: {} });
    await expect(bare).rejects.toMatchObject(refusal('INVALID_ARGUMENT', /volume_context lacks/));
    const attached = node.NodeStageVolume({ ...volume.common, publish_context: { a: 'b' } });
    await expect(attached).rejects.toMatchObject(refusal('INVALID_ARGUMENT', /publish_context/));
    for (const flag of ['bind', 'remount', 'a,b', 'offset=4096']) {
      const volume_capability = { ...CAPABILITY, mount: { fs_type: 'ext4', mount_flags: [flag] } };
      const call = node.NodeStageVolume({ ...volume.common, volume_capability });
      await expect(call).rejects.toMatchObject(refusal('INVALID_ARGUMENT', /mount_flags/));
    }
    const dotted = node.NodeStageVolume({ ...volume.common, staging_target_path: `${driver.root}/../x` });
    await expect(dotted).rejects.toMatchObject(refusal('INVALID_ARGUMENT', /shortest form/));
    await volume.delete();
  });

  test('takes back what a call that failed had done, and names no mount flag', async () => {
    const capability = { ...CAPABILITY, mount: { fs_type: 'ext4', mount_flags: ['password=hunter2'] } };
    const volume = new TestVolume(driver, capability);
    await volume.create();
    const failure = await volume.stage().then(
      () => undefined,
      (error) => error,
    );
    expect(failure).toMatchObject({ code: 'INTERNAL' });
    expect(failure.message).not.toContain('hunter2');
    expect(await readFile(join(driver.root, 'calls'), 'utf8')).not.toContain('hunter2');
    expect(await driver.loops()).toEqual([]);
    await volume.delete();
  });

  test('leaves foreign mounts alone', async () => {
    const volume = await published();
    const target = await driver.directory('foreign');
    await execOk('mount', ['-t', 'tmpfs', 'foreign', target]);
    try {
      await expect(volume.publish(target)).rejects.toMatchObject(refusal('FAILED_PRECONDITION', /something else/));
      await volume.unpublish(target);
      expect((await driver.mounts()).some((mount) => mount.path === target)).toBe(true);
    } finally {
      await execOk('umount', [target]);
    }
    await volume.down();
  });

  test('recognises its mounts when the paths of its requests lead through a link', async () => {
    const link = join(driver.root, 'way');
    await symlink('.', link);
    const volume = new TestVolume(driver, CAPABILITY, 64 * MiB, link);
    await volume.create();
    for (let times = 0; times < 2; times++) {
      await volume.stage();
      await volume.publish();
    }
    const own = async () => (await driver.mounts()).filter((mount) => mount.path.includes(`/${volume.name}/`));
    expect((await own()).map((mount) => mount.path.slice(driver.root.length)).toSorted()).toEqual([
      `/${volume.name}/staging`,
      `/${volume.name}/target`,
    ]);
    await writeFile(join(volume.target, 'file'), 'kept');
    await volume.unpublish();
    expect(existsSync(volume.target)).toBe(false);
    expect(await readFile(join(volume.staging, 'file'), 'utf8')).toBe('kept');
    await volume.down();
    expect(await own()).toEqual([]);
  });

  test('takes all the disk at once for a volume with allocation full, and little for a sparse one', async () => {
    const { controller } = driver.client;
    const taken = async (allocation: string): Promise<number> => {
      const request = {
        name: allocation,
        volume_capabilities: [CAPABILITY],
        capacity_range: { required_bytes: 32 * MiB },
      };
      const { volume } = await controller.CreateVolume({ ...request, parameters: { allocation } });
      const { blocks } = await stat(join(driver.stateDir, 'volumes', volume?.volume_id ?? '', 'data.img'));
      await controller.DeleteVolume({ volume_id: volume?.volume_id ?? '' });
      return blocks * 512;
    };
    expect(await taken('sparse')).toBeLessThan(MiB);
    expect(await taken('full')).toBeGreaterThanOrEqual(32 * MiB);
  });

  test('leaves a volume with allocation full its blocks when it is formatted, used and emptied', async () => {
    const { controller, node } = driver.client;
    for (const fs_type of ['ext4', 'xfs']) {
      const bytes = fs_type === 'xfs' ? 320 * MiB : 32 * MiB;
      const volume_capability = { ...CAPABILITY, mount: { fs_type, mount_flags: [] } };
      const { volume } = await controller.CreateVolume({
        name: `full-${fs_type}`,
        volume_capabilities: [volume_capability],
        capacity_range: { required_bytes: bytes },
        parameters: { allocation: 'full' },
      });
      const volume_id = volume?.volume_id ?? '';
      const staging_target_path = await driver.directory(`full-${fs_type}`);
      const { volume_context = {} } = volume ?? {};
      await node.NodeStageVolume({ volume_id, staging_target_path, volume_capability, volume_context });
      await execOk('dd', ['if=/dev/zero', `of=${staging_target_path}/file`, 'bs=1M', 'count=8', 'conv=fsync']);
      await rm(`${staging_target_path}/file`);
      await execOk('sync', ['--file-system', staging_target_path]);
      const { blocks } = await stat(join(driver.stateDir, 'volumes', volume_id, 'data.img'));
      expect(blocks * 512, fs_type).toBeGreaterThanOrEqual(bytes);
      await node.NodeUnstageVolume({ volume_id, staging_target_path });
      await controller.DeleteVolume({ volume_id });
    }
  });

  test('allocates to volumes and snapshots together no more than its pool', async () => {
    const { controller } = driver.client;
    const room = async () => Number((await controller.GetCapacity({})).available_capacity);
    const before = await room();
    expect(before).toBe(8 * 1024 * MiB);
    const volume = new TestVolume(driver, CAPABILITY, 6 * 1024 * MiB);
    await volume.create();
    expect(await room()).toBe(2 * 1024 * MiB);
    const second = new TestVolume(driver, CAPABILITY, 3 * 1024 * MiB);
    await expect(second.create()).rejects.toMatchObject(refusal('RESOURCE_EXHAUSTED', /are left in the pool/));
    const copy = controller.CreateSnapshot({ name: 'second', source_volume_id: volume.id });
    await expect(copy).rejects.toMatchObject(refusal('RESOURCE_EXHAUSTED', /are left in the pool/));
    await volume.delete();
    expect(await room()).toBe(before);
  });

  test('requires the secrets that it was configured to require', async () => {
    const { controller } = driver.client;
    const volume = new TestVolume(driver);
    await volume.create();
    const request = { volume_id: volume.id, capacity_range: { required_bytes: 96 * MiB } };
    const bare = controller.ControllerExpandVolume(request);
    await expect(bare).rejects.toMatchObject(refusal('UNAUTHENTICATED', /needs the secret/));
    const wrong = controller.ControllerExpandVolume({ ...request, secrets: { token: 'open wheat' } });
    await expect(wrong).rejects.toMatchObject(refusal('UNAUTHENTICATED', /not the right one/));
    await controller.ControllerExpandVolume({ ...request, secrets: { token: 'open sesame' } });
    expect(await readFile(join(driver.root, 'calls'), 'utf8')).not.toContain('sesame');
    const calls = await driver.calls();
    expect(calls.findLast((call) => call.method === 'ControllerExpandVolume')?.request['secrets']).toEqual({
      token: '***',
    });
    await volume.delete();
  });

  test('reports when a volume has lost its image, and when it is not mounted any more', async () => {
    const volume = await published();
    const look = async (path: string) => {
      const { volume_condition } = await driver.client.node.NodeGetVolumeStats({
        volume_id: volume.id,
        volume_path: path,
      });
      return volume_condition;
    };
    const image = join(driver.stateDir, 'volumes', volume.id, 'data.img');
    await rename(image, `${image}.away`);
    expect(await look(volume.target)).toEqual({ abnormal: true, message: 'the image file is gone' });
    const { status } = await driver.client.controller.ControllerGetVolume({ volume_id: volume.id });
    expect(status?.volume_condition?.abnormal).toBe(true);
    await rename(`${image}.away`, image);
    expect((await look(volume.target))?.abnormal).toBe(false);
    await execOk('umount', [volume.target]);
    expect(await look(volume.target)).toMatchObject({
      abnormal: true,
      message: expect.stringContaining('nothing is mounted'),
    });
    await volume.publish();
    expect((await look(volume.target))?.abnormal).toBe(false);
    await volume.down();
  });

  describe('with an inline volume', () => {
    const id = `csi-${'a'.repeat(64)}`;
    const request = (more: Record<string, unknown> = {}, context: Record<string, string> = {}) => ({
      volume_id: id,
      target_path: join(driver.root, 'inline'),
      volume_capability: CAPABILITY,
      volume_context: { 'csi.storage.k8s.io/ephemeral': 'true', ...context },
      ...more,
    });
    const publish = (...given: Parameters<typeof request>) => driver.client.node.NodePublishVolume(request(...given));
    const unpublish = () =>
      driver.client.node.NodeUnpublishVolume({ volume_id: id, target_path: join(driver.root, 'inline') });

    test('makes it of the requested size, shows it to no controller, and removes it', async () => {
      await publish({}, { size: '48Mi', 'csi.storage.k8s.io/pod.name': 'web' });
      await publish({}, { size: '48Mi', 'csi.storage.k8s.io/pod.name': 'web' });
      const target = join(driver.root, 'inline');
      await writeFile(join(target, 'a'), 'b');
      const { usage } = await driver.client.node.NodeGetVolumeStats({ volume_id: id, volume_path: target });
      expect(Number(usage[0]?.total)).toBeGreaterThan(36 * MiB);
      expect(Number(usage[0]?.total)).toBeLessThan(48 * MiB);
      expect((await driver.client.controller.ListVolumes({})).entries).toEqual([]);
      await unpublish();
      await unpublish();
      expect(existsSync(target)).toBe(false);
      expect(existsSync(join(driver.stateDir, 'volumes', id))).toBe(false);
      expect(await driver.loops()).toEqual([]);
      await publish();
      expect(existsSync(join(target, 'a'))).toBe(false);
      await unpublish();
    });

    test('does not allow writes to a read-only one', async () => {
      await publish({ readonly: true });
      await expect(writeFile(join(driver.root, 'inline', 'a'), 'b')).rejects.toMatchObject({ code: 'EROFS' });
      await unpublish();
    });

    test.each([
      ['an attribute that it does not know', {}, { colour: 'red' }, /colour/],
      ['a size that is none', {}, { size: 'large' }, /quantity/],
      ['a size of nothing', {}, { size: '0' }, /above zero/],
      [
        'a block device',
        { volume_capability: { access_mode: { mode: 'SINGLE_NODE_WRITER' }, block: {} } },
        {},
        /filesystem/,
      ],
      ['an id that is a path', { volume_id: '../../etc' }, {}, /characters/],
    ])('refuses %s', async (_what, more, context, words) => {
      await expect(publish(more, context)).rejects.toMatchObject(refusal('INVALID_ARGUMENT', words));
      expect(await driver.loops()).toEqual([]);
    });
  });

  test('shares its state with no second driver', async () => {
    const args = ['csi-driver', '--endpoint', `unix://${driver.root}/other.sock`, '--state-dir', driver.stateDir];
    const second = await exec(NODELET, args, { timeoutMs: 300_000 });
    expect([second.code, second.stderr]).toEqual([
      1,
      expect.stringContaining('another driver has the state directory'),
    ]);
    const socket = await exec(
      NODELET,
      ['csi-driver', '--endpoint', driver.endpoint, '--state-dir', `${driver.root}/fresh`],
      { timeoutMs: 300_000 },
    );
    expect([socket.code, socket.stderr]).toEqual([1, expect.stringContaining('another process serves')]);
  });

  test('grows a mounted ext4 where the kernel allows it, and otherwise when it is staged next', async () => {
    const volume = await published();
    await writeFile(join(volume.target, 'a'), 'b');
    const secrets = { token: 'open sesame' };
    await driver.client.controller.ControllerExpandVolume({
      volume_id: volume.id,
      capacity_range: { required_bytes: 256 * MiB },
      secrets,
    });
    const effective = BigInt(`0x${/^CapEff:\s+(\w+)$/m.exec(await readFile('/proc/self/status', 'utf8'))?.[1]}`);
    const mayGrow = (effective & (1n << 24n)) !== 0n;
    const grown = driver.client.node.NodeExpandVolume({ volume_id: volume.id, volume_path: volume.target });
    if (mayGrow) await grown;
    else {
      await expect(grown).rejects.toMatchObject(refusal('FAILED_PRECONDITION', /CAP_SYS_RESOURCE/));
      await volume.unpublish();
      await volume.unstage();
      await volume.stage();
      await volume.publish();
    }
    const { usage } = await driver.client.node.NodeGetVolumeStats({ volume_id: volume.id, volume_path: volume.target });
    expect(Number(usage[0]?.total)).toBeGreaterThan(200 * MiB);
    expect(await readFile(join(volume.target, 'a'), 'utf8')).toBe('b');
    await volume.down();
  });

  test('stages no filesystem that a new mount namespace still has: it waits until that is gone, and then grows it', async () => {
    const volume = await published();
    await writeFile(join(volume.target, 'a'), 'b');
    // As of a container that is just being made: a copy of all mounts, which receives no unmount. Those of others go at once.
    const script = `for path in $(awk '{ print $5 }' /proc/self/mountinfo | grep -E '^/(run|tmp|var)/' | grep -v "^$0/"); do
      umount --lazy "$path" 2>/dev/null
    done; echo ready; exec cat`;
    const other = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', script, driver.root], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const ended = once(other, 'close');
    await once(other.stdout, 'data');
    const own = async () => (await listLoopDevices()).filter(({ image }) => image.includes(volume.id));
    await volume.unpublish();
    await volume.unstage();
    expect(await own()).toMatchObject([{ autoclear: true }]);
    await driver.client.controller.ControllerExpandVolume({
      volume_id: volume.id,
      capacity_range: { required_bytes: 256 * MiB },
      secrets: { token: 'open sesame' },
    });
    const staged = untilItsTurn(() => volume.stage());
    // It has begun, and waits.
    await expect.poll(() => outcome(volume.unstage())).toBe('ABORTED');
    expect(await own()).toMatchObject([{ autoclear: true }]);
    other.stdin.end();
    await ended;
    await staged;
    expect(await own()).toMatchObject([{ autoclear: false }]);
    await volume.publish();
    const { usage } = await driver.client.node.NodeGetVolumeStats({ volume_id: volume.id, volume_path: volume.target });
    expect(Number(usage[0]?.total)).toBeGreaterThan(200 * MiB);
    expect(await readFile(join(volume.target, 'a'), 'utf8')).toBe('b');
    await volume.down();
  });
});
