import { describe, expect, test } from 'vitest';
import {
  type CgroupLayout,
  cgroupParent,
  cgroupPath,
  podName,
  podUIDOfCgroup,
} from '../../../../agent/model/cgroup-names.ts';
import { container, pod } from '../runtime/fixtures.ts';

const fs = (root: string): CgroupLayout => ({ root, driver: 'cgroupfs' });
const systemd = (root: string): CgroupLayout => ({ root, driver: 'systemd' });
const BURSTABLE = pod({ containers: [container({ resources: { requests: { cpu: '1' } } })] });
const GUARANTEED = pod({ containers: [container({ resources: { limits: { cpu: '1', memory: '1Gi' } } })] });

describe('the cgroup parent of a pod', () => {
  test.each([
    ['best effort', fs('/'), pod(), '/kubepods/besteffort/pod1234-abcd'],
    ['burstable', fs('/'), BURSTABLE, '/kubepods/burstable/pod1234-abcd'],
    ['guaranteed, with no level of its own', fs('/'), GUARANTEED, '/kubepods/pod1234-abcd'],
    ['below a cgroupRoot', fs('/nodelet-a1'), pod(), '/nodelet-a1/kubepods/besteffort/pod1234-abcd'],
    [
      'as nested slices, dashes of the uid being underscores',
      systemd('/'),
      BURSTABLE,
      '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234_abcd.slice',
    ],
    ['guaranteed slices', systemd('/'), GUARANTEED, '/kubepods.slice/kubepods-pod1234_abcd.slice'],
    [
      'slices below a cgroupRoot',
      systemd('/nodelet-a1'),
      GUARANTEED,
      '/nodelet_a1.slice/nodelet_a1-kubepods.slice/nodelet_a1-kubepods-pod1234_abcd.slice',
    ],
  ])('%s', (_what, layout, of, expected) => {
    expect(cgroupParent(layout, of)).toBe(expected);
  });

  test('a pod uid is read back from the last component of its path, and from no other cgroup', () => {
    const uid = '0f9d8c7b-1111-2222-3333-444455556666';
    for (const layout of [fs('/'), systemd('/'), fs('/x'), systemd('/x')]) {
      for (const qos of ['Guaranteed', 'Burstable', 'BestEffort'] as const) {
        const last =
          cgroupPath(layout, podName(layout, uid, qos))
            .split('/')
            .at(-1) ?? '';
        expect(podUIDOfCgroup(layout, last)).toBe(uid);
      }
    }
    expect(podUIDOfCgroup(fs('/'), 'burstable')).toBeUndefined();
    expect(podUIDOfCgroup(systemd('/'), 'kubepods-burstable.slice')).toBeUndefined();
  });
});
