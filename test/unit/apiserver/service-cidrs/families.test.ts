// Services of a cluster with addresses of IPv6, or of both families. What is refused, and what becomes of the fields, is what
// kube-apiserver 1.34.2 answers with the same ranges.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reachableAddress } from '../../../../apiserver/advertised.ts';
import type { IPFamily } from '../../../../apiserver/kinds/resource.ts';
import { allocateService } from '../../../../apiserver/kinds/services/allocate.ts';
import { type ServiceSpec, serviceOf } from '../../../../apiserver/kinds/services/shape.ts';
import { UserError } from '../../../../lib/errors.ts';
import { at, TestApiServer } from '../../../support/api-server.ts';
import { lookupOf, NOW, object, row } from '../kinds/support.ts';

const NETWORK = 'networking.k8s.io';
const CIDRS: Readonly<Record<IPFamily, string>> = { IPv4: '10.96.0.0/16', IPv6: 'fd00:10:96::/112' };
const [A4, A6] = ['10.96.0.9', 'fd00:10:96::9'];

/** An address that the server chose is "4" or "6". */
const shown = (address: string): string => {
  if (address === A4 || address === A6 || address === 'None') return address;
  return address.startsWith('10.96.') ? '4' : address.startsWith('fd00:10:96::') ? '6' : `none of a range: ${address}`;
};

function allocated(families: readonly IPFamily[], spec: ServiceSpec, old?: ServiceSpec): readonly unknown[] {
  const services = row('services');
  const cidr = object(row('servicecidrs', NETWORK), { spec: { cidrs: families.map((family) => CIDRS[family]) } });
  const context = {
    user: { name: 'u', groups: [] },
    now: NOW,
    lookup: lookupOf({ group: NETWORK, plural: 'servicecidrs', object: cidr }),
    serviceFamilies: families,
  };
  const made = object(services, { spec: { type: 'ClusterIP', ports: [{ port: 80 }], ...spec } });
  const stored = old === undefined ? undefined : object(services, { spec: { type: 'ClusterIP', ...old } });
  const errors = allocateService(made, context, stored);
  if (errors.length > 0) return errors.map(({ field, detail }) => `${field}: ${detail}`);
  const { clusterIP, clusterIPs = [], ipFamilies = [], ipFamilyPolicy } = serviceOf(made).spec ?? {};
  expect(clusterIP).toBe(clusterIPs[0]);
  return [clusterIPs.map(shown), ipFamilies, ipFamilyPolicy];
}

const FOUR: readonly IPFamily[] = ['IPv4'];
const SIX: readonly IPFamily[] = ['IPv6'];
const BOTH: readonly IPFamily[] = ['IPv4', 'IPv6'];
const SIX_FIRST: readonly IPFamily[] = ['IPv6', 'IPv4'];
const headless = { clusterIP: 'None', clusterIPs: ['None'] };
const selector = { a: 'b' };

