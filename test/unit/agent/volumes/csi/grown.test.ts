// A volume in use: growing it, and the figures of its driver, against a scripted driver.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CsiStats } from '../../../../../agent/volumes/csi/stats.ts';
import { podWith } from '../support.ts';
import { ClaimStand, DATA, REF } from './claim-stand.ts';

let stand: ClaimStand;
beforeEach(async () => {
  stand = await ClaimStand.make();
});
afterEach(() => stand.close());

describe('growing', () => {
  const grow = (size: string) => {
    const volume = stand.storage.volumes.get('pv-1');
    const claim = stand.storage.claims.get('demo/claim');
    if (volume === undefined || claim === undefined) throw new Error('no claim');
    stand.storage.volumes.set('pv-1', { ...volume, spec: { ...volume.spec, capacity: { storage: size } } });
    const conditions = [{ type: 'FileSystemResizePending', status: 'True' }];
    stand.storage.setClaim({
      ...claim,
      spec: { ...claim.spec, resources: { requests: { storage: size } } },
      status: { ...claim.status, conditions, allocatedResourceStatuses: { storage: 'NodeResizePending' } },
    });
  };
  beforeEach(() => {
    stand.driver.capabilities = ['STAGE_UNSTAGE_VOLUME', 'EXPAND_VOLUME'];
  });

  test('while mounted calls the driver, and updates the claim before and after', async () => {
    await stand.volumes.mountAll(podWith([DATA]));
    grow('2Gi');
    await vi.waitFor(() => expect(stand.statusOf()?.capacity).toEqual({ storage: '2Gi' }));
    expect(stand.callOf('NodeExpandVolume')).toMatchObject({
      volume_id: 'vol-1',
      volume_path: stand.target(),
      staging_target_path: expect.stringContaining('globalmount'),
      capacity_range: { required_bytes: String(2 ** 31) },
    });
    expect(stand.storage.patches).toEqual([
      { allocatedResourceStatuses: { storage: 'NodeResizeInProgress' } },
      { capacity: { storage: '2Gi' }, conditions: [], allocatedResourceStatuses: { storage: null } },
    ]);
    expect(stand.recorder.events).toEqual([
      'FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume "pv-1"',
      'FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume "pv-1"',
    ]);
    expect(stand.driver.order.filter((method) => method === 'NodeExpandVolume')).toHaveLength(1);
  });

  test('that was waited for is done before the pod starts', async () => {
    grow('2Gi');
    await stand.volumes.mountAll(podWith([DATA]));
    expect(stand.driver.order).toEqual(['NodeStageVolume', 'NodePublishVolume', 'NodeExpandVolume']);
  });

  test('that fails is reported, retried with pauses, and ends', async () => {
    await stand.volumes.mountAll(podWith([DATA]));
    stand.driver.next(
      'NodeExpandVolume',
      { code: 'INTERNAL', message: 'no room' },
      { code: 'ABORTED', message: 'busy' },
    );
    grow('2Gi');
    await vi.waitFor(() => expect(stand.recorder.events).toHaveLength(2));
    expect(stand.recorder.events[0]).toBe(
      'VolumeResizeFailed: NodeExpandVolume.NodeExpandVolume failed for volume "pv-1" : rpc error: code = Internal desc = no room',
    );
    expect(stand.statusOf()?.conditions).toMatchObject([
      { type: 'FileSystemResizePending' },
      { type: 'NodeResizeError', message: expect.stringContaining('no room') },
    ]);
    await stand.clock.advance(500);
    await vi.waitFor(() => expect(stand.recorder.events).toHaveLength(4));
    await stand.clock.advance(1000);
    await vi.waitFor(() => expect(stand.statusOf()?.capacity).toEqual({ storage: '2Gi' }));
    expect(stand.statusOf()?.conditions).toEqual([]);
  });

  test('that is infeasible is reported once, and not retried before another request', async () => {
    await stand.volumes.mountAll(podWith([DATA]));
    stand.driver.next('NodeExpandVolume', { code: 'OUT_OF_RANGE', message: 'too large' });
    grow('2Gi');
    await vi.waitFor(() =>
      expect(stand.statusOf()?.allocatedResourceStatuses).toEqual({ storage: 'NodeResizeInfeasible' }),
    );
    await stand.clock.advance(600_000);
    expect(stand.driver.order.filter((method) => method === 'NodeExpandVolume')).toHaveLength(1);
    grow('1536Mi');
    await vi.waitFor(() => expect(stand.statusOf()?.capacity).toEqual({ storage: '1536Mi' }));
  });

  test('that a driver refuses while the volume is in use waits for the next mount', async () => {
    await stand.volumes.mountAll(podWith([DATA]));
    stand.driver.next('NodeExpandVolume', { code: 'FAILED_PRECONDITION', message: 'in use' });
    grow('2Gi');
    await vi.waitFor(() => expect(stand.recorder.events).toHaveLength(2));
    await stand.clock.advance(600_000);
    expect(stand.driver.order.filter((method) => method === 'NodeExpandVolume')).toHaveLength(1);
    await stand.volumes.unmountAll(REF);
    await stand.volumes.mountAll(podWith([DATA]));
    expect(stand.statusOf()?.capacity).toEqual({ storage: '2Gi' });
  });

  test('is left to another component where the driver cannot', async () => {
    stand.driver.capabilities = ['STAGE_UNSTAGE_VOLUME'];
    await stand.volumes.mountAll(podWith([DATA]));
    grow('2Gi');
    await stand.clock.advance(1000);
    expect(stand.storage.patches).toEqual([]);
  });
});

