// What each exercise's check decides from what was read: nothing done, half done, done, and done in a way that is no answer.
// Each case lists what is missing. Here: exercises with cgroups, files and calls by hand.

import { describe, expect, it } from 'vitest';
import { evaluate as atomicWriter } from '../../../../labs/exercises/atomic-writer/exercise.ts';
import { methodsOf } from '../../../../labs/exercises/by-hand.ts';
import { cgroupOf, hierarchyOf, parseMemoryLimit } from '../../../../labs/exercises/cgroups.ts';
import { evaluate as logRotation } from '../../../../labs/exercises/log-rotation/exercise.ts';
import { evaluate as networkByHand } from '../../../../labs/exercises/network-by-hand/exercise.ts';
import { evaluate as podByHand } from '../../../../labs/exercises/pod-by-hand/exercise.ts';
import { pidOf } from '../../../../labs/exercises/pods.ts';
import { evaluate as qosCgroups } from '../../../../labs/exercises/qos-cgroups/exercise.ts';
import { evaluate as twoRuntimes } from '../../../../labs/exercises/two-runtimes/exercise.ts';
import { evaluate as volumeByHand } from '../../../../labs/exercises/volume-by-hand/exercise.ts';
import { parseMountInfo } from '../../../../lib/mountinfo.ts';
import { missing, pod } from './objects.ts';

describe('cgroups', () => {
  const each = (name: string, cgroup: string | undefined, oomScoreAdj?: number) => ({
    name,
    expected: `/kubepods/${name}/podu`,
    cgroup,
    oomScoreAdj,
    memoryLimit: name === 'gold' && cgroup !== undefined ? 1024 : undefined,
  });
  it.for<[string, Parameters<typeof qosCgroups>[0], number]>([
    ['as it was', ['gold', 'silver', 'bronze'].map((name) => each(name, undefined)), 5],
    [
      'all of one class',
      ['gold', 'silver', 'bronze'].map((name) => ({
        ...each(name, '/kubepods/bronze/podu/c', 1000),
        memoryLimit: 'none',
      })),
      4,
    ],
    [
      'done',
      [
        each('gold', '/kubepods/gold/podu/c', -997),
        each('silver', '/a/kubepods/silver/podu/c', 990),
        each('bronze', '/kubepods/bronze/podu/c', 1000),
      ],
      0,
    ],
  ])('qos-cgroups: %s', ([, facts, count]) => expect(missing(qosCgroups(facts))).toHaveLength(count));

  it('the cgroup of a process: that of the controller with v1, the only one with v2', () => {
    expect(cgroupOf('5:memory:/a\n0::/b\n', 'memory')).toBe('/a');
    expect(cgroupOf('4:cpu,cpuacct:/c\n0::/b\n', 'cpu')).toBe('/c');
    expect(cgroupOf('0::/b\n', 'memory')).toBe('/b');
    expect(cgroupOf('', 'memory')).toBeUndefined();
  });
  it('its hierarchy', () => {
    const v1 = '30 20 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n';
    const v2 = '31 20 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n';
    expect(hierarchyOf(parseMountInfo(v2 + v1), 'memory')).toBe('/sys/fs/cgroup/memory');
    expect(hierarchyOf(parseMountInfo(v2), 'memory')).toBe('/sys/fs/cgroup/unified');
    expect(hierarchyOf([], 'memory')).toBeUndefined();
  });
  it.for<[string, number | 'none']>([
    ['16777216\n', 16_777_216],
    ['max\n', 'none'],
    ['9223372036854771712\n', 'none'],
  ])('memory limit %j', ([text, expected]) => expect(parseMemoryLimit(text)).toBe(expected));
});

describe('files', () => {
  const blue = { data: '..1', colour: 'blue', live: 'blue', fixed: 'blue', variable: 'blue' };
  it.for<[string, Parameters<typeof atomicWriter>[0], number]>([
    ['as it was', blue, 1],
    ['changed', { ...blue, data: '..2', colour: 'green', live: 'green' }, 0],
    ['made anew', { data: '..1', colour: 'green', live: 'green', fixed: 'green', variable: 'green' }, 1],
    ['no pod', { data: undefined, colour: undefined, live: undefined, fixed: undefined, variable: undefined }, 3],
  ])('atomic-writer: %s', ([, facts, count]) => expect(missing(atomicWriter(facts))).toHaveLength(count));

  const chatty = [pod('chatty', { ready: true })];
  const log = (name: string) => ({ name, size: 1000 });
  it.for<[string, Parameters<typeof logRotation>, number]>([
    ['as it was', [[], []], 4],
    ['one log', [chatty, [log('0.log')]], 2],
    ['rotated once', [chatty, [log('0.log'), log('0.log.20260101-000000')]], 1],
    ['rotated twice', [chatty, [log('0.log'), log('0.log.20260101-000000.gz'), log('0.log.20260101-000010')]], 0],
    [
      'being compressed',
      [chatty, [log('0.log'), log('0.log.20260101-000000.gz.tmp'), log('0.log.20260101-000010')]],
      1,
    ],
  ])('log-rotation: %s', ([, facts, count]) => expect(missing(logRotation(...facts))).toHaveLength(count));
});

