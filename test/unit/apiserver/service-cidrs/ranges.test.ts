// The ranges of Services' addresses, and what ServiceCIDRs and IPAddresses need.

import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import {
  firstServiceAddress,
  freeAddress,
  inRange,
  isReady,
  serviceRange,
} from '../../../../apiserver/kinds/services/ranges.ts';
import { addressText } from '../../../../apiserver/kinds/shared/addresses.ts';
import { addressNeeds, cidrNeeds } from '../../../../apiserver/service-cidrs.ts';

const shown = (cidr: string): string[] => {
  const range = serviceRange(cidr);
  return range === undefined ? [] : [range.first, range.dynamic, range.last].map((n) => addressText(n, range.family));
};

describe('a range', () => {
  // Upstream's cases of calculateRangeOffset, and the addresses that follow from it.
  it.each<[string, string[]]>([
    ['10.96.0.0/16', ['10.96.0.1', '10.96.1.1', '10.96.255.254']],
    ['10.96.0.0/20', ['10.96.0.1', '10.96.1.1', '10.96.15.254']],
    ['10.96.0.0/24', ['10.96.0.1', '10.96.0.17', '10.96.0.254']],
    ['10.96.0.0/23', ['10.96.0.1', '10.96.0.33', '10.96.1.254']],
    ['10.96.0.0/28', ['10.96.0.1', '10.96.0.1', '10.96.0.14']],
    ['fd00::/112', ['fd00::1', 'fd00::101', 'fd00::ffff']],
    ['fd00::/64', ['fd00::1', 'fd00::101', 'fd00::ffff:ffff:ffff:ffff']],
    ['x', []],
  ])('%s', (cidr, expected) => {
    expect(shown(cidr)).toEqual(expected);
  });

  it('has neither its network nor its broadcast address', () => {
    const range = serviceRange('10.96.0.0/24');
    const addresses = ['10.96.0.0', '10.96.0.1', '10.96.0.254', '10.96.0.255', '10.97.0.1', 'fd00::1', 'x'];
    expect(range && addresses.filter((address) => inRange(range, address))).toEqual(['10.96.0.1', '10.96.0.254']);
    expect(firstServiceAddress('192.168.7.0/24')).toBe('192.168.7.1');
  });

  it('gives out its dynamic part first, then the rest, then nothing', () => {
    const range = serviceRange('10.0.0.0/27');
    const taken = new Set<string>();
    const given: string[] = [];
    for (let i = 0; i < 31; i++) {
      const address = range && freeAddress(range, 12_345, (one) => taken.has(one));
      given.push(address ?? 'none');
      if (address !== undefined) taken.add(address);
    }
    expect(new Set(given).size).toBe(31);
    expect(given.at(-1)).toBe('none');
    const isDynamic = (address: string): boolean => Number(address.split('.')[3]) > 16;
    expect(given.slice(0, 14).every(isDynamic)).toBe(true);
    expect(given.slice(14, 30).some(isDynamic)).toBe(false);
  });
});

