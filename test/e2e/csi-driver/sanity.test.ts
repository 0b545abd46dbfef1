// The sanity suite against the loop-device driver: ext4, xfs and block, and with everything that can be switched on.

import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ALL_CHECKS, openSuite, type Suite } from '../../../csi/sanity/run.ts';
import { MiB, TestDriver } from './driver-process.ts';

const NOT_OURS = [
  'GetPluginCapabilities announces offline expansion only with EXPAND_VOLUME of the controller',
  'CreateVolume reports no topology without VOLUME_ACCESSIBILITY_CONSTRAINTS',
  'NodeGetInfo reports no topology without VOLUME_ACCESSIBILITY_CONSTRAINTS',
];

/** mkfs writes an ext4's tables and journal, which grow with the volume; an xfs has 300 MiB at the least. */
const [SMALL, LARGE] = [64 * MiB, 512 * MiB];

const runs = [
  { what: 'ext4 volumes', flags: [], accessType: 'mount', fsType: 'ext4', volumeBytes: SMALL },
  { what: 'xfs volumes', flags: [], accessType: 'mount', fsType: 'xfs', volumeBytes: LARGE },
  { what: 'block volumes', flags: [], accessType: 'block', fsType: '', volumeBytes: SMALL },
  {
    what: 'volumes that are attached and given to groups',
    flags: ['--attach', '--mount-group', '--max-volumes', '4', '--peer-node', 'that-node'],
    accessType: 'mount',
    fsType: 'ext4',
    volumeBytes: SMALL,
    secondNodeId: 'that-node',
  },
] as const;

for (const run of runs) {
  // Which checks apply depends on the driver's capabilities: read before the tests are named.
  const driver = await TestDriver.start(...run.flags);
  const suite: Suite = await openSuite(driver.endpoint, {
    accessType: run.accessType,
    fsType: run.fsType,
    parameters: {},
    secrets: {},
    directory: join(driver.root, 'work'),
    volumeBytes: run.volumeBytes,
    ...('secondNodeId' in run ? { secondNodeId: run.secondNodeId } : {}),
  });
  const applicable = ALL_CHECKS.filter((check) => suite.unmet(check).length === 0);

  describe(`the driver with ${run.what}`, () => {
    afterAll(async () => {
      await suite.close();
      await driver.remove();
    });
    test.each(applicable.map((check) => [`${check.section} ${check.name}`, check] as const))(
      '%s',
      async (_name, check) => {
        await suite.run(check);
      },
    );
    test('keeps nothing of what was deleted', async () => {
      expect(await driver.loops()).toEqual([]);
      expect(await driver.mounts()).toEqual([]);
      expect((await driver.client.controller.ListVolumes({})).entries).toEqual([]);
      expect((await driver.client.controller.ListSnapshots({})).entries).toEqual([]);
    });
    if (run.flags.length > 0) {
      test('can do everything that there is a check for, but what it is not', () => {
        const without = ALL_CHECKS.filter((check) => !applicable.includes(check)).map(
          (each) => `${each.section} ${each.name}`,
        );
        // Capabilities that it has cannot be missed, but for the one that it has not.
        expect(without.filter((name) => !name.includes('is UNIMPLEMENTED without')).sort()).toEqual(
          [...NOT_OURS].sort(),
        );
        expect(applicable.map((each) => each.name)).toContain('is UNIMPLEMENTED without MODIFY_VOLUME');
      });
    }
  });
}

describe('the suite itself', () => {
  test.each([
    ['a refusal where there must be none', { method: 'DeleteVolume', action: 'fail', code: 'UNKNOWN' }, 'DeleteVolume'],
    [
      'an ABORTED without another call under way',
      { method: 'NodeStageVolume', action: 'fail', code: 'ABORTED' },
      'NodeStageVolume',
    ],
    [
      'a failure after the work was done',
      { method: 'NodeUnpublishVolume', action: 'fail', when: 'after' },
      'NodeUnpublishVolume',
    ],
  ])('finds %s', async (_what, rule, section) => {
    const driver = await TestDriver.start();
    try {
      await driver.faults({ ...rule, times: 1 });
      const options = {
        accessType: 'mount',
        fsType: 'ext4',
        parameters: {},
        secrets: {},
        volumeBytes: SMALL,
      } as const;
      const suite = await openSuite(driver.endpoint, { ...options, directory: join(driver.root, 'work') });
      const check =
        ALL_CHECKS.find((each) => each.section === section && each.name.includes('also when it is called again')) ??
        ALL_CHECKS.find((each) => each.section === section && each.name.startsWith('called again with the same'));
      expect(check).toBeDefined();
      if (check !== undefined) await expect(suite.run(check)).rejects.toThrow();
      await suite.close();
    } finally {
      await driver.remove();
    }
  });
});
