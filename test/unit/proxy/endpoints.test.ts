// What the proxy reads from services and slices, which endpoints it chooses, stale UDP flows, and the health that it reports.

import { describe, expect, it } from 'vitest';
import { epochMs } from '../../../lib/clock.ts';
import { deletionBody } from '../../../proxy/conntrack/delete-flows.ts';
import { expectedAnswers, parseFlows, staleFlows } from '../../../proxy/conntrack/flows.ts';
import { healthzBody, isHealthy, serviceHealth } from '../../../proxy/health.ts';
import { containsAddress } from '../../../proxy/ranges.ts';
import { servicePorts } from '../../../proxy/service-ports.ts';
import { ServiceTracker } from '../../../proxy/service-tracker.ts';
import { makeService, makeSlice, NODE, portMapOf } from './cases.ts';

describe('services', () => {
  it.each([
    ['one with an address', makeService('a'), ['ns/a:p80']],
    ['a headless one', makeService('a', { clusterIP: 'None' }), []],
    ['an ExternalName', makeService('a', { type: 'ExternalName' }), []],
    ['one of IPv6', makeService('a', { clusterIP: 'fd00::1' }), []],
    ['one of both', makeService('a', { clusterIP: 'fd00::1', clusterIPs: ['fd00::1', '172.30.0.1'] }), ['ns/a:p80']],
    [
      'another proxy’s',
      makeService(
        'a',
        {},
        { metadata: { ...makeService('a').metadata, labels: { 'service.kubernetes.io/service-proxy-name': 'x' } } },
      ),
      [],
    ],
  ])('%s', (_, service, expected) => {
    expect(servicePorts(service).map(({ name }) => name)).toEqual(expected);
  });
});

describe('endpoints', () => {
  const there = { on: 'there' };
  const hint = (zone: string, node?: string) => ({
    hints: { forZones: [{ name: zone }], ...(node === undefined ? {} : { forNodes: [{ name: node }] }) },
  });
  const leaving = { conditions: { ready: false, serving: true, terminating: true } };
  const reached = (endpoints: Parameters<typeof makeSlice>[1], spec = {}) => {
    const [found] = [...portMapOf([makeService('a', spec), makeSlice('a', endpoints)]).values()];
    const last = (list: readonly { ip: string }[] = []): string => list.map(({ ip }) => ip.split('.')[3]).join();
    const { reachable } = found ?? {};
    return { cluster: last(reachable?.cluster), local: last(reachable?.local), any: reachable?.hasAny };
  };
  const local = { internalTrafficPolicy: 'Local' };
  it.each([
    [
      'ready ones',
      ['10.0.0.1', ['10.0.0.2', { conditions: { ready: false } }]],
      {},
      { cluster: '1', local: '', any: true },
    ],
    ['none', [['10.0.0.2', { conditions: { ready: false } }]], {}, { cluster: '', local: '', any: false }],
    ['those that leave, where none is ready', [['10.0.0.1', leaving]], {}, { cluster: '1', local: '', any: true }],
    [
      'not those that leave, where one is ready',
      [['10.0.0.1', leaving], '10.0.0.2'],
      {},
      { cluster: '2', local: '', any: true },
    ],
    ['Local: those of this node', ['10.0.0.1', ['10.0.0.2', there]], local, { cluster: '', local: '1', any: true }],
    [
      'Local: one of this node that leaves, before another node’s',
      [
        ['10.0.0.1', leaving],
        ['10.0.0.2', there],
      ],
      local,
      { cluster: '', local: '1', any: true },
    ],
    ['Local: none of this node', [['10.0.0.2', there]], local, { cluster: '', local: '', any: true }],
    [
      'of this zone',
      [
        ['10.0.0.1', hint('a')],
        ['10.0.0.2', hint('b')],
      ],
      {},
      { cluster: '1', local: '', any: true },
    ],
    ['all, where one has no hint', [['10.0.0.1', hint('a')], '10.0.0.2'], {}, { cluster: '1,2', local: '', any: true }],
    ['all, where none is of this zone', [['10.0.0.1', hint('b')]], {}, { cluster: '1', local: '', any: true }],
    [
      'of this node',
      [
        ['10.0.0.1', hint('a', 'here')],
        ['10.0.0.2', hint('a', 'there')],
      ],
      {},
      { cluster: '1', local: '', any: true },
    ],
  ] as const)('%s', (_, endpoints, spec, expected) => {
    expect(reached(endpoints, spec)).toEqual(expected);
  });

  it('of a service in which nothing changes the same object stays', () => {
    const tracker = new ServiceTracker();
    const update = (...addresses: string[]): boolean =>
      tracker.update('ns/a', makeService('a'), [makeSlice('a', addresses)], NODE);
    expect([update('10.0.0.1'), update('10.0.0.1')]).toEqual([true, false]);
    const [first] = tracker.all.values();
    expect(update('10.0.0.2')).toBe(true);
    expect([...tracker.all.values()][0]).not.toBe(first);
    expect(tracker.update('ns/a', undefined, [], NODE)).toBe(true);
    expect(tracker.all.size).toBe(0);
  });
});

