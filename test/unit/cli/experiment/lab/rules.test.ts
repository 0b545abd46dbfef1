// What a lab refuses by name, and how an experiment's faults, agents and uses become what a lab does.

import { describe, expect, test } from 'vitest';
import { labCannot } from '../../../../../cli/experiment/lab/cannot.ts';
import { criFaults, csiFaults, faultProblem } from '../../../../../cli/experiment/lab/faults.ts';
import { foreignName, type LabAgent, parseAgent } from '../../../../../cli/experiment/lab/lab-agent.ts';
import { needsOf } from '../../../../../cli/experiment/lab/prepare.ts';
import { describeStep, useCommand } from '../../../../../cli/experiment/lab/steps.ts';
import type { FaultRule, WorldSpec } from '../../../../../cli/experiment/model.ts';
import { isStaticPod, staticPodFile } from '../../../../../cli/experiment/static-pods.ts';
import type { WorldStep } from '../../../../../cli/experiment/world.ts';

const NODELET: LabAgent = { kind: 'nodelet' };
const KUBELET: LabAgent = { kind: 'foreign', path: '/bin/kubelet' };
const rule = (action: FaultRule['action'], more: Partial<FaultRule> = {}): FaultRule => ({
  call: 'X',
  action,
  ...more,
});

const STATIC_POD = {
  kind: 'Pod',
  metadata: { name: 'web', annotations: { 'kubernetes.io/config.source': 'file', mine: 'yes' } },
  spec: { containers: [] },
};

test('a static pod becomes a file, without the annotation that the agent sets itself', () => {
  expect(isStaticPod(STATIC_POD)).toBe(true);
  expect(isStaticPod({ metadata: { name: 'web', annotations: { mine: 'yes' } } })).toBe(false);
  expect(isStaticPod({ metadata: { name: 'web' } })).toBe(false);
  expect(JSON.parse(staticPodFile(STATIC_POD))).toEqual({
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default', annotations: { mine: 'yes' } },
    spec: { containers: [] },
  });
});

