// Checks of CreateVolume and DeleteVolume.

import assert from 'node:assert/strict';
import { getOwn } from '../../lib/own-property.ts';
import type { CreateVolumeRequest } from '../../proto/gen/csi/v1/CreateVolumeRequest.ts';
import type { Topology__Output } from '../../proto/gen/csi/v1/Topology.ts';
import { CsiError } from '../client.ts';
import { type Bench, MiB, refused } from './bench.ts';
import { type Check, section } from './check.ts';

/** A range that no driver can refuse for being too small or too large for it. */
const impossible = { required_bytes: 1, limit_bytes: 1 };

async function refusesCreate(
  bench: Bench,
  codes: string | readonly string[],
  more: CreateVolumeRequest,
): Promise<void> {
  const call = bench.controller.CreateVolume(bench.createRequest(more)).then((answer) => {
    // What should not have been made must not stay.
    if (answer.volume) bench.forget(answer.volume.volume_id);
    return answer;
  });
  await refused(codes, call);
}

const KEY = /^([a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const VALUE = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

export function assertTopology(topology: Topology__Output): void {
  const keys = Object.keys(topology.segments);
  for (const [key, value] of Object.entries(topology.segments)) {
    assert.match(key, KEY, 'a topology key');
    assert.match(value, VALUE, 'a topology segment');
  }
  assert.equal(new Set(keys.map((key) => key.toLowerCase())).size, keys.length, 'topology keys differ by case only');
  const prefixes = new Set(keys.filter((key) => key.includes('/')).map((key) => key.split('/')[0]));
  assert.ok(prefixes.size <= 1, 'topology keys have several prefixes');
}

const REFUSED_RANGE = ['OUT_OF_RANGE', 'INVALID_ARGUMENT'];

export const createChecks: readonly Check[] = [
  ...section('CreateVolume', ['controller:CREATE_DELETE_VOLUME'], {
    'without a name is an INVALID_ARGUMENT': (bench) => refusesCreate(bench, 'INVALID_ARGUMENT', { name: '' }),
    'without volume capabilities is an INVALID_ARGUMENT': (bench) =>
      refusesCreate(bench, 'INVALID_ARGUMENT', { volume_capabilities: [] }),
    'with a capability that has no access type is an INVALID_ARGUMENT': (bench) =>
      refusesCreate(bench, 'INVALID_ARGUMENT', {
        volume_capabilities: [{ access_mode: { mode: 'SINGLE_NODE_WRITER' } }],
      }),
    'with a capability that has no access mode is an INVALID_ARGUMENT': (bench) =>
      refusesCreate(bench, 'INVALID_ARGUMENT', {
        volume_capabilities: [bench.options.accessType === 'block' ? { block: {} } : { mount: {} }],
      }),
    'with a control character in the name is an INVALID_ARGUMENT': (bench) =>
      refusesCreate(bench, 'INVALID_ARGUMENT', { name: `${bench.name()}\u0007` }),
    'takes a name of 128 bytes': async (bench) => {
      await bench.createVolume({ name: bench.name().padEnd(128, 'x') });
    },
    'takes any Unicode in a name': async (bench) => {
      await bench.createVolume({ name: `${bench.name()} Größe 体积 🗄/..\t` });
    },
    'answers with an id of 128 bytes at most and a context of 4 KiB at most': async (bench) => {
      const { volume_id, volume_context } = await bench.createVolume();
      assert.notEqual(volume_id, '');
      assert.ok(Buffer.byteLength(volume_id) <= 128);
      assert.ok(Buffer.byteLength(Object.entries(volume_context).flat().join('')) <= 4096);
    },
    'chooses a capacity by itself when none is required': async (bench) => {
      const { capacity_bytes } = await bench.createVolume({ capacity_range: null });
      assert.ok(Number(capacity_bytes) >= 0);
    },
    'honours required_bytes and limit_bytes, or says OUT_OF_RANGE': async (bench) => {
      const [required_bytes, limit_bytes] = [bench.options.volumeBytes, bench.options.volumeBytes + 64 * MiB];
      const volume = await bench.createVolume({ capacity_range: { required_bytes, limit_bytes } });
      const bytes = Number(volume.capacity_bytes);
      assert.ok(bytes === 0 || (bytes >= required_bytes && bytes <= limit_bytes), `${bytes} bytes`);
    },
    'of a capacity that is not allowed is OUT_OF_RANGE': (bench) =>
      refusesCreate(bench, 'OUT_OF_RANGE', { capacity_range: impossible }),
    'with limit_bytes below required_bytes is refused as invalid or out of range': (bench) =>
      refusesCreate(bench, REFUSED_RANGE, {
        capacity_range: { required_bytes: bench.options.volumeBytes, limit_bytes: bench.options.volumeBytes - 8192 },
      }),
    'with a negative capacity is refused as invalid or out of range': (bench) =>
      refusesCreate(bench, REFUSED_RANGE, { capacity_range: { required_bytes: -1 } }),
    'called again with the same arguments answers with the same volume': async (bench) => {
      const request = bench.createRequest();
      const first = await bench.createVolume(request);
      const second = await bench.createVolume(request);
      assert.deepEqual(second, first);
    },
    'called again with a capacity range that the volume fits answers with the same volume': async (bench) => {
      const request = bench.createRequest();
      const first = await bench.createVolume(request);
      const bytes = Number(first.capacity_bytes) || bench.options.volumeBytes;
      const second = await bench.createVolume({
        ...request,
        capacity_range: { required_bytes: bytes - 1, limit_bytes: bytes + 1 },
      });
      assert.equal(second.volume_id, first.volume_id);
    },
    'of the same name and another capacity is ALREADY_EXISTS': async (bench) => {
      const request = bench.createRequest({
        capacity_range: {
          required_bytes: bench.options.volumeBytes,
          limit_bytes: bench.options.volumeBytes + 64 * MiB,
        },
      });
      await bench.createVolume(request);
      const required_bytes = bench.options.volumeBytes + 1024 * MiB;
      await refused(
        'ALREADY_EXISTS',
        bench.controller.CreateVolume({ ...request, capacity_range: { required_bytes } }),
      );
    },
    'of the same name for another access type is ALREADY_EXISTS, or a volume that serves both': async (bench) => {
      const request = bench.createRequest();
      const first = await bench.createVolume(request);
      const access_mode = { mode: 'SINGLE_NODE_WRITER' as const };
      const other = bench.options.accessType === 'block' ? { access_mode, mount: {} } : { access_mode, block: {} };
      try {
        const { volume } = await bench.controller.CreateVolume({ ...request, volume_capabilities: [other] });
        assert.equal(volume?.volume_id, first.volume_id);
      } catch (error) {
        if (!(error instanceof CsiError)) throw error;
        assert.equal(error.code, 'ALREADY_EXISTS');
      }
    },
    'called several times at once makes one volume, and answers ABORTED to who is in the way': async (bench) => {
      const request = bench.createRequest();
      const answers = await Promise.allSettled(Array.from({ length: 4 }, () => bench.controller.CreateVolume(request)));
      const ids = new Set<string>();
      for (const answer of answers) {
        if (answer.status === 'fulfilled') ids.add(answer.value.volume?.volume_id ?? '');
        else await refused('ABORTED', Promise.reject(answer.reason));
      }
      ids.add((await bench.createVolume(request)).volume_id);
      assert.equal(ids.size, 1);
    },
    'with a content source that has no type is an INVALID_ARGUMENT': (bench) =>
      refusesCreate(bench, 'INVALID_ARGUMENT', { volume_content_source: {} }),
    'serves every one of several capabilities, or refuses them': async (bench) => {
      const volume_capabilities = [bench.capability('SINGLE_NODE_WRITER'), bench.capability('SINGLE_NODE_READER_ONLY')];
      const volume = await bench.createVolume({ volume_capabilities });
      const { confirmed } = await bench.controller.ValidateVolumeCapabilities({
        volume_id: volume.volume_id,
        volume_context: volume.volume_context,
        volume_capabilities,
        secrets: bench.secrets,
      });
      assert.equal(confirmed?.volume_capabilities.length, 2);
    },
  }),
  ...section('CreateVolume', ['controller:CREATE_DELETE_VOLUME', 'plugin:VOLUME_ACCESSIBILITY_CONSTRAINTS'], {
    'reports where the volume is accessible from, in well-formed topologies': async (bench) => {
      const { accessible_topology } = await bench.createVolume();
      accessible_topology.forEach(assertTopology);
    },
    'for the topology of this node makes a volume that is accessible from it': async (bench) => {
      const here = bench.info.accessible_topology;
      assert.ok(here, 'NodeGetInfo has no accessible_topology');
      const volume = await bench.createVolume({ accessibility_requirements: { requisite: [here], preferred: [here] } });
      assert.ok(
        volume.accessible_topology.some(({ segments }) =>
          Object.entries(segments).every(([key, value]) => getOwn(here.segments, key) === value),
        ),
      );
    },
    'takes preferred topologies alone': async (bench) => {
      const here = bench.info.accessible_topology;
      assert.ok(here, 'NodeGetInfo has no accessible_topology');
      await bench.createVolume({ accessibility_requirements: { preferred: [here] } });
    },
    'for a topology that nothing is in is RESOURCE_EXHAUSTED': async (bench) => {
      const here = bench.info.accessible_topology;
      assert.ok(here, 'NodeGetInfo has no accessible_topology');
      const nowhere = {
        segments: Object.fromEntries(Object.keys(here.segments).map((key) => [key, 'sanity-nowhere'])),
      };
      await refusesCreate(bench, 'RESOURCE_EXHAUSTED', { accessibility_requirements: { requisite: [nowhere] } });
    },
    'of the same name for another topology is ALREADY_EXISTS': async (bench) => {
      const here = bench.info.accessible_topology;
      assert.ok(here, 'NodeGetInfo has no accessible_topology');
      const request = bench.createRequest({ accessibility_requirements: { requisite: [here] } });
      await bench.createVolume(request);
      const nowhere = {
        segments: Object.fromEntries(Object.keys(here.segments).map((key) => [key, 'sanity-nowhere'])),
      };
      await refused(
        'ALREADY_EXISTS',
        bench.controller.CreateVolume({ ...request, accessibility_requirements: { requisite: [nowhere] } }),
      );
    },
  }),
  ...section('CreateVolume', ['controller:CREATE_DELETE_VOLUME', '!plugin:VOLUME_ACCESSIBILITY_CONSTRAINTS'], {
    'reports no topology without VOLUME_ACCESSIBILITY_CONSTRAINTS': async (bench) => {
      assert.deepEqual((await bench.createVolume()).accessible_topology, []);
    },
  }),
  ...section('DeleteVolume', ['controller:CREATE_DELETE_VOLUME'], {
    'without an id is an INVALID_ARGUMENT': async ({ controller }) => {
      await refused('INVALID_ARGUMENT', controller.DeleteVolume({ volume_id: '' }));
    },
    'of a volume that does not exist is OK': async (bench) => {
      await bench.controller.DeleteVolume({ volume_id: bench.unknownId(), secrets: bench.secrets });
    },
    'is OK, also when it is called again, and the volume is gone': async (bench) => {
      const { volume_id } = await bench.createVolume();
      await bench.controller.DeleteVolume({ volume_id, secrets: bench.secrets });
      await bench.controller.DeleteVolume({ volume_id, secrets: bench.secrets });
      const request = { volume_id, volume_capabilities: [bench.capability()], secrets: bench.secrets };
      await refused('NOT_FOUND', bench.controller.ValidateVolumeCapabilities(request));
    },
    'leaves room for a new volume of the same name': async (bench) => {
      const request = bench.createRequest();
      const { volume_id } = await bench.createVolume(request);
      await bench.controller.DeleteVolume({ volume_id, secrets: bench.secrets });
      await bench.createVolume({
        ...request,
        capacity_range: { required_bytes: bench.options.volumeBytes + 64 * MiB },
      });
    },
    'of a volume that is in use on this node is FAILED_PRECONDITION': async (bench) => {
      const volume = await bench.createVolume();
      await bench.publish(await bench.prepare(volume));
      const request = { volume_id: volume.volume_id, secrets: bench.secrets };
      await refused('FAILED_PRECONDITION', bench.controller.DeleteVolume(request));
    },
  }),
];
