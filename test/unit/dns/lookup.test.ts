// What is answered of the cluster's own names: the records of the Kubernetes DNS specification, and CoreDNS's answers where it leaves
// a choice.

import { describe, expect, it, test } from 'vitest';
import { type Lookup, lookUp } from '../../../dns/cluster/lookup.ts';
import type { Type } from '../../../dns/wire/message.ts';
import { plusMs } from '../../../lib/clock.ts';
import { kubernetes, NOW, question, SERIAL, sampleCluster, service, slice, summary, text } from './cases.ts';

const cluster = sampleCluster();

function ask(name: string, type: keyof typeof Type, options = ''): readonly string[] {
  return lines(lookUp(question(name, type), { cluster, settings: kubernetes(options), ownAddresses: ['10.244.0.1'] }));
}

function lines(found: Lookup): readonly string[] {
  if (found.kind === 'reply') return summary(found.reply);
  return found.kind === 'next' ? ['next'] : [...found.records.map(text), `→ ${found.target}`];
}

const web = 'web.default.svc.cluster.local';
const db = 'db.default.svc.cluster.local';
const NXDOMAIN = ['NXDOMAIN', 'SOA'];
const NODATA = ['NOERROR', 'SOA'];

describe('services', () => {
  it.each([
    ['a cluster address', web, 'A', ['NOERROR', `${web} 5 A 10.96.0.20`]],
    ['its IPv6 one', web, 'AAAA', ['NOERROR', `${web} 5 AAAA fd00::20`]],
    [
      'as it was written',
      'WEB.Default.svc.cluster.local',
      'A',
      ['NOERROR', 'WEB.Default.svc.cluster.local 5 A 10.96.0.20'],
    ],
    ['of another family alone', 'kubernetes.default.svc.cluster.local', 'AAAA', NODATA],
    [
      'one without endpoints',
      'empty.default.svc.cluster.local',
      'A',
      ['NOERROR', 'empty.default.svc.cluster.local 5 A 10.96.0.21'],
    ],
    ['no such service', 'nothing.default.svc.cluster.local', 'A', NXDOMAIN],
    ['no such namespace', 'web.nowhere.svc.cluster.local', 'A', NXDOMAIN],
    ['a namespace', 'default.svc.cluster.local', 'A', NODATA],
    ['one that is not there', 'nowhere.svc.cluster.local', 'A', NXDOMAIN],
    ['svc', 'svc.cluster.local', 'A', NODATA],
    ['the domain', 'cluster.local', 'A', NODATA],
    ['neither svc nor pod', 'web.default.cluster.local', 'A', NXDOMAIN],
    ['too many labels', `a.b.c.${web}`, 'A', NXDOMAIN],
    ['an endpoint of a cluster address', `10-244-0-5.${web}`, 'A', ['NOERROR', `10-244-0-5.${web} 5 A 10.244.0.5`]],
    ['an endpoint that it has not', `10-244-0-6.${web}`, 'A', NXDOMAIN],
    ['a type that it has not', web, 'MX', NODATA],
    ['that type of a name that is not there', `x.${web}`, 'MX', NXDOMAIN],
    ['TXT of a name that is there', web, 'TXT', NODATA],
    ['TXT of one that is not', `x.${web}`, 'TXT', NXDOMAIN],
    ['another zone', 'example.com', 'A', ['next']],
    ['a zone that ends alike', 'web.default.svc.notcluster.local', 'A', ['next']],
    ['a zone transfer', 'cluster.local', 'AXFR', ['REFUSED']],
  ] as const)('%s', (_, name, type, expected) => {
    expect(ask(name, type)).toEqual(expected);
  });
});

