import { describe, expect, test } from 'vitest';
import {
  dnsWarnings,
  parseResolvConf,
  podResolvConf,
  type ResolvConf,
} from '../../../../../agent/runtime/config/dns.ts';
import type { Pod } from '../../../../../client/types.ts';
import { pod } from '../fixtures.ts';

const CLUSTER = { servers: ['10.96.0.10'], domain: 'cluster.local' };
const HOST: ResolvConf = { servers: ['192.0.2.1'], searches: ['corp.example'], options: ['timeout:1'] };
const CLUSTER_FIRST: ResolvConf = {
  servers: ['10.96.0.10'],
  searches: ['demo.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'corp.example'],
  options: ['ndots:5'],
};

describe('resolv.conf of a pod', () => {
  test.each<[string, Partial<Pod['spec']>, ResolvConf]>([
    ['ClusterFirst is the default', {}, CLUSTER_FIRST],
    ['ClusterFirst on the host network is the node’s', { hostNetwork: true }, HOST],
    [
      'ClusterFirstWithHostNet is the cluster’s there, too',
      { dnsPolicy: 'ClusterFirstWithHostNet', hostNetwork: true },
      CLUSTER_FIRST,
    ],
    ['Default is the node’s', { dnsPolicy: 'Default' }, HOST],
    [
      'None is what dnsConfig says and nothing else',
      { dnsPolicy: 'None', dnsConfig: { nameservers: ['1.1.1.1'], searches: ['x.y'], options: [{ name: 'edns0' }] } },
      { servers: ['1.1.1.1'], searches: ['x.y'], options: ['edns0'] },
    ],
    [
      'dnsConfig adds servers and searches once, and overrides options by name',
      {
        dnsConfig: {
          nameservers: ['10.96.0.10', '1.1.1.1'],
          searches: ['cluster.local', 'own.example'],
          options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
        },
      },
      {
        servers: ['10.96.0.10', '1.1.1.1'],
        searches: [...CLUSTER_FIRST.searches, 'own.example'],
        options: ['ndots:2', 'edns0'],
      },
    ],
    [
      'no more than three servers',
      { dnsPolicy: 'Default', dnsConfig: { nameservers: ['1.1.1.1', '1.1.1.2', '1.1.1.3'] } },
      { ...HOST, servers: ['192.0.2.1', '1.1.1.1', '1.1.1.2'] },
    ],
  ])('%s', (_rule, spec, expected) => {
    expect(podResolvConf(pod(spec), CLUSTER, HOST)).toEqual(expected);
  });

  test('searches are cut to 32 of them and to 2048 characters with the blanks between', () => {
    const many = Array.from({ length: 40 }, (_, index) => `d${index}.example`);
    const none = { dnsPolicy: 'None' };
    expect(podResolvConf(pod({ ...none, dnsConfig: { searches: many } }), CLUSTER, HOST).searches).toHaveLength(32);
    const long = Array.from({ length: 9 }, (_, index) => `${index}${'x'.repeat(249)}`);
    expect(podResolvConf(pod({ ...none, dnsConfig: { searches: long } }), CLUSTER, HOST).searches).toHaveLength(8);
  });

  test('a search path that a resolver would abort at is left out', () => {
    const searches = ['a.example', 'x'.repeat(254), 'b.example'];
    const spec = { dnsPolicy: 'None', dnsConfig: { searches } };
    expect(podResolvConf(pod(spec), CLUSTER, HOST).searches).toEqual(['a.example', 'b.example']);
  });

  test('a cluster without DNS falls back to the node’s', () => {
    expect(podResolvConf(pod(), { servers: [], domain: 'cluster.local' }, HOST)).toEqual(HOST);
  });

  describe('is warned of', () => {
    const none = (searches: readonly string[]) => ({ dnsPolicy: 'None', dnsConfig: { searches: [...searches] } });
    const many = Array.from({ length: 33 }, (_, index) => `d${index}`);
    const search = (applied: readonly string[]) =>
      'DNSConfigForming: Search Line limits were exceeded, some search paths have been omitted, ' +
      `the applied search line is: ${applied.join(' ')}`;
    test.each<[string, Partial<Pod['spec']>, readonly string[], readonly string[]]>([
      ['nothing where nothing is cut', {}, ['10.96.0.10'], []],
      [
        'servers that were cut off',
        { dnsPolicy: 'None', dnsConfig: { nameservers: ['1.1.1.1', '1.1.1.2', '1.1.1.3', '1.1.1.4'] } },
        ['10.96.0.10'],
        [
          'DNSConfigForming: Nameserver limits were exceeded, some nameservers have been omitted, ' +
            'the applied nameserver line is: 1.1.1.1 1.1.1.2 1.1.1.3',
        ],
      ],
      ['search paths that were cut off', none(many), ['10.96.0.10'], [search(many.slice(0, 32))]],
      ['one that is too long', none(['a', 'x'.repeat(254)]), ['10.96.0.10'], [search(['a'])]],
      [
        'a cluster without DNS, as of the node',
        {},
        [],
        [
          'node MissingClusterDNS: kubelet does not have ClusterDNS IP configured and cannot create Pod using ' +
            '"ClusterFirst" policy. Falling back to "Default" policy.',
        ],
      ],
      ['no such thing where nobody asks for it', { dnsPolicy: 'Default' }, [], []],
      ['nor on the host network', { hostNetwork: true }, [], []],
    ])('%s', (_what, spec, servers, expected) => {
      const found = dnsWarnings(pod(spec), { servers, domain: 'cluster.local' }, HOST);
      expect(found.map(({ of, reason, message }) => `${of === 'node' ? 'node ' : ''}${reason}: ${message}`)).toEqual(
        expected,
      );
    });
  });

  test('a node without resolv.conf leaves a pod with a resolver that answers nothing', () => {
    const expected = { servers: ['127.0.0.1'], searches: ['.'], options: [] };
    expect(podResolvConf(pod({ dnsPolicy: 'Default' }), CLUSTER, undefined)).toEqual(expected);
  });

  test('resolv.conf is read as resolv.conf(5) says', () => {
    const text = [
      '# comment',
      'nameserver 192.0.2.1 # trailing',
      'nameserver\t192.0.2.2',
      'search first.example',
      'search a.example. b.example .',
      'options ndots:1',
      'options timeout:2 rotate',
      '; other comment',
      'sortlist 10.0.0.0',
      'nameserver',
      '',
    ].join('\n');
    expect(parseResolvConf(text)).toEqual({
      servers: ['192.0.2.1', '192.0.2.2'],
      searches: ['a.example', 'b.example', '.'],
      options: ['timeout:2', 'rotate'],
    });
    expect(parseResolvConf('domain corp.example\n').searches).toEqual(['corp.example']);
  });
});
