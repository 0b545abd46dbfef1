// The driver killed before each change that a call makes to the machine, and started again: the call can be repeated, or
// taken back, the data is whole, and nothing is left over.

import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { detachLoopsBelow } from '../../../cli/lab/loops.ts';
import { isCsiError } from '../../../csi/client.ts';
import { unmountBelow } from '../../../lib/mounts.ts';
import type { VolumeCapability } from '../../../proto/gen/csi/v1/VolumeCapability.ts';
import { CAPABILITY, MiB, TestDriver, TestVolume } from './driver-process.ts';

let driver: TestDriver;

beforeAll(async () => {
  driver = await TestDriver.start();
});
afterAll(async () => {
  await driver?.remove();
});

const fileIn = (path: string): string => join(path, 'kept.txt');
const keep = (path: string): Promise<void> => writeFile(fileIn(path), 'kept', { flush: true });
const kept = async (path: string): Promise<void> => expect(await readFile(fileIn(path), 'utf8')).toBe('kept');

interface Scenario {
  readonly method: string;
  readonly capability?: VolumeCapability;
  readonly bytes?: number;
  /** From nothing to the moment before the call. */
  readonly before: (volume: TestVolume) => Promise<void>;
  readonly call: (volume: TestVolume) => Promise<unknown>;
  /** What holds after the call, however often it was repeated. */
  readonly after: (volume: TestVolume) => Promise<void>;
  /** Beside the volume itself. */
  readonly cleanup?: (volume: TestVolume) => Promise<void>;
}

const XFS: VolumeCapability = { access_mode: { mode: 'SINGLE_NODE_MULTI_WRITER' }, mount: { fs_type: 'xfs' } };
const created = (volume: TestVolume) => volume.create();
const staged = async (volume: TestVolume) => {
  await volume.create();
  await volume.stage();
};
const published = async (volume: TestVolume) => {
  await staged(volume);
  await volume.publish();
  await keep(volume.target);
};
const snapshotOf = (volume: TestVolume) => ({ name: `snapshot-of-${volume.name}`, source_volume_id: volume.id });
const cloneOf = (volume: TestVolume) => ({
  name: `clone-of-${volume.name}`,
  volume_capabilities: [volume.capability],
  volume_content_source: { volume: { volume_id: volume.id } },
});

const scenarios: readonly Scenario[] = [
  {
    method: 'CreateVolume',
    before: async () => {},
    call: created,
    after: async (volume) => expect(Number(volume.made.capacity_bytes)).toBe(volume.bytes),
  },
  {
    method: 'DeleteVolume',
    before: created,
    call: (volume) => volume.delete(),
    after: async () => expect((await driver.client.controller.ListVolumes({})).entries).toEqual([]),
  },
  {
    method: 'NodeStageVolume',
    before: created,
    call: (volume) => volume.stage(),
    after: async (volume) => {
      await volume.publish();
      await keep(volume.target);
      await kept(volume.staging);
    },
  },
  {
    method: 'NodePublishVolume',
    before: async (volume) => {
      await staged(volume);
      await keep(volume.staging);
    },
    call: (volume) => volume.publish(),
    after: (volume) => kept(volume.target),
  },
  {
    method: 'NodeUnpublishVolume',
    before: published,
    call: (volume) => volume.unpublish(),
    after: (volume) => kept(volume.staging),
  },
  {
    method: 'NodeUnstageVolume',
    before: async (volume) => {
      await published(volume);
      await volume.unpublish();
    },
    call: (volume) => volume.unstage(),
    after: async (volume) => {
      expect(await driver.loops()).toEqual([]);
      await volume.stage();
      await kept(volume.staging);
    },
  },
  {
    method: 'CreateSnapshot',
    before: published,
    call: (volume) => driver.client.controller.CreateSnapshot(snapshotOf(volume)),
    after: async (volume) => {
      // The original is not frozen any more.
      await writeFile(join(volume.target, 'another.txt'), 'goes on', { flush: true });
      expect((await driver.client.controller.ListSnapshots({ source_volume_id: volume.id })).entries).toHaveLength(1);
    },
    cleanup: async () => {
      for (const { snapshot } of (await driver.client.controller.ListSnapshots({})).entries) {
        await driver.client.controller.DeleteSnapshot({ snapshot_id: snapshot?.snapshot_id ?? '' });
      }
    },
  },
  {
    method: 'CreateVolume',
    before: published,
    call: (volume) => driver.client.controller.CreateVolume(cloneOf(volume)),
    after: (volume) => writeFile(join(volume.target, 'another.txt'), 'goes on', { flush: true }),
    cleanup: async (volume) => {
      for (const { volume: each } of (await driver.client.controller.ListVolumes({})).entries) {
        const volume_id = each?.volume_id ?? '';
        if (volume_id !== volume.id) await driver.client.controller.DeleteVolume({ volume_id });
      }
    },
  },
  {
    method: 'ControllerExpandVolume',
    before: published,
    call: (volume) => volume.expand(96 * MiB),
    after: async (volume) => {
      await kept(volume.target);
      const { volume: now } = await driver.client.controller.ControllerGetVolume({ volume_id: volume.id });
      expect(Number(now?.capacity_bytes)).toBe(96 * MiB);
    },
  },
  {
    method: 'NodeExpandVolume',
    capability: XFS,
    bytes: 320 * MiB,
    before: async (volume) => {
      await published(volume);
      await volume.expand(640 * MiB);
    },
    call: (volume) => driver.client.node.NodeExpandVolume({ volume_id: volume.id, volume_path: volume.target }),
    after: async (volume) => {
      await kept(volume.target);
      const { usage } = await driver.client.node.NodeGetVolumeStats({
        volume_id: volume.id,
        volume_path: volume.target,
      });
      expect(Number(usage[0]?.total)).toBeGreaterThan(500 * MiB);
    },
  },
];

