// Which addresses a lab has for load balancers, and which node answers for each.

import { expect, it } from 'vitest';
import {
  type AnnouncementFacts,
  addressCommands,
  announcements,
  lastPodAddress,
  loadBalancerRange,
} from '../../../../cli/lab/load-balancers.ts';
import { MAX_NODES, planRange } from '../../../../cli/lab/node/plan.ts';
import type { EndpointSlice, Node, Service } from '../../../../client/types.ts';
import { addressPool, inPool } from '../../../../controlplane/controllers/service-lb/addresses.ts';

const RANGE = '10.9.0.240/28';
const meta = (name: string) => ({ name, uid: name, resourceVersion: '1' });
const node = (name: string, labels: Readonly<Record<string, string>> = {}): Node => ({
  metadata: { ...meta(name), labels },
});
const NODES = ['one', 'two', 'three'].map((name) => node(name));

function balanced(name: string, ip: string, externalTrafficPolicy = 'Cluster'): Service {
  return {
    metadata: { ...meta(name), namespace: 'demo' },
    spec: { type: 'LoadBalancer', externalTrafficPolicy },
    status: { loadBalancer: { ingress: [{ ip }] } },
  };
}
type Conditions = NonNullable<NonNullable<EndpointSlice['endpoints']>[number]['conditions']>;
const slice = (service: string, ...endpoints: readonly [string, Conditions][]): EndpointSlice => ({
  metadata: { ...meta(service), namespace: 'demo', labels: { 'kubernetes.io/service-name': service } },
  addressType: 'IPv4',
  endpoints: endpoints.map(([nodeName, conditions]) => ({ addresses: ['10.9.0.9'], nodeName, conditions })),
});
function chosen(facts: Partial<AnnouncementFacts>): readonly string[] {
  const { nodes = NODES } = facts;
  const up = new Set(nodes.map(({ metadata }) => metadata.name));
  const all = announcements({ range: RANGE, services: [], slices: [], nodes, up, ...facts });
  return all.map(({ ip, service, node: name }) => `${ip} ${service} ${name}`);
}

it('the pool is a part of the bridge’s network that neither pods nor nodes have', () => {
  const pool = addressPool(loadBalancerRange({ subnet: '10.244.7.0/24' }));
  const last = lastPodAddress('10.244.7.0/24');
  expect([inPool(pool, '10.244.7.241'), inPool(pool, last), inPool(pool, '10.244.7.255')]).toEqual([
    true,
    false,
    false,
  ]);
  const range = '10.192.64.0/18';
  const { nodes, gateway } = planRange(range);
  const ofNodes = addressPool(loadBalancerRange({ subnet: range, nodes: { range, serviceRange: '', list: [] } }));
  const network = nodes.split('.').slice(0, 3).join('.');
  expect(ofNodes.range.startsWith(network)).toBe(true);
  expect(inPool(ofNodes, gateway) || inPool(ofNodes, `${network}.${1 + MAX_NODES}`)).toBe(false);
});

it('one node for each address; another one where it is down, excluded or without endpoints', () => {
  const services = [balanced('web', '10.9.0.241')];
  const [first = ''] = chosen({ services });
  const [, , name = ''] = first.split(' ');
  expect(first).toMatch(/^10\.9\.0\.241 demo\/web (one|two|three)$/);
  expect(chosen({ services, nodes: NODES.toReversed() })).toEqual([first]);
  const others = new Set(['one', 'two', 'three'].filter((each) => each !== name));
  expect(others).toContain(chosen({ services, up: others })[0]?.split(' ')[2]);
  const excluded = { 'node.kubernetes.io/exclude-from-external-load-balancers': '' };
  const nodes = NODES.map((each) => (each.metadata.name === name ? node(name, excluded) : each));
  expect(others).toContain(chosen({ services, nodes })[0]?.split(' ')[2]);
  expect(chosen({ services, up: new Set() })).toEqual([]);
});

it('with the policy Local, one that has endpoints', () => {
  const services = [balanced('web', '10.9.0.242', 'Local')];
  const ready = { ready: true };
  const leaving = { ready: false, serving: true, terminating: true };
  const of = (...endpoints: readonly [string, Conditions][]): readonly string[] =>
    chosen({ services, slices: [slice('web', ...endpoints), slice('other', ['one', ready])] });
  expect(of(['two', ready])).toEqual(['10.9.0.242 demo/web two']);
  expect(of(['two', leaving], ['three', ready])).toEqual(['10.9.0.242 demo/web three']);
  expect(of(['two', leaving], ['three', { ready: false }])).toEqual(['10.9.0.242 demo/web two']);
  expect(of(['two', { ready: false }])).toEqual([]);
});

it('announces nothing else: other addresses, other types, an address twice', () => {
  const other = { ...balanced('c', '10.9.0.243'), spec: { type: 'ClusterIP' } };
  const services = [balanced('a', '10.1.1.1'), balanced('b', '10.9.0.244'), balanced('d', '10.9.0.244'), other];
  expect(chosen({ services, nodes: [node('one')] })).toEqual(['10.9.0.244 demo/b one']);
});

it('addresses of the pool that are no longer wanted go, others stay', () => {
  const has = ['10.9.0.1', '10.9.0.241', '10.9.0.242'];
  expect(addressCommands(RANGE, 'br', has, ['10.9.0.242', '10.9.0.243'])).toBe(
    'address del 10.9.0.241/32 dev br\naddress add 10.9.0.243/32 dev br\n',
  );
  expect(addressCommands(RANGE, 'br', has, ['10.9.0.241', '10.9.0.242'])).toBe('');
});
