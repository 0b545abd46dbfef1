// Checks of NodePublishVolume and NodeUnpublishVolume.

import assert from 'node:assert/strict';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CsiError } from '../client.ts';
import { type Bench, type Mode, refused } from './bench.ts';
import { type Check, section } from './check.ts';
import { assertReadOnly, assertUsable, exists, mountedAt, readFrom, writeInto } from './look.ts';

const NEEDS = ['controller:CREATE_DELETE_VOLUME'] as const;

/** A volume for one access mode, ready to be published; undefined when the driver does not make such volumes. */
async function preparedFor(bench: Bench, mode: Mode) {
  const capability = bench.capability(mode);
  try {
    return await bench.prepare(await bench.createVolume({ volume_capabilities: [capability] }), capability);
  } catch (error) {
    if (error instanceof CsiError && error.code === 'INVALID_ARGUMENT') return undefined;
    throw error;
  }
}

/** A second target path for a volume that is published: the outcome that the specification's table requires for the access mode. */
async function secondTarget(bench: Bench, mode: Mode, expected: 'OK' | 'FAILED_PRECONDITION'): Promise<void> {
  const prepared = await preparedFor(bench, mode);
  if (prepared === undefined) return;
  const first = await bench.publish(prepared);
  const again = bench.publish(prepared);
  if (expected === 'FAILED_PRECONDITION') {
    await refused('FAILED_PRECONDITION', again);
    return;
  }
  const second = await again;
  await assertUsable(bench, first);
  await assertUsable(bench, second);
  // One goes, the other stays.
  await bench.node.NodeUnpublishVolume({ volume_id: prepared.volume_id, target_path: first });
  await assertUsable(bench, second);
}

const prepared = async (bench: Bench) => bench.prepare(await bench.createVolume());

