// The node's own word: one row per rule, with the reason and the message that a user greps for.

import { describe, expect, it, test } from 'vitest';
import { createAdmission } from '../../../../agent/admission/admission.ts';
import { shortages } from '../../../../agent/admission/fit.ts';
import { podRequest } from '../../../../agent/admission/requests.ts';
import { safeSysctls, sysctlPatterns } from '../../../../agent/admission/sysctls.ts';
import { normalizeSysctl } from '../../../../agent/model/sysctl-name.ts';
import type { Pod } from '../../../../client/types.ts';
import { makePod } from '../../../sim/fakes.ts';
import { asking, fromFile, NODE } from './support.ts';

function verdict(
  pod: Pod,
  others: readonly Pod[] = [],
  node: Partial<typeof NODE> = {},
  facts: { appArmor?: boolean; allowedUnsafeSysctls?: readonly string[] } = {},
) {
  const rules = createAdmission({
    node: () => ({ ...NODE, ...node }),
    kernelVersion: '6.1.0-10-cloud-amd64',
    allowedUnsafeSysctls: facts.allowedUnsafeSysctls ?? [],
    appArmor: facts.appArmor ?? true,
  });
  for (const rule of rules) {
    const found = rule(pod, others);
    if (found !== undefined) return found;
  }
  return undefined;
}

describe('room on the node', () => {
  const half = asking('half', { cpu: '1500m', memory: '512Mi' });
  const tooMuch: readonly [string, Pod, readonly Pod[], string, string][] = [
    [
      'cpu, in millicores',
      asking('p', { cpu: '1' }),
      [half],
      'OutOfcpu',
      "Node didn't have enough resource: cpu, requested: 1000, used: 1500, capacity: 2000",
    ],
    [
      'memory, in bytes',
      asking('p', { memory: '768Mi' }),
      [half],
      'OutOfmemory',
      "Node didn't have enough resource: memory, requested: 805306368, used: 536870912, capacity: 1073741824",
    ],
    [
      'ephemeral storage',
      asking('p', { 'ephemeral-storage': '11Gi' }),
      [],
      'OutOfephemeral-storage',
      "Node didn't have enough resource: ephemeral-storage, requested: 11811160064, used: 0, capacity: 10737418240",
    ],
    [
      'huge pages that the node has none of',
      asking('p', { 'hugepages-2Mi': '4Mi' }),
      [],
      'OutOfhugepages-2Mi',
      "Node didn't have enough resource: hugepages-2Mi, requested: 4194304, used: 0, capacity: 0",
    ],
  ];
  test.each(tooMuch)('there is not enough %s', (_name, pod, others, reason, message) => {
    expect(verdict(pod, others)).toEqual({ reason, message });
  });

  it('a pod too many is refused, whatever little it asks for', () => {
    const others = [makePod('a'), makePod('b')];
    expect(verdict(makePod('c'), others, { allocatable: { ...NODE.allocatable, pods: '2' } })).toEqual({
      reason: 'OutOfpods',
      message: "Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2",
    });
  });

  it('an extended resource that the node offers is counted', () => {
    const node = { allocatable: { ...NODE.allocatable, 'example.com/gpu': '2' } };
    const other = asking('other', { 'example.com/gpu': '1' });
    expect(verdict(asking('p', { 'example.com/gpu': '1' }), [other], node)).toBeUndefined();
    expect(verdict(asking('p', { 'example.com/gpu': '2' }), [other], node)).toEqual({
      reason: 'OutOfexample.com/gpu',
      message: "Node didn't have enough resource: example.com/gpu, requested: 2, used: 1, capacity: 2",
    });
  });

  it('an extended resource that the node does not report is managed by another component', () => {
    expect(verdict(asking('p', { 'example.com/gpu': '1' }))).toBeUndefined();
  });

  it('a pod that asks for exactly what is left is admitted', () => {
    expect(verdict(asking('p', { cpu: '500m', memory: '512Mi' }), [half])).toBeUndefined();
  });

  it('a pod that asks for nothing is admitted on a node that is full', () => {
    expect(verdict(makePod('p'), [asking('all', { cpu: '2', memory: '1Gi' })])).toBeUndefined();
  });

  it('of several things that lack, the first is named: pods, cpu, memory, the rest', () => {
    const names = shortages(asking('p', { memory: '9Gi', cpu: '9', 'hugepages-2Mi': '2Mi' }), [], {
      ...NODE.allocatable,
      pods: '0',
    });
    expect(names.map(({ resource }) => resource)).toEqual(['pods', 'cpu', 'memory', 'hugepages-2Mi']);
  });
});

