import { expect, test } from 'vitest';
import type { PodUID } from '../../../../agent/ports/runtime.ts';
import { statsSummary } from '../../../../agent/server/summary.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { pod } from '../volumes/support.ts';

const now = epochMs(Date.parse('2026-01-01T00:00:00Z'));
const pods = {
  getPod: () => undefined,
  listPods: () => [pod({}), pod({}, { name: 'db', uid: 'uid-2' })],
  statusOf: () => undefined,
  snapshotOf: () => undefined,
  containerIdFor: () => undefined,
};

test('each pod has its containers’ newest figures and its volumes’, and no unknown figures', () => {
  const uid = 'uid-1' as PodUID;
  const summary = statsSummary({
    nodeName: 'n1',
    pods,
    now,
    containers: [
      { podUID: uid, name: 'c', restartCount: 1, workingSetBytes: 5 },
      { podUID: uid, name: 'c', restartCount: 0, workingSetBytes: 4 },
      { podUID: uid, name: 'd', restartCount: 0, writableLayer: { bytes: 7, inodes: 2 } },
    ],
    volumes: [
      {
        podUid: 'uid-1',
        name: 'data',
        pvcRef: { name: 'claim', namespace: 'demo' },
        capacityBytes: 9,
        condition: { abnormal: true, message: 'x' },
        at: now,
      },
    ],
  });
  const time = '2026-01-01T00:00:00Z';
  expect(summary).toEqual({
    node: { nodeName: 'n1' },
    pods: [
      {
        podRef: { name: 'web', namespace: 'demo', uid: 'uid-1' },
        containers: [
          { name: 'c', memory: { time, workingSetBytes: 5 } },
          { name: 'd', rootfs: { time, usedBytes: 7, inodesUsed: 2 } },
        ],
        volume: [
          {
            time,
            name: 'data',
            pvcRef: { name: 'claim', namespace: 'demo' },
            capacityBytes: 9,
            volumeHealthStats: { abnormal: true },
          },
        ],
      },
      { podRef: { name: 'db', namespace: 'demo', uid: 'uid-2' }, containers: [] },
    ],
  });
});
