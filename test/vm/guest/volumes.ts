// The loop-device CSI driver where root is really root: ext4 grows under a running user, which needs CAP_SYS_RESOURCE; and
// what the sanity suite has to say about growing and snapshots on this kernel.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectCsi } from '../../../csi/client.ts';
import { startDriver } from '../../../csi/driver/main.ts';
import { openSuite, runSuite } from '../../../csi/sanity/run.ts';
import { execOk } from '../../../lib/exec.ts';
import { check } from './report.ts';

const MiB = 1024 * 1024;
const SECTIONS = ['NodeExpandVolume', 'ControllerExpandVolume', 'CreateVolume from a snapshot'];

export async function checkVolumes(): Promise<void> {
  for (const module of ['loop', 'xfs']) await execOk('modprobe', [module]);
  const root = await mkdtemp(join(tmpdir(), 'nodelet-vm-csi-'));
  const endpoint = `unix://${root}/csi.sock`;
  const options = {
    endpoint,
    stateDir: join(root, 'state'),
    nodeId: 'vm',
    peerNodes: [],
    attach: false,
    mountGroup: false,
  };
  const driver = await startDriver({ ...options, maxVolumes: 64 }, () => undefined);
  try {
    for (const fsType of ['ext4', 'xfs']) {
      await check(`volumes: ${fsType} grows while it is published`, () => growsPublished(endpoint, root, fsType));
      const directory = join(root, 'work');
      const suite = await openSuite(endpoint, {
        accessType: 'mount',
        fsType,
        parameters: {},
        secrets: {},
        directory,
        volumeBytes: 512 * MiB,
      });
      await check(`volumes: the sanity suite about growing and copies, ${fsType}`, async () => {
        const outcomes = await runSuite(
          suite,
          () => undefined,
          (each) => SECTIONS.includes(each.section),
        );
        const failed = outcomes.flatMap((each) =>
          each.kind === 'failed' ? [`${each.check.section} ${each.check.name}: ${each.error}`] : [],
        );
        const passed = outcomes.filter((each) => each.kind === 'passed').length;
        return { held: failed.length === 0 && passed > 15, saw: [`${passed} passed`, ...failed].join('\n') };
      });
      await suite.close();
    }
  } finally {
    await driver.stop();
    await rm(root, { recursive: true, force: true });
  }
}

/** FAILED_PRECONDITION, which the suite lets pass, is a failure here. */
async function growsPublished(endpoint: string, root: string, fsType: string) {
  const client = connectCsi(endpoint);
  try {
    const capability = { access_mode: { mode: 'SINGLE_NODE_WRITER' as const }, mount: { fs_type: fsType } };
    const request = {
      name: `grows-${fsType}`,
      volume_capabilities: [capability],
      capacity_range: { required_bytes: 320 * MiB },
    };
    const { volume } = await client.controller.CreateVolume(request);
    assert.ok(volume);
    const { volume_id, volume_context } = volume;
    const [staging_target_path, target_path] = [join(root, `staging-${fsType}`), join(root, `target-${fsType}`)];
    await mkdir(staging_target_path);
    const common = { volume_id, volume_context, staging_target_path, volume_capability: capability };
    await client.node.NodeStageVolume(common);
    await client.node.NodePublishVolume({ ...common, target_path });
    const size = async (): Promise<number> => {
      const { blocks, bsize } = await statfs(target_path);
      return Math.round((blocks * bsize) / MiB);
    };
    const before = await size();
    await client.controller.ControllerExpandVolume({ volume_id, capacity_range: { required_bytes: 1024 * MiB } });
    await client.node.NodeExpandVolume({ volume_id, volume_path: target_path });
    const after = await size();
    await client.node.NodeUnpublishVolume({ volume_id, target_path });
    await client.node.NodeUnstageVolume({ volume_id, staging_target_path });
    await client.controller.DeleteVolume({ volume_id });
    return { held: before < 320 && after > 900, saw: `${before} MiB, then ${after} MiB` };
  } finally {
    client.close();
  }
}
