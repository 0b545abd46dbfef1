// The rules for nodes, Services and claims, by tables.

import { describe, expect, test } from 'vitest';
import type { ClaimFacts, NodeFacts, ServiceFacts } from '../../../../cli/explain/facts.ts';
import { findingsOf } from '../../../../cli/explain/findings.ts';
import { CLAIM_RULES, fineClaim } from '../../../../cli/explain/rules/claim-rules.ts';
import { fineNode, NODE_RULES } from '../../../../cli/explain/rules/node-rules.ts';
import { fineService, SERVICE_RULES } from '../../../../cli/explain/rules/service-rules.ts';
import { before, claim, NOW, node, pod, textOf } from './facts.ts';
import { labelled, lease, nodeFacts, policy, runtime, service, serviceFacts } from './other-facts.ts';

const conditions = (...found: { type: string; status: string; message?: string; reason?: string }[]) => ({
  status: { allocatable: { cpu: '2', memory: '1Gi', pods: '110' }, conditions: found },
});
const nodeCases: readonly {
  readonly what: string;
  readonly facts: NodeFacts;
  readonly rule: string;
  readonly text: RegExp;
}[] = [
  { what: 'Ready', facts: nodeFacts({ lease: lease(5) }), rule: 'node-ready', text: /^it is Ready$/ },
  {
    what: 'a lease that is late',
    facts: nodeFacts({ lease: lease(90) }),
    rule: 'node-silent',
    text: /its agent is away: it last renewed its lease 1 min 30 s ago[\s\S]*due every 10 s/,
  },
  {
    what: 'Unknown',
    facts: nodeFacts({
      node: node(
        'n1',
        conditions({ type: 'Ready', status: 'Unknown', message: 'Kubelet stopped posting node status.' }),
      ),
    }),
    rule: 'node-silent',
    text: /stopped posting/,
  },
  {
    what: 'a runtime that does not answer',
    facts: nodeFacts({ runtime: { ...runtime, failure: 'Status: connect ENOENT' } }),
    rule: 'node-runtime',
    text: /its container runtime does not answer[\s\S]*still reported as Ready[\s\S]*ENOENT/,
  },
  {
    what: 'a runtime without a network',
    facts: nodeFacts({
      runtime: {
        ...runtime,
        conditions: [{ type: 'NetworkReady', status: false, reason: 'R', message: 'cni plugin not initialized' }],
      },
    }),
    rule: 'node-runtime',
    text: /its network is not ready: cni plugin not initialized/,
  },
  {
    what: 'no network, in the agent’s words',
    facts: nodeFacts({
      node: node(
        'n1',
        conditions({
          type: 'Ready',
          status: 'False',
          reason: 'KubeletNotReady',
          message: 'container runtime network not ready',
        }),
      ),
    }),
    rule: 'node-not-ready',
    text: /its network is not ready: container runtime network not ready/,
  },
  {
    what: 'no runtime, in the agent’s words',
    facts: nodeFacts({
      node: node(
        'n1',
        conditions({ type: 'Ready', status: 'False', reason: 'KubeletNotReady', message: 'container runtime is down' }),
      ),
    }),
    rule: 'node-not-ready',
    text: /its container runtime does not work/,
  },
  {
    what: 'pressure',
    facts: nodeFacts({
      node: node(
        'n1',
        conditions(
          { type: 'Ready', status: 'True' },
          { type: 'DiskPressure', status: 'True', message: 'kubelet has disk pressure' },
        ),
      ),
    }),
    rule: 'node-pressure',
    text: /it is short of disk\nDiskPressure: kubelet has disk pressure/,
  },
  {
    what: 'cordoned',
    facts: nodeFacts({ node: node('n1', { spec: { unschedulable: true } }) }),
    rule: 'node-cordoned',
    text: /kubectl uncordon n1/,
  },
];

describe('nodes', () => {
  test.each(nodeCases)('$what: $rule', ({ facts, rule, text }) => {
    const [first] = findingsOf(NODE_RULES, facts);
    expect(first?.rule).toBe(rule);
    expect(textOf(first)).toMatch(text);
  });

  test('what is fine', () => {
    expect(fineNode(nodeFacts({ runtime }))).toEqual([
      'its container runtime answers (unix:///run/c.sock)',
      '0 pods; allocatable: 2 cpu, 1Gi memory, 110 pods',
    ]);
  });
});

