// Checks of the Controller service beside creation and snapshots: validation, lists, capacity, expansion.

import assert from 'node:assert/strict';
import { type Bench, MiB, refused } from './bench.ts';
import { type Check, section } from './check.ts';

/** Every entry of every page; fails when a page is larger than was requested or the pages never end. */
async function allPages<T>(
  size: number,
  page: (starting_token: string) => Promise<{ readonly entries: readonly T[]; readonly next_token: string }>,
): Promise<readonly T[]> {
  const all: T[] = [];
  let token = '';
  for (let count = 0; count < 1000; count++) {
    const { entries, next_token } = await page(token);
    assert.ok(entries.length <= size, `${entries.length} entries where ${size} are the most`);
    all.push(...entries);
    if (next_token === '') return all;
    token = next_token;
  }
  throw new Error('the pages do not end');
}

const listing = (bench: Bench, max_entries: number) =>
  allPages(max_entries, (starting_token) => bench.controller.ListVolumes({ max_entries, starting_token }));

export const controllerChecks: readonly Check[] = [
  ...section('ValidateVolumeCapabilities', ['controller:CREATE_DELETE_VOLUME'], {
    'without an id is an INVALID_ARGUMENT': async (bench) => {
      const request = { volume_id: '', volume_capabilities: [bench.capability()] };
      await refused('INVALID_ARGUMENT', bench.controller.ValidateVolumeCapabilities(request));
    },
    'without capabilities is an INVALID_ARGUMENT': async (bench) => {
      const { volume_id } = await bench.createVolume();
      await refused(
        'INVALID_ARGUMENT',
        bench.controller.ValidateVolumeCapabilities({ volume_id, secrets: bench.secrets }),
      );
    },
    'of a volume that does not exist is NOT_FOUND': async (bench) => {
      const request = {
        volume_id: bench.unknownId(),
        volume_capabilities: [bench.capability()],
        secrets: bench.secrets,
      };
      await refused('NOT_FOUND', bench.controller.ValidateVolumeCapabilities(request));
    },
    'confirms what the volume was made for, every time': async (bench) => {
      const { volume_id, volume_context } = await bench.createVolume();
      const request = { volume_id, volume_context, volume_capabilities: [bench.capability()], secrets: bench.secrets };
      const first = await bench.controller.ValidateVolumeCapabilities(request);
      assert.equal(first.confirmed?.volume_capabilities.length, 1, first.message);
      assert.equal(first.confirmed.volume_capabilities[0]?.access_mode?.mode, 'SINGLE_NODE_WRITER');
      assert.deepEqual(await bench.controller.ValidateVolumeCapabilities(request), first);
    },
    'does not confirm a filesystem that is unknown': {
      needs: ['mount'],
      run: async (bench) => {
        const { volume_id, volume_context } = await bench.createVolume();
        const capability = bench.capability('SINGLE_NODE_WRITER', { fsType: 'sanityfs' });
        const request = {
          volume_id,
          volume_context,
          volume_capabilities: [bench.capability(), capability],
          secrets: bench.secrets,
        };
        assert.equal((await bench.controller.ValidateVolumeCapabilities(request)).confirmed, null);
      },
    },
  }),
  ...section('ListVolumes', ['controller:LIST_VOLUMES', 'controller:CREATE_DELETE_VOLUME'], {
    'shows a new volume as CreateVolume did, and no longer when it is deleted': async (bench) => {
      const volume = await bench.createVolume();
      const find = async () => (await listing(bench, 1000)).find((each) => each.volume?.volume_id === volume.volume_id);
      const entry = await find();
      assert.deepEqual(entry?.volume?.volume_context, volume.volume_context);
      assert.equal(entry.volume.capacity_bytes, volume.capacity_bytes);
      await bench.controller.DeleteVolume({ volume_id: volume.volume_id, secrets: bench.secrets });
      assert.equal(await find(), undefined);
    },
    'shows every volume once over pages of one, and never more than max_entries': async (bench) => {
      const made = [await bench.createVolume(), await bench.createVolume(), await bench.createVolume()];
      const ids = (await listing(bench, 1)).map((entry) => entry.volume?.volume_id);
      for (const { volume_id } of made) assert.equal(ids.filter((id) => id === volume_id).length, 1);
    },
    'with a token that the plugin never gave is ABORTED': async ({ controller }) => {
      await refused('ABORTED', controller.ListVolumes({ starting_token: 'sanity: no token' }));
    },
    'with negative max_entries is an INVALID_ARGUMENT': async ({ controller }) => {
      await refused('INVALID_ARGUMENT', controller.ListVolumes({ max_entries: -1 }));
    },
    'reports the condition of each volume': {
      needs: ['controller:VOLUME_CONDITION'],
      run: async (bench) => {
        await bench.createVolume();
        for (const { status } of await listing(bench, 1000))
          assert.notEqual(status?.volume_condition?.message ?? '', '');
      },
    },
    'has a status for each volume': {
      needs: ['controller:LIST_VOLUMES_PUBLISHED_NODES'],
      run: async (bench) => {
        const volume = await bench.createVolume();
        await bench.attach(volume);
        const entry = (await listing(bench, 1000)).find((each) => each.volume?.volume_id === volume.volume_id);
        assert.deepEqual(entry?.status?.published_node_ids, [bench.info.node_id]);
      },
    },
  }),
  ...section('ControllerGetVolume', ['controller:GET_VOLUME', 'controller:CREATE_DELETE_VOLUME'], {
    'without an id is an INVALID_ARGUMENT': async ({ controller }) => {
      await refused('INVALID_ARGUMENT', controller.ControllerGetVolume({ volume_id: '' }));
    },
    'of a volume that does not exist is NOT_FOUND': async (bench) => {
      await refused('NOT_FOUND', bench.controller.ControllerGetVolume({ volume_id: bench.unknownId() }));
    },
    'shows the volume as CreateVolume did': async (bench) => {
      const created = await bench.createVolume();
      const { volume, status } = await bench.controller.ControllerGetVolume({ volume_id: created.volume_id });
      assert.deepEqual(volume, created);
      assert.notEqual(status, null);
    },
    'reports the condition of the volume': {
      needs: ['controller:VOLUME_CONDITION'],
      run: async (bench) => {
        const { volume_id } = await bench.createVolume();
        const { status } = await bench.controller.ControllerGetVolume({ volume_id });
        assert.equal(status?.volume_condition?.abnormal, false);
        assert.notEqual(status.volume_condition.message, '');
      },
    },
  }),
  ...section('GetCapacity', ['controller:GET_CAPACITY'], {
    'is never negative, and its bounds are not either': async ({ controller }) => {
      const answer = await controller.GetCapacity({});
      assert.ok(Number(answer.available_capacity) >= 0);
      const [smallest, largest] = [answer.minimum_volume_size, answer.maximum_volume_size];
      if (smallest !== null) assert.ok(Number(smallest.value) >= 0);
      if (largest !== null) assert.ok(Number(largest.value) >= Number(smallest?.value ?? 0));
    },
    'takes capabilities and parameters into account': async (bench) => {
      const request = { volume_capabilities: [bench.capability()], parameters: { ...bench.options.parameters } };
      assert.ok(Number((await bench.controller.GetCapacity(request)).available_capacity) >= 0);
    },
    'of a topology that nothing is in has nothing': {
      needs: ['plugin:VOLUME_ACCESSIBILITY_CONSTRAINTS'],
      run: async (bench) => {
        const keys = Object.keys(bench.info.accessible_topology?.segments ?? {});
        const accessible_topology = { segments: Object.fromEntries(keys.map((key) => [key, 'sanity-nowhere'])) };
        assert.equal(Number((await bench.controller.GetCapacity({ accessible_topology })).available_capacity), 0);
      },
    },
  }),
  ...section('ControllerExpandVolume', ['controller:EXPAND_VOLUME', 'controller:CREATE_DELETE_VOLUME'], {
    'without an id is an INVALID_ARGUMENT': async ({ controller }) => {
      await refused(
        'INVALID_ARGUMENT',
        controller.ControllerExpandVolume({ volume_id: '', capacity_range: { required_bytes: MiB } }),
      );
    },
    'without a capacity range is an INVALID_ARGUMENT': async (bench) => {
      const { volume_id } = await bench.createVolume();
      await refused('INVALID_ARGUMENT', bench.controller.ControllerExpandVolume({ volume_id, secrets: bench.secrets }));
    },
    'of a volume that does not exist is NOT_FOUND': async (bench) => {
      const request = {
        volume_id: bench.unknownId(),
        capacity_range: { required_bytes: 1024 * MiB },
        secrets: bench.secrets,
      };
      await refused('NOT_FOUND', bench.controller.ControllerExpandVolume(request));
    },
    'makes the volume as large as is required, and is OK when it is so already': async (bench) => {
      const { volume_id } = await bench.createVolume();
      const required_bytes = bench.options.volumeBytes + 64 * MiB;
      const request = {
        volume_id,
        capacity_range: { required_bytes },
        volume_capability: bench.capability(),
        secrets: bench.secrets,
      };
      const first = await bench.controller.ControllerExpandVolume(request);
      assert.ok(Number(first.capacity_bytes) >= required_bytes);
      assert.equal((await bench.controller.ControllerExpandVolume(request)).capacity_bytes, first.capacity_bytes);
      const smaller = { ...request, capacity_range: { required_bytes: bench.options.volumeBytes } };
      assert.equal((await bench.controller.ControllerExpandVolume(smaller)).capacity_bytes, first.capacity_bytes);
    },
    'beyond every limit is OUT_OF_RANGE': async (bench) => {
      const { volume_id } = await bench.createVolume();
      const request = { volume_id, capacity_range: { required_bytes: 2 ** 62 }, secrets: bench.secrets };
      await refused('OUT_OF_RANGE', bench.controller.ControllerExpandVolume(request));
    },
    'within a limit below what is needed is OUT_OF_RANGE': async (bench) => {
      const { volume_id } = await bench.createVolume();
      const capacity_range = {
        required_bytes: bench.options.volumeBytes + 1,
        limit_bytes: bench.options.volumeBytes + 1,
      };
      await refused(
        'OUT_OF_RANGE',
        bench.controller.ControllerExpandVolume({ volume_id, capacity_range, secrets: bench.secrets }),
      );
    },
    'for a capability that the volume has not is an INVALID_ARGUMENT': {
      needs: ['mount'],
      run: async (bench) => {
        const { volume_id } = await bench.createVolume();
        const volume_capability = bench.capability('SINGLE_NODE_WRITER', { fsType: 'sanityfs' });
        const capacity_range = { required_bytes: bench.options.volumeBytes + 64 * MiB };
        const request = { volume_id, capacity_range, volume_capability, secrets: bench.secrets };
        await refused('INVALID_ARGUMENT', bench.controller.ControllerExpandVolume(request));
      },
    },
  }),
];
