// The nftables mode: elements, chains and sets of services, and the commands that change one table to another.

import { describe, expect, it } from 'vitest';
import {
  changeCommands,
  firstDamage,
  fullCommands,
  leftBehind,
  type NftForm,
  type NftTable,
  removalCommands,
} from '../../../lib/nft-table.ts';
import type { ServicePortMap } from '../../../proxy/backend.ts';
import { TABLE } from '../../../proxy/nftables/names.ts';
import { serviceObjects } from '../../../proxy/nftables/service-objects.ts';
import { nftTable } from '../../../proxy/nftables/table.ts';
import { makeService, makeSlice, OPTIONS, portMapOf } from './cases.ts';

const tableOf = (portMap: ServicePortMap): NftTable =>
  nftTable(
    [...portMap.values()].map(({ port, reachable }) => serviceObjects(port, reachable, OPTIONS)),
    OPTIONS,
  );
/** Hashes left out. */
const plain = (text: string): string => text.replace(/-[A-Z2-7]{8}-/g, '-');
const elements = (table: NftTable, set: string): string[] =>
  [...(table.sets.get(set)?.elements ?? [])].map(([key, value]) => plain(`${key} : ${value}`));
const chains = (table: NftTable): string[] =>
  [...table.chains]
    .filter(([name]) => name.includes('/'))
    .flatMap(([name, { rules }]) => rules.map((rule) => plain(`${name}: ${rule}`)));

const web = portMapOf([makeService('web'), makeSlice('web', ['10.1.0.1', '10.1.0.2'])]);

describe('objects', () => {
  it('the names that kube-proxy’s own tests have', () => {
    const service = makeService('svc1', {}, { metadata: { ...makeService('svc1').metadata, namespace: 'ns1' } });
    const [name] = [...tableOf(portMapOf([service, makeSlice('svc1', ['10.180.0.1'])])).chains.keys()].filter((each) =>
      each.includes('service-U'),
    );
    expect(name).toBe('service-ULMVA6XW-ns1/svc1/tcp/p80');
  });
  it('a cluster address with two endpoints', () => {
    const table = tableOf(web);
    expect(elements(table, 'service-ips')).toEqual(['172.30.0.41 . tcp . 80 : goto service-ns/web/tcp/p80']);
    expect(elements(table, 'cluster-ips')).toEqual(['172.30.0.41 : ']);
    expect(chains(table)).toEqual([
      'service-ns/web/tcp/p80: ip daddr 172.30.0.41 tcp dport 80 ip saddr != 10.0.0.0/8 jump mark-for-masquerade',
      'service-ns/web/tcp/p80: numgen random mod 2 vmap { 0 : goto endpoint-ns/web/tcp/p80__10.1.0.1/80, 1 : goto endpoint-ns/web/tcp/p80__10.1.0.2/80 }',
      'endpoint-ns/web/tcp/p80__10.1.0.1/80: ip saddr 10.1.0.1 jump mark-for-masquerade',
      'endpoint-ns/web/tcp/p80__10.1.0.1/80: meta l4proto tcp dnat to 10.1.0.1:80',
      'endpoint-ns/web/tcp/p80__10.1.0.2/80: ip saddr 10.1.0.2 jump mark-for-masquerade',
      'endpoint-ns/web/tcp/p80__10.1.0.2/80: meta l4proto tcp dnat to 10.1.0.2:80',
    ]);
  });
  it.each([
    ['no endpoints', {}, [], 'goto reject-chain'],
    ['none on this node', { internalTrafficPolicy: 'Local' }, [['10.1.0.1', { on: 'there' }]], 'drop'],
  ])('%s', (_, spec, endpoints, verdict) => {
    const table = tableOf(portMapOf([makeService('web', spec), makeSlice('web', endpoints as [string, object][])]));
    expect([elements(table, 'service-ips'), elements(table, 'no-endpoint-services')]).toEqual([
      [],
      [`172.30.0.41 . tcp . 80 : ${verdict}`],
    ]);
  });
  it('a load balancer with source ranges, policy Local, and a node port', () => {
    const spec = {
      externalTrafficPolicy: 'Local',
      loadBalancerSourceRanges: ['192.0.2.0/24'],
      ports: [{ name: 'p80', port: 80, nodePort: 30080 }],
    };
    const service = makeService('web', spec, { status: { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } } });
    const table = tableOf(portMapOf([service, makeSlice('web', ['10.1.0.1'])]));
    expect(elements(table, 'firewall-ips')).toEqual(['1.2.3.4 . tcp . 80 : goto firewall-ns/web/tcp/p80']);
    expect(elements(table, 'service-nodeports')).toEqual(['tcp . 30080 : goto external-ns/web/tcp/p80']);
    expect(chains(table).filter((line) => /^(external|firewall)/.test(line))).toEqual([
      'external-ns/web/tcp/p80: ip saddr 10.0.0.0/8 goto service-ns/web/tcp/p80',
      'external-ns/web/tcp/p80: fib saddr type local jump mark-for-masquerade',
      'external-ns/web/tcp/p80: fib saddr type local goto service-ns/web/tcp/p80',
      'external-ns/web/tcp/p80: goto local-ns/web/tcp/p80',
      'firewall-ns/web/tcp/p80: ip saddr != { 192.0.2.0/24, 1.2.3.4 } drop',
    ]);
  });
  it('a client stays with its endpoint', () => {
    const spec = { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } };
    const table = tableOf(portMapOf([makeService('web', spec), makeSlice('web', ['10.1.0.1'])]));
    const name = 'affinity-ns/web/tcp/p80__10.1.0.1/80';
    expect([...table.sets].filter(([each]) => plain(each) === name).map(([, { type }]) => type)).toEqual([
      'set: type ipv4_addr; flags dynamic,timeout; timeout 60s;',
    ]);
    expect(chains(table).filter((line) => line.includes('@'))).toEqual([
      `service-ns/web/tcp/p80: ip saddr @${name} goto endpoint-ns/web/tcp/p80__10.1.0.1/80`,
      `endpoint-ns/web/tcp/p80__10.1.0.1/80: update @${name} { ip saddr }`,
    ]);
  });
});

