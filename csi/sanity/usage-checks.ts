// Checks of NodeGetVolumeStats and NodeExpandVolume.

import assert from 'node:assert/strict';
import { CsiError } from '../client.ts';
import { type Bench, MiB, refused } from './bench.ts';
import { type Check, section } from './check.ts';
import { readFrom, sizeAt, writeInto } from './look.ts';

const published = async (bench: Bench) => {
  const prepared = await bench.prepare(await bench.createVolume());
  return { prepared, volume_id: prepared.volume_id, target: await bench.publish(prepared) };
};

export const usageChecks: readonly Check[] = [
  ...section('NodeGetVolumeStats', ['node:GET_VOLUME_STATS', 'controller:CREATE_DELETE_VOLUME'], {
    'without a volume id is an INVALID_ARGUMENT': async (bench) => {
      const { target } = await published(bench);
      await refused('INVALID_ARGUMENT', bench.node.NodeGetVolumeStats({ volume_id: '', volume_path: target }));
    },
    'without a path is an INVALID_ARGUMENT': async (bench) => {
      const { volume_id } = await published(bench);
      await refused('INVALID_ARGUMENT', bench.node.NodeGetVolumeStats({ volume_id, volume_path: '' }));
    },
    'of a volume that does not exist is NOT_FOUND': async (bench) => {
      const { target } = await published(bench);
      await refused('NOT_FOUND', bench.node.NodeGetVolumeStats({ volume_id: bench.unknownId(), volume_path: target }));
    },
    'of a volume that does not exist is NOT_FOUND on a relative path too': async (bench) => {
      const request = { volume_id: bench.unknownId(), volume_path: 'some/path' };
      await refused('NOT_FOUND', bench.node.NodeGetVolumeStats(request));
    },
    'of a path that the volume is not on is NOT_FOUND': async (bench) => {
      const { volume_id } = await published(bench);
      await refused('NOT_FOUND', bench.node.NodeGetVolumeStats({ volume_id, volume_path: await bench.directory() }));
      await refused('NOT_FOUND', bench.node.NodeGetVolumeStats({ volume_id, volume_path: 'some/path' }));
    },
    'reports bytes, none of them negative, that agree with the volume’s size': async (bench) => {
      const { volume_id, target } = await published(bench);
      const { usage } = await bench.node.NodeGetVolumeStats({ volume_id, volume_path: target });
      for (const each of usage) {
        assert.notEqual(each.unit, 'UNKNOWN');
        for (const figure of [each.total, each.used, each.available]) assert.ok(Number(figure) >= 0);
      }
      const bytes = usage.find((each) => each.unit === 'BYTES');
      const total = Number(bytes?.total ?? 0);
      assert.ok(
        total > bench.options.volumeBytes / 2 && total < bench.options.volumeBytes * 2,
        `${total} bytes in total`,
      );
    },
    'reports inodes where there are any': {
      needs: ['mount'],
      run: async (bench) => {
        const { volume_id, target } = await published(bench);
        const { usage } = await bench.node.NodeGetVolumeStats({ volume_id, volume_path: target });
        const inodes = usage.find((each) => each.unit === 'INODES');
        if (inodes !== undefined) assert.ok(Number(inodes.total) > 0);
      },
    },
    'answers for the staging path too': {
      needs: ['mount', 'node:STAGE_UNSTAGE_VOLUME'],
      run: async (bench) => {
        const { staging_target_path, volume_id } = await bench.prepare(await bench.createVolume());
        const request = { volume_id, volume_path: staging_target_path, staging_target_path };
        assert.ok((await bench.node.NodeGetVolumeStats(request)).usage.length > 0);
      },
    },
    'reports the volume’s condition': {
      needs: ['node:VOLUME_CONDITION'],
      run: async (bench) => {
        const { volume_id, target } = await published(bench);
        const { volume_condition } = await bench.node.NodeGetVolumeStats({ volume_id, volume_path: target });
        assert.equal(volume_condition?.abnormal, false);
        assert.notEqual(volume_condition.message, '');
      },
    },
  }),
  ...section('NodeExpandVolume', ['node:EXPAND_VOLUME', 'controller:CREATE_DELETE_VOLUME'], {
    'without a volume id is an INVALID_ARGUMENT': async (bench) => {
      const { target } = await published(bench);
      await refused('INVALID_ARGUMENT', bench.node.NodeExpandVolume({ volume_id: '', volume_path: target }));
    },
    'without a path is an INVALID_ARGUMENT': async (bench) => {
      const { volume_id } = await published(bench);
      await refused('INVALID_ARGUMENT', bench.node.NodeExpandVolume({ volume_id, volume_path: '' }));
    },
    'of a volume that does not exist is NOT_FOUND': async (bench) => {
      const { target } = await published(bench);
      await refused('NOT_FOUND', bench.node.NodeExpandVolume({ volume_id: bench.unknownId(), volume_path: target }));
    },
    'of a volume that does not exist is NOT_FOUND on a relative path too': async (bench) => {
      const request = { volume_id: bench.unknownId(), volume_path: 'some/path' };
      await refused('NOT_FOUND', bench.node.NodeExpandVolume(request));
    },
    'of a path that the volume is not on is NOT_FOUND': async (bench) => {
      const { volume_id } = await published(bench);
      await refused('NOT_FOUND', bench.node.NodeExpandVolume({ volume_id, volume_path: await bench.directory() }));
      await refused('NOT_FOUND', bench.node.NodeExpandVolume({ volume_id, volume_path: 'some/path' }));
    },
    'of a volume that is as large already is OK': async (bench) => {
      const { volume_id, target } = await published(bench);
      const capacity_range = { required_bytes: bench.options.volumeBytes };
      await bench.node.NodeExpandVolume({ volume_id, volume_path: target, capacity_range });
    },
    'beyond every limit is OUT_OF_RANGE': async (bench) => {
      const { volume_id, target } = await published(bench);
      const capacity_range = { required_bytes: 2 ** 62 };
      await refused('OUT_OF_RANGE', bench.node.NodeExpandVolume({ volume_id, volume_path: target, capacity_range }));
    },
    'for a capability that the volume has not is an INVALID_ARGUMENT': {
      needs: ['mount'],
      run: async (bench) => {
        const { volume_id, target } = await published(bench);
        const volume_capability = bench.capability('SINGLE_NODE_WRITER', { fsType: 'sanityfs' });
        await refused(
          'INVALID_ARGUMENT',
          bench.node.NodeExpandVolume({ volume_id, volume_path: target, volume_capability }),
        );
      },
    },
    'gives its user the new size and keeps the content, or is FAILED_PRECONDITION until it is staged anew': {
      needs: ['controller:EXPAND_VOLUME'],
      run: async (bench) => {
        const { prepared, volume_id, target } = await published(bench);
        await writeInto(bench, target, 'before');
        const capacity_range = { required_bytes: bench.options.volumeBytes + 512 * MiB };
        const expand = { volume_id, capacity_range, volume_capability: bench.capability(), secrets: bench.secrets };
        const { node_expansion_required } = await bench.controller.ControllerExpandVolume(expand);
        let path = target;
        const request = {
          volume_id,
          volume_path: target,
          staging_target_path: prepared.staging_target_path,
          capacity_range,
          volume_capability: bench.capability(),
        };
        try {
          if (node_expansion_required) {
            await bench.node.NodeExpandVolume(request);
            await bench.node.NodeExpandVolume(request);
          }
        } catch (error) {
          if (!(error instanceof CsiError) || error.code !== 'FAILED_PRECONDITION') throw error;
          await bench.node.NodeUnpublishVolume({ volume_id, target_path: target });
          if (prepared.staging_target_path !== '') {
            await bench.node.NodeUnstageVolume(prepared);
            await bench.node.NodeStageVolume(prepared);
          }
          path = await bench.publish(prepared);
        }
        const bytes = await sizeAt(bench, path);
        assert.ok(bytes > bench.options.volumeBytes + 256 * MiB, `its user sees ${bytes} bytes`);
        assert.equal(await readFrom(bench, path), 'before');
      },
    },
  }),
];
