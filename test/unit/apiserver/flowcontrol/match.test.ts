// Classification: which schema, which flow, which queues.

import { describe, expect, it } from 'vitest';
import { flowConfig } from '../../../../apiserver/flowcontrol/config.ts';
import { distinguisherOf, type FlowRequest, matchesSchema } from '../../../../apiserver/flowcontrol/match.ts';
import { dealHand, flowHash } from '../../../../apiserver/flowcontrol/shuffle-shard.ts';
import { FLOW_SCHEMAS, PRIORITY_LEVELS } from '../../../../apiserver/kinds/flowcontrol/default-objects.ts';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';

function objects(kind: string, specs: Readonly<Record<string, object>>): KubeObject[] {
  return Object.entries(specs).map(([name, spec]) => {
    return { apiVersion: 'flowcontrol.apiserver.k8s.io/v1', kind, metadata: { name, uid: `${name}-uid` }, spec };
  });
}

const schemas = objects('FlowSchema', { ...FLOW_SCHEMAS.mandatory, ...FLOW_SCHEMAS.suggested });
const levels = objects('PriorityLevelConfiguration', { ...PRIORITY_LEVELS.mandatory, ...PRIORITY_LEVELS.suggested });
const config = flowConfig(schemas, levels);

const AUTHENTICATED = 'system:authenticated';

function request(
  user: string,
  groups: string[],
  verb: string,
  place: string | Partial<FlowRequest['resource']>,
): FlowRequest {
  if (typeof place === 'string') return { user, groups, verb, path: place };
  const none = { group: '', version: 'v1', resource: '', subresource: '', namespace: '', name: '' };
  return { user, groups, verb, path: '', resource: { ...none, ...place } };
}

const LEASE = { group: 'coordination.k8s.io', resource: 'leases', namespace: 'kube-system' };
const POD = { resource: 'pods', namespace: 'default' };
const account = (namespace: string, name: string): [string, string[]] => [
  `system:serviceaccount:${namespace}:${name}`,
  ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, AUTHENTICATED],
];

describe('the schema of a request, with the default objects', () => {
  const node = ['system:nodes', AUTHENTICATED];
  it.each<[string, string, FlowRequest]>([
    ['exempt', 'exempt', request('admin', ['system:masters', AUTHENTICATED], 'list', POD)],
    ['probes', 'exempt', request('system:anonymous', ['system:unauthenticated'], 'get', '/healthz')],
    ['probes', 'exempt', request('system:anonymous', ['system:unauthenticated'], 'get', '/readyz/etcd')],
    ['global-default', 'global-default', request('system:anonymous', ['system:unauthenticated'], 'get', '/version')],
    [
      'system-node-high',
      'node-high',
      request('system:node:n1', node, 'patch', { resource: 'nodes', subresource: 'status' }),
    ],
    [
      'system-node-high',
      'node-high',
      request('system:node:n1', node, 'update', { ...LEASE, namespace: 'kube-node-lease' }),
    ],
    ['system-nodes', 'system', request('system:node:n1', node, 'list', POD)],
    ['system-leader-election', 'leader-election', request('system:kube-scheduler', [AUTHENTICATED], 'update', LEASE)],
    ['kube-scheduler', 'workload-high', request('system:kube-scheduler', [AUTHENTICATED], 'patch', LEASE)],
    ['system-leader-election', 'leader-election', request(...account('kube-system', 'x'), 'get', LEASE)],
    ['kube-system-service-accounts', 'workload-high', request(...account('kube-system', 'x'), 'get', POD)],
    ['service-accounts', 'workload-low', request(...account('kube-system-2', 'x'), 'get', POD)],
    ['global-default', 'global-default', request('alice', [AUTHENTICATED], 'get', POD)],
    ['catch-all', 'catch-all', request('alice', [], 'get', POD)],
  ])('%s', (schema, level, about) => {
    const found = config.schemas.find(({ spec }) => matchesSchema(spec, about)) ?? config.schemas.at(-1);
    expect([found?.name, found?.level]).toEqual([schema, level]);
  });

  it('is the one of the smallest precedence, among equals by name', () => {
    const names = config.schemas.map(({ name }) => name);
    expect(names).toEqual([
      'exempt',
      'probes',
      'system-leader-election',
      'system-node-high',
      'system-nodes',
      'kube-controller-manager',
      'kube-scheduler',
      'kube-system-service-accounts',
      'service-accounts',
      'global-default',
      'catch-all',
    ]);
  });
});