describe('what a pod asks for', () => {
  const box = (name: string, cpu: string, more: object = {}) => ({
    name,
    image: 'x',
    resources: { requests: { cpu } },
    ...more,
  });
  const sums: readonly [string, Partial<Pod['spec']>, number][] = [
    ['the sum of its containers', { containers: [box('a', '1'), box('b', '500m')] }, 1500],
    [
      'the largest init container, when that is more',
      { containers: [box('a', '1')], initContainers: [box('i', '3')] },
      3000,
    ],
    [
      'sidecars beside the containers',
      { containers: [box('a', '1')], initContainers: [box('s', '200m', { restartPolicy: 'Always' })] },
      1200,
    ],
    [
      'an init container together with the sidecars before it',
      {
        containers: [box('a', '1')],
        initContainers: [box('s', '200m', { restartPolicy: 'Always' }), box('i', '2')],
      },
      2200,
    ],
    ['its overhead on top', { containers: [box('a', '1')], overhead: { cpu: '250m' } }, 1250],
    [
      'a limit, where there is no request',
      { containers: [{ name: 'a', image: 'x', resources: { limits: { cpu: '700m' } } }] },
      700,
    ],
  ];
  test.each(sums)('is %s', (_name, spec, expected) => {
    expect(podRequest(makePod('p', spec), 'cpu')).toBe(expected);
  });
});

describe('place', () => {
  const affinity = (terms: { key: string; operator: string; values?: string[] }[][]): Partial<Pod['spec']> => ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: terms.map((matchExpressions) => ({ matchExpressions })),
        },
      },
    },
  });
  const rows: readonly [string, Partial<Pod['spec']>, boolean][] = [
    ['a selector that the labels fulfil', { nodeSelector: { zone: 'a' } }, true],
    ['a selector with another value', { nodeSelector: { zone: 'b' } }, false],
    ['a selector for a label that is not there', { nodeSelector: { disk: 'ssd' } }, false],
    ['In with the value', affinity([[{ key: 'zone', operator: 'In', values: ['b', 'a'] }]]), true],
    ['In without the value', affinity([[{ key: 'zone', operator: 'In', values: ['b'] }]]), false],
    ['NotIn for a label that is not there', affinity([[{ key: 'disk', operator: 'NotIn', values: ['x'] }]]), true],
    ['NotIn with the value', affinity([[{ key: 'zone', operator: 'NotIn', values: ['a'] }]]), false],
    ['Exists', affinity([[{ key: 'zone', operator: 'Exists' }]]), true],
    ['DoesNotExist for a label that is there', affinity([[{ key: 'zone', operator: 'DoesNotExist' }]]), false],
    ['Gt below', affinity([[{ key: 'cores', operator: 'Gt', values: ['4'] }]]), true],
    ['Gt of what is equal', affinity([[{ key: 'cores', operator: 'Gt', values: ['8'] }]]), false],
    ['Lt above', affinity([[{ key: 'cores', operator: 'Lt', values: ['16'] }]]), true],
    ['Lt of a label that is no number', affinity([[{ key: 'zone', operator: 'Lt', values: ['16'] }]]), false],
    [
      'one term of two that holds',
      affinity([[{ key: 'disk', operator: 'Exists' }], [{ key: 'zone', operator: 'Exists' }]]),
      true,
    ],
    [
      'a term of which one half holds',
      affinity([
        [
          { key: 'disk', operator: 'Exists' },
          { key: 'zone', operator: 'Exists' },
        ],
      ]),
      false,
    ],
    ['a term without requirements', affinity([[]]), false],
    [
      'a selector and an affinity of which one holds',
      { nodeSelector: { zone: 'b' }, ...affinity([[{ key: 'zone', operator: 'Exists' }]]) },
      false,
    ],
  ];
  test.each(rows)('%s', (_name, spec, fits) => {
    expect(verdict(makePod('p', spec))).toEqual(
      fits
        ? undefined
        : {
            reason: 'NodeAffinity',
            message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
          },
    );
  });

  it('matchFields know the node by its name', () => {
    const fields = (value: string): Partial<Pod['spec']> => ({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [value] }] }],
          },
        },
      },
    });
    expect(verdict(makePod('p', fields('node-1')))).toBeUndefined();
    expect(verdict(makePod('p', fields('node-2')))).toMatchObject({ reason: 'NodeAffinity' });
  });

  it('a pod that is bound to another node is not run here', () => {
    expect(verdict(makePod('p', { nodeName: 'node-2' }))).toEqual({
      reason: 'NodeName',
      message: "Predicate NodeName failed: node(s) didn't match the requested node name",
    });
  });
});