describe('a new Service', () => {
  it.each<[string, readonly IPFamily[], ServiceSpec, readonly unknown[]]>([
    ['of IPv4 alone', FOUR, {}, [['4'], ['IPv4'], 'SingleStack']],
    ['that prefers both, of IPv4', FOUR, { ipFamilyPolicy: 'PreferDualStack' }, [['4'], ['IPv4'], 'PreferDualStack']],
    [
      'that requires both, of IPv4',
      FOUR,
      { ipFamilyPolicy: 'RequireDualStack' },
      [
        'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
      ],
    ],
    [
      'of the family that the cluster does not have',
      FOUR,
      { ipFamilies: ['IPv6'] },
      ['spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'],
    ],
    [
      'of an address of that family',
      FOUR,
      { clusterIP: A6 },
      [`spec.clusterIPs[0]: Invalid value: ["${A6}"]: IPv6 is not configured on this cluster`],
    ],
    [
      'headless without selector, on one family, has both',
      FOUR,
      headless,
      [['None'], ['IPv4', 'IPv6'], 'RequireDualStack'],
    ],
    ['of IPv6 alone', SIX, {}, [['6'], ['IPv6'], 'SingleStack']],
    ['of IPv6, with its address', SIX, { clusterIP: A6 }, [[A6], ['IPv6'], 'SingleStack']],
    ['headless with selector, of IPv6', SIX, { ...headless, selector }, [['None'], ['IPv6'], 'SingleStack']],
    ['of both, for who names none', BOTH, {}, [['4'], ['IPv4'], 'SingleStack']],
    ['of both, IPv6 first', SIX_FIRST, {}, [['6'], ['IPv6'], 'SingleStack']],
    ['that names the other', BOTH, { ipFamilies: ['IPv6'] }, [['6'], ['IPv6'], 'SingleStack']],
    [
      'that prefers both',
      BOTH,
      { ipFamilyPolicy: 'PreferDualStack' },
      [['4', '6'], ['IPv4', 'IPv6'], 'PreferDualStack'],
    ],
    [
      'that requires both, in its own order',
      BOTH,
      { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] },
      [['6', '4'], ['IPv6', 'IPv4'], 'RequireDualStack'],
    ],
    [
      'with one address, and the policy for both',
      BOTH,
      { ipFamilyPolicy: 'RequireDualStack', clusterIP: A6 },
      [[A6, '4'], ['IPv6', 'IPv4'], 'RequireDualStack'],
    ],
    [
      'with two addresses and no policy',
      BOTH,
      { clusterIP: A4, clusterIPs: [A4, A6] },
      [
        "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified",
      ],
    ],
    [
      'with an address of no range',
      BOTH,
      { ipFamilyPolicy: 'RequireDualStack', clusterIP: 'fd01::9' },
      [
        'spec.clusterIPs: Invalid value: ["fd01::9",""]: failed to allocate IP fd01::9: the provided network does not match the current range',
      ],
    ],
  ])('%s', (_name, families, spec, expected) => {
    expect(allocated(families, spec)).toEqual(expected);
  });
});

