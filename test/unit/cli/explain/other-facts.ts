// Facts for the tables of the rules for nodes and Services: one that is all right, and what a case changes about it.

import type { NodeFacts, RuntimeFacts, ServiceFacts } from '../../../../cli/explain/facts.ts';
import type { Pod, Service } from '../../../../client/types.ts';
import { before, NOW, node, pod } from './facts.ts';

export const runtime: RuntimeFacts = {
  endpoint: 'unix:///run/c.sock',
  failure: undefined,
  conditions: [],
  handlers: undefined,
  sandboxes: [],
  containers: [],
};

export function nodeFacts(change: Partial<NodeFacts> = {}): NodeFacts {
  return {
    kind: 'node',
    now: NOW,
    gaps: [],
    events: [],
    node: node(),
    lease: undefined,
    pods: [],
    runtime: undefined,
    isHere: true,
    clock: undefined,
    agent: undefined,
    kubeletApi: undefined,
    servingProblem: undefined,
    ...change,
  };
}

export const lease = (seconds: number): NodeFacts['lease'] => ({
  metadata: { name: 'n1', uid: 'l', resourceVersion: '1' },
  spec: { renewTime: before(seconds), leaseDurationSeconds: 40 },
});

export const service = (spec: NonNullable<Service['spec']>): Service => ({
  metadata: { name: 'web', namespace: 'demo', uid: 's', resourceVersion: '1' },
  spec,
});
export const labelled = (labels: Record<string, string>, isReady = true, change = {}): Pod =>
  pod({
    meta: { labels },
    container: { ports: [{ name: 'http', containerPort: 8080 }] },
    status: {
      phase: 'Running',
      podIP: '10.0.0.2',
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False', message: 'a probe' }],
    },
    ...change,
  });

export function serviceFacts(change: Partial<ServiceFacts> = {}): ServiceFacts {
  return {
    kind: 'service',
    now: NOW,
    gaps: [],
    events: [],
    service: service({ selector: { app: 'web' }, ports: [{ port: 80, targetPort: 'http' }], clusterIP: '10.96.0.1' }),
    pods: [labelled({ app: 'web' })],
    slices: [],
    policies: [],
    listening: [{ pod: 'web', ports: [{ protocol: 'TCP', port: 8080, loopback: false }] }],
    vantage: undefined,
    node: undefined,
    proxy: undefined,
    connects: [],
    unusedPort: undefined,
    dns: undefined,
    ...change,
  };
}

export const policy = (ingress: object[]): ServiceFacts['policies'][number] => ({
  metadata: { name: 'deny', namespace: 'demo', uid: 'p', resourceVersion: '1' },
  spec: { podSelector: {}, policyTypes: ['Ingress'], ingress },
});