/** Runs `call` with the driver dying at its nth step. False when the call has fewer steps and succeeded. */
async function diesAt(step: number, method: string, call: () => Promise<unknown>): Promise<boolean> {
  await driver.faults({ method, when: step, action: 'crash' });
  try {
    await call();
    await driver.faults();
    return false;
  } catch (error) {
    if (!isCsiError(error, 'UNAVAILABLE')) throw error;
    await driver.restart();
    return true;
  }
}

async function expectNothing(): Promise<void> {
  expect(await driver.mounts()).toEqual([]);
  expect(await driver.loops()).toEqual([]);
  expect((await driver.client.controller.ListVolumes({})).entries).toEqual([]);
}

describe.each(scenarios)('a driver that dies in $method', (scenario) => {
  const fresh = () => new TestVolume(driver, scenario.capability ?? CAPABILITY, scenario.bytes ?? 64 * MiB);
  const takeDown = async (volume: TestVolume): Promise<void> => {
    await scenario.cleanup?.(volume);
    // A client without an id repeats CreateVolume to get it; of a volume that is gone there is nothing to undo.
    if (volume.volume === undefined) await volume.create();
    for (const step of [() => volume.unpublish(), () => volume.unstage(), () => volume.delete()]) {
      await step().catch((error: unknown) => {
        if (!isCsiError(error, 'NOT_FOUND')) throw error;
      });
    }
    await expectNothing();
  };

  test.each(['repeated', 'taken back'] as const)('at any step can be started again, and the call %s', async (how) => {
    let step = 1;
    for (; ; step++) {
      const volume = fresh();
      await scenario.before(volume);
      const died = await diesAt(step, scenario.method, () => scenario.call(volume));
      if (died && how === 'repeated') await scenario.call(volume);
      if (!died || how === 'repeated') await scenario.after(volume);
      await takeDown(volume);
      if (!died) break;
    }
    expect(step).toBeGreaterThan(1);
  });
});

describe('a driver that is killed', () => {
  test('while a volume is published and written to goes on with it', async () => {
    const volume = new TestVolume(driver);
    await published(volume);
    await driver.restart();
    await kept(volume.target);
    await volume.publish();
    await volume.stage();
    const { volume_condition } = await driver.client.node.NodeGetVolumeStats({
      volume_id: volume.id,
      volume_path: volume.target,
    });
    expect(volume_condition?.abnormal).toBe(false);
    await volume.down();
    await expectNothing();
  });

  test('and finds after a reboot neither mounts nor devices, and stages anew what was staged', async () => {
    const volume = new TestVolume(driver);
    await published(volume);
    await driver.end('SIGKILL');
    await unmountBelow([driver.root]);
    await detachLoopsBelow(driver.root);
    await driver.run();
    await expect(volume.publish()).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
    await volume.stage();
    await volume.publish();
    await kept(volume.target);
    await volume.down();
    await expectNothing();
  });

  test('and whose inline volume has lost its pod in between removes it', async () => {
    const target_path = join(driver.root, 'lost');
    const volume_id = `csi-${'d'.repeat(64)}`;
    const volume_context = { 'csi.storage.k8s.io/ephemeral': 'true' };
    await driver.client.node.NodePublishVolume({
      volume_id,
      target_path,
      volume_capability: CAPABILITY,
      volume_context,
    });
    await driver.end('SIGKILL');
    await unmountBelow([driver.root]);
    await rm(target_path, { recursive: true });
    await driver.run();
    expect(existsSync(join(driver.stateDir, 'volumes', volume_id))).toBe(false);
    await expectNothing();
  });

  test('after an inline volume was published removes it when it is unpublished, however often', async () => {
    const volume_id = `csi-${'e'.repeat(64)}`;
    const target_path = join(driver.root, 'inline');
    const request = {
      volume_id,
      target_path,
      volume_capability: CAPABILITY,
      volume_context: { 'csi.storage.k8s.io/ephemeral': 'true', size: '16Mi' },
    };
    const publish = () => driver.client.node.NodePublishVolume(request);
    const unpublish = () => driver.client.node.NodeUnpublishVolume({ volume_id, target_path });
    for (let step = 1; await diesAt(step, 'NodePublishVolume', publish); step++) {
      if (step % 2 === 0) {
        await publish();
        await keep(target_path);
      }
      await unpublish();
      await expectNothing();
    }
    for (let step = 1; await diesAt(step, 'NodeUnpublishVolume', unpublish); step++) {
      await unpublish();
      await expectNothing();
      await publish();
    }
    await unpublish();
    await expectNothing();
  });
});