describe('a Service that changes', () => {
  const one: ServiceSpec = { clusterIP: A4, clusterIPs: [A4], ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' };
  const two: ServiceSpec = {
    clusterIP: A4,
    clusterIPs: [A4, A6],
    ipFamilies: ['IPv4', 'IPv6'],
    ipFamilyPolicy: 'RequireDualStack',
  };
  it.each<[string, ServiceSpec, ServiceSpec, readonly unknown[]]>([
    [
      'gets the second address with the policy',
      one,
      { ...one, ipFamilyPolicy: 'RequireDualStack' },
      [[A4, '6'], ['IPv4', 'IPv6'], 'RequireDualStack'],
    ],
    [
      'gets the one that it names',
      one,
      { ...two, ipFamilyPolicy: 'PreferDualStack' },
      [[A4, A6], ['IPv4', 'IPv6'], 'PreferDualStack'],
    ],
    ['loses it with the policy', two, { ...two, ipFamilyPolicy: 'SingleStack' }, [[A4], ['IPv4'], 'SingleStack']],
    [
      'does not lose it without',
      two,
      { ...two, clusterIPs: [A4] },
      [
        'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be \'SingleStack\' to release the secondary cluster IP',
      ],
    ],
    [
      'stays as it was, where it prefers both since before the cluster had them',
      { ...one, ipFamilyPolicy: 'PreferDualStack' },
      { ...one, ipFamilyPolicy: 'PreferDualStack' },
      [[A4], ['IPv4'], 'PreferDualStack'],
    ],
    [
      'becomes one with addresses',
      { type: 'ExternalName', externalName: 'a.example.com' },
      { ipFamilyPolicy: 'PreferDualStack' },
      [['4', '6'], ['IPv4', 'IPv6'], 'PreferDualStack'],
    ],
  ])('%s', (_name, old, spec, expected) => {
    expect(allocated(BOTH, spec, old)).toEqual(expected);
  });
});

describe('the server’s own address', () => {
  const own = [
    { address: '127.0.0.1', internal: true },
    { address: '192.0.2.7', internal: false },
    { address: 'fe80::1', internal: false },
    { address: '2001:db8::7', internal: false },
  ];
  it.each<[string, Parameters<typeof reachableAddress>[0], IPFamily, string | undefined]>([
    ['where it listens', { address: '192.0.2.9' }, 'IPv4', '192.0.2.9'],
    ['the machine’s, behind loopback', { address: '127.0.0.1' }, 'IPv4', '192.0.2.7'],
    ['of IPv6, and not of the link', { address: '0.0.0.0' }, 'IPv6', '2001:db8::7'],
    ['of IPv6, though it listens on IPv4', { address: '192.0.2.9' }, 'IPv6', '2001:db8::7'],
    ['as the flag says', { address: '0.0.0.0', advertiseAddress: 'fd00::5' }, 'IPv6', 'fd00::5'],
  ])('%s', (_name, options, family, expected) => {
    expect(reachableAddress(options, CIDRS[family], family, own)).toBe(expected);
  });

  it('is none where the machine has none of the family, and refused where the flag names the other', () => {
    expect(reachableAddress({ address: '127.0.0.1' }, CIDRS.IPv6, 'IPv6', own.slice(0, 2))).toBeUndefined();
    expect(() =>
      reachableAddress({ address: '0.0.0.0', advertiseAddress: '192.0.2.7' }, CIDRS.IPv6, 'IPv6', own),
    ).toThrow(new UserError('service IP family "fd00:10:96::/112" must match public address family "192.0.2.7"'));
  });
});

describe('a server with both families', () => {
  const services = '/api/v1/namespaces/default/services';
  let stand: TestApiServer;
  beforeAll(async () => {
    stand = await TestApiServer.start({ serviceCidrs: [CIDRS.IPv6, CIDRS.IPv4], advertiseAddress: 'fd00:1::5' });
  });
  afterAll(() => stand.stop());
  const addresses = async (): Promise<unknown[]> => {
    const items = at(await stand.admit('GET', '/apis/networking.k8s.io/v1/ipaddresses'), 'items');
    return (Array.isArray(items) ? items : []).map((item) => [
      shown(String(at(item, 'metadata', 'name'))),
      at(item, 'metadata', 'labels', 'ipaddress.kubernetes.io/ip-family'),
      at(item, 'spec', 'parentRef', 'name'),
    ]);
  };

  it('has the service kubernetes in the first one, with its endpoints', async () => {
    expect(await stand.admit('GET', `${services}/kubernetes`)).toMatchObject({
      spec: { clusterIPs: ['fd00:10:96::1'], ipFamilies: ['IPv6'], ipFamilyPolicy: 'SingleStack' },
    });
    expect(
      await stand.admit('GET', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes'),
    ).toMatchObject({ addressType: 'IPv6', endpoints: [{ addresses: ['fd00:1::5'] }] });
    expect(await stand.admit('GET', '/apis/networking.k8s.io/v1/servicecidrs/kubernetes')).toMatchObject({
      spec: { cidrs: [CIDRS.IPv6, CIDRS.IPv4] },
    });
  });

  it('has an IPAddress for each address of a Service, until it is released or goes', async () => {
    const merge = { 'content-type': 'application/merge-patch+json' };
    const kubernetes = ['6', 'IPv6', 'kubernetes'];
    await stand.admit('POST', services, {
      metadata: { name: 'web' },
      spec: { ports: [{ port: 80 }], clusterIP: A4, ipFamilyPolicy: 'PreferDualStack' },
    });
    expect(await addresses()).toEqual([[A4, 'IPv4', 'web'], kubernetes, ['6', 'IPv6', 'web']]);
    await stand.admit('PATCH', `${services}/web`, { spec: { ipFamilyPolicy: 'SingleStack' } }, merge);
    expect(await addresses()).toEqual([[A4, 'IPv4', 'web'], kubernetes]);
    await stand.admit('DELETE', `${services}/web`);
    expect(await addresses()).toEqual([kubernetes]);
  });
});