describe('named ports', () => {
  it.each([
    [
      'one',
      `_http._tcp.${web}`,
      [`_http._tcp.${web} 5 SRV 0 50 80 ${web}`, `+ ${web} 5 A 10.96.0.20`, `+ ${web} 5 AAAA fd00::20`],
    ],
    [
      'of the other protocol',
      `_dns._udp.${web}`,
      [`_dns._udp.${web} 5 SRV 0 50 53 ${web}`, `+ ${web} 5 A 10.96.0.20`, `+ ${web} 5 AAAA fd00::20`],
    ],
    [
      'all, by the service’s name',
      'kubernetes.default.svc.cluster.local',
      [
        'kubernetes.default.svc.cluster.local 5 SRV 0 100 443 kubernetes.default.svc.cluster.local',
        '+ kubernetes.default.svc.cluster.local 5 A 10.96.0.1',
      ],
    ],
    [
      'of a headless service: each endpoint by its name',
      `_sql._tcp.${db}`,
      [
        ...['db-0', 'db-1', '10-244-0-9'].map((name) => `_sql._tcp.${db} 5 SRV 0 33 5432 ${name}.${db}`),
        ...[
          ['db-0', 7],
          ['db-1', 8],
          ['10-244-0-9', 9],
        ].map(([name, last]) => `+ ${name}.${db} 5 A 10.244.0.${last}`),
      ],
    ],
  ])('%s', (_, name, expected) => {
    expect(ask(name, 'SRV')).toEqual(['NOERROR', ...expected]);
  });
  it.each([
    ['a port that is not there', `_smtp._tcp.${web}`, NXDOMAIN],
    ['of the wrong protocol', `_http._udp.${web}`, NXDOMAIN],
    ['a service without ports', 'bare.default.svc.cluster.local', NODATA],
    ['an ExternalName', 'out.default.svc.cluster.local', NODATA],
    ['a port of an ExternalName', '_http._tcp.out.default.svc.cluster.local', NXDOMAIN],
  ])('%s', (_, name, expected) => {
    expect(ask(name, 'SRV')).toEqual(expected);
  });
});

describe('headless services', () => {
  it.each([
    ['all that are ready', db, [7, 8, 9].map((last) => `${db} 5 A 10.244.0.${last}`)],
    ['one by its host name', `db-1.${db}`, [`db-1.${db} 5 A 10.244.0.8`]],
    ['one without, by its address', `10-244-0-9.${db}`, [`10-244-0-9.${db} 5 A 10.244.0.9`]],
    ['one without ports', 'bare.default.svc.cluster.local', ['bare.default.svc.cluster.local 5 A 10.244.0.11']],
  ])('%s', (_, name, expected) => {
    expect(ask(name, 'A')).toEqual(['NOERROR', ...expected]);
  });
  test('one that is not ready has no name', () => {
    expect(ask(`db-2.${db}`, 'A')).toEqual(NXDOMAIN);
  });
  test('endpoint_pod_names: by the pod’s name', () => {
    expect(ask(`loose.${db}`, 'A')).toEqual(NXDOMAIN);
    expect(ask(`loose.${db}`, 'A', 'endpoint_pod_names')).toEqual(['NOERROR', `loose.${db} 5 A 10.244.0.9`]);
  });
  test('noendpoints: none are known', () => {
    expect(ask(db, 'A', 'noendpoints')).toEqual(NXDOMAIN);
    expect(ask(web, 'A', 'noendpoints')).toEqual(['NOERROR', `${web} 5 A 10.96.0.20`]);
  });
});

describe('ExternalName', () => {
  const name = (own: string): string => `${own}.default.svc.cluster.local`;
  it.each([
    ['another server has to be asked', 'out', 'A', [`${name('out')} 5 CNAME example.com`, '→ example.com']],
    ['the alias alone', 'out', 'CNAME', ['NOERROR', `${name('out')} 5 CNAME example.com`]],
    ['one in the cluster', 'inside', 'A', ['NOERROR', `${name('inside')} 5 CNAME ${web}`, `${web} 5 A 10.96.0.20`]],
    [
      'one that leads to one',
      'twice',
      'A',
      [`${name('twice')} 5 CNAME ${name('out')}`, `${name('out')} 5 CNAME example.com`, '→ example.com'],
    ],
    ['a loop', 'loop-a', 'A', NODATA],
    ['an address is no name', 'by-ip', 'A', NXDOMAIN],
    ['other types', 'out', 'MX', NODATA],
  ] as const)('%s', (_, own, type, expected) => {
    expect(ask(name(own), type)).toEqual(expected);
  });
});