describe('a schema', () => {
  const only = (rules: object): object => ({
    rules: [{ subjects: [{ kind: 'Group', group: { name: '*' } }], ...rules }],
  });
  const resources = (rule: object): object =>
    only({ resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], ...rule }] });
  const paths = (...nonResourceURLs: string[]): object =>
    only({ nonResourceRules: [{ verbs: ['get'], nonResourceURLs }] });
  it.each<[string, object, FlowRequest, boolean]>([
    [
      'without cluster scope, of a cluster-scoped request',
      resources({ namespaces: ['*'] }),
      request('a', [], 'get', { resource: 'nodes' }),
      false,
    ],
    [
      'with cluster scope alone, of a namespaced one',
      resources({ clusterScope: true }),
      request('a', [], 'get', POD),
      false,
    ],
    ['of another namespace', resources({ namespaces: ['x'] }), request('a', [], 'get', POD), false],
    ['of the namespace', resources({ namespaces: ['x', 'default'] }), request('a', [], 'get', POD), true],
    [
      'of the resource, of its subresource',
      resources({ resources: ['pods'], namespaces: ['*'] }),
      request('a', [], 'get', { ...POD, subresource: 'status' }),
      false,
    ],
    [
      'of the subresource',
      resources({ resources: ['pods/status'], namespaces: ['*'] }),
      request('a', [], 'get', { ...POD, subresource: 'status' }),
      true,
    ],
    ['of resources, of a path', resources({ namespaces: ['*'] }), request('a', [], 'get', '/metrics'), false],
    ['of a path below', paths('/openapi/*'), request('a', [], 'get', '/openapi/v3/apis'), true],
    ['of a path beside it', paths('/openapi/*'), request('a', [], 'get', '/openapis'), false],
    ['of another verb', paths('*'), request('a', [], 'post', '/metrics'), false],
  ])('%s', (_name, spec, about, expected) => {
    expect(matchesSchema(spec, about)).toBe(expected);
  });
});

describe('the configuration', () => {
  it('has what is mandatory before the objects are there, and passes over schemas without their level', () => {
    const lost = objects('FlowSchema', { lost: { priorityLevelConfiguration: { name: 'none' }, rules: [] } });
    const { schemas: active, levels: known, dangling } = flowConfig(lost, []);
    expect(active.map(({ name, uid }) => [name, uid])).toEqual([
      ['exempt', ''],
      ['catch-all', ''],
    ]);
    expect([...known.keys()]).toEqual(['exempt', 'catch-all']);
    expect(dangling).toEqual([
      {
        schema: 'lost',
        status: 'True',
        reason: 'NotFound',
        message:
          'This FlowSchema references the PriorityLevelConfiguration object named "none" but there is no such object',
      },
    ]);
    expect(config.dangling.every(({ status, reason }) => status === 'False' && reason === 'Found')).toBe(true);
  });
});

describe('flows', () => {
  it.each<[string | undefined, string]>([
    ['ByUser', 'alice'],
    ['ByNamespace', 'default'],
    [undefined, ''],
  ])('distinguished %s', (type, expected) => {
    const spec = type === undefined ? {} : { distinguisherMethod: { type } };
    expect(distinguisherOf(spec, request('alice', [], 'get', POD))).toBe(expected);
  });

  // The remainders are 1, 1, 1: of what is left each time, the second card.
  it.each<[bigint, number, number, number[]]>([
    [0n, 8, 3, [0, 1, 2]],
    [1n + 8n * (1n + 7n * 1n), 8, 3, [1, 2, 3]],
    [7n + 8n * (0n + 7n * 5n), 8, 3, [7, 0, 6]],
    [3n, 4, 4, [3, 0, 1, 2]],
  ])('the hand of %s', (value, deck, size, expected) => {
    expect(dealHand(value, deck, size)).toEqual(expected);
  });

  it('a hand has each queue once, and two flows hardly ever share one', () => {
    const hands = Array.from({ length: 200 }, (_, user) =>
      dealHand(flowHash('global-default', `user-${user}`), 128, 6),
    );
    for (const hand of hands) {
      expect(new Set(hand).size).toBe(6);
      expect(Math.max(...hand)).toBeLessThan(128);
    }
    const [first = [], ...others] = hands;
    expect(others.filter((hand) => hand.every((queue) => first.includes(queue)))).toEqual([]);
    expect(new Set(hands.flat()).size).toBeGreaterThan(120);
  });
});
