// The rules for pods without a node, by tables.

import { describe, expect, test } from 'vitest';
import type { PodFacts } from '../../../../cli/explain/facts.ts';
import type { Rule } from '../../../../cli/explain/finding.ts';
import { claimNotBound } from '../../../../cli/explain/rules/claim-not-bound.ts';
import { noNodeFits } from '../../../../cli/explain/rules/no-node-fits.ts';
import { noScheduler } from '../../../../cli/explain/rules/no-scheduler.ts';
import { schedulingGate } from '../../../../cli/explain/rules/scheduling-gate.ts';
import type { PodStatus } from '../../../../client/types.ts';
import { before, claim, event, facts, mismatches, node, pod, type RuleCase, references } from './facts.ts';

const unschedulable = (message: string): PodStatus => ({
  phase: 'Pending',
  conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
});
const noNode = { nodeName: '' };
const short = unschedulable('0/1 nodes are available: 1 Insufficient cpu.');
const request = { resources: { requests: { cpu: '1500m', memory: '512Mi' } } };
const placed = pod({ meta: { name: 'other' }, container: { resources: { requests: { cpu: '1' } } } });
const tainted = node('n1', { spec: { taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] } });
const port = { ports: [{ containerPort: 80, hostPort: 8080 }] };
const claimVolume = { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }], nodeName: '' };
const unbound = unschedulable('0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.');
const moonVolume = {
  metadata: { name: 'far', uid: 'v', resourceVersion: '1' },
  spec: {
    nodeAffinity: {
      required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['moon'] }] }] },
    },
  },
};
const claims = (
  found: PodFacts['references']['claims'] extends ReadonlyMap<string, infer L> ? L : never,
): PodFacts['references'] => references({ claims: new Map([['data', found]]) });

