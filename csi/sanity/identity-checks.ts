// Checks of the Identity service, and of what all services have in common.

import assert from 'node:assert/strict';
import { refused } from './bench.ts';
import { type Check, section } from './check.ts';

const DOMAIN_NAME = /^[A-Za-z0-9]([A-Za-z0-9.-]{0,61}[A-Za-z0-9])?$/;

export const identityChecks: readonly Check[] = [
  ...section('GetPluginInfo', [], {
    'names the plugin in domain notation, in 63 characters at most': async ({ client }) => {
      const { name } = await client.identity.GetPluginInfo({});
      assert.match(name, DOMAIN_NAME);
    },
    'tells a vendor version': async ({ client }) => {
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
  ...section('ControllerPublishVolume', ['!controller:PUBLISH_UNPUBLISH_VOLUME'], {
    'is UNIMPLEMENTED without its capability': async (bench) => {
      const request = {
        volume_id: bench.unknownId(),
        node_id: bench.info.node_id,
        volume_capability: bench.capability(),
      };
      await refused('UNIMPLEMENTED', bench.controller.ControllerPublishVolume(request));
      await refused('UNIMPLEMENTED', bench.controller.ControllerUnpublishVolume({ volume_id: bench.unknownId() }));
    },
  }),
  ...section('ControllerModifyVolume', ['!controller:MODIFY_VOLUME'], {
    'is UNIMPLEMENTED without its capability': async (bench) => {
      const request = { volume_id: bench.unknownId(), mutable_parameters: { a: 'b' } };
      await refused('UNIMPLEMENTED', bench.controller.ControllerModifyVolume(request));
    },
  }),
];
