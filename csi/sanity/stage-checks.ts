// Checks of NodeGetInfo, NodeStageVolume and NodeUnstageVolume.

import assert from 'node:assert/strict';
import { systemClock } from '../../lib/clock.ts';
import { poll } from '../../lib/retry.ts';
import type { NodeStageVolumeRequest } from '../../proto/gen/csi/v1/NodeStageVolumeRequest.ts';
import { type Bench, refused } from './bench.ts';
import { type Check, section } from './check.ts';
import { assertTopology } from './create-checks.ts';
import { mountedAt, readFrom, writeInto } from './look.ts';

const STAGES = ['node:STAGE_UNSTAGE_VOLUME', 'controller:CREATE_DELETE_VOLUME'] as const;

/** A request that the driver should take, of a new volume that is attached where that is needed. */
async function stageRequest(
  bench: Bench,
  more: NodeStageVolumeRequest = {},
): Promise<NodeStageVolumeRequest & { volume_id: string; staging_target_path: string }> {
  const volume = await bench.createVolume();
  const publish_context = await bench.attach(volume);
  const { volume_id, volume_context } = volume;
  const staging_target_path = await bench.directory();
  bench.unstageLater(volume_id, staging_target_path);
  return {
    volume_id,
    volume_context,
    publish_context,
    staging_target_path,
    volume_capability: bench.capability(),
    secrets: bench.secrets,
    ...more,
  };
}