describe('pods', () => {
  const at = (ip: string, namespace = 'default'): string => `${ip}.${namespace}.pod.cluster.local`;
  it.each([
    ['disabled', '', at('10-244-0-5'), NXDOMAIN],
    ['insecure', 'pods insecure', at('10-9-9-9'), ['NOERROR', `${at('10-9-9-9')} 5 A 10.9.9.9`]],
    ['insecure, of no namespace', 'pods insecure', at('10-9-9-9', 'nowhere'), NXDOMAIN],
    ['insecure, no address', 'pods insecure', at('10-9-9-999'), NXDOMAIN],
    ['verified', 'pods verified', at('10-244-0-5'), ['NOERROR', `${at('10-244-0-5')} 5 A 10.244.0.5`]],
    ['verified, no such pod', 'pods verified', at('10-9-9-9'), NXDOMAIN],
    ['verified, of another namespace', 'pods verified', at('10-244-0-5', 'shop'), NXDOMAIN],
    ['verified, one that has ended', 'pods verified', at('10-244-0-6', 'shop'), NXDOMAIN],
  ])('%s', (_, options, name, expected) => {
    expect(ask(name, 'A', options)).toEqual(expected);
  });
  test('an IPv6 address', () => {
    expect(ask(at('2001-db8--1'), 'AAAA', 'pods insecure')).toEqual([
      'NOERROR',
      `${at('2001-db8--1')} 5 AAAA 2001:db8::1`,
    ]);
  });
});

describe('PTR', () => {
  const ptr = (name: string, target: string): readonly string[] => ['NOERROR', `${name} 5 PTR ${target}`];
  const v6 = `${[...'00000000000000000000000000df'].reverse().join('.')}`;
  it.each([
    ['a cluster address', '20.0.96.10.in-addr.arpa', ptr('20.0.96.10.in-addr.arpa', web)],
    ['an endpoint with a name', '8.0.244.10.in-addr.arpa', ptr('8.0.244.10.in-addr.arpa', `db-1.${db}`)],
    ['an endpoint without', '9.0.244.10.in-addr.arpa', ptr('9.0.244.10.in-addr.arpa', `10-244-0-9.${db}`)],
    ['an address of nothing', '1.1.1.1.in-addr.arpa', NXDOMAIN],
    ['half an address', '1.1.in-addr.arpa', NXDOMAIN],
    ['the zone', 'in-addr.arpa', NODATA],
    ['half an IPv6 address', `${v6}.ip6.arpa`, NXDOMAIN],
    ['a service’s name', web, NODATA],
  ])('%s', (_, name, expected) => {
    expect(ask(name, 'PTR')).toEqual(expected);
  });
  test('an IPv6 address', () => {
    const digits = [...'fd000000000000000000000000000020'].reverse().join('.');
    expect(ask(`${digits}.ip6.arpa`, 'PTR')).toEqual(ptr(`${digits}.ip6.arpa`, web));
  });
  test('falls through where the Corefile says so: addresses of others', () => {
    const options = 'fallthrough in-addr.arpa ip6.arpa';
    expect(ask('1.1.1.1.in-addr.arpa', 'PTR', options)).toEqual(['next']);
    expect(ask('nothing.default.svc.cluster.local', 'A', options)).toEqual(NXDOMAIN);
    expect(ask('nothing.default.svc.cluster.local', 'A', 'fallthrough')).toEqual(['next']);
  });
});

describe('the domain itself', () => {
  it.each([
    [
      'the version of the specification',
      'dns-version.cluster.local',
      'TXT',
      ['dns-version.cluster.local 28800 TXT 1.1.0'],
    ],
    ['SOA', 'cluster.local', 'SOA', [`cluster.local 5 SOA ns.dns.cluster.local hostmaster.cluster.local ${SERIAL} 5`]],
    [
      'NS: the Service that leads here',
      'cluster.local',
      'NS',
      [
        'cluster.local 5 NS kube-dns.kube-system.svc.cluster.local',
        '+ kube-dns.kube-system.svc.cluster.local 5 A 10.96.0.10',
      ],
    ],
    ['its address', 'ns.dns.cluster.local', 'A', ['ns.dns.cluster.local 5 A 10.96.0.10']],
  ] as const)('%s', (_, name, type, expected) => {
    expect(ask(name, type)).toEqual(['NOERROR', ...expected]);
  });
  test('without such a Service, NS is this server’s address', () => {
    const context = { cluster, settings: kubernetes(), ownAddresses: ['192.0.2.1'] };
    expect(lines(lookUp(question('cluster.local', 'NS'), context))).toEqual([
      'NOERROR',
      'cluster.local 5 NS ns.dns.cluster.local',
      '+ ns.dns.cluster.local 5 A 192.0.2.1',
    ]);
  });
  test('SERVFAIL until the cluster is known', () => {
    const empty = sampleCluster();
    empty.synced = false;
    const context = { cluster: empty, settings: kubernetes(), ownAddresses: [] };
    expect(lines(lookUp(question(`x.${web}`, 'A'), context))).toEqual(['SERVFAIL', 'SOA']);
  });
});