describe('taints', () => {
  const tainted = { taints: [{ key: 'gone', value: 'yes', effect: 'NoExecute' }] };
  const tolerating = (toleration: object) => makePod('p', { tolerations: [toleration] });
  const rows: readonly [string, Pod, boolean][] = [
    ['is refused by NoExecute that it does not tolerate', makePod('p'), false],
    ['tolerates by key and value', tolerating({ key: 'gone', operator: 'Equal', value: 'yes' }), true],
    ['does not tolerate with another value', tolerating({ key: 'gone', operator: 'Equal', value: 'no' }), false],
    [
      'does not tolerate with another effect',
      tolerating({ key: 'gone', operator: 'Exists', effect: 'NoSchedule' }),
      false,
    ],
    ['tolerates everything', tolerating({ operator: 'Exists' }), true],
    ['that is static is not asked', fromFile(makePod('p')), true],
  ];
  test.each(rows)('a pod %s', (_name, pod, fits) => {
    expect(verdict(pod, [], tainted)).toEqual(
      fits
        ? undefined
        : {
            reason: 'TaintToleration',
            message: "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
          },
    );
  });

  it('NoSchedule is the scheduler’s affair', () => {
    expect(verdict(makePod('p'), [], { taints: [{ key: 'k', effect: 'NoSchedule' }] })).toBeUndefined();
  });
});

describe('host ports', () => {
  const listening = (port: object, spec: Partial<Pod['spec']> = {}) =>
    makePod('p', { containers: [{ name: 'c', image: 'x', ports: [{ containerPort: 80, ...port }] }], ...spec });
  const rows: readonly [string, object, object, boolean][] = [
    ['the same port', { hostPort: 80 }, { hostPort: 80 }, false],
    ['another port', { hostPort: 80 }, { hostPort: 81 }, true],
    ['the same port of another protocol', { hostPort: 80 }, { hostPort: 80, protocol: 'UDP' }, true],
    ['two addresses', { hostPort: 80, hostIP: '10.0.0.1' }, { hostPort: 80, hostIP: '10.0.0.2' }, true],
    ['one address and all of them', { hostPort: 80, hostIP: '10.0.0.1' }, { hostPort: 80 }, false],
    ['container ports alone', {}, {}, true],
  ];
  test.each(rows)('%s', (_name, mine, theirs, fits) => {
    expect(verdict(listening(mine), [listening(theirs)])).toEqual(
      fits
        ? undefined
        : {
            reason: 'NodePorts',
            message: "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
          },
    );
  });
});

describe('sysctls', () => {
  const setting = (name: string, spec: Partial<Pod['spec']> = {}) =>
    makePod('p', { securityContext: { sysctls: [{ name, value: '1' }] }, ...spec });
  const rows: readonly [string, Pod, readonly string[], string | undefined][] = [
    ['a safe one', setting('net.ipv4.tcp_syncookies'), [], undefined],
    ['a safe one, written with slashes', setting('net/ipv4/tcp_syncookies'), [], undefined],
    ['an unsafe one', setting('kernel.msgmax'), [], '"kernel.msgmax" not allowlisted'],
    ['an unsafe one that is allowed', setting('kernel.msgmax'), ['kernel.msgmax'], undefined],
    ['an unsafe one that is allowed by prefix', setting('kernel.msgmax'), ['kernel.msg*'], undefined],
    [
      'one of the network, on the node’s network',
      setting('net.ipv4.tcp_syncookies', { hostNetwork: true }),
      [],
      '"net.ipv4.tcp_syncookies" not allowed with host Net enabled',
    ],
    [
      'one of IPC, in the node’s IPC namespace',
      setting('kernel.shm_rmid_forced', { hostIPC: true }),
      [],
      '"kernel.shm_rmid_forced" not allowed with host IPC enabled',
    ],
  ];
  test.each(rows)('%s', (_name, pod, allowedUnsafeSysctls, problem) => {
    expect(verdict(pod, [], {}, { allowedUnsafeSysctls })).toEqual(
      problem === undefined ? undefined : { reason: 'SysctlForbidden', message: `forbidden sysctl: ${problem}` },
    );
  });

  it('are safe from the kernel on that keeps them apart', () => {
    expect(safeSysctls('4.4.0')).not.toContain('net.ipv4.tcp_fin_timeout');
    expect(safeSysctls('4.6.0-rc1')).toContain('net.ipv4.tcp_fin_timeout');
    expect(safeSysctls('4.14.1')).not.toContain('net.ipv4.tcp_rmem');
  });

  it('keep a dot in the name of an interface', () => {
    expect(normalizeSysctl('net/ipv4/conf/eth0.1/forwarding')).toBe('net.ipv4.conf.eth0/1.forwarding');
    expect(normalizeSysctl('net.ipv4.conf.eth0/1.forwarding')).toBe('net.ipv4.conf.eth0/1.forwarding');
  });

  test.each(['vm.swappiness', 'kernel.panic', 'ke*'])('%s cannot be allowed: all pods would share it', (name) => {
    expect(() => sysctlPatterns('6.1.0', [name])).toThrow('not known to be namespaced');
  });

  it('a pattern that is none is refused at start', () => {
    expect(() => sysctlPatterns('6.1.0', ['net.*.x'])).toThrow('not the name of a sysctl');
  });
});

