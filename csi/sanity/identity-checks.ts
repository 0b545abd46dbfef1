// Checks of the Identity service, and of what all services have in common.

import assert from 'node:assert/strict';
import { type Bench, refused } from './bench.ts';
import { type Check, section } from './check.ts';

const DOMAIN_NAME = /^[A-Za-z0-9]([A-Za-z0-9.-]{0,61}[A-Za-z0-9])?$/;

interface Unannounced {
  readonly rpc: string;
  readonly capability: string;
  /** A request that is well-formed, but that no server can serve. */
  readonly call: (bench: Bench) => Promise<unknown>;
}

const size = { required_bytes: 1 };

const UNANNOUNCED: readonly Unannounced[] = [
  {
    rpc: 'CreateVolume',
    capability: 'CREATE_DELETE_VOLUME',
    call: (b) => b.controller.CreateVolume(b.createRequest()),
  },
  {
    rpc: 'DeleteVolume',
    capability: 'CREATE_DELETE_VOLUME',
    call: (b) => b.controller.DeleteVolume({ volume_id: b.unknownId() }),
  },
  {
    rpc: 'ControllerPublishVolume',
    capability: 'PUBLISH_UNPUBLISH_VOLUME',
    call: (b) =>
      b.controller.ControllerPublishVolume({
        volume_id: b.unknownId(),
        node_id: b.info.node_id,
        volume_capability: b.capability(),
      }),
  },
  {
    rpc: 'ControllerUnpublishVolume',
    capability: 'PUBLISH_UNPUBLISH_VOLUME',
    call: (b) => b.controller.ControllerUnpublishVolume({ volume_id: b.unknownId(), node_id: b.info.node_id }),
  },
  { rpc: 'ListVolumes', capability: 'LIST_VOLUMES', call: (b) => b.controller.ListVolumes({}) },
  { rpc: 'GetCapacity', capability: 'GET_CAPACITY', call: (b) => b.controller.GetCapacity({}) },
  {
    rpc: 'CreateSnapshot',
    capability: 'CREATE_DELETE_SNAPSHOT',
    call: (b) => b.controller.CreateSnapshot({ name: b.name(), source_volume_id: b.unknownId() }),
  },
  {
    rpc: 'DeleteSnapshot',
    capability: 'CREATE_DELETE_SNAPSHOT',
    call: (b) => b.controller.DeleteSnapshot({ snapshot_id: b.unknownId() }),
  },
  { rpc: 'ListSnapshots', capability: 'LIST_SNAPSHOTS', call: (b) => b.controller.ListSnapshots({}) },
  {
    rpc: 'GetSnapshot',
    capability: 'GET_SNAPSHOT',
    call: (b) => b.controller.GetSnapshot({ snapshot_id: b.unknownId() }),
  },
  {
    rpc: 'ControllerExpandVolume',
    capability: 'EXPAND_VOLUME',
    call: (b) => b.controller.ControllerExpandVolume({ volume_id: b.unknownId(), capacity_range: size }),
  },
  {
    rpc: 'ControllerGetVolume',
    capability: 'GET_VOLUME',
    call: (b) => b.controller.ControllerGetVolume({ volume_id: b.unknownId() }),
  },
  {
    rpc: 'ControllerModifyVolume',
    capability: 'MODIFY_VOLUME',
    call: (b) => b.controller.ControllerModifyVolume({ volume_id: b.unknownId(), mutable_parameters: { a: 'b' } }),
  },
];

const UNANNOUNCED_ON_NODE: readonly Unannounced[] = [
  {
    rpc: 'NodeStageVolume',
    capability: 'STAGE_UNSTAGE_VOLUME',
    call: async (b) =>
      b.node.NodeStageVolume({
        volume_id: b.unknownId(),
        staging_target_path: await b.directory(),
        volume_capability: b.capability(),
      }),
  },
  {
    rpc: 'NodeUnstageVolume',
    capability: 'STAGE_UNSTAGE_VOLUME',
    call: async (b) => b.node.NodeUnstageVolume({ volume_id: b.unknownId(), staging_target_path: await b.directory() }),
  },
  {
    rpc: 'NodeExpandVolume',
    capability: 'EXPAND_VOLUME',
    call: async (b) => b.node.NodeExpandVolume({ volume_id: b.unknownId(), volume_path: await b.directory() }),
  },
];