const serviceCases: readonly {
  readonly what: string;
  readonly facts: ServiceFacts;
  readonly rule: string;
  readonly text: RegExp;
}[] = [
  {
    what: 'all is well',
    facts: serviceFacts(),
    rule: 'service-ready',
    text: /1 ready pod can answer, and they listen on its ports/,
  },
  {
    what: 'a value that differs',
    facts: serviceFacts({ pods: [labelled({ app: 'wbe' })] }),
    rule: 'service-no-pods',
    text: /matches none of the 1 pods[\s\S]*nearly matches: it has app=wbe, the selector wants app=web/,
  },
  {
    what: 'the nearest of several comes first',
    facts: serviceFacts({
      pods: [labelled({ app: 'database' }), labelled({ app: 'wbe' }), labelled({ app: 'dns' })],
    }),
    rule: 'service-no-pods',
    text: /none of the 3 pods[\s\S]*?nearly matches: it has app=wbe[\s\S]*?app=dns[\s\S]*?app=database/,
  },
  { what: 'no pods', facts: serviceFacts({ pods: [] }), rule: 'service-no-pods', text: /the namespace has none/ },
  {
    what: 'pods that have ended',
    facts: serviceFacts({ pods: [labelled({ app: 'web' }, false, { status: { phase: 'Succeeded' } })] }),
    rule: 'service-no-pods',
    text: /only pods that have ended \(web\)/,
  },
  {
    what: 'none ready',
    facts: serviceFacts({ pods: [labelled({ app: 'web' }, false)] }),
    rule: 'service-not-ready',
    text: /selects 1 pod \(web\), and none is Ready[\s\S]*a probe[\s\S]*nodelet explain pod demo\/web/,
  },
  {
    what: 'a name that no port has',
    facts: serviceFacts({ service: service({ selector: { app: 'web' }, ports: [{ port: 80, targetPort: 'web' }] }) }),
    rule: 'service-port',
    text: /the port named web[\s\S]*are called http/,
  },
  {
    what: 'nothing listens',
    facts: serviceFacts({ listening: [{ pod: 'web', ports: [{ protocol: 'TCP', port: 3000, loopback: false }] }] }),
    rule: 'service-port',
    text: /leads to TCP 8080, and nothing listens there in pod web[\s\S]*the pod listens on TCP 3000/,
  },
  {
    what: 'the other protocol',
    facts: serviceFacts({ listening: [{ pod: 'web', ports: [{ protocol: 'UDP', port: 8080, loopback: false }] }] }),
    rule: 'service-port',
    text: /nothing listens there[\s\S]*the pod listens on UDP 8080/,
  },
  {
    what: 'loopback alone',
    facts: serviceFacts({ listening: [{ pod: 'web', ports: [{ protocol: 'TCP', port: 8080, loopback: true }] }] }),
    rule: 'service-port',
    text: /listens only on its loopback address/,
  },
  {
    what: 'a pod elsewhere',
    facts: serviceFacts({ listening: [] }),
    rule: 'service-ready',
    text: /1 ready pod can answer$/m,
  },
  {
    what: 'a policy that denies',
    facts: serviceFacts({ policies: [policy([])] }),
    rule: 'service-policy',
    text: /NetworkPolicy deny lets nothing in to TCP 8080 of pod web/,
  },
  {
    what: 'a policy that allows some',
    facts: serviceFacts({ policies: [policy([{ from: [{ podSelector: {} }] }])] }),
    rule: 'service-policy',
    text: /lets only some traffic in/,
  },
  {
    what: 'a policy that allows all',
    facts: serviceFacts({ policies: [policy([{}])] }),
    rule: 'service-ready',
    text: /ready pod/,
  },
  {
    what: 'no selector',
    facts: serviceFacts({ service: service({ ports: [{ port: 80 }] }) }),
    rule: 'service-without-selector',
    text: /no selector and no endpoints/,
  },
  {
    what: 'an external name',
    facts: serviceFacts({ service: service({ type: 'ExternalName', externalName: 'example.com' }) }),
    rule: 'service-external-name',
    text: /only a DNS name for example.com/,
  },
];