describe('a lab refuses by name', () => {
  const worlds: readonly (readonly [string, WorldSpec, string])[] = [
    ['two nodes', { nodes: 2 }, 'one node'],
    ['an image that it does not have', { images: ['redis:7'] }, 'redis:7'],
    ['a chain of CNI plugins', { cni: { plugins: [] } }, 'world.cni'],
    ['processors', { capacity: { cpu: '4' } }, 'world.capacity.cpu'],
    ['memory', { capacity: { memory: '1Gi' } }, 'systemReserved'],
    ['a disk', { capacity: { disk: '1Gi' } }, 'world.capacity.disk'],
    ['a disk for images', { capacity: { imagefs: '1Gi' } }, 'world.capacity.imagefs'],
    ['more addresses than it has', { capacity: { addresses: 239 } }, '238 at most'],
    ['static pods', { kubelet: { staticPodPath: '/x' } }, 'staticPodPath'],
  ];
  test.each(worlds)('a world with %s', (_, spec, words) => {
    expect(labCannot(spec, [], NODELET)).toEqual([expect.stringContaining(words)]);
  });

  const steps: readonly (readonly [string, WorldStep, string])[] = [
    ['another time', { clock: { add: '1h' } }, 'clock'],
    ['a shutdown', { shutdown: {} }, 'shutdown'],
    ['an API call twice', { fault: { on: 'api', rules: [rule('duplicate')] } }, 'passed on once'],
    ['faults of DNS', { fault: { on: 'dns', rules: [rule('fail')] } }, 'neither fail nor wait'],
    ['faults of CSI without a driver', { fault: { on: 'csi', rules: [rule('fail')] } }, 'set world.csi'],
    ['a duplicated CNI call', { fault: { on: 'cni', rules: [rule('duplicate')] } }, 'duplicated'],
    ['the scheduler alone', { kill: { process: 'scheduler' } }, 'one process'],
    ['the controllers alone', { start: { process: 'controllers' } }, 'one process'],
    ['a CSI driver that is not there', { kill: { process: 'csi-driver' } }, 'set world.csi'],
    ['a node whose memory is used', { use: { memory: '1Gi' } }, 'name a pod'],
  ];
  test.each(steps)('%s', (_, step, words) => {
    expect(labCannot({}, [step, step], NODELET)).toEqual([expect.stringContaining(words)]);
  });

  test('faults of CNI with another kubelet, whose plugins containerd runs', () => {
    const step: WorldStep = { fault: { on: 'cni', rules: [rule('fail')] } };
    expect(labCannot({}, [step], KUBELET)).toEqual([expect.stringContaining('--agent nodelet')]);
    expect(labCannot({}, [step], NODELET)).toEqual([]);
  });

  test('a CSI fault that its driver does not have', () => {
    const steps = (['drop', 'duplicate'] as const).map((action) => ({
      fault: { on: 'csi' as const, rules: [rule(action)] },
    }));
    expect(labCannot({ csi: true }, steps, NODELET)).toHaveLength(2);
    expect(faultProblem('csi', rule('fail', { pod: 'a' }))).toContain('does not know the pod');
  });

  test('an image that the simulator makes up, but for those that the registry has too', () => {
    const pod = (image: string): WorldStep => ({
      apply: [{ kind: 'Pod', metadata: { name: 'web' }, spec: { containers: [{ name: 'web', image }] } }],
    });
    expect(labCannot({}, [pod('sim/size-2g:1')], NODELET)).toEqual([expect.stringContaining('sim/size-2g:1')]);
    expect(labCannot({}, [pod('sim/pull-1s:1')], NODELET)).toEqual([]);
    expect(needsOf([pod('sim/pull-1s:1')], NODELET).registry).toBe(true);
    expect(needsOf([pod('busybox:stable')], NODELET).registry).toBe(false);
    expect(labCannot({}, [pod('busybox:stable')], NODELET)).toEqual([]);
  });

  test('and does the rest', () => {
    const spec: WorldSpec = {
      csi: true,
      nodes: 1,
      images: ['docker.io/library/nginx:stable', 'busybox:stable'],
      capacity: { pods: 20, addresses: 5 },
      kubelet: { maxPods: 5 },
    };
    const doable: readonly WorldStep[] = [
      { apply: [] },
      { delete: { kind: 'Pod', name: 'a' } },
      { patch: { kind: 'Pod', name: 'a', merge: {} } },
      { exec: { pod: 'a', command: ['true'] } },
      { kill: { process: 'csi-driver' } },
      { kill: { pod: 'a', container: 'b' } },
      { start: { process: 'agent' } },
      { cut: { from: 'apiserver' } },
      { heal: { from: 'runtime' } },
      { cut: { from: 'registry' } },
      { heal: { from: 'registry' } },
      { fault: { on: 'cri', rules: [rule('duplicate')] } },
      { fault: { on: 'csi', rules: [rule('hang')] } },
      { fault: { on: 'api', rules: [rule('delay'), rule('drop')] } },
      { use: { memory: '10Mi', pod: 'a' } },
    ];
    expect(labCannot(spec, doable, NODELET)).toEqual([]);
  });
});

test.each<readonly [string, readonly WorldStep[], LabAgent, readonly string[]]>([
  ['nothing', [], NODELET, []],
  ['the tap for another kubelet', [], KUBELET, ['criFaults']],
  ['a link', [{ cut: { from: 'apiserver' } }], NODELET, ['apiserverLink']],
  ['a link that is only healed', [{ heal: { from: 'runtime' } }], NODELET, ['runtimeLink']],
  [
    'all faults',
    (['cri', 'cni', 'csi', 'api'] as const).map((on) => ({ fault: { on, rules: [] } })),
    NODELET,
    ['apiserverLink', 'apiFaults', 'criFaults', 'cniFaults', 'csiFaults'],
  ],
  ['a directory of static pods', [{ apply: [STATIC_POD] }], NODELET, ['staticPods']],
])('between the agent and its calls stands %s', (_, steps, agent, names) => {
  const needs = Object.entries(needsOf(steps, agent)).flatMap(([name, needed]) => (needed ? [name] : []));
  expect(needs).toEqual(names);
});

