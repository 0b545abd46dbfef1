// Checks of snapshots, and of volumes made from snapshots and from other volumes.

import assert from 'node:assert/strict';
import { systemClock } from '../../lib/clock.ts';
import { type Bench, MiB, refused } from './bench.ts';
import { type Check, section } from './check.ts';
import { readFrom, sizeAt, writeInto } from './look.ts';

const SNAPSHOTS = ['controller:CREATE_DELETE_SNAPSHOT', 'controller:CREATE_DELETE_VOLUME'] as const;
const CLONES = ['controller:CLONE_VOLUME', 'controller:CREATE_DELETE_VOLUME'] as const;

/** A volume with content that is not in use at the moment. */
async function writtenVolume(bench: Bench, words: string) {
  const volume = await bench.createVolume();
  const prepared = await bench.prepare(volume);
  const target = await bench.publish(prepared);
  await writeInto(bench, target, words);
  const { volume_id } = volume;
  await bench.node.NodeUnpublishVolume({ volume_id, target_path: target });
  return { volume, prepared };
}

/** The words in a volume, and how large it is to its user. */
async function readContent(bench: Bench, source: Parameters<Bench['createVolume']>[0]) {
  const volume = await bench.createVolume(source);
  const target = await bench.publish(await bench.prepare(volume));
  return { volume, words: await readFrom(bench, target), bytes: await sizeAt(bench, target) };
}

const fromSnapshot = (snapshot_id: string) => ({ volume_content_source: { snapshot: { snapshot_id } } });
const fromVolume = (volume_id: string) => ({ volume_content_source: { volume: { volume_id } } });