export const stageChecks: readonly Check[] = [
  ...section('NodeGetInfo', [], {
    'reports a node id of 256 bytes at most, the same at every call': async ({ node }) => {
      const first = await node.NodeGetInfo({});
      assert.notEqual(first.node_id, '');
      assert.ok(Buffer.byteLength(first.node_id) <= 256);
      assert.deepEqual(await node.NodeGetInfo({}), first);
    },
    'reports no negative number of volumes': async ({ info }) => {
      assert.ok(Number(info.max_volumes_per_node) >= 0);
    },
    'reports a well-formed topology': {
      needs: ['plugin:VOLUME_ACCESSIBILITY_CONSTRAINTS'],
      run: async ({ info }) => {
        assert.ok(info.accessible_topology, 'there is no accessible_topology');
        assertTopology(info.accessible_topology);
      },
    },
    'reports no topology without VOLUME_ACCESSIBILITY_CONSTRAINTS': {
      needs: ['!plugin:VOLUME_ACCESSIBILITY_CONSTRAINTS'],
      run: async ({ info }) => assert.equal(info.accessible_topology, null),
    },
  }),
  ...section('NodeStageVolume', STAGES, {
    'without a volume id is an INVALID_ARGUMENT': async (bench) => {
      const request = await stageRequest(bench);
      await refused('INVALID_ARGUMENT', bench.node.NodeStageVolume({ ...request, volume_id: '' }));
    },
    'without a staging path is an INVALID_ARGUMENT': async (bench) => {
      const request = await stageRequest(bench);
      await refused('INVALID_ARGUMENT', bench.node.NodeStageVolume({ ...request, staging_target_path: '' }));
    },
    'without a capability is an INVALID_ARGUMENT': async (bench) => {
      const request = await stageRequest(bench, { volume_capability: null });
      await refused('INVALID_ARGUMENT', bench.node.NodeStageVolume(request));
    },
    'with a staging path that is not absolute is an INVALID_ARGUMENT': async (bench) => {
      const request = await stageRequest(bench);
      await refused(
        'INVALID_ARGUMENT',
        bench.node.NodeStageVolume({ ...request, staging_target_path: 'not/absolute' }),
      );
    },
    'of a volume that does not exist is NOT_FOUND': async (bench) => {
      const request = await stageRequest(bench);
      await refused('NOT_FOUND', bench.node.NodeStageVolume({ ...request, volume_id: bench.unknownId() }));
    },
    'with another volume’s context is an INVALID_ARGUMENT': async (bench) => {
      const request = await stageRequest(bench);
      const volume_context = { ...request.volume_context, 'sanity/not-of-this-volume': 'x' };
      await refused('INVALID_ARGUMENT', bench.node.NodeStageVolume({ ...request, volume_context }));
    },
    'for a capability that the volume has not is FAILED_PRECONDITION, or an INVALID_ARGUMENT when it is unknown': {
      needs: ['mount'],
      run: async (bench) => {
        const request = await stageRequest(bench, {
          volume_capability: bench.capability('SINGLE_NODE_WRITER', { fsType: 'sanityfs' }),
        });
        await refused(['FAILED_PRECONDITION', 'INVALID_ARGUMENT'], bench.node.NodeStageVolume(request));
      },
    },
    'for another access type than the volume was made for is FAILED_PRECONDITION, or works': async (bench) => {
      const access_mode = { mode: 'SINGLE_NODE_WRITER' as const };
      const other = bench.options.accessType === 'block' ? { access_mode, mount: {} } : { access_mode, block: {} };
      const request = await stageRequest(bench, { volume_capability: other });
      const call = bench.node.NodeStageVolume(request);
      await call.catch(() => refused('FAILED_PRECONDITION', call));
    },
    'takes a staging path of 128 bytes and more': async (bench) => {
      const path = await bench.directory('p'.repeat(130));
      const request = await stageRequest(bench);
      bench.unstageLater(request.volume_id, path);
      await bench.node.NodeStageVolume({ ...request, staging_target_path: path });
    },
    'called again with the same arguments is OK': async (bench) => {
      const request = await stageRequest(bench);
      await bench.node.NodeStageVolume(request);
      await bench.node.NodeStageVolume(request);
    },
    'called again with another capability is ALREADY_EXISTS': async (bench) => {
      const volume_capabilities = [bench.capability('SINGLE_NODE_WRITER'), bench.capability('SINGLE_NODE_READER_ONLY')];
      const volume = await bench.createVolume({ volume_capabilities });
      const prepared = await bench.prepare(volume);
      const call = { ...prepared, volume_capability: bench.capability('SINGLE_NODE_READER_ONLY') };
      await refused('ALREADY_EXISTS', bench.node.NodeStageVolume(call));
    },
    'mounts with the flags of the capability': {
      needs: ['mount'],
      run: async (bench) => {
        const volume_capability = bench.capability('SINGLE_NODE_WRITER', { flags: ['noexec', 'noatime'] });
        const volume = await bench.createVolume({ volume_capabilities: [volume_capability] });
        const target = await bench.publish(await bench.prepare(volume, volume_capability));
        const options = (await mountedAt(target))?.options ?? [];
        assert.ok(options.includes('noexec') && options.includes('noatime'), `it is mounted with ${options.join(',')}`);
      },
    },
    'is refused for a volume that is not attached': {
      needs: ['controller:PUBLISH_UNPUBLISH_VOLUME'],
      run: async (bench) => {
        const { volume_id, volume_context } = await bench.createVolume();
        const staging_target_path = await bench.directory();
        bench.unstageLater(volume_id, staging_target_path);
        const request = {
          volume_id,
          volume_context,
          staging_target_path,
          volume_capability: bench.capability(),
          secrets: bench.secrets,
        };
        await refused(
          ['FAILED_PRECONDITION', 'INVALID_ARGUMENT', 'INTERNAL', 'NOT_FOUND'],
          bench.node.NodeStageVolume(request),
        );
      },
    },
    'whose answer was not waited for can be called again until it is OK': async (bench) => {
      const request = await stageRequest(bench);
      await refused(['DEADLINE_EXCEEDED', 'CANCELLED'], bench.node.NodeStageVolume(request, { deadlineMs: 1 }));
      const stage = async (): Promise<boolean> => {
        try {
          await bench.node.NodeStageVolume(request);
          return true;
        } catch (error) {
          await refused('ABORTED', Promise.reject(error));
          return false;
        }
      };
      const isStaged = await poll(stage, { clock: systemClock, everyMs: 50, limitMs: 60_000 });
      assert.ok(isStaged, 'NodeStageVolume is still ABORTED after a minute');
    },
    'called several times at once is OK, or ABORTED for who is in the way': async (bench) => {
      const request = await stageRequest(bench);
      const answers = await Promise.allSettled(Array.from({ length: 4 }, () => bench.node.NodeStageVolume(request)));
      for (const answer of answers)
        if (answer.status === 'rejected') await refused('ABORTED', Promise.reject(answer.reason));
      await bench.node.NodeStageVolume(request);
    },
  }),
  ...section('NodeUnstageVolume', STAGES, {
    'without a volume id is an INVALID_ARGUMENT': async (bench) => {
      await refused(
        'INVALID_ARGUMENT',
        bench.node.NodeUnstageVolume({ volume_id: '', staging_target_path: await bench.directory() }),
      );
    },
    'without a staging path is an INVALID_ARGUMENT': async (bench) => {
      const { volume_id } = await bench.createVolume();
      await refused('INVALID_ARGUMENT', bench.node.NodeUnstageVolume({ volume_id, staging_target_path: '' }));
    },
    'of a volume that does not exist is NOT_FOUND': async (bench) => {
      const request = { volume_id: bench.unknownId(), staging_target_path: await bench.directory() };
      await refused('NOT_FOUND', bench.node.NodeUnstageVolume(request));
    },
    'of a volume that is not staged is OK': async (bench) => {
      const { volume_id } = await bench.createVolume();
      await bench.node.NodeUnstageVolume({ volume_id, staging_target_path: await bench.directory() });
    },
    'undoes the staging, also when it is called again': async (bench) => {
      const request = await stageRequest(bench);
      await bench.node.NodeStageVolume(request);
      await bench.node.NodeUnstageVolume(request);
      assert.equal(await mountedAt(request.staging_target_path), undefined);
      await bench.node.NodeUnstageVolume(request);
    },
    'and NodeStageVolume after it keep what is in the volume': async (bench) => {
      const prepared = await bench.prepare(await bench.createVolume());
      const target_path = await bench.publish(prepared);
      await writeInto(bench, target_path, 'stays');
      await bench.node.NodeUnpublishVolume({ volume_id: prepared.volume_id, target_path });
      await bench.node.NodeUnstageVolume(prepared);
      await bench.node.NodeStageVolume(prepared);
      assert.equal(await readFrom(bench, await bench.publish(prepared)), 'stays');
    },
  }),
];
