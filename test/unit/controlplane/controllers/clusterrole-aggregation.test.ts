import { describe, expect, it } from 'vitest';
import {
  aggregatedRules,
  type ClusterRole,
} from '../../../../controlplane/controllers/clusterrole-aggregation/aggregate.ts';
import { ClusterRoleAggregationController } from '../../../../controlplane/controllers/clusterrole-aggregation/clusterrole-aggregation.ts';
import { apiError } from '../../../support/fake-client.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, meta } from '../environment.ts';

const rule = (resource: string) => ({ apiGroups: [''], resources: [resource], verbs: ['get'] });
const role = (name: string, labels: Record<string, string>, ...resources: string[]): ClusterRole => ({
  metadata: { ...meta(name), labels },
  rules: resources.map(rule),
});
const aggregated = (
  name: string,
  selectors: Record<string, string>[],
  labels: Record<string, string> = {},
): ClusterRole => ({
  metadata: { ...meta(name), labels },
  aggregationRule: { clusterRoleSelectors: selectors.map((matchLabels) => ({ matchLabels })) },
});

describe('aggregatedRules', () => {
  const parts = [
    role('z', { view: '1' }, 'pods', 'services'),
    role('b', { view: '1', edit: '1' }, 'secrets', 'pods'),
    role('c', { edit: '1' }, 'nodes'),
    role('d', {}, 'events'),
  ];

  it.each<[string, ClusterRole, string[] | undefined]>([
    ['a role of its own', role('x', { view: '1' }, 'pods'), undefined],
    ['no selector', aggregated('x', []), []],
    ['a selector that nothing matches', aggregated('x', [{ other: '1' }]), []],
    ['by name, each rule once', aggregated('x', [{ view: '1' }]), ['secrets', 'pods', 'services']],
    ['selector by selector', aggregated('x', [{ view: '1' }, { edit: '1' }]), ['secrets', 'pods', 'services', 'nodes']],
    ['an empty selector matches all', aggregated('x', [{}]), ['secrets', 'pods', 'nodes', 'events', 'services']],
    ['never itself', { ...aggregated('b', [{ edit: '1' }], { edit: '1' }), rules: [rule('old')] }, ['nodes']],
  ])('%s', (_what, one, expected) => {
    const all = [...parts.filter(({ metadata }) => metadata.name !== one.metadata.name), one];
    expect(aggregatedRules(one, all)?.map(({ resources }) => resources?.[0])).toEqual(expected);
  });
});

describe('ClusterRoleAggregationController', () => {
  function start() {
    const env = environment();
    env.run(new ClusterRoleAggregationController(env.context, env.informers));
    env.client.onWrite = ({ body }) => {
      const current = env.informers.clusterRoles.get('view');
      const { rules } = body as ClusterRole;
      if (current !== undefined && rules !== undefined)
        env.informers.clusterRoles.upsert({
          ...current,
          metadata: { ...current.metadata, resourceVersion: meta('').resourceVersion },
          rules,
        });
      return body;
    };
    return env;
  }

  it('writes the rules once, and again when a part changes or goes', async () => {
    const { client, informers } = start();
    const part = role('part', { view: '1' }, 'pods');
    informers.clusterRoles.replace([aggregated('view', [{ view: '1' }]), part]);
    await settle();
    const path = '/apis/rbac.authorization.k8s.io/v1/clusterroles/view';
    expect(client.writes).toMatchObject([{ verb: 'patch', path, type: 'merge', body: { rules: [rule('pods')] } }]);
    informers.clusterRoles.remove(part);
    await settle();
    expect(client.writes.slice(1)).toMatchObject([{ path, body: { rules: [] } }]);
  });

  it('writes nothing where the rules are there already', async () => {
    const { client, informers } = start();
    informers.clusterRoles.replace([
      { ...aggregated('view', [{ view: '1' }]), rules: [rule('pods')] },
      role('part', { view: '1' }, 'pods'),
    ]);
    await settle();
    expect(client.writes).toEqual([]);
  });

  it('tries again after a conflict', async () => {
    const { client, clock, informers } = start();
    client.failures.push(apiError(409, 'Conflict'));
    informers.clusterRoles.replace([aggregated('view', [{ view: '1' }]), role('part', { view: '1' }, 'pods')]);
    await clock.advance(100);
    expect(client.writes.length).toBe(1);
  });
});
