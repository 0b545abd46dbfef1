// Load balancers' addresses: which one a Service gets, what of its changes is reported, and what the controller writes.

import { expect, it } from 'vitest';
import type { Service } from '../../../../client/types.ts';
import {
  addressPool,
  changeEvent,
  chooseAddress,
  inPool,
  LB_FINALIZER,
  needsCleanup,
  wantsLoadBalancer,
} from '../../../../controlplane/controllers/service-lb/addresses.ts';
import {
  isExcludedFromLoadBalancers,
  takesLoadBalancers,
} from '../../../../controlplane/controllers/service-lb/nodes.ts';
import { ServiceLbController } from '../../../../controlplane/controllers/service-lb/service-lb.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, makeNode, meta, NOW } from '../environment.ts';

type Spec = NonNullable<Service['spec']>;
const RANGE = '10.9.0.240/29';
const POOL = addressPool(RANGE);
const BALANCED: Spec = { type: 'LoadBalancer', ports: [{ port: 80, nodePort: 30_000 }], ipFamilies: ['IPv4'] };

function service(name: string, spec: Spec = BALANCED, ip?: string, more: Partial<Service['metadata']> = {}): Service {
  const status = ip === undefined ? {} : { loadBalancer: { ingress: [{ ip, ipMode: 'VIP' }] } };
  return { metadata: { ...meta(name, 'demo'), ...more }, spec, status };
}

it('a range gives all of its addresses but the first and the last', () => {
  const given = Array.from({ length: 8 }, (_, index) => `10.9.0.${240 + index}`).filter((ip) => inPool(POOL, ip));
  expect(given).toEqual([241, 242, 243, 244, 245, 246].map((last) => `10.9.0.${last}`));
  expect(inPool(addressPool('10.9.0.0/16'), '10.9.255.254')).toBe(true);
  for (const range of ['10.9.0.0', '10.9.0.0/31', '10.9.0/24', 'fd00::/64', '10.9.0.0/x', '']) {
    expect(() => addressPool(range), range).toThrow('is no range of IPv4 addresses');
  }
});

const taken = (...last: number[]): ReadonlyMap<string, string> =>
  new Map(last.map((each) => [`10.9.0.${each}`, `demo/other-${each}`]));
it.each<[string, Service, ReadonlyMap<string, string>, string]>([
  ['the first one', service('a'), taken(), '10.9.0.241'],
  ['the first that is free', service('a'), taken(241, 242, 244), '10.9.0.243'],
  ['the one that it has', service('a', BALANCED, '10.9.0.245'), taken(), '10.9.0.245'],
  ['not the one that it has, which is another’s', service('a', BALANCED, '10.9.0.241'), taken(241), '10.9.0.242'],
  ['not the one that it has, from outside the range', service('a', BALANCED, '10.1.1.1'), taken(), '10.9.0.241'],
  [
    'the requested one',
    service('a', { ...BALANCED, loadBalancerIP: '10.9.0.246' }, '10.9.0.241'),
    taken(),
    '10.9.0.246',
  ],
  [
    'a requested one from elsewhere',
    service('a', { ...BALANCED, loadBalancerIP: '10.9.0.247' }),
    taken(),
    'the requested address 10.9.0.247 is not one of 10.9.0.240/29',
  ],
  [
    'a requested one that another has',
    service('a', { ...BALANCED, loadBalancerIP: '10.9.0.242' }),
    taken(242),
    'the requested address 10.9.0.242 is in use by the Service demo/other-242',
  ],
  ['none', service('a'), taken(241, 242, 243, 244, 245, 246), 'no address of 10.9.0.240/29 is free: all 6 are in use'],
  [
    'none of IPv6',
    service('a', { ...BALANCED, ipFamilies: ['IPv6'] }),
    taken(),
    'the addresses of 10.9.0.240/29 are IPv4, and the Service is not',
  ],
])('chooses %s', (_what, wanting, others, expected) => {
  const choice = chooseAddress(POOL, wanting, others);
  expect('address' in choice ? choice.address : choice.problem).toBe(expected);
});

it('a load balancer of another class is another controller’s; a finalizer says that there is one to remove', () => {
  expect(wantsLoadBalancer(service('a'))).toBe(true);
  expect(wantsLoadBalancer(service('a', { ...BALANCED, loadBalancerClass: 'example.com/x' }))).toBe(false);
  expect(wantsLoadBalancer(service('a', { type: 'NodePort' }))).toBe(false);
  const finalizers = { finalizers: [LB_FINALIZER] };
  expect(needsCleanup(service('a', BALANCED, undefined, finalizers))).toBe(false);
  expect(needsCleanup(service('a', BALANCED, undefined, { deletionTimestamp: NOW }))).toBe(false);
  expect(needsCleanup(service('a', BALANCED, undefined, { ...finalizers, deletionTimestamp: NOW }))).toBe(true);
  expect(needsCleanup(service('a', { type: 'ClusterIP' }, undefined, finalizers))).toBe(true);
});

