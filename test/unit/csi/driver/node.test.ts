// The Node service's refusals that come before anything is touched: which of two faults of a request counts.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Locks } from '../../../../csi/driver/locks.ts';
import { node } from '../../../../csi/driver/node.ts';
import { Store } from '../../../../csi/driver/store.ts';
import { Work } from '../../../../csi/driver/work.ts';
import { systemClock } from '../../../../lib/clock.ts';
import { exec } from '../../../../lib/exec.ts';
import { Tracer } from '../../../../lib/trace.ts';

const CAPABILITY = {
  access_mode: { mode: 'SINGLE_NODE_WRITER' as const },
  mount: { fs_type: '', mount_flags: [], volume_mount_group: '' },
  block: null,
  access_type: 'mount' as const,
};
const EXISTING = 'vol-existing';
const noFaults = { before: async () => {}, step: async () => {}, after: async () => {} };

let stateDir: string;
let work: Work;
beforeAll(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'nodelet-csi-node-'));
  const store = await Store.open(stateDir);
  await store.putVolume({
    id: EXISTING,
    name: 'existing',
    capacityBytes: 1024,
    capabilities: [{ type: 'mount', mode: 'SINGLE_NODE_WRITER', fsType: 'ext4', flags: [], group: '' }],
    allocation: 'sparse',
  });
  const options = {
    endpoint: 'unix:///nowhere',
    stateDir,
    nodeId: 'this-node',
    peerNodes: [],
    attach: false,
    mountGroup: false,
    maxVolumes: 8,
  };
  const tracer = new Tracer();
  const parts = { options, store, locks: new Locks(), clock: systemClock, log: () => undefined, tracer, exec };
  work = new Work(parts, noFaults);
});
afterAll(() => rm(stateDir, { recursive: true }));

/** Calls that are about a volume on a path, with every other field filled in. */
const CALLS: Readonly<Record<string, (volume_id: string, path: string) => Promise<unknown>>> = {
  NodeStageVolume: (volume_id, staging_target_path) =>
    node.NodeStageVolume(
      {
        volume_id,
        staging_target_path,
        volume_capability: CAPABILITY,
        publish_context: {},
        secrets: {},
        volume_context: {},
      },
      work,
    ),
  NodeUnstageVolume: (volume_id, staging_target_path) =>
    node.NodeUnstageVolume({ volume_id, staging_target_path }, work),
  NodePublishVolume: (volume_id, target_path) =>
    node.NodePublishVolume(
      {
        volume_id,
        target_path,
        staging_target_path: '/staging',
        volume_capability: CAPABILITY,
        readonly: false,
        publish_context: {},
        secrets: {},
        volume_context: {},
      },
      work,
    ),
  NodeUnpublishVolume: (volume_id, target_path) => node.NodeUnpublishVolume({ volume_id, target_path }, work),
  NodeGetVolumeStats: (volume_id, volume_path) =>
    node.NodeGetVolumeStats({ volume_id, volume_path, staging_target_path: '' }, work),
  NodeExpandVolume: (volume_id, volume_path) =>
    node.NodeExpandVolume(
      {
        volume_id,
        volume_path,
        staging_target_path: '',
        capacity_range: null,
        volume_capability: null,
        secrets: {},
      },
      work,
    ),
};
const PATHS = ['/some/path', 'some/path', './path', '/some/../path', '/some//path', '/some/\0path'];

describe.each(Object.entries(CALLS))('%s', (name, call) => {
  it.each(PATHS)('of a volume that does not exist is NOT_FOUND, with the path %j', async (path) => {
    await expect(call('no-such-volume', path)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
  it('without a path is an INVALID_ARGUMENT, whether the volume exists or not', async () => {
    for (const id of ['no-such-volume', EXISTING]) {
      await expect(call(id, '')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    }
  });
  it.each(PATHS.slice(1))('of a volume that exists, with the path %j, says what is wrong', async (path) => {
    // Where a volume is looked for it is not; where something is to be made, the path has to be a proper one.
    const code = name === 'NodeGetVolumeStats' || name === 'NodeExpandVolume' ? 'NOT_FOUND' : 'INVALID_ARGUMENT';
    await expect(call(EXISTING, path)).rejects.toMatchObject({ code });
  });
});
