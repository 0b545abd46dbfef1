// The FlowSchemas and PriorityLevelConfigurations that every cluster has. Two of each are mandatory, with specs that cannot be
// changed; the others are suggestions, which an administrator may change and then keeps by an annotation.

import type { FlowSchemaSpec, PriorityLevelConfigurationSpec } from 'kubernetes-types/flowcontrol/v1';
import type { Loose } from '../shapes.ts';

type SchemaSpec = Loose<FlowSchemaSpec>;
type LevelSpec = Loose<PriorityLevelConfigurationSpec>;
type Rule = NonNullable<SchemaSpec['rules']>[number];
type Subjects = NonNullable<Rule['subjects']>;

export interface DefaultObjects<Spec> {
  readonly mandatory: Readonly<Record<string, Spec>>;
  readonly suggested: Readonly<Record<string, Spec>>;
}

const groups = (...names: string[]): Subjects => names.map((name) => ({ kind: 'Group', group: { name } }));
const users = (...names: string[]): Subjects => names.map((name) => ({ kind: 'User', user: { name } }));
const SYSTEM_ACCOUNTS: Subjects = [{ kind: 'ServiceAccount', serviceAccount: { name: '*', namespace: 'kube-system' } }];
const EVERYONE = groups('system:unauthenticated', 'system:authenticated');
const NODES = groups('system:nodes');

/** Requests for resources in all namespaces. */
function resources(verbs: string[], apiGroup: string, list: string[], clusterScope: boolean) {
  const scope = clusterScope ? { clusterScope } : {};
  return { verbs, apiGroups: [apiGroup], resources: list, ...scope, namespaces: ['*'] };
}

const everything = (subjects: Subjects): Rule => ({
  subjects,
  resourceRules: [resources(['*'], '*', ['*'], true)],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
});

function schema(level: string, matchingPrecedence: number, method: string, ...rules: Rule[]): SchemaSpec {
  return {
    priorityLevelConfiguration: { name: level },
    matchingPrecedence,
    ...(method === '' ? {} : { distinguisherMethod: { type: method } }),
    rules,
  };
}

const LEASES = 'coordination.k8s.io';
const MANAGER = 'system:kube-controller-manager';
const SCHEDULER = 'system:kube-scheduler';

export const FLOW_SCHEMAS: DefaultObjects<SchemaSpec> = {
  mandatory: {
    exempt: schema('exempt', 1, '', everything(groups('system:masters'))),
    'catch-all': schema('catch-all', 10_000, 'ByUser', everything(EVERYONE)),
  },
  suggested: {
    'system-nodes': schema('system', 500, 'ByUser', everything(NODES)),
    'system-node-high': schema('node-high', 400, 'ByUser', {
      subjects: NODES,
      resourceRules: [
        resources(['*'], '', ['nodes', 'nodes/status'], true),
        resources(['*'], LEASES, ['leases'], false),
      ],
    }),
    probes: schema('exempt', 2, '', {
      subjects: EVERYONE,
      nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz', '/readyz', '/livez'] }],
    }),
    'system-leader-election': schema('leader-election', 100, 'ByUser', {
      subjects: [...users(MANAGER, SCHEDULER), ...SYSTEM_ACCOUNTS],
      resourceRules: [resources(['get', 'create', 'update'], LEASES, ['leases'], false)],
    }),
    'kube-controller-manager': schema('workload-high', 800, 'ByNamespace', everything(users(MANAGER))),
    'kube-scheduler': schema('workload-high', 800, 'ByNamespace', everything(users(SCHEDULER))),
    'kube-system-service-accounts': schema('workload-high', 900, 'ByNamespace', everything(SYSTEM_ACCOUNTS)),
    'service-accounts': schema('workload-low', 9000, 'ByUser', everything(groups('system:serviceaccounts'))),
    'global-default': schema('global-default', 9900, 'ByUser', everything(EVERYONE)),
  },
};

/** Shares of all requests and the percentage that may be lent; queues, and how many of them a flow uses. */
function level(shares: number, lendable: number, queues: number, handSize: number): LevelSpec {
  return {
    type: 'Limited',
    limited: {
      nominalConcurrencyShares: shares,
      lendablePercent: lendable,
      limitResponse: { type: 'Queue', queuing: { queues, handSize, queueLengthLimit: 50 } },
    },
  };
}

export const PRIORITY_LEVELS: DefaultObjects<LevelSpec> = {
  mandatory: {
    exempt: { type: 'Exempt', exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 } },
    'catch-all': {
      type: 'Limited',
      limited: { nominalConcurrencyShares: 5, lendablePercent: 0, limitResponse: { type: 'Reject' } },
    },
  },
  suggested: {
    system: level(30, 33, 64, 6),
    'node-high': level(40, 25, 64, 6),
    'leader-election': level(10, 0, 16, 4),
    'workload-high': level(40, 50, 128, 6),
    'workload-low': level(100, 90, 128, 6),
    'global-default': level(20, 50, 128, 6),
  },
};