describe('commands', () => {
  const table = tableOf(web);
  it('all of it takes the place of what was there, in one transaction', () => {
    const lines = fullCommands(TABLE, table, 'rules for kube-proxy of me').split('\n');
    expect(lines.slice(0, 3)).toEqual([
      'add table ip kube-proxy',
      'delete table ip kube-proxy',
      'add table ip kube-proxy { comment "rules for kube-proxy of me"; }',
    ]);
  });
  it('nothing where nothing differs', () => {
    expect(changeCommands(TABLE, table, tableOf(web), 'declaration')).toEqual({ commands: '', rules: 0 });
    expect(leftBehind(table, tableOf(web))).toEqual({ chains: [], sets: [] });
  });
  it('one endpoint less: the list anew, then its chain', () => {
    const less = tableOf(portMapOf([makeService('web'), makeSlice('web', ['10.1.0.1'])]));
    const { chains: stale, sets } = leftBehind(table, less);
    const removal = removalCommands(TABLE, less, stale, sets);
    expect(removalCommands(TABLE, table, stale, sets)).toBe('');
    const chain = 'ip kube-proxy service-ns/web/tcp/p80';
    const rules = [
      'ip daddr 172.30.0.41 tcp dport 80 ip saddr != 10.0.0.0/8 jump mark-for-masquerade',
      'numgen random mod 1 vmap { 0 : goto endpoint-ns/web/tcp/p80__10.1.0.1/80 }',
    ];
    const change = (form: NftForm) =>
      plain(changeCommands(TABLE, table, less, form).commands)
        .trim()
        .split('\n');
    expect(change('declaration')).toEqual([`flush chain ${chain}`, `add chain ${chain} {`, ...rules, '}']);
    expect(change('command')).toEqual([`flush chain ${chain}`, ...rules.map((rule) => `add rule ${chain} ${rule}`)]);
    expect(plain(removal).split('\n')).toEqual([
      'flush chain ip kube-proxy endpoint-ns/web/tcp/p80__10.1.0.2/80',
      'delete chain ip kube-proxy endpoint-ns/web/tcp/p80__10.1.0.2/80',
      '',
    ]);
  });
  it('the last endpoint less: from one map to the other', () => {
    const change = (form: NftForm) =>
      changeCommands(TABLE, table, tableOf(portMapOf([makeService('web')])), form)
        .commands.trim()
        .split('\n');
    const removed = 'delete element ip kube-proxy service-ips { 172.30.0.41 . tcp . 80 }';
    const element = '172.30.0.41 . tcp . 80 : goto reject-chain';
    expect(change('declaration')).toEqual([
      `add map ip kube-proxy no-endpoint-services { type ipv4_addr . inet_proto . inet_service : verdict; comment "vmap to drop or reject packets to services with no endpoints"; elements = { ${element} }; }`,
      removed,
    ]);
    expect(change('command')).toEqual([`add element ip kube-proxy no-endpoint-services { ${element} }`, removed]);
  });

  it('services that have not changed are not compared, and the commands are the same', () => {
    const objectsOf = (addresses: string[]) =>
      [
        [makeService('other', { clusterIP: '172.30.0.42' }), makeSlice('other', ['10.1.0.9'])] as const,
        [makeService('web'), makeSlice('web', addresses)] as const,
      ].map(([service, slice]) => {
        const [found] = [...portMapOf([service, slice]).values()];
        if (found === undefined) throw new Error('no port');
        return serviceObjects(found.port, found.reachable, OPTIONS);
      });
    const [other, two] = objectsOf(['10.1.0.1', '10.1.0.2']);
    const [otherAgain, one] = objectsOf(['10.1.0.1']);
    if (other === undefined || two === undefined || otherAgain === undefined || one === undefined) throw new Error();
    const before = nftTable([other, two], OPTIONS);
    const known = nftTable([other, one], OPTIONS);
    const anew = nftTable([otherAgain, one], OPTIONS);
    const change = changeCommands(TABLE, before, known, 'declaration');
    expect(change).toEqual(changeCommands(TABLE, before, anew, 'declaration'));
    expect(change.rules).toBe(2);
    expect(leftBehind(before, known)).toEqual(leftBehind(before, anew));
    expect([...known.chains]).toEqual([...anew.chains]);
    // What is not compared is not seen: a part is never changed in place.
    const emptied = { ...other, chains: new Map() };
    expect(leftBehind(before, nftTable([emptied, two], OPTIONS)).chains).toHaveLength(2);
  });

  const listed = (change: (name: string, count: number) => number | undefined): string => {
    const nftables: object[] = [];
    for (const [name, { rules }] of table.chains) {
      const count = change(name, rules.length);
      if (count === undefined) continue;
      nftables.push({ chain: { name } }, ...Array.from({ length: count }, () => ({ rule: { chain: name } })));
    }
    for (const [name, { elements: each }] of table.sets) {
      const count = change(name, each.size);
      if (count !== undefined) nftables.push({ map: { name, elem: Array.from({ length: count }, () => 1) } });
    }
    return JSON.stringify({ nftables });
  };
  it.each([
    ['nothing', (_: string, count: number) => count, undefined],
    [
      'a rule',
      (name: string, count: number) => (name === 'services' ? count - 1 : count),
      'chain services has other rules',
    ],
    [
      'a chain',
      (name: string, count: number) => (name === 'masquerading' ? undefined : count),
      'chain masquerading is gone',
    ],
    [
      'an element',
      (name: string, count: number) => (name === 'service-ips' ? 0 : count),
      'map service-ips has other elements',
    ],
  ])('removed by hand: %s', (_, change, expected) => {
    expect(firstDamage(table, listed(change))).toBe(expected);
  });
});