describe('what the node cannot do', () => {
  it('run another operating system’s programs', () => {
    expect(verdict(makePod('p', { os: { name: 'windows' } }))).toEqual({
      reason: 'PodOSNotSupported',
      message: "Failed to admit pod as the OS field doesn't match node OS",
    });
    expect(verdict(makePod('p', { os: { name: 'linux' } }))).toBeUndefined();
  });

  it('keep a process out of the groups that its image gives it, where the runtime cannot', () => {
    const security = (supplementalGroupsPolicy: string) =>
      ({ supplementalGroupsPolicy }) as NonNullable<Pod['spec']['securityContext']>;
    const strict = makePod('p', { securityContext: security('Strict') });
    expect(verdict(strict, [], { supplementalGroupsPolicy: false })).toEqual({
      reason: 'SupplementalGroupsPolicyNotSupported',
      message: 'SupplementalGroupsPolicy=Strict is not supported in this node',
    });
    expect(verdict(strict, [], { supplementalGroupsPolicy: true })).toBeUndefined();
    expect(verdict(strict)).toBeUndefined();
    const merge = makePod('p', { securityContext: security('Merge') });
    expect(verdict(merge, [], { supplementalGroupsPolicy: false })).toBeUndefined();
  });

  it('be of another operating system than its label', () => {
    expect(verdict(makePod('p', { nodeSelector: { 'kubernetes.io/os': 'windows' } }))).toEqual({
      reason: 'PodOSSelectorNodeLabelDoesNotMatch',
      message: "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    });
  });

  const armoured = (profile: object) =>
    makePod('p', { containers: [{ name: 'c', image: 'x', securityContext: Object(profile) }] });
  const rows: readonly [string, Pod, boolean][] = [
    ['RuntimeDefault', armoured({ appArmorProfile: { type: 'RuntimeDefault' } }), false],
    ['a profile of the node', armoured({ appArmorProfile: { type: 'Localhost', localhostProfile: 'x' } }), false],
    ['Unconfined', armoured({ appArmorProfile: { type: 'Unconfined' } }), true],
    ['nothing', armoured({}), true],
    [
      'RuntimeDefault by annotation',
      makePod('p', {}, { annotations: { 'container.apparmor.security.beta.kubernetes.io/web': 'runtime/default' } }),
      false,
    ],
    [
      'unconfined by annotation',
      makePod('p', {}, { annotations: { 'container.apparmor.security.beta.kubernetes.io/web': 'unconfined' } }),
      true,
    ],
  ];
  test.each(rows)('without AppArmor in the kernel, a pod that asks for %s', (_name, pod, fits) => {
    expect(verdict(pod, [], {}, { appArmor: false })).toEqual(
      fits
        ? undefined
        : { reason: 'AppArmor', message: 'Cannot enforce AppArmor: AppArmor is not enabled on the host' },
    );
    expect(verdict(pod, [], {}, { appArmor: true })).toBeUndefined();
  });

  it('a running pod is not refused for its AppArmor profile', () => {
    const pod = armoured({ appArmorProfile: { type: 'RuntimeDefault' } });
    expect(verdict({ ...pod, status: { phase: 'Running' } }, [], {}, { appArmor: false })).toBeUndefined();
  });
});
