// The rules for what makes pods, by a table. The messages are those of kube-apiserver and its controllers.

import { expect, test } from 'vitest';
import { counts } from '../../../../cli/explain/collect/workload.ts';
import type { WorkloadFacts } from '../../../../cli/explain/facts.ts';
import { findingsOf } from '../../../../cli/explain/findings.ts';
import { fineWorkload, otherWorkload, WORKLOAD_RULES } from '../../../../cli/explain/rules/workload-rules.ts';
import { event, NOW, pod, textOf } from './facts.ts';

function facts(change: Partial<WorkloadFacts> = {}): WorkloadFacts {
  return {
    kind: 'workload',
    now: NOW,
    gaps: [],
    events: [],
    workload: { kind: 'ReplicaSet', namespace: 'demo', name: 'web-5d' },
    counts: { wanted: 3, present: 1, ready: 1 },
    pods: [],
    ...change,
  };
}

const refused = (message: string): WorkloadFacts =>
  facts({ events: [event('FailedCreate', `Error creating: ${message}`)] });

test.each([
  [
    'a quota that is used up',
    refused('pods "web-5d-x" is forbidden: exceeded quota: team, requested: cpu=1, used: cpu=2, limited: cpu=2'),
    'pods-refused',
    /quota team is used up: requested cpu=1, used cpu=2, of cpu=2[\s\S]*1 of 3 pods are there[\s\S]*describe resourcequota team/,
  ],
  [
    'a quota that demands figures',
    refused('pods "x" is forbidden: failed quota: team: must specify limits.memory for: main'),
    'pods-refused',
    /quota team demands that each pod says limits\.memory for: main/,
  ],
  [
    'a webhook that is away',
    refused(
      'Internal error occurred: failed calling webhook "check.example.com": failed to call webhook: Post "https://hook.tools.svc:443/check?timeout=10s": dial tcp 10.0.0.7:443: connect: connection refused',
    ),
    'pods-refused',
    /webhook check\.example\.com does not answer: connect: connection refused[\s\S]*nodelet explain service tools\/hook/,
  ],
  [
    'a webhook that denies',
    refused('admission webhook "check.example.com" denied the request: no label team'),
    'pods-refused',
    /webhook check\.example\.com denies them: no label team/,
  ],
  [
    'a security standard',
    refused('pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged (container "main")'),
    'pods-refused',
    /security standard restricted:latest: privileged/,
  ],
  [
    'no service account',
    refused('pods "x" is forbidden: error looking up service account demo/app: serviceaccount "app" not found'),
    'pods-refused',
    /service account app does not exist/,
  ],
  ['something else', refused('the disk is full'), 'pods-refused', /its pods are not made: the disk is full/],
  [
    'pods that are not Ready',
    facts({ counts: { wanted: 1, present: 1, ready: 0 }, pods: [pod()] }),
    'pods-unready',
    /1 pod of it is not Ready: web[\s\S]*nodelet explain pod demo\/web/,
  ],
] as const)('%s', (_what, given, rule, text) => {
  const [finding] = findingsOf(WORKLOAD_RULES, given);
  expect(textOf(finding)).toMatch(text);
  expect(finding?.rule).toBe(rule);
});

test('an old refusal is no news when all pods are there; a controller that has not begun', () => {
  const over = { ...refused('no'), counts: { wanted: 1, present: 1, ready: 1 } };
  expect(findingsOf(WORKLOAD_RULES, over)).toEqual([]);
  expect(otherWorkload(over)).toMatchObject({ state: 'ready', verdict: 'it has its pods: 1 of 1 are Ready' });
  expect(otherWorkload(facts())).toMatchObject({ state: 'waiting' });
  expect(fineWorkload(facts({ pods: [pod({ status: { conditions: [{ type: 'Ready', status: 'True' }] } })] }))).toEqual(
    ['Ready: web'],
  );
});

test('how many pods there should be', () => {
  const metadata = { name: 'x', uid: 'x', resourceVersion: '1' };
  const of = (kind: Parameters<typeof counts>[0], spec: object, status: object) =>
    counts(kind, { metadata, spec, status });
  expect(of('replicaset', { replicas: 3 }, { replicas: 2, readyReplicas: 1 })).toEqual({
    wanted: 3,
    present: 2,
    ready: 1,
  });
  expect(of('job', { parallelism: 2, completions: 5 }, { succeeded: 4, active: 1 })).toEqual({
    wanted: 1,
    present: 1,
    ready: 0,
  });
  expect(of('daemonset', {}, { desiredNumberScheduled: 2 })).toEqual({ wanted: 2, present: 0, ready: 0 });
});
