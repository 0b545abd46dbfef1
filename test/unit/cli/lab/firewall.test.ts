import { describe, expect, it } from 'vitest';
import { forwardPolicyDrops } from '../../../../cli/lab/config.ts';
import { planNetworkRemoval } from '../../../../cli/lab/firewall.ts';

const SAVED = `*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [1:60]
:CNI-1111111111111111111111ff - [0:0]
:CNI-2222222222222222222222ff - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:CNI-DN-3333333333333333333ff - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A POSTROUTING -s 10.244.1.2/32 -m comment --comment "name: \\"nodelet-aaaa\\" id: \\"c1\\"" -j CNI-1111111111111111111111ff
-A POSTROUTING -s 10.244.2.2/32 -m comment --comment "name: \\"nodelet-bbbb\\" id: \\"c2\\"" -j CNI-2222222222222222222222ff
-A CNI-1111111111111111111111ff -d 10.244.1.0/24 -m comment --comment "name: \\"nodelet-aaaa\\" id: \\"c1\\"" -j ACCEPT
-A CNI-1111111111111111111111ff ! -d 224.0.0.0/4 -j MASQUERADE
-A CNI-2222222222222222222222ff ! -d 224.0.0.0/4 -m comment --comment "name: \\"nodelet-bbbb\\" id: \\"c2\\"" -j MASQUERADE
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"nodelet-aaaa\\" id: \\"c1\\"" -j CNI-DN-3333333333333333333ff
-A CNI-DN-3333333333333333333ff -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.244.1.2:80
COMMIT
`;

describe('the rules of one network', () => {
  it('go with the chains that only they use; other networks and shared chains stay', () => {
    expect(planNetworkRemoval(SAVED, 'nodelet-aaaa')?.split('\n')).toEqual([
      '*nat',
      '-D POSTROUTING -s 10.244.1.2/32 -m comment --comment "name: \\"nodelet-aaaa\\" id: \\"c1\\"" -j CNI-1111111111111111111111ff',
      '-D CNI-1111111111111111111111ff -d 10.244.1.0/24 -m comment --comment "name: \\"nodelet-aaaa\\" id: \\"c1\\"" -j ACCEPT',
      '-D CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"nodelet-aaaa\\" id: \\"c1\\"" -j CNI-DN-3333333333333333333ff',
      '-D CNI-1111111111111111111111ff ! -d 224.0.0.0/4 -j MASQUERADE',
      '-D CNI-DN-3333333333333333333ff -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.244.1.2:80',
      '-X CNI-1111111111111111111111ff',
      '-X CNI-DN-3333333333333333333ff',
      'COMMIT',
      '',
    ]);
  });

  it('that has none need nothing', () => {
    expect(planNetworkRemoval(SAVED, 'nodelet-cccc')).toBeUndefined();
    expect(planNetworkRemoval('', 'nodelet-aaaa')).toBeUndefined();
  });
});

describe('the forward policy', () => {
  it.each([
    ['-P FORWARD ACCEPT\n', false],
    ['-P FORWARD DROP\n-A FORWARD -j DOCKER-USER\n', true],
    ['', false],
  ])('of "%s" drops: %s', (rules, expected) => {
    expect(forwardPolicyDrops(rules)).toBe(expected);
  });
});