describe('by hand', () => {
  const START = ['RunPodSandbox', 'CreateContainer', 'StartContainer'];
  const sandbox = (kubelets: boolean, running: readonly string[] = ['main']) => ({
    id: 'abc',
    ready: true,
    kubelets,
    running,
  });
  it.for<[string, Parameters<typeof podByHand>[0], number]>([
    ['nothing', { sandboxes: [], pods: [], hand: undefined, kubelet: undefined, difference: undefined }, 6],
    [
      'the pod by hand',
      { sandboxes: [sandbox(false)], pods: [], hand: START, kubelet: undefined, difference: undefined },
      4,
    ],
    [
      'an empty sandbox',
      { sandboxes: [sandbox(false, [])], pods: [], hand: ['RunPodSandbox'], kubelet: undefined, difference: undefined },
      6,
    ],
    [
      'all of it',
      {
        sandboxes: [sandbox(false), sandbox(true)],
        pods: [pod('web', { ready: true })],
        hand: START,
        kubelet: START,
        difference: 'RunPodSandbox differs',
      },
      0,
    ],
  ])('pod-by-hand: %s', ([, facts, count]) => expect(missing(podByHand(facts))).toHaveLength(count));
  const side = (log: string) => ({ sandboxes: [sandbox(false)], recording: START, log });
  const cri = side('2026-01-01T00:00:00.000000000Z stdout F from the container\n');
  const own = '{"log":"from the container\\n","stream":"stdout","time":"2026-01-01T00:00:00Z"}\n';
  const none = { sandboxes: [], recording: undefined, log: undefined };
  it.for<[string, Parameters<typeof twoRuntimes>[0], number]>([
    ['nothing', { containerd: none, docker: none, dockerLog: undefined, difference: undefined }, 8],
    ['containerd alone', { containerd: cri, docker: none, dockerLog: undefined, difference: undefined }, 5],
    ['no copy, no comparison', { containerd: cri, docker: cri, dockerLog: undefined, difference: '' }, 2],
    [
      'logs in each other’s format',
      {
        containerd: cri,
        docker: side(own),
        dockerLog: cri.log,
        difference: 'ContainerStatus',
      },
      2,
    ],
    ['all of it', { containerd: cri, docker: cri, dockerLog: own, difference: 'fields of ContainerStatus' }, 0],
  ])('two-runtimes: %s', ([, facts, count]) => expect(missing(twoRuntimes(facts))).toHaveLength(count));
  it('methods of a recording, a torn line too', () => {
    const line = (method: string): string =>
      `{"record":"call","call":1,"method":"/runtime.v1.RuntimeService/${method}","x":1}`;
    expect(methodsOf(`${line('Version')}\n${line('RunPodSandbox')}\n${line('Version')}\n{"record":"call","ca`)).toEqual(
      ['Version', 'RunPodSandbox'],
    );
  });
  it('the pid of a verbose status', () => {
    expect(pidOf({ info: '{"pid": 12}' })).toBe(12);
    expect(pidOf({ info: '{"pid": 0}' })).toBeUndefined();
    expect(pidOf({})).toBeUndefined();
  });

  const network = {
    prefix: '10.243.7.',
    hasNamespace: true,
    addresses: ['10.243.7.2'],
    gateway: '10.243.7.1',
    ports: ['veth1'],
    bridge: ['10.243.7.1'],
    leases: ['10.243.7.2'],
  };
  it.for<[string, Parameters<typeof networkByHand>[0], number]>([
    [
      'nothing',
      { ...network, hasNamespace: false, addresses: [], gateway: undefined, ports: [], bridge: [], leases: [] },
      5,
    ],
    ['a namespace', { ...network, addresses: [], gateway: undefined, ports: [], bridge: [], leases: [] }, 4],
    ['an address of another network', { ...network, addresses: ['192.0.2.1'] }, 2],
    ['all of it', network, 0],
  ])('network-by-hand: %s', ([, facts, count]) => expect(missing(networkByHand(facts))).toHaveLength(count));

  const mount = (path: string, device = '7:0') => ({ path, device, fsType: 'ext4', source: '/dev/loop0' });
  const loops = [{ device: '/dev/loop0', image: '/x/state/volumes/a' }];
  it.for<[string, Parameters<typeof volumeByHand>[0], number]>([
    ['nothing', { directory: '/x', loops: [], mounts: [], greeting: undefined }, 4],
    [
      'another’s loop device',
      { directory: '/x', loops: [{ device: '/dev/loop0', image: '/y/a' }], mounts: [], greeting: undefined },
      4,
    ],
    ['staged', { directory: '/x', loops, mounts: [mount('/x/staging')], greeting: undefined }, 2],
    [
      'published',
      { directory: '/x', loops, mounts: [mount('/x/staging'), mount('/x/pods/volume')], greeting: undefined },
      1,
    ],
    [
      'something else is mounted',
      { directory: '/x', loops, mounts: [mount('/x/staging'), mount('/x/pods/volume', '0:1')], greeting: 'a' },
      1,
    ],
    ['all of it', { directory: '/x', loops, mounts: [mount('/x/staging'), mount('/x/pods/volume')], greeting: 'a' }, 0],
  ])('volume-by-hand: %s', ([, facts, count]) => expect(missing(volumeByHand(facts))).toHaveLength(count));
});