describe('services', () => {
  test.each(serviceCases)('$what: $rule', ({ facts, rule, text }) => {
    const [first] = findingsOf(SERVICE_RULES, facts);
    expect(textOf(first)).toMatch(text);
    expect(first?.rule).toBe(rule);
  });

  test('each port that leads nowhere is named, and those that are right are not', () => {
    const ports = [
      { port: 80, targetPort: 'http' },
      { port: 81, targetPort: 'admin' },
      { port: 82, targetPort: 9000 },
    ];
    const found = findingsOf(
      SERVICE_RULES,
      serviceFacts({ service: service({ selector: { app: 'web' }, clusterIP: '10.96.0.1', ports }) }),
    );
    const broken = found.filter(({ state }) => state === 'broken');
    expect(broken.map(({ rule, verdict }) => [rule, verdict])).toEqual([
      ['service-port', expect.stringContaining('its port 81 leads to the port named admin')],
      ['service-port', 'its port 82 leads to TCP 9000, and nothing listens there in pod web'],
    ]);
  });

  test('what is fine', () => {
    expect(fineService(serviceFacts())).toEqual([
      'its address is 10.96.0.1',
      'ports: TCP 80 → http',
      'selects web',
      'ready: web (10.0.0.2)',
      'programs listen on its ports in web',
    ]);
  });
});

const storageClass = (volumeBindingMode: string) => ({
  metadata: { name: 'fast', uid: 'f', resourceVersion: '1' },
  provisioner: 'd.example.com',
  volumeBindingMode,
});
const user = pod({ spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] } });

function claimFacts(change: Partial<ClaimFacts> = {}): ClaimFacts {
  return {
    kind: 'pvc',
    now: NOW,
    gaps: [],
    events: [],
    claim: claim(),
    volumes: [],
    classNames: [],
    pods: [],
    ...change,
  };
}

const deleted = (finalizers: string[]) => {
  const fact = claim({}, {}, 'Bound');
  return {
    ...fact,
    claim: { ...fact.claim, metadata: { ...fact.claim.metadata, deletionTimestamp: before(5), finalizers } },
  };
};

const claimCases: readonly {
  readonly what: string;
  readonly facts: ClaimFacts;
  readonly rule: string;
  readonly text: RegExp;
}[] = [
  {
    what: 'bound',
    facts: claimFacts({ claim: claim({}, { volumeName: 'v1' }, 'Bound') }),
    rule: 'claim-bound',
    text: /it is bound to volume v1/,
  },
  {
    what: 'a volume that is too small',
    facts: claimFacts({
      volumes: [
        {
          metadata: { name: 'small', uid: 'v', resourceVersion: '1' },
          spec: { capacity: { storage: '1Mi' }, accessModes: ['ReadOnlyMany'] },
          status: { phase: 'Available' },
        },
      ],
    }),
    rule: 'claim-pending',
    text: /volume small: it lacks ReadWriteOnce and it has 1Mi/,
  },
  {
    what: 'a class that is misspelt',
    facts: claimFacts({ claim: claim({}, { storageClassName: 'fastt' }), classNames: ['fast'] }),
    rule: 'claim-pending',
    text: /names StorageClass fastt, which does not exist \(there is one called fast\)/,
  },
  {
    what: 'it waits for a pod',
    facts: claimFacts({
      claim: claim({ storageClass: storageClass('WaitForFirstConsumer') }, { storageClassName: 'fast' }),
    }),
    rule: 'claim-pending',
    text: /waits for a pod/,
  },
  {
    what: 'a pod that waits, too',
    facts: claimFacts({
      claim: claim({ storageClass: storageClass('WaitForFirstConsumer') }, { storageClassName: 'fast' }),
      pods: [user],
    }),
    rule: 'claim-pending',
    text: /pod web uses it and has no node yet[\s\S]*nodelet explain pod demo\/web/,
  },
  {
    what: 'a provisioner without an answer',
    facts: claimFacts({ claim: claim({ storageClass: storageClass('Immediate') }, { storageClassName: 'fast' }) }),
    rule: 'claim-pending',
    text: /waits for d\.example\.com to make a volume/,
  },
  {
    what: 'deleted, and used',
    facts: claimFacts({ claim: deleted(['kubernetes.io/pvc-protection']), pods: [user] }),
    rule: 'claim-deleted',
    text: /pods keep it that use it: web/,
  },
  {
    what: 'deleted, with another finalizer',
    facts: claimFacts({ claim: deleted(['example.com/x']) }),
    rule: 'claim-deleted',
    text: /finalizer example\.com\/x keeps it/,
  },
];

describe('claims', () => {
  test.each(claimCases)('$what: $rule', ({ facts, rule, text }) => {
    const [first] = findingsOf(CLAIM_RULES, facts);
    expect(textOf(first)).toMatch(text);
    expect(first?.rule).toBe(rule);
  });

  test('what is fine', () => {
    expect(fineClaim(claimFacts({ pods: [user] }))).toEqual(['used by web']);
  });
});
