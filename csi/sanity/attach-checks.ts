// Checks of ControllerPublishVolume and ControllerUnpublishVolume.

import assert from 'node:assert/strict';
import type { ControllerPublishVolumeRequest } from '../../proto/gen/csi/v1/ControllerPublishVolumeRequest.ts';
import type { Volume__Output } from '../../proto/gen/csi/v1/Volume.ts';
import { type Bench, refused } from './bench.ts';
import { type Check, section } from './check.ts';

function request(
  bench: Bench,
  volume: Volume__Output,
  more: ControllerPublishVolumeRequest = {},
): ControllerPublishVolumeRequest {
  return {
    volume_id: volume.volume_id,
    node_id: bench.info.node_id,
    volume_capability: bench.capability(),
    readonly: false,
    secrets: bench.secrets,
    volume_context: volume.volume_context,
    ...more,
  };
}

const NEEDS = ['controller:PUBLISH_UNPUBLISH_VOLUME', 'controller:CREATE_DELETE_VOLUME'] as const;

export const attachChecks: readonly Check[] = [
  ...section('ControllerPublishVolume', NEEDS, {
    'without a volume id is an INVALID_ARGUMENT': async (bench) => {
      const call = request(bench, await bench.createVolume(), { volume_id: '' });
      await refused('INVALID_ARGUMENT', bench.controller.ControllerPublishVolume(call));
    },
    'without a node id is an INVALID_ARGUMENT': async (bench) => {
      const call = request(bench, await bench.createVolume(), { node_id: '' });
      await refused('INVALID_ARGUMENT', bench.controller.ControllerPublishVolume(call));
    },
    'without a capability is an INVALID_ARGUMENT': async (bench) => {
      const call = request(bench, await bench.createVolume(), { volume_capability: null });
      await refused('INVALID_ARGUMENT', bench.controller.ControllerPublishVolume(call));
    },
    'of a volume that does not exist is NOT_FOUND': async (bench) => {
      const call = request(bench, await bench.createVolume(), { volume_id: bench.unknownId() });
      await refused('NOT_FOUND', bench.controller.ControllerPublishVolume(call));
    },
    'to a node that does not exist is NOT_FOUND': async (bench) => {
      const call = request(bench, await bench.createVolume(), { node_id: bench.unknownId() });
      await refused('NOT_FOUND', bench.controller.ControllerPublishVolume(call));
    },
    'called again with the same arguments is OK, with the same context': async (bench) => {
      const volume = await bench.createVolume();
      assert.deepEqual(await bench.attach(volume), await bench.attach(volume));
    },
    'called again with another readonly flag is ALREADY_EXISTS': {
      needs: ['controller:PUBLISH_READONLY'],
      run: async (bench) => {
        const volume = await bench.createVolume();
        await bench.attach(volume);
        await refused(
          'ALREADY_EXISTS',
          bench.controller.ControllerPublishVolume(request(bench, volume, { readonly: true })),
        );
      },
    },
    'called again with another capability is ALREADY_EXISTS': async (bench) => {
      const volume_capabilities = [bench.capability('SINGLE_NODE_WRITER'), bench.capability('SINGLE_NODE_READER_ONLY')];
      const volume = await bench.createVolume({ volume_capabilities });
      await bench.attach(volume);
      const call = request(bench, volume, { volume_capability: bench.capability('SINGLE_NODE_READER_ONLY') });
      await refused('ALREADY_EXISTS', bench.controller.ControllerPublishVolume(call));
    },
    'to a second node is FAILED_PRECONDITION, and names the first': {
      needs: ['second node'],
      run: async (bench) => {
        const volume = await bench.createVolume();
        await bench.attach(volume);
        const call = request(bench, volume, { node_id: bench.options.secondNodeId ?? '' });
        const words = await refused('FAILED_PRECONDITION', bench.controller.ControllerPublishVolume(call));
        assert.ok(words.includes(bench.info.node_id), `"${words}" does not name ${bench.info.node_id}`);
      },
    },
    'to a second node is OK for many nodes': {
      needs: ['second node'],
      run: async (bench) => {
        const many = bench.capability('MULTI_NODE_READER_ONLY');
        const volume = await bench.createVolume({ volume_capabilities: [many] });
        const node_id = bench.options.secondNodeId ?? '';
        await bench.attach(volume, many);
        bench.detachLater(volume.volume_id, node_id);
        await bench.controller.ControllerPublishVolume(request(bench, volume, { node_id, volume_capability: many }));
      },
    },
    'of one volume more than a node takes is RESOURCE_EXHAUSTED': {
      needs: ['few volumes'],
      run: async (bench) => {
        for (let count = 0; count < Number(bench.info.max_volumes_per_node); count++)
          await bench.attach(await bench.createVolume());
        const call = request(bench, await bench.createVolume());
        await refused('RESOURCE_EXHAUSTED', bench.controller.ControllerPublishVolume(call));
      },
    },
  }),
  ...section('ControllerUnpublishVolume', NEEDS, {
    'without a volume id is an INVALID_ARGUMENT': async (bench) => {
      await refused(
        'INVALID_ARGUMENT',
        bench.controller.ControllerUnpublishVolume({ volume_id: '', node_id: bench.info.node_id }),
      );
    },
    'of a volume that is not attached is OK': async (bench) => {
      const { volume_id } = await bench.createVolume();
      await bench.controller.ControllerUnpublishVolume({
        volume_id,
        node_id: bench.info.node_id,
        secrets: bench.secrets,
      });
    },
    'is OK, also when it is called again, and the volume can be deleted': async (bench) => {
      const volume = await bench.createVolume();
      await bench.attach(volume);
      const call = { volume_id: volume.volume_id, node_id: bench.info.node_id, secrets: bench.secrets };
      await bench.controller.ControllerUnpublishVolume(call);
      await bench.controller.ControllerUnpublishVolume(call);
      await bench.controller.DeleteVolume({ volume_id: volume.volume_id, secrets: bench.secrets });
    },
    'without a node id takes the volume from every node': async (bench) => {
      const reader = bench.capability('SINGLE_NODE_READER_ONLY');
      const volume = await bench.createVolume({ volume_capabilities: [bench.capability(), reader] });
      await bench.attach(volume);
      await bench.controller.ControllerUnpublishVolume({ volume_id: volume.volume_id, secrets: bench.secrets });
      // Attached to nothing, it can be attached in another way.
      await bench.attach(volume, reader);
    },
    'of a volume that is gone is OK, or NOT_FOUND': async (bench) => {
      const call = { volume_id: bench.unknownId(), node_id: bench.info.node_id, secrets: bench.secrets };
      const answer = bench.controller.ControllerUnpublishVolume(call);
      await answer.catch(() => refused('NOT_FOUND', answer));
    },
  }),
  ...section('DeleteVolume', NEEDS, {
    'of a volume that is attached is FAILED_PRECONDITION': async (bench) => {
      const volume = await bench.createVolume();
      await bench.attach(volume);
      await refused(
        'FAILED_PRECONDITION',
        bench.controller.DeleteVolume({ volume_id: volume.volume_id, secrets: bench.secrets }),
      );
    },
  }),
];