describe('options', () => {
  const cart = 'cart.shop.svc.cluster.local';
  const found = (name: string, ip: string, ttl = 5): readonly string[] => ['NOERROR', `${name} ${ttl} A ${ip}`];
  it.each([
    ['ttl', 'ttl 30', web, found(web, '10.96.0.20', 30)],
    ['namespaces: in it', 'namespaces shop', cart, found(cart, '10.96.0.30')],
    ['namespaces: not in it', 'namespaces shop', web, NXDOMAIN],
    ['namespace_labels: in it', 'namespace_labels team in (a, b)', cart, found(cart, '10.96.0.30')],
    ['namespace_labels: not in it', 'namespace_labels team in (a, b)', web, NXDOMAIN],
    ['labels: in it', 'labels tier=x', web, found(web, '10.96.0.20')],
    ['labels: not in it', 'labels tier=x', cart, NXDOMAIN],
    ['ignore empty_service', 'ignore empty_service', 'empty.default.svc.cluster.local', NXDOMAIN],
    ['ignore empty_service: one with endpoints', 'ignore empty_service', web, found(web, '10.96.0.20')],
  ])('%s', (_, options, name, expected) => {
    expect(ask(name, 'A', options)).toEqual(expected);
  });
});

describe('the index follows', () => {
  const context = () => ({ cluster: sampleCluster(), settings: kubernetes(), ownAddresses: [] });
  const addresses = (name: string, { cluster: index, ...rest }: ReturnType<typeof context>): readonly string[] =>
    lines(lookUp(question(name, 'A'), { cluster: index, ...rest }));

  test('a service that changes its address, and that goes', () => {
    const here = context();
    const old = service('default', 'web', { clusterIP: '10.96.0.20' });
    const changed = service('default', 'web', { clusterIP: '10.96.0.99', ports: [{ port: 80 }] });
    here.cluster.serviceChanged({ type: 'modified', object: changed, old }, plusMs(NOW, 1000));
    expect(addresses(web, here)).toEqual(['NOERROR', `${web} 5 A 10.96.0.99`]);
    expect(here.cluster.servicesAt('10.96.0.20')).toEqual([]);
    expect(here.cluster.serial).toBe(SERIAL + 1);
    here.cluster.serviceChanged({ type: 'removed', object: changed }, plusMs(NOW, 2000));
    expect(addresses(web, here)).toEqual(NXDOMAIN);
  });

  test('an ExternalName that changes, and that becomes a cluster address', () => {
    const here = context();
    const out = 'out.default.svc.cluster.local';
    const other = service('default', 'out', { type: 'ExternalName', externalName: 'other.example' });
    here.cluster.serviceChanged({ type: 'modified', object: other, old: other }, NOW);
    expect(addresses(out, here)).toEqual([`${out} 5 CNAME other.example`, '→ other.example']);
    // The API server keeps the name, and it says nothing any more.
    const spec = { type: 'ClusterIP', externalName: 'other.example', clusterIP: '10.96.0.77', ports: [{ port: 80 }] };
    here.cluster.serviceChanged({ type: 'modified', object: service('default', 'out', spec), old: other }, NOW);
    expect(addresses(out, here)).toEqual(['NOERROR', `${out} 5 A 10.96.0.77`]);
  });

  test('a slice that loses an endpoint, that moves to another service, and that goes', () => {
    const here = context();
    const fewer = slice('default', 'db', [{ ip: '10.244.0.8', hostname: 'db-1' }]);
    here.cluster.sliceChanged({ type: 'modified', object: fewer, old: fewer }, NOW);
    expect(addresses(db, here)).toEqual(['NOERROR', `${db} 5 A 10.244.0.8`]);
    expect(here.cluster.slicesAt('10.244.0.7')).toEqual([]);
    const moved = { ...fewer, metadata: { ...fewer.metadata, labels: { 'kubernetes.io/service-name': 'bare' } } };
    here.cluster.sliceChanged({ type: 'modified', object: moved, old: fewer }, NOW);
    expect(addresses(db, here)).toEqual(NXDOMAIN);
    here.cluster.sliceChanged({ type: 'removed', object: moved }, NOW);
    expect(here.cluster.slicesAt('10.244.0.8')).toEqual([]);
  });

  test('a namespace that goes takes its names with it', () => {
    const here = context();
    const metadata = { name: 'default', uid: 'u', resourceVersion: '2' };
    here.cluster.namespaceChanged({ type: 'removed', object: { metadata } }, NOW);
    expect(addresses(web, here)).toEqual(NXDOMAIN);
  });
});