describe('faults', () => {
  test('of CRI are the rules of the tap', () => {
    const { rules } = criFaults([
      rule('fail', { call: 'RunPodSandbox', code: 'NOT_FOUND', message: 'no', times: 2, pod: 'demo/*' }),
      rule('delay', { delay: '1m' }),
      rule('delay'),
      rule('hang', { delay: '5s' }),
      rule('drop'),
      rule('duplicate'),
    ]);
    expect(rules[0]).toMatchObject({
      method: 'RunPodSandbox',
      pod: 'demo/*',
      count: 2,
      delayMs: 0,
      effect: { kind: 'fail', status: 5, message: 'no' },
    });
    expect(rules.slice(1).map(({ delayMs, effect }) => [effect.kind, delayMs])).toEqual([
      ['pass', 60_000],
      ['pass', 1000],
      ['hang', 5000],
      ['drop', 0],
      ['duplicate', 0],
    ]);
    expect(criFaults([])).toEqual({ seed: 1, rules: [] });
    expect(() => criFaults([rule('fail', { code: 'NOPE' })])).toThrow('NOPE');
  });

  test('of CSI are the control file of the driver', () => {
    const text = csiFaults([
      rule('fail', { call: 'NodeStageVolume', code: 'UNAVAILABLE', message: 'm', times: 3 }),
      rule('delay', { delay: '2s' }),
      rule('hang'),
    ]);
    expect(JSON.parse(text)).toEqual([
      { method: 'NodeStageVolume', action: 'fail', times: 3, code: 'UNAVAILABLE', message: 'm' },
      { method: 'X', action: 'delay', times: 0, delayMs: 2000 },
      { method: 'X', action: 'hang', times: 0 },
    ]);
    expect(() => csiFaults([rule('drop')])).toThrow('no drop');
  });
});

describe('the agent', () => {
  test('is nodelet or a program', () => {
    expect(parseAgent('nodelet')).toEqual({ kind: 'nodelet' });
    expect(parseAgent('kubelet=/bin/sh')).toEqual({ kind: 'foreign', path: '/bin/sh' });
  });
  test.each([
    ['kubelet', 'is nodelet or kubelet=/path'],
    ['kubelet=bin/sh', 'the absolute path'],
    ['kubelet=/no/such/program', 'no program'],
    ['kubelet=/etc/passwd', 'no program'],
    ['kubelet=/usr/bin', 'no program'],
  ])('%s is refused', (text, words) => {
    expect(() => parseAgent(text)).toThrow(words);
  });
  test('is named by its version', () => {
    expect(foreignName('/x', 'Kubernetes v1.34.2\n')).toBe('kubelet v1.34.2');
    expect(foreignName('/x', 'usage: x')).toBe('kubelet /x');
  });
});

describe('use in a pod', () => {
  test('is a shell that takes it and stays', () => {
    expect(useCommand({ memory: '1Mi' })[2]).toContain('head -c 1048576 /dev/zero');
    expect(useCommand({ disk: '1k' })[2]).toContain('head -c 1000 /dev/zero > /use-disk');
    expect(useCommand({ pids: 5 })[2]).toContain('-lt 5');
  });
  test.each([[{}], [{ memory: 'much' }], [{ disk: '-1' }]])('%j is refused', (use) => {
    expect(() => useCommand(use)).toThrow('use');
  });
});

test('steps by their names', () => {
  const steps: readonly WorldStep[] = [
    { name: 'mine', apply: [] },
    { apply: [] },
    { kill: { process: 'agent' } },
    { kill: { pod: 'a', container: 'b' } },
    { heal: { from: 'runtime' } },
    { fault: { on: 'cri', rules: [] } },
  ];
  expect(steps.map(describeStep)).toEqual([
    'mine',
    'apply',
    'kill agent',
    'kill b of a',
    'heal runtime',
    'fault on cri',
  ]);
});
