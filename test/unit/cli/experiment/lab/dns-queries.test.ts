// Queries of a lab's name server: lines of its log, and whose they are.

import { encode } from 'dns-packet';
import { expect, test } from 'vitest';
import { DnsQueries, parseQuery } from '../../../../../cli/experiment/lab/dns-queries.ts';
import { parsePacket, silentServers, withLabServer } from '../../../../../cli/experiment/lab/silent-servers.ts';
import { monotonicMs } from '../../../../../lib/clock.ts';

test('a line of the log is a query; others are none', () => {
  const line =
    'dns: I1124 10:00:00.1 experiment-query 10.244.7.5 AAAA db.default.svc.cluster.local. NXDOMAIN 0.000250000s';
  expect(parseQuery(line, '10.96.0.10')).toEqual({
    address: '10.244.7.5',
    server: '10.96.0.10',
    type: 'AAAA',
    name: 'db.default.svc.cluster.local',
    answer: 'NXDOMAIN',
    durationMs: 0.25,
  });
  expect(parseQuery('plugin/reload: the new Corefile is loaded', '10.96.0.10')).toBeUndefined();
});

test('a query is a pod’s as soon as its address is known, also later; an address goes to the next pod', () => {
  const seen: string[] = [];
  const queries = new DnsQueries((at, pod, { name }) => seen.push(`${at} ${pod} ${name}`));
  const query = (name: string) => ({
    ...{ address: '10.244.7.5', server: '10.96.0.10', type: 'A', name },
    answer: 'NOERROR',
    durationMs: 1,
  });
  queries.add(monotonicMs(1), query('early'));
  expect(seen).toEqual([]);
  queries.podHas('default/one', '10.244.7.5');
  queries.add(monotonicMs(2), query('second'));
  queries.podHas('default/two', '10.244.7.5');
  queries.add(monotonicMs(3), query('third'));
  expect(seen).toEqual(['1 default/one early', '2 default/one second', '3 default/two third']);
});

test('name servers of TEST-NET-2 in the dnsConfig of a pod are silent ones', () => {
  const pod = (nameservers: readonly string[]) => ({
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' } },
    spec: { containers: [], dnsConfig: { nameservers } },
  });
  const steps = [
    { apply: [pod(['198.51.100.53', '10.96.0.10']), pod(['198.51.100.53'])] },
    { apply: [{ ...pod([]), spec: { containers: [] } }, pod(['192.0.2.53', '198.51.100.9'])] },
  ];
  expect(silentServers(steps)).toEqual(['198.51.100.53', '198.51.100.9']);
  expect(withLabServer(pod(['198.51.100.53', '10.96.0.10']), '10.244.7.1')).toEqual(
    pod(['198.51.100.53', '10.244.7.1']),
  );
  expect(withLabServer(pod(['8.8.8.8']), '10.244.7.1')).toEqual(pod(['8.8.8.8']));
});

test('a query without an answer is known by its question; other packets are none', () => {
  const questions = [{ type: 'AAAA' as const, name: 'example.com' }];
  expect(parsePacket(encode({ type: 'query', id: 1, questions }))).toEqual({ name: 'example.com', type: 'AAAA' });
  expect(parsePacket(encode({ type: 'response', id: 1, questions }))).toBeUndefined();
  expect(parsePacket(Buffer.from('scraps'))).toBeUndefined();
});