export const identityChecks: readonly Check[] = [
  ...section('GetPluginInfo', [], {
    'names the plugin in domain notation, in 63 characters at most': async ({ client }) => {
      const { name } = await client.identity.GetPluginInfo({});
      assert.match(name, DOMAIN_NAME);
    },
    'reports a vendor version': async ({ client }) => {
      assert.notEqual((await client.identity.GetPluginInfo({})).vendor_version, '');
    },
    'keeps its manifest within 4 KiB': async ({ client }) => {
      const { manifest } = await client.identity.GetPluginInfo({});
      assert.ok(Buffer.byteLength(Object.entries(manifest).flat().join('')) <= 4096);
    },
  }),
  ...section('GetPluginCapabilities', [], {
    'answers the same at every call': async ({ client }) => {
      const [first, second] = [
        await client.identity.GetPluginCapabilities({}),
        await client.identity.GetPluginCapabilities({}),
      ];
      assert.deepEqual(second, first);
    },
    'gives each capability a type': async ({ client }) => {
      for (const each of (await client.identity.GetPluginCapabilities({})).capabilities) {
        const type = each.service?.type ?? each.volume_expansion?.type;
        assert.ok(type !== undefined && type !== 'UNKNOWN', `a capability is ${type}`);
      }
    },
    'announces online expansion only with EXPAND_VOLUME of the controller or the node': {
      needs: ['plugin:ONLINE'],
      run: async (bench) => assert.ok(bench.can('controller:EXPAND_VOLUME') || bench.can('node:EXPAND_VOLUME')),
    },
    'announces offline expansion only with EXPAND_VOLUME of the controller': {
      needs: ['plugin:OFFLINE'],
      run: async (bench) => assert.ok(bench.can('controller:EXPAND_VOLUME')),
    },
  }),
  ...section('Probe', [], {
    'succeeds on a plugin that works, and says that it is ready if it says anything': async ({ client }) => {
      const { ready } = await client.identity.Probe({});
      assert.notEqual(ready?.value, false);
    },
    'may be called at any time': async ({ client }) => {
      await Promise.all(Array.from({ length: 5 }, () => client.identity.Probe({})));
    },
  }),
  ...section('ControllerGetCapabilities', ['plugin:CONTROLLER_SERVICE'], {
    'answers the same at every call': async ({ controller }) => {
      const [first, second] = [
        await controller.ControllerGetCapabilities({}),
        await controller.ControllerGetCapabilities({}),
      ];
      assert.deepEqual(second, first);
    },
    'gives each capability a type': async ({ controller }) => {
      for (const { rpc } of (await controller.ControllerGetCapabilities({})).capabilities) {
        assert.ok(rpc !== null && rpc !== undefined && rpc.type !== 'UNKNOWN');
      }
    },
    'announces PUBLISH_READONLY and LIST_VOLUMES_PUBLISHED_NODES only with PUBLISH_UNPUBLISH_VOLUME': async (bench) => {
      const attaches = bench.can('controller:PUBLISH_UNPUBLISH_VOLUME');
      assert.ok(attaches || !bench.can('controller:PUBLISH_READONLY'));
      assert.ok(attaches || !bench.can('controller:LIST_VOLUMES_PUBLISHED_NODES'));
    },
  }),
  ...section('NodeGetCapabilities', [], {
    'answers the same at every call': async ({ node }) => {
      assert.deepEqual(await node.NodeGetCapabilities({}), await node.NodeGetCapabilities({}));
    },
    'gives each capability a type': async ({ node }) => {
      for (const { rpc } of (await node.NodeGetCapabilities({})).capabilities) {
        assert.ok(rpc !== null && rpc !== undefined && rpc.type !== 'UNKNOWN');
      }
    },
  }),
  ...UNANNOUNCED.flatMap(({ rpc, capability, call }) =>
    section(rpc, ['plugin:CONTROLLER_SERVICE', `!controller:${capability}`], {
      [`is UNIMPLEMENTED without ${capability}`]: (bench) =>
        refused('UNIMPLEMENTED', call(bench)).then(() => undefined),
    }),
  ),
  ...UNANNOUNCED_ON_NODE.flatMap(({ rpc, capability, call }) =>
    section(rpc, [`!node:${capability}`], {
      [`is UNIMPLEMENTED without ${capability}`]: (bench) =>
        refused('UNIMPLEMENTED', call(bench)).then(() => undefined),
    }),
  ),
];