const tables: readonly { readonly rule: Rule<PodFacts>; readonly cases: readonly RuleCase[] }[] = [
  {
    rule: schedulingGate,
    cases: [
      {
        what: 'gates',
        facts: facts({ spec: { ...noNode, schedulingGates: [{ name: 'a/x' }, { name: 'b/y' }] } }),
        finds: ['waits for scheduling gates a/x and b/y to be removed', 'a/x and b/y has to remove them'],
        state: 'broken',
      },
      { what: 'no gates', facts: facts({ spec: noNode }), finds: undefined },
    ],
  },
  {
    rule: noScheduler,
    cases: [
      {
        what: 'another scheduler that does not run',
        facts: facts({ spec: { ...noNode, schedulerName: 'mine' }, status: { conditions: [] } }),
        finds: ['no scheduler named mine has considered it', 'POST pods/binding'],
        state: 'broken',
      },
      {
        what: 'the usual scheduler is away',
        facts: facts({ spec: noNode, status: { conditions: [] } }),
        finds: ['the scheduler does not run, or cannot reach the API server'],
      },
      {
        what: 'a new pod',
        facts: facts({ spec: noNode, status: { conditions: [] }, meta: { creationTimestamp: before(2) } }),
        finds: ['waits for scheduler default-scheduler'],
        state: 'waiting',
      },
      { what: 'a scheduler has spoken', facts: facts({ spec: noNode, status: short }), finds: undefined },
      { what: 'a pod with a node', facts: facts({ status: { conditions: [] } }), finds: undefined },
    ],
  },
  {
    rule: noNodeFits,
    cases: [
      {
        what: 'too little cpu, with the figures',
        facts: facts({ spec: noNode, container: request, status: short }, { placed: [placed] }),
        finds: ['takes it: too little cpu', 'cpu: 1500m requested, 1 free (2 allocatable, 1 requested by 1 pod)'],
      },
      {
        what: 'a taint',
        facts: facts({ spec: noNode, status: unschedulable('0/1 …') }, { nodes: [tainted] }),
        finds: [
          'taint gpu=yes:NoSchedule',
          'which the pod does not tolerate',
          '$ kubectl taint node n1 gpu:NoSchedule-',
        ],
      },
      {
        what: 'a taint that is tolerated, and an unknown filter',
        facts: facts(
          {
            spec: { ...noNode, tolerations: [{ key: 'gpu', operator: 'Exists' }] },
            status: unschedulable(
              "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints. preemption: none.",
            ),
          },
          { nodes: [tainted] },
        ),
        finds: ["1 node(s) didn't match pod topology spread constraints", 'only in its message'],
      },
      {
        what: 'labels',
        facts: facts({ spec: { ...noNode, nodeSelector: { disk: 'ssd' } }, status: unschedulable('0/1 …') }),
        finds: ['its labels do not match', 'wants disk=ssd, the node has no label disk'],
      },
      {
        what: 'a host port',
        facts: facts(
          { spec: noNode, container: port, status: unschedulable('0/1 …') },
          { placed: [pod({ meta: { name: 'other' }, container: port })] },
        ),
        finds: ['host port 8080 is taken', 'belongs to pod demo/other'],
      },
      {
        what: 'a cordoned node',
        facts: facts(
          { spec: noNode, status: unschedulable('0/1 …') },
          { nodes: [node('n1', { spec: { unschedulable: true } })] },
        ),
        finds: ['cordoned', '$ kubectl uncordon n1'],
      },
      {
        what: 'too many pods',
        facts: facts(
          { spec: noNode, status: unschedulable('0/1 …') },
          { placed: [placed], nodes: [node('n1', { status: { allocatable: { cpu: '2', pods: '1' } } })] },
        ),
        finds: ['too many pods', 'it has 1 pod, and takes 1 at most'],
      },
      {
        what: 'a volume in another zone',
        facts: facts(
          { spec: claimVolume, status: unschedulable('0/1 nodes are available: 1 node(s) had volume node affinity …') },
          {
            nodes: [node('n1', { metadata: { ...node().metadata, labels: { zone: 'earth' } } })],
            references: claims({ state: 'found', value: claim({ volume: moonVolume }, {}, 'Bound') }),
          },
        ),
        finds: [
          'volume far cannot be reached from there',
          'volume far is only where zone In (moon), the node has zone=earth',
          '$ kubectl get pv far',
        ],
        state: 'broken',
      },
      {
        what: 'pod affinity',
        facts: facts({
          spec: {
            ...noNode,
            affinity: {
              podAffinity: {
                requiredDuringSchedulingIgnoredDuringExecution: [
                  { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'db' } } },
                ],
              },
            },
          },
          status: unschedulable('0/1 nodes are available: 1 node(s) didn’t match pod affinity rules.'),
        }),
        finds: [
          'takes it: its pod affinity is not met',
          'node n1: pod affinity wants a pod with app=db in kubernetes.io/hostname=n1; there is none',
          '$ kubectl get pods -A --show-labels',
        ],
        state: 'broken',
      },
      {
        what: 'no nodes',
        facts: facts({ spec: noNode, status: unschedulable('no nodes available to schedule pods') }, { nodes: [] }),
        finds: ['the cluster has no nodes'],
      },
      { what: 'a pod with a node', facts: facts({ status: short }), finds: undefined },
    ],
  },
  {
    rule: claimNotBound,
    cases: [
      {
        what: 'no such claim',
        facts: facts(
          {
            spec: claimVolume,
            status: unschedulable('0/1 nodes are available: persistentvolumeclaim "data" not found.'),
          },
          { references: claims({ state: 'absent' }), events: [event('FailedScheduling', 'x')] },
        ),
        finds: ['it uses claim data, which does not exist', 'volume data of the pod names claim data'],
      },
      {
        what: 'no class',
        facts: facts(
          { spec: claimVolume, status: unbound },
          { references: claims({ state: 'found', value: claim() }) },
        ),
        finds: ['its claim data waits for a PersistentVolume that fits', 'asks for 1Gi, ReadWriteOnce, class none'],
      },
      {
        what: 'a class that is not there',
        facts: facts(
          { spec: claimVolume, status: unbound },
          { references: claims({ state: 'found', value: claim({}, { storageClassName: 'fast' }) }) },
        ),
        finds: ['names StorageClass fast, which does not exist', 'GET storageclasses/fast'],
      },
      {
        what: 'a provisioner that fails',
        facts: facts(
          { spec: claimVolume, status: unbound },
          {
            references: claims({
              state: 'found',
              value: claim(
                {
                  events: [event('ProvisioningFailed', 'the pool is full')],
                  storageClass: {
                    metadata: { name: 'fast', uid: 's', resourceVersion: '1' },
                    provisioner: 'd.example.com',
                  },
                },
                { storageClassName: 'fast' },
              ),
            }),
          },
        ),
        finds: ['making one failed', 'CreateVolume', 'the pool is full'],
      },
      {
        what: 'a lost volume',
        facts: facts(
          {
            spec: claimVolume,
            status: unschedulable('persistentvolumeclaim "data" bound to non-existent persistentvolume "v"'),
          },
          { references: claims({ state: 'found', value: claim({}, { volumeName: 'v' }, 'Lost') }) },
        ),
        finds: ['has lost its volume v'],
      },
      { what: 'another reason', facts: facts({ spec: claimVolume, status: short }), finds: undefined },
    ],
  },
];

describe.each(tables)('$rule.name', ({ rule, cases }) => {
  test.each(cases)('$what', (each) => {
    expect(mismatches(rule, each)).toEqual([]);
  });
});