export const publishChecks: readonly Check[] = [
  ...section('NodePublishVolume', NEEDS, {
    'without a volume id is an INVALID_ARGUMENT': async (bench) => {
      const request = { ...(await prepared(bench)), volume_id: '', target_path: await bench.target() };
      await refused('INVALID_ARGUMENT', bench.node.NodePublishVolume(request));
    },
    'without a target path is an INVALID_ARGUMENT': async (bench) => {
      await refused('INVALID_ARGUMENT', bench.node.NodePublishVolume({ ...(await prepared(bench)), target_path: '' }));
    },
    'without a capability is an INVALID_ARGUMENT': async (bench) => {
      const request = { ...(await prepared(bench)), volume_capability: null, target_path: await bench.target() };
      await refused('INVALID_ARGUMENT', bench.node.NodePublishVolume(request));
    },
    'with a target path that is not absolute is an INVALID_ARGUMENT': async (bench) => {
      const request = { ...(await prepared(bench)), target_path: 'not/absolute' };
      await refused('INVALID_ARGUMENT', bench.node.NodePublishVolume(request));
    },
    'of a volume that does not exist is NOT_FOUND': async (bench) => {
      const request = { ...(await prepared(bench)), volume_id: bench.unknownId(), target_path: await bench.target() };
      await refused('NOT_FOUND', bench.node.NodePublishVolume(request));
    },
    'without a staging path is FAILED_PRECONDITION': {
      needs: ['node:STAGE_UNSTAGE_VOLUME'],
      run: async (bench) => {
        const request = { ...(await prepared(bench)), staging_target_path: '', target_path: await bench.target() };
        await refused('FAILED_PRECONDITION', bench.node.NodePublishVolume(request));
      },
    },
    'before NodeStageVolume is refused': {
      needs: ['node:STAGE_UNSTAGE_VOLUME'],
      run: async (bench) => {
        const volume = await bench.createVolume();
        const { volume_id, volume_context } = volume;
        const publish_context = await bench.attach(volume);
        const [staging_target_path, target_path] = [await bench.directory(), await bench.target()];
        bench.unpublishLater(volume_id, target_path);
        const request = {
          volume_id,
          volume_context,
          publish_context,
          staging_target_path,
          target_path,
          volume_capability: bench.capability(),
          secrets: bench.secrets,
        };
        await refused(
          ['FAILED_PRECONDITION', 'INVALID_ARGUMENT', 'NOT_FOUND', 'INTERNAL'],
          bench.node.NodePublishVolume(request),
        );
      },
    },
    'makes the target path, and the volume can be used there': async (bench) => {
      const target = await bench.publish(await prepared(bench));
      await assertUsable(bench, target);
      await writeInto(bench, target, 'hello');
      assert.equal(await readFrom(bench, target), 'hello');
    },
    'takes a target path of 128 bytes and more': async (bench) => {
      const target_path = join(await bench.directory('t'.repeat(130)), 'target');
      await assertUsable(bench, await bench.publish(await prepared(bench), { target_path }));
    },
    'with the readonly flag keeps everybody from writing': async (bench) => {
      const target = await bench.publish(await prepared(bench), { readonly: true });
      await assertUsable(bench, target);
      await assertReadOnly(bench, target);
    },
    'for readers alone keeps everybody from writing': async (bench) => {
      const ready = await preparedFor(bench, 'SINGLE_NODE_READER_ONLY');
      if (ready !== undefined) await assertReadOnly(bench, await bench.publish(ready));
    },
    'called again with the same arguments is OK': async (bench) => {
      const ready = await prepared(bench);
      const target_path = await bench.publish(ready);
      await bench.publish(ready, { target_path });
      await assertUsable(bench, target_path);
    },
    'called again with another readonly flag is ALREADY_EXISTS': async (bench) => {
      const ready = await prepared(bench);
      const target_path = await bench.publish(ready);
      await refused('ALREADY_EXISTS', bench.publish(ready, { target_path, readonly: true }));
    },
    'at a second path is FAILED_PRECONDITION for SINGLE_NODE_WRITER': (bench) =>
      secondTarget(bench, 'SINGLE_NODE_WRITER', 'FAILED_PRECONDITION'),
    'at a second path is FAILED_PRECONDITION for SINGLE_NODE_READER_ONLY': (bench) =>
      secondTarget(bench, 'SINGLE_NODE_READER_ONLY', 'FAILED_PRECONDITION'),
    'at a second path is FAILED_PRECONDITION for SINGLE_NODE_SINGLE_WRITER': {
      needs: ['node:SINGLE_NODE_MULTI_WRITER'],
      run: (bench) => secondTarget(bench, 'SINGLE_NODE_SINGLE_WRITER', 'FAILED_PRECONDITION'),
    },
    'at a second path is OK for SINGLE_NODE_MULTI_WRITER': {
      needs: ['node:SINGLE_NODE_MULTI_WRITER'],
      run: (bench) => secondTarget(bench, 'SINGLE_NODE_MULTI_WRITER', 'OK'),
    },
    'at a second path is OK for MULTI_NODE_READER_ONLY': (bench) => secondTarget(bench, 'MULTI_NODE_READER_ONLY', 'OK'),
    'at a second path is OK for MULTI_NODE_SINGLE_WRITER': (bench) =>
      secondTarget(bench, 'MULTI_NODE_SINGLE_WRITER', 'OK'),
    'at a second path is OK for MULTI_NODE_MULTI_WRITER': (bench) =>
      secondTarget(bench, 'MULTI_NODE_MULTI_WRITER', 'OK'),
    'at a second path and read-only leaves the first one writable': {
      needs: ['node:SINGLE_NODE_MULTI_WRITER'],
      run: async (bench) => {
        const ready = await preparedFor(bench, 'SINGLE_NODE_MULTI_WRITER');
        if (ready === undefined) return;
        const [first, second] = [await bench.publish(ready), await bench.publish(ready, { readonly: true })];
        await writeInto(bench, first, 'from the first');
        await assertReadOnly(bench, second);
      },
    },
    'takes SINGLE_NODE_WRITER for a volume of the newer single-node modes': {
      needs: ['controller:SINGLE_NODE_MULTI_WRITER', 'node:SINGLE_NODE_MULTI_WRITER'],
      run: async (bench) => {
        const modes: readonly Mode[] = ['SINGLE_NODE_SINGLE_WRITER', 'SINGLE_NODE_MULTI_WRITER'];
        for (const mode of modes) {
          const volume = await bench.createVolume({ volume_capabilities: [bench.capability(mode)] });
          await assertUsable(bench, await bench.publish(await bench.prepare(volume)));
        }
      },
    },
    'with another capability than the volume is published with is FAILED_PRECONDITION': async (bench) => {
      const capabilities = [bench.capability('MULTI_NODE_MULTI_WRITER'), bench.capability('MULTI_NODE_READER_ONLY')];
      const ready = await bench.prepare(
        await bench.createVolume({ volume_capabilities: capabilities }),
        capabilities[0],
      );
      await bench.publish(ready);
      await refused(
        'FAILED_PRECONDITION',
        bench.publish({ ...ready, volume_capability: bench.capability('MULTI_NODE_READER_ONLY') }),
      );
    },
    'gives what is written to the volume_mount_group': {
      needs: ['mount', 'node:VOLUME_MOUNT_GROUP'],
      run: async (bench) => {
        const capability = bench.capability('SINGLE_NODE_WRITER', { group: '54321' });
        const volume = await bench.createVolume();
        const target = await bench.publish(await bench.prepare(volume, capability));
        const file = join(target, 'of-the-group');
        await writeFile(file, 'x');
        assert.equal((await stat(file)).gid, 54321);
        const root = await stat(target);
        assert.equal(root.gid, 54321);
        assert.equal(root.mode & 0o070, 0o070, 'the group may not write to the volume');
      },
    },
    'called several times at once is OK, or ABORTED for who is in the way': async (bench) => {
      const ready = await prepared(bench);
      const target_path = await bench.target();
      const answers = await Promise.allSettled(Array.from({ length: 4 }, () => bench.publish(ready, { target_path })));
      for (const answer of answers)
        if (answer.status === 'rejected') await refused('ABORTED', Promise.reject(answer.reason));
      await bench.publish(ready, { target_path });
      await assertUsable(bench, target_path);
    },
  }),
  ...section('NodeUnpublishVolume', NEEDS, {
    'without a volume id is an INVALID_ARGUMENT': async (bench) => {
      await refused(
        'INVALID_ARGUMENT',
        bench.node.NodeUnpublishVolume({ volume_id: '', target_path: await bench.target() }),
      );
    },
    'without a target path is an INVALID_ARGUMENT': async (bench) => {
      const { volume_id } = await bench.createVolume();
      await refused('INVALID_ARGUMENT', bench.node.NodeUnpublishVolume({ volume_id, target_path: '' }));
    },
    'of a volume that does not exist is NOT_FOUND': async (bench) => {
      const request = { volume_id: bench.unknownId(), target_path: await bench.target() };
      await refused('NOT_FOUND', bench.node.NodeUnpublishVolume(request));
    },
    'of a volume that is not published is OK': async (bench) => {
      const { volume_id } = await prepared(bench);
      await bench.node.NodeUnpublishVolume({ volume_id, target_path: await bench.target() });
    },
    'undoes the publication and removes the target path, also when it is called again': async (bench) => {
      const ready = await prepared(bench);
      const target_path = await bench.publish(ready);
      await bench.node.NodeUnpublishVolume({ volume_id: ready.volume_id, target_path });
      assert.equal(await mountedAt(target_path), undefined);
      assert.equal(await exists(target_path), false, 'the target path is still there');
      assert.equal(await exists(dirname(target_path)), true, 'the directory above the target path is gone');
      await bench.node.NodeUnpublishVolume({ volume_id: ready.volume_id, target_path });
    },
    'leaves what it has not made': async (bench) => {
      const ready = await prepared(bench);
      const foreign = join(await bench.directory(), 'foreign');
      await mkdir(foreign);
      await writeFile(join(foreign, 'file'), 'somebody’s');
      await bench.node.NodeUnpublishVolume({ volume_id: ready.volume_id, target_path: foreign });
      assert.equal(await exists(join(foreign, 'file')), true);
    },
    'and NodePublishVolume after it keep what is in the volume': async (bench) => {
      const ready = await prepared(bench);
      const target_path = await bench.publish(ready);
      await writeInto(bench, target_path, 'stays');
      await bench.node.NodeUnpublishVolume({ volume_id: ready.volume_id, target_path });
      assert.equal(await readFrom(bench, await bench.publish(ready)), 'stays');
    },
  }),
];