it.each<[string, Partial<Spec>, Partial<Spec>, ReturnType<typeof changeEvent>]>([
  ['nothing', {}, {}, undefined],
  ['a selector', {}, { selector: { a: 'b' } }, undefined],
  ['the type', { type: 'ClusterIP' }, {}, ['Type', 'ClusterIP -> LoadBalancer']],
  ['a type that is no load balancer’s', { type: 'ClusterIP' }, { type: 'NodePort' }, undefined],
  [
    'source ranges',
    { loadBalancerSourceRanges: ['10.0.0.0/8'] },
    { loadBalancerSourceRanges: ['10.0.0.0/8', '192.0.2.0/24'] },
    ['LoadBalancerSourceRanges', '[10.0.0.0/8] -> [10.0.0.0/8 192.0.2.0/24]'],
  ],
  ['ports', {}, { ports: [] }, 'silent'],
  ['affinity', {}, { sessionAffinity: 'ClientIP' }, 'silent'],
  ['the requested address', {}, { loadBalancerIP: '10.9.0.243' }, ['LoadbalancerIP', ' -> 10.9.0.243']],
  ['external addresses', {}, { externalIPs: ['192.0.2.1'] }, ['ExternalIP', 'Count: 0 -> 1']],
  [
    'an external address',
    { externalIPs: ['192.0.2.1'] },
    { externalIPs: ['192.0.2.2'] },
    ['ExternalIP', 'Added: 192.0.2.2'],
  ],
  [
    'the traffic policy',
    { externalTrafficPolicy: 'Cluster' },
    { externalTrafficPolicy: 'Local' },
    ['ExternalTrafficPolicy', 'Cluster -> Local'],
  ],
  ['the health check', { healthCheckNodePort: 31_000 }, {}, ['HealthCheckNodePort', '31000 -> 0']],
])('reports a change of %s', (_what, before, after, expected) => {
  const old = service('a', { ...BALANCED, ...before });
  expect(changeEvent(old, { ...old, spec: { ...BALANCED, ...after } })).toEqual(expected);
});

it('nodes with the label, or about to be removed, get no packets; a new load balancer needs one that is Ready', () => {
  const labelled = makeNode('n', 'True');
  const label = { 'node.kubernetes.io/exclude-from-external-load-balancers': '' };
  const leaving = makeNode('n', 'True', {
    taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule', value: '1' }],
  });
  expect(isExcludedFromLoadBalancers({ ...labelled, metadata: { ...labelled.metadata, labels: label } })).toBe(true);
  expect(isExcludedFromLoadBalancers(leaving)).toBe(true);
  expect(isExcludedFromLoadBalancers(makeNode('n', 'False'))).toBe(false);
  expect([makeNode('n', 'True'), makeNode('n', 'False'), leaving].map(takesLoadBalancers)).toEqual([
    true,
    false,
    false,
  ]);
});

const PATH = '/api/v1/namespaces/demo/services';
function start(...stored: readonly Service[]) {
  const env = environment();
  env.run(new ServiceLbController(env.context, env.informers, '10.9.0.240/30'));
  env.informers.nodes.replace([makeNode('n', 'True')]);
  env.informers.services.replace([...stored]);
  return env;
}

it('puts a finalizer, the address and the events of upstream', async () => {
  const env = start(service('web'), service('other', { ...BALANCED, loadBalancerClass: 'example.com/x' }));
  await settle();
  const metadata = { uid: 'uid-web', finalizers: [LB_FINALIZER] };
  const loadBalancer = { ingress: [{ ip: '10.9.0.241', ipMode: 'VIP' }] };
  expect(env.client.writes).toEqual([
    { verb: 'patch', path: `${PATH}/web`, body: { metadata }, type: 'strategic' },
    { verb: 'patch', path: `${PATH}/web/status`, body: { status: { loadBalancer } }, type: 'merge' },
  ]);
  expect(env.events).toEqual([
    'web EnsuringLoadBalancer: Ensuring load balancer',
    'web EnsuredLoadBalancer: Ensured load balancer',
  ]);
});

it('one that has its address is left alone, also by the next process; two with the same: the older keeps it', async () => {
  const have = { finalizers: [LB_FINALIZER], creationTimestamp: '2026-01-01T00:00:01Z' };
  const quiet = start(service('web', BALANCED, '10.9.0.242', have));
  await settle();
  expect(quiet.client.writes).toEqual([]);
  expect(quiet.events).toEqual([]);
  const older = { ...have, creationTimestamp: '2026-01-01T00:00:00Z' };
  const env = start(service('young', BALANCED, '10.9.0.242', have), service('old', BALANCED, '10.9.0.242', older));
  await settle();
  expect(env.client.writes.map(({ path, body }) => [path, JSON.stringify(body).includes('10.9.0.241')])).toEqual([
    [`${PATH}/young/status`, true],
  ]);
});

it('one for which there is none waits, and gets what another gives back', async () => {
  const env = start(service('a'), service('b'), service('c'));
  await settle();
  const failed =
    'c SyncLoadBalancerFailed: Error syncing load balancer: failed to ensure load balancer: no address of 10.9.0.240/30 is free: all 2 are in use';
  expect(env.events).toContain(failed);
  const before = env.client.writes.length;
  const a = env.informers.services.get('demo/a');
  if (a === undefined) throw new Error('there is no Service a');
  const metadata = { ...a.metadata, finalizers: [LB_FINALIZER], deletionTimestamp: NOW };
  env.informers.services.upsert({ ...a, metadata: { ...metadata, resourceVersion: '900' } });
  await settle();
  expect(env.events.filter((event) => event.startsWith('a Delet'))).toEqual([
    'a DeletingLoadBalancer: Deleting load balancer',
    'a DeletedLoadBalancer: Deleted load balancer',
  ]);
  const [removal, , status] = env.client.writes.slice(before);
  expect(removal?.body).toEqual({
    metadata: { uid: 'uid-a', '$deleteFromPrimitiveList/finalizers': [LB_FINALIZER] },
  });
  expect(status).toEqual({
    verb: 'patch',
    path: `${PATH}/c/status`,
    type: 'merge',
    body: { status: { loadBalancer: { ingress: [{ ip: '10.9.0.241', ipMode: 'VIP' }] } } },
  });
});

it('without a range it does nothing', async () => {
  const env = environment();
  env.run(new ServiceLbController(env.context, env.informers, undefined));
  env.informers.services.replace([service('web')]);
  await settle();
  expect([env.client.writes, env.events]).toEqual([[], []]);
});
