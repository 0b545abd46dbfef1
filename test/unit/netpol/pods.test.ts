// Which pods policies see, and ranges of addresses.

import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../client/types.ts';
import { policyPod, policyPods } from '../../../netpol/pods.ts';
import { addressText, blockRange, subtract, union } from '../../../netpol/ranges.ts';

function makePod(spec: Partial<Pod['spec']> = {}, status: Pod['status'] = { podIP: '10.0.0.1' }, created = ''): Pod {
  return {
    metadata: { name: 'p', namespace: 'x', uid: created, resourceVersion: '1', creationTimestamp: created },
    spec: { containers: [], nodeName: 'here', ...spec },
    status,
  };
}

describe('pods', () => {
  it.each<[string, Pod, string | undefined]>([
    ['one with an address', makePod(), '10.0.0.1'],
    ['one of its node’s network', makePod({ hostNetwork: true }), undefined],
    ['one without an address', makePod({}, {}), undefined],
    ['one that has ended', makePod({}, { podIP: '10.0.0.1', phase: 'Succeeded' }), undefined],
    ['one that has failed', makePod({}, { podIP: '10.0.0.1', phase: 'Failed' }), undefined],
    [
      'the IPv4 address of two',
      makePod({}, { podIP: 'fd00::1', podIPs: [{ ip: 'fd00::1' }, { ip: '10.0.0.2' }] }),
      '10.0.0.2',
    ],
  ])('%s', (_, pod, ip) => {
    expect(policyPod(pod)?.ip).toBe(ip);
  });
  it('named ports of containers and side-cars', () => {
    const ports = [{ name: 'web', containerPort: 80 }, { containerPort: 81 }];
    const sidecar = {
      name: 's',
      restartPolicy: 'Always',
      ports: [{ name: 'dns', protocol: 'UDP', containerPort: 53 }],
    };
    const init = { name: 'i', ports: [{ name: 'early', containerPort: 1 }] };
    const pod = makePod({ containers: [{ name: 'c', ports }], initContainers: [sidecar, init] });
    expect(policyPod(pod)?.ports).toEqual([
      { name: 'web', protocol: 'TCP', number: 80 },
      { name: 'dns', protocol: 'UDP', number: 53 },
    ]);
  });
  it('of two with one address the later one', () => {
    const [old, young] = [
      makePod({ nodeName: 'old' }, undefined, '2026-01-01T00:00:00Z'),
      makePod({}, undefined, '2026-01-01T00:00:01Z'),
    ];
    expect(policyPods([young, old]).map(({ nodeName }) => nodeName)).toEqual(['here']);
  });
});

describe('ranges', () => {
  const of = (...blocks: string[]) => blocks.flatMap((block) => blockRange(block) ?? []);
  it.each<[string[], string[], string[]]>([
    [['10.0.0.0/30'], [], ['10.0.0.0-10.0.0.3']],
    [['10.0.0.7/30'], [], ['10.0.0.4-10.0.0.7']],
    [['10.0.0.1/32'], [], ['10.0.0.1']],
    [['0.0.0.0/0'], ['128.0.0.0/1'], ['0.0.0.0-127.255.255.255']],
    [['10.0.0.0/24'], ['10.0.0.0/25', '10.0.0.255/32'], ['10.0.0.128-10.0.0.254']],
    [['10.0.0.0/24'], ['10.0.0.0/16'], []],
    [
      ['10.0.0.0/24'],
      ['9.0.0.0/8', '10.0.0.64/26', '10.0.0.64/27', '11.0.0.0/8'],
      ['10.0.0.0-10.0.0.63', '10.0.0.128-10.0.0.255'],
    ],
    [['10.0.1.0/24', '10.0.0.0/24', '10.0.0.8/32'], [], ['10.0.0.0-10.0.1.255']],
    [['2001:db8::/32', '10.0.0.0', 'x/8', '10.0.0.0/33'], [], []],
  ])('%j without %j', (blocks, holes, expected) => {
    expect(union(of(...blocks).flatMap((block) => subtract(block, of(...holes)))).map(addressText)).toEqual(expected);
  });
});