function cidr(name: string, cidrs: string[], more: { deleted?: boolean; ready?: string } = {}): KubeObject {
  const { deleted = false, ready } = more;
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'ServiceCIDR',
    metadata: { name, ...(deleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
    spec: { cidrs },
    ...(ready === undefined ? {} : { status: { conditions: [{ type: 'Ready', status: ready }] } }),
  };
}

describe('a ServiceCIDR', () => {
  it.each<[string, KubeObject, boolean]>([
    ['without a condition', cidr('a', []), true],
    ['that is ready', cidr('a', [], { ready: 'True' }), true],
    ['that is not', cidr('a', [], { ready: 'False' }), false],
    ['that is being deleted', cidr('a', [], { ready: 'True', deleted: true }), false],
  ])('%s is used: ', (_name, object, expected) => {
    expect(isReady(object)).toBe(expected);
  });

  const deleted = (...cidrs: string[]): KubeObject => cidr('a', cidrs, { deleted: true, ready: 'True' });
  it.each<[string, KubeObject, KubeObject[], string[], boolean, string | undefined]>([
    ['new: gets its finalizer and is ready', cidr('a', ['10.0.0.0/24']), [], [], true, 'True'],
    ['ready: stays', cidr('a', ['10.0.0.0/24'], { ready: 'True' }), [], ['10.0.0.1'], true, undefined],
    ['deleted, unused: may go', deleted('10.0.0.0/24'), [], ['10.0.1.1'], false, undefined],
    ['deleted, in use: stays', deleted('10.0.0.0/24'), [], ['10.0.0.1'], true, 'False'],
    [
      'deleted, in use, within another',
      deleted('10.0.0.0/24'),
      [cidr('b', ['10.0.0.0/16'])],
      ['10.0.0.1'],
      false,
      undefined,
    ],
    [
      'deleted, in use, the same as another',
      deleted('10.0.0.0/24'),
      [cidr('b', ['10.0.0.0/24'])],
      ['10.0.0.1'],
      false,
      undefined,
    ],
    [
      'deleted, larger than another that has the address',
      deleted('10.0.0.0/16'),
      [cidr('b', ['10.0.0.0/24'])],
      ['10.0.0.1'],
      false,
      undefined,
    ],
    [
      'deleted, larger than another that has it not',
      deleted('10.0.0.0/16'),
      [cidr('b', ['10.0.0.0/24'])],
      ['10.0.1.1'],
      true,
      'False',
    ],
  ])('%s', (_name, object, others, addresses, finalizer, ready) => {
    const needs = cidrNeeds(object, [object, ...others], addresses);
    expect([needs.finalizer, needs.ready?.status]).toEqual([finalizer, ready]);
  });
});

describe('the address of a Service', () => {
  const service = (name: string, address: string): KubeObject => {
    return {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'x', name },
      spec: { type: 'ClusterIP', clusterIPs: [address] },
    };
  };
  const ip = (parentRef: object): KubeObject => {
    return {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'IPAddress',
      metadata: { name: '10.0.0.5' },
      spec: { parentRef },
    };
  };
  const web = service('web', '10.0.0.5');
  const ofWeb = { resource: 'services', namespace: 'x', name: 'web' };
  const ofOther = { resource: 'services', namespace: 'x', name: 'other' };
  const ranges = [cidr('a', ['10.0.0.0/24'])];
  const wrong = 'the ClusterIP [IPv4]: 10.0.0.5 for Service x/web has a wrong reference; repairing';
  it.each<[string, KubeObject[], KubeObject | undefined, KubeObject | undefined, unknown]>([
    ['as it should be', ranges, ip(ofWeb), web, undefined],
    [
      'in no range',
      [],
      ip(ofWeb),
      web,
      [
        'ClusterIPOutOfRange',
        'Cluster IP [IPv4]: 10.0.0.5 is not within any configured Service CIDR; please recreate service',
        false,
      ],
    ],
    [
      'without its object',
      ranges,
      undefined,
      undefined,
      ['ClusterIPNotAllocated', 'Cluster IP [IPv4]: 10.0.0.5 is not allocated; repairing', true],
    ],
    [
      'with one of something else',
      ranges,
      ip({ group: 'x', resource: 'gateways', name: 'g' }),
      undefined,
      ['ClusterIPNotAllocated', wrong, true],
    ],
    ['with one of a Service that is gone', ranges, ip(ofOther), undefined, ['ClusterIPNotAllocated', wrong, true]],
    [
      'with one of a Service of another address',
      ranges,
      ip(ofOther),
      service('other', '10.0.0.6'),
      ['ClusterIPNotAllocated', wrong, true],
    ],
    [
      'that another one has',
      ranges,
      ip(ofOther),
      service('other', '10.0.0.5'),
      [
        'ClusterIPAlreadyAllocated',
        'Cluster IP [IPv4]:10.0.0.5 was assigned to multiple services; please recreate service',
        false,
      ],
    ],
  ])('%s', (_name, cidrs, object, owner, expected) => {
    const needs = addressNeeds('10.0.0.5', web, cidrs, object, owner);
    expect(needs && [needs.reason, needs.message, needs.repair]).toEqual(expected);
  });
});
