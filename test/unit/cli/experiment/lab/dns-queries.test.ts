// Queries of a lab's name server: lines of its log, and whose they are.

import { expect, test } from 'vitest';
import { DnsQueries, parseQuery } from '../../../../../cli/experiment/lab/dns-queries.ts';
import { monotonicMs } from '../../../../../lib/clock.ts';

test('a line of the log is a query; others are none', () => {
  const line =
    'dns: I1124 10:00:00.1 experiment-query 10.244.7.5 AAAA db.default.svc.cluster.local. NXDOMAIN 0.000250000s';
  expect(parseQuery(line)).toEqual({
    address: '10.244.7.5',
    type: 'AAAA',
    name: 'db.default.svc.cluster.local',
    answer: 'NXDOMAIN',
    durationMs: 0.25,
  });
  expect(parseQuery('plugin/reload: the new Corefile is at work')).toBeUndefined();
});

test('a query is a pod’s as soon as its address is known, also later; an address goes to the next pod', () => {
  const seen: string[] = [];
  const queries = new DnsQueries((at, pod, { name }) => seen.push(`${at} ${pod} ${name}`));
  const query = (name: string) => ({ address: '10.244.7.5', type: 'A', name, answer: 'NOERROR', durationMs: 1 });
  queries.add(monotonicMs(1), query('early'));
  expect(seen).toEqual([]);
  queries.podHas('default/one', '10.244.7.5');
  queries.add(monotonicMs(2), query('second'));
  queries.podHas('default/two', '10.244.7.5');
  queries.add(monotonicMs(3), query('third'));
  expect(seen).toEqual(['1 default/one early', '2 default/one second', '3 default/two third']);
});
