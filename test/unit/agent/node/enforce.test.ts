// enforceNodeAllocatable: which cgroups are limited to what, and its events.

import { describe, expect, test } from 'vitest';
import type { CgroupLayout } from '../../../../agent/model/cgroup-names.ts';
import { type EnforcementConfig, enforceAllocatable, reservedCgroups } from '../../../../agent/node/enforce.ts';

const CONFIG: EnforcementConfig = {
  enforceNodeAllocatable: ['pods'],
  systemReserved: { cpu: '500m', memory: '1Gi', pid: '1000', 'ephemeral-storage': '1Gi' },
  systemReservedCgroup: '/system',
  kubeReserved: { memory: '256Mi' },
  kubeReservedCgroup: '/kube/daemons',
};
const CGROUPFS: CgroupLayout = { root: '/ours', driver: 'cgroupfs' };
const SYSTEMD: CgroupLayout = { root: '/', driver: 'systemd' };

describe('cgroups of others are limited', () => {
  const limited = (
    enforceNodeAllocatable: readonly string[],
    layout = CGROUPFS,
    more: Partial<EnforcementConfig> = {},
  ) =>
    reservedCgroups({ ...CONFIG, ...more, enforceNodeAllocatable }, layout).map(({ path, limits }) => [path, limits]);
  const all = { cpuShares: 512, memoryBytes: 2 ** 30, pids: 1000 };
  test.each<[string, ReturnType<typeof limited>, ReturnType<typeof limited>]>([
    ['not with pods alone', limited(['pods']), []],
    ['not with none', limited(['none']), []],
    ['system-reserved', limited(['pods', 'system-reserved']), [['/system', all]]],
    ['kube-reserved', limited(['kube-reserved']), [['/kube/daemons', { memoryBytes: 2 ** 28 }]]],
    ['by what can be taken back alone', limited(['system-reserved-compressible']), [['/system', { cpuShares: 512 }]]],
    [
      'as slices of systemd',
      limited(['system-reserved', 'kube-reserved'], SYSTEMD),
      [
        ['/system.slice', all],
        ['/kube.slice/kube-daemons.slice', { memoryBytes: 2 ** 28 }],
      ],
    ],
    [
      'under a slice’s own name',
      limited(['system-reserved'], SYSTEMD, { systemReservedCgroup: '/system.slice' }),
      [['/system.slice', all]],
    ],
  ])('%s', (_name, found, expected) => {
    expect(found).toEqual(expected);
  });
});

describe('what is enforced is recorded as events of the node', () => {
  const enforce = async (enforceNodeAllocatable: readonly string[], there: readonly string[]) => {
    const output: string[] = [];
    await enforceAllocatable({
      config: { ...CONFIG, enforceNodeAllocatable },
      layout: CGROUPFS,
      nodeName: 'node-1',
      cgroups: {
        ensureNode: async () => void output.push('kubepods'),
        limitExisting: async (path) => {
          if (!there.includes(path)) throw new Error(`"${path}" cgroup does not exist`);
          output.push(path);
        },
      },
      recorder: {
        event: ({ kind, metadata }, type, reason, message) =>
          void output.push(`${kind} ${metadata.name} ${type} ${reason}: ${message}`),
      },
    }).catch((error: Error) => void output.push(`${error.name}: ${error.message}`));
    return output;
  };
  test('pods', async () => {
    expect(await enforce(['pods'], [])).toEqual([
      'kubepods',
      'Node node-1 Normal NodeAllocatableEnforced: Updated Node Allocatable limit across pods',
    ]);
  });
  test('nothing where nothing is', async () => {
    expect(await enforce(['none'], [])).toEqual(['kubepods']);
  });
  test('what is reserved; a cgroup that is not there ends the agent', async () => {
    const failed =
      'Failed to enforce Kube Reserved Cgroup Limits on "/kube/daemons": "/kube/daemons" cgroup does not exist';
    expect(await enforce(['system-reserved', 'kube-reserved'], ['/system'])).toEqual([
      'kubepods',
      '/system',
      'Node node-1 Normal NodeAllocatableEnforced: Updated limits on system reserved cgroup /system',
      `Node node-1 Warning FailedNodeAllocatableEnforcement: ${failed}`,
      `UserError: ${failed}`,
    ]);
  });
});