describe('figures', () => {
  const answer = (abnormal: boolean, message: string) => ({
    response: {
      usage: [
        { unit: 'BYTES', total: '100', available: '60', used: '40' },
        { unit: 'INODES', total: '10', available: '7', used: '3' },
      ],
      volume_condition: { abnormal, message },
    },
  });
  const setUp = async () => {
    stand.driver.capabilities = ['STAGE_UNSTAGE_VOLUME', 'GET_VOLUME_STATS'];
    await stand.volumes.mountAll(podWith([DATA]));
    return new CsiStats({
      volumes: stand.csi,
      recorder: stand.recorder,
      clock: stand.clock,
      onError: (message) => stand.trouble.push(message),
    });
  };
  const requested = () => stand.driver.calls.filter(({ method }) => method === 'NodeGetVolumeStats');

  test('of a volume are what its driver says, asked at most once a minute', async () => {
    const stats = await setUp();
    stand.driver.next('NodeGetVolumeStats', answer(false, 'well'));
    const [figures] = await stats.read();
    expect(figures).toMatchObject({
      podUid: 'uid-1',
      name: 'data',
      pvcRef: { name: 'claim', namespace: 'demo' },
      capacityBytes: 100,
      availableBytes: 60,
      usedBytes: 40,
      inodes: 10,
      inodesFree: 7,
      inodesUsed: 3,
      condition: { abnormal: false, message: 'well' },
    });
    expect(requested()[0]?.request).toMatchObject({ volume_id: 'vol-1', volume_path: stand.target() });
    await stand.clock.advance(59_000);
    await stats.read();
    expect(requested()).toHaveLength(1);
    await stand.clock.advance(1000);
    await stats.read();
    expect(requested()).toHaveLength(2);
  });

  test('of a volume that is not well are an event, once for each thing that is wrong', async () => {
    const stats = await setUp();
    stand.driver.next('NodeGetVolumeStats', answer(true, 'the disk smokes'), answer(true, 'the disk smokes'));
    await stats.read();
    await stand.clock.advance(60_000);
    await stats.read();
    expect(stand.recorder.events).toEqual(['VolumeConditionAbnormal: Volume data: the disk smokes']);
  });

  test('that cannot be read are reported, and the last ones stay', async () => {
    const stats = await setUp();
    stand.driver.next('NodeGetVolumeStats', answer(false, ''), { code: 'INTERNAL', message: 'cannot look' });
    await stats.read();
    await stand.clock.advance(60_000);
    expect(await stats.read()).toMatchObject([{ usedBytes: 40 }]);
    expect(stand.trouble).toEqual(['Failed to calculate volume metrics: volume pv-1: cannot look']);
  });

  test('are not asked of a driver that has none, nor of a pod that has gone', async () => {
    const stats = await setUp();
    stand.driver.capabilities = ['STAGE_UNSTAGE_VOLUME'];
    expect(await stats.read()).toEqual([]);
    await stand.volumes.unmountAll(REF);
    stand.driver.capabilities = ['GET_VOLUME_STATS'];
    expect(await stats.read()).toEqual([]);
    expect(requested()).toEqual([]);
  });
});