export const snapshotChecks: readonly Check[] = [
  ...section('CreateSnapshot', SNAPSHOTS, {
    'without a name is an INVALID_ARGUMENT': async (bench) => {
      const { volume_id } = await bench.createVolume();
      await refused(
        'INVALID_ARGUMENT',
        bench.controller.CreateSnapshot({ name: '', source_volume_id: volume_id, secrets: bench.secrets }),
      );
    },
    'without a source volume is an INVALID_ARGUMENT': async (bench) => {
      await refused(
        'INVALID_ARGUMENT',
        bench.controller.CreateSnapshot({ name: bench.name(), source_volume_id: '', secrets: bench.secrets }),
      );
    },
    'takes a name of 128 bytes': async (bench) => {
      await bench.createSnapshot(await bench.createVolume(), bench.name().padEnd(128, 's'));
    },
    'reports its source, the time it was cut, and a size': async (bench) => {
      const volume = await bench.createVolume();
      const snapshot = await bench.createSnapshot(volume);
      assert.equal(snapshot.source_volume_id, volume.volume_id);
      assert.ok(Number(snapshot.size_bytes) >= 0);
      const age = systemClock.now() / 1000 - Number(snapshot.creation_time?.seconds);
      assert.ok(Math.abs(age) < 3600, `it was cut ${age} s ago`);
    },
    'called again answers with the same snapshot': async (bench) => {
      const [volume, name] = [await bench.createVolume(), bench.name()];
      assert.deepEqual(await bench.createSnapshot(volume, name), await bench.createSnapshot(volume, name));
    },
    'of the same name and another volume is ALREADY_EXISTS': async (bench) => {
      const name = bench.name();
      await bench.createSnapshot(await bench.createVolume(), name);
      const { volume_id } = await bench.createVolume();
      await refused(
        'ALREADY_EXISTS',
        bench.controller.CreateSnapshot({ name, source_volume_id: volume_id, secrets: bench.secrets }),
      );
    },
  }),
  ...section('DeleteSnapshot', SNAPSHOTS, {
    'without an id is an INVALID_ARGUMENT': async ({ controller }) => {
      await refused('INVALID_ARGUMENT', controller.DeleteSnapshot({ snapshot_id: '' }));
    },
    'of a snapshot that does not exist is OK': async (bench) => {
      await bench.controller.DeleteSnapshot({ snapshot_id: bench.unknownId(), secrets: bench.secrets });
    },
    'is OK, also when it is called again': async (bench) => {
      const { snapshot_id } = await bench.createSnapshot(await bench.createVolume());
      await bench.controller.DeleteSnapshot({ snapshot_id, secrets: bench.secrets });
      await bench.controller.DeleteSnapshot({ snapshot_id, secrets: bench.secrets });
    },
  }),
  ...section('DeleteVolume', SNAPSHOTS, {
    'leaves a snapshot of the volume whole, or is FAILED_PRECONDITION and leaves the volume': async (bench) => {
      const { volume, prepared } = await writtenVolume(bench, 'kept');
      const { snapshot_id } = await bench.createSnapshot(volume);
      if (prepared.staging_target_path !== '') await bench.node.NodeUnstageVolume(prepared);
      if (bench.can('controller:PUBLISH_UNPUBLISH_VOLUME')) {
        await bench.controller.ControllerUnpublishVolume({
          volume_id: volume.volume_id,
          node_id: bench.info.node_id,
          secrets: bench.secrets,
        });
      }
      const request = { volume_id: volume.volume_id, secrets: bench.secrets };
      const call = bench.controller.DeleteVolume(request);
      const deleted = await call.then(
        () => true,
        () => refused('FAILED_PRECONDITION', call).then(() => false),
      );
      if (deleted) assert.equal((await readContent(bench, fromSnapshot(snapshot_id))).words, 'kept');
      else
        await bench.controller.ValidateVolumeCapabilities({
          ...request,
          volume_capabilities: [bench.capability()],
          volume_context: volume.volume_context,
        });
    },
  }),
  ...section('ListSnapshots', ['controller:LIST_SNAPSHOTS', ...SNAPSHOTS], {
    'shows a snapshot by its id as CreateSnapshot did': async (bench) => {
      const snapshot = await bench.createSnapshot(await bench.createVolume());
      const { entries } = await bench.controller.ListSnapshots({
        snapshot_id: snapshot.snapshot_id,
        secrets: bench.secrets,
      });
      assert.deepEqual(
        entries.map((entry) => entry.snapshot),
        [snapshot],
      );
    },
    'of an id that does not exist is empty': async (bench) => {
      const { entries } = await bench.controller.ListSnapshots({
        snapshot_id: bench.unknownId(),
        secrets: bench.secrets,
      });
      assert.deepEqual(entries, []);
    },
    'by source volume shows those of this volume, and no others': async (bench) => {
      const [volume, other] = [await bench.createVolume(), await bench.createVolume()];
      const made = [await bench.createSnapshot(volume), await bench.createSnapshot(volume)];
      await bench.createSnapshot(other);
      const { entries } = await bench.controller.ListSnapshots({
        source_volume_id: volume.volume_id,
        secrets: bench.secrets,
      });
      const ids = entries.map((entry) => entry.snapshot?.snapshot_id).sort();
      assert.deepEqual(ids, made.map((each) => each.snapshot_id).sort());
    },
    'of a source volume that does not exist is empty': async (bench) => {
      const { entries } = await bench.controller.ListSnapshots({
        source_volume_id: bench.unknownId(),
        secrets: bench.secrets,
      });
      assert.deepEqual(entries, []);
    },
    'gives pages of max_entries at most, and a token for the next': async (bench) => {
      const volume = await bench.createVolume();
      for (let count = 0; count < 3; count++) await bench.createSnapshot(volume);
      const request = { source_volume_id: volume.volume_id, max_entries: 2, secrets: bench.secrets };
      const first = await bench.controller.ListSnapshots(request);
      const second = await bench.controller.ListSnapshots({ ...request, starting_token: first.next_token });
      assert.deepEqual([first.entries.length, second.entries.length, second.next_token], [2, 1, '']);
    },
    'with a token that the plugin never gave is ABORTED': async ({ controller, secrets }) => {
      await refused('ABORTED', controller.ListSnapshots({ starting_token: 'sanity: no token', secrets }));
    },
    'with negative max_entries is an INVALID_ARGUMENT': async ({ controller, secrets }) => {
      await refused('INVALID_ARGUMENT', controller.ListSnapshots({ max_entries: -1, secrets }));
    },
    'does not show a snapshot that was deleted': async (bench) => {
      const { snapshot_id } = await bench.createSnapshot(await bench.createVolume());
      await bench.controller.DeleteSnapshot({ snapshot_id, secrets: bench.secrets });
      assert.deepEqual((await bench.controller.ListSnapshots({ snapshot_id, secrets: bench.secrets })).entries, []);
    },
  }),
  ...section('GetSnapshot', ['controller:GET_SNAPSHOT', ...SNAPSHOTS], {
    'without an id is an INVALID_ARGUMENT': async ({ controller, secrets }) => {
      await refused('INVALID_ARGUMENT', controller.GetSnapshot({ snapshot_id: '', secrets }));
    },
    'of a snapshot that does not exist is NOT_FOUND': async (bench) => {
      await refused(
        'NOT_FOUND',
        bench.controller.GetSnapshot({ snapshot_id: bench.unknownId(), secrets: bench.secrets }),
      );
    },
    'shows the snapshot as CreateSnapshot did': async (bench) => {
      const made = await bench.createSnapshot(await bench.createVolume());
      const { snapshot } = await bench.controller.GetSnapshot({
        snapshot_id: made.snapshot_id,
        secrets: bench.secrets,
      });
      assert.deepEqual(snapshot, made);
    },
  }),
  ...section('CreateVolume from a snapshot', SNAPSHOTS, {
    'that does not exist is NOT_FOUND': async (bench) => {
      const request = bench.createRequest(fromSnapshot(bench.unknownId()));
      await refused('NOT_FOUND', bench.controller.CreateVolume(request));
    },
    'without the snapshot’s id is an INVALID_ARGUMENT': async (bench) => {
      await refused('INVALID_ARGUMENT', bench.controller.CreateVolume(bench.createRequest(fromSnapshot(''))));
    },
    'has what was in the volume when it was cut, though that is in use and goes on being written': async (bench) => {
      const volume = await bench.createVolume();
      const target = await bench.publish(await bench.prepare(volume));
      await writeInto(bench, target, 'before');
      const { snapshot_id } = await bench.createSnapshot(volume);
      await writeInto(bench, target, 'after');
      const copy = await readContent(bench, fromSnapshot(snapshot_id));
      assert.equal(copy.words, 'before');
      assert.deepEqual(copy.volume.content_source?.snapshot, { snapshot_id });
      assert.equal(await readFrom(bench, target), 'after');
    },
    'of a larger size has that size and the content, or is OUT_OF_RANGE': async (bench) => {
      const { volume } = await writtenVolume(bench, 'grows');
      const { snapshot_id } = await bench.createSnapshot(volume);
      const required_bytes = bench.options.volumeBytes + 256 * MiB;
      const copy = await readContent(bench, { ...fromSnapshot(snapshot_id), capacity_range: { required_bytes } });
      assert.equal(copy.words, 'grows');
      assert.ok(copy.bytes > bench.options.volumeBytes + 128 * MiB, `its user sees ${copy.bytes} bytes`);
    },
    'that must be smaller than the snapshot is OUT_OF_RANGE': async (bench) => {
      const { snapshot_id } = await bench.createSnapshot(
        await bench.createVolume({ capacity_range: { required_bytes: 2 * bench.options.volumeBytes } }),
      );
      const capacity_range = { required_bytes: bench.options.volumeBytes, limit_bytes: bench.options.volumeBytes };
      await refused(
        'OUT_OF_RANGE',
        bench.controller.CreateVolume(bench.createRequest({ ...fromSnapshot(snapshot_id), capacity_range })),
      );
    },
    'of the same name as one from nothing is ALREADY_EXISTS': async (bench) => {
      const request = bench.createRequest();
      const volume = await bench.createVolume(request);
      const { snapshot_id } = await bench.createSnapshot(volume);
      await refused('ALREADY_EXISTS', bench.controller.CreateVolume({ ...request, ...fromSnapshot(snapshot_id) }));
    },
  }),
  ...section('CreateVolume from a volume', CLONES, {
    'that does not exist is NOT_FOUND': async (bench) => {
      await refused('NOT_FOUND', bench.controller.CreateVolume(bench.createRequest(fromVolume(bench.unknownId()))));
    },
    'without the volume’s id is an INVALID_ARGUMENT': async (bench) => {
      await refused('INVALID_ARGUMENT', bench.controller.CreateVolume(bench.createRequest(fromVolume(''))));
    },
    'has what is in the other, and both are used at the same time': async (bench) => {
      const volume = await bench.createVolume();
      const target = await bench.publish(await bench.prepare(volume));
      await writeInto(bench, target, 'original');
      const copy = await readContent(bench, fromVolume(volume.volume_id));
      assert.equal(copy.words, 'original');
      assert.deepEqual(copy.volume.content_source?.volume, { volume_id: volume.volume_id });
    },
    'of a larger size has that size and the content, or is OUT_OF_RANGE': async (bench) => {
      const { volume } = await writtenVolume(bench, 'grows too');
      const required_bytes = bench.options.volumeBytes + 256 * MiB;
      const copy = await readContent(bench, { ...fromVolume(volume.volume_id), capacity_range: { required_bytes } });
      assert.equal(copy.words, 'grows too');
      assert.ok(copy.bytes > bench.options.volumeBytes + 128 * MiB, `its user sees ${copy.bytes} bytes`);
    },
    'called again answers with the same volume': async (bench) => {
      const source = await bench.createVolume();
      const request = bench.createRequest(fromVolume(source.volume_id));
      assert.deepEqual(await bench.createVolume(request), await bench.createVolume(request));
    },
  }),
];