describe('UDP flows', () => {
  const text = [
    'ipv4     2 udp      17 25 src=10.1.0.9 dst=172.30.0.41 sport=5000 dport=80 src=10.1.0.1 dst=10.1.0.9 sport=80 dport=5000 [ASSURED] mark=0 zone=0 use=2',
    'ipv4     2 udp      17 25 src=10.1.0.9 dst=172.30.0.41 sport=5001 dport=80 [UNREPLIED] src=10.1.0.2 dst=10.1.0.9 sport=80 dport=5001 mark=0 use=2',
    'ipv4     2 udp      17 25 src=10.1.0.9 dst=192.0.2.2 sport=5002 dport=30080 [UNREPLIED] src=192.0.2.2 dst=10.1.0.9 sport=30080 dport=5002 mark=0 use=2',
    'ipv4     2 udp      17 25 src=10.1.0.9 dst=8.8.8.8 sport=5003 dport=53 src=8.8.8.8 dst=10.1.0.9 sport=53 dport=5003 use=2',
    'ipv4     2 tcp      6 25 ESTABLISHED src=10.1.0.9 dst=172.30.0.41 sport=5004 dport=80 src=10.1.0.2 dst=10.1.0.9 sport=80 dport=5004 use=2',
  ].join('\n');
  const ports = [{ name: 'p80', port: 80, protocol: 'UDP', nodePort: 30080 }];
  const stale = (addresses: string[]): number[] => {
    const portMap = portMapOf([makeService('a', { ports }), makeSlice('a', addresses)]);
    const found = staleFlows(parseFlows(text), expectedAnswers(portMap), new Set(['192.0.2.2']));
    return found.map(({ sourcePort }) => sourcePort);
  };
  it('of an endpoint that is gone, and of a time without endpoints', () => {
    expect(stale(['10.1.0.1'])).toEqual([5001, 5002]);
    expect(stale(['10.1.0.2'])).toEqual([5000, 5002]);
  });
  it.each([
    ['one that is not ready any longer', {}, { conditions: { ready: false } }],
    ['one that does not serve', {}, { conditions: { ready: false, serving: false } }],
    ['one that leaves and serves', {}, { conditions: { ready: false, serving: true, terminating: true } }],
    ['another node’s, with the policy Local', { internalTrafficPolicy: 'Local' }, { on: 'there' }],
    ['another zone’s', {}, { hints: { forZones: [{ name: 'b' }] } }],
  ])('go on to an endpoint that serves, whether new ones may reach it or not: %s', (what, spec, facts) => {
    const near: Parameters<typeof makeSlice>[1][number] = ['10.1.0.1', { hints: { forZones: [{ name: 'a' }] } }];
    const slice = makeSlice('a', [near, ['10.1.0.2', facts]]);
    const portMap = portMapOf([
      makeService('a', { ports: [{ name: 'p80', port: 80, protocol: 'UDP' }], ...spec }),
      slice,
    ]);
    expect([...portMap.values()].flatMap(({ reachable }) => reachable.all.map(({ ip }) => ip))).toEqual(['10.1.0.1']);
    const found = staleFlows(parseFlows(text), expectedAnswers(portMap), new Set());
    expect(found.map(({ sourcePort }) => sourcePort)).toEqual(what === 'one that does not serve' ? [5001] : []);
  });
  it('of a service without endpoints stay: its packets are refused', () => {
    expect(stale([])).toEqual([]);
  });
  it('are named to the kernel by what the client sent', () => {
    const [flow] = parseFlows(text);
    if (flow === undefined) throw new Error('no flow');
    // nfgenmsg, CTA_TUPLE_ORIG { CTA_TUPLE_IP { v4 src, v4 dst }, CTA_TUPLE_PROTO { num, src port, dst port } }
    expect(deletionBody(flow).toString('hex')).toBe(
      '0200000034000180' +
        '14000180' +
        '080001000a010009' +
        '08000200ac1e0029' +
        '1c000280' +
        '0500010011000000' +
        '0600020013880000' +
        '0600030000500000',
    );
  });
});

describe('health', () => {
  const at = epochMs(Date.parse('2026-01-01T00:00:00Z'));
  it.each([
    ['nothing waits', undefined, true],
    ['something waits', epochMs(at - 59_000), true],
    ['it waits for too long', epochMs(at - 60_000), false],
  ])('%s', (_, waitingSince, expected) => {
    expect(isHealthy({ lastUpdated: at, waitingSince }, at, 60_000)).toBe(expected);
  });
  it('says since when', () => {
    expect(healthzBody({ lastUpdated: at, waitingSince: undefined }, at, true)).toBe(
      '{"lastUpdated":"2026-01-01T00:00:00.000Z","currentTime":"2026-01-01T00:00:00.000Z","nodeEligible":true}',
    );
  });
  it.each([
    [1, true, 200],
    [0, true, 503],
    [1, false, 503],
  ])('of a service with %i local endpoints, healthy %j', (count, healthy, code) => {
    const found = serviceHealth('ns/a', count, healthy);
    expect([found.code, JSON.parse(found.body)]).toEqual([
      code,
      { service: { namespace: 'ns', name: 'a' }, localEndpoints: count, serviceProxyHealthy: healthy },
    ]);
  });
});

it.each([
  ['10.0.0.0/8', '10.1.2.3', true],
  ['10.0.0.0/8', '11.1.2.3', false],
  ['10.0.0.1', '10.0.0.1', true],
  ['0.0.0.0/0', '1.2.3.4', true],
  ['fd00::/8', '10.0.0.1', false],
  ['10.0.0.0/x', '10.0.0.1', false],
])('%s contains %s: %j', (range, address, expected) => {
  expect(containsAddress(range, address)).toBe(expected);
});
