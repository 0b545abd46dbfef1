// The rules for pods that are not Ready, by their own or by their node's doing, and for those that are. By tables.

import { describe, expect, test } from 'vitest';
import type { PodFacts, RuntimeFacts } from '../../../../cli/explain/facts.ts';
import type { Rule } from '../../../../cli/explain/finding.ts';
import { nodeAway } from '../../../../cli/explain/rules/node-away.ts';
import { nodeUnready } from '../../../../cli/explain/rules/node-unready.ts';
import { probeFails } from '../../../../cli/explain/rules/probe-fails.ts';
import { readinessGate } from '../../../../cli/explain/rules/readiness-gate.ts';
import { ready } from '../../../../cli/explain/rules/ready.ts';
import { runtimeAway } from '../../../../cli/explain/rules/runtime-away.ts';
import { plusMs } from '../../../../lib/clock.ts';
import { before, event, facts, mismatches, NOW, node, type RuleCase } from './facts.ts';

const running = { state: { running: { startedAt: before(40) } }, started: true };
const readyConditions = [
  { type: 'PodScheduled', status: 'True' },
  { type: 'ContainersReady', status: 'True' },
];
const deleted = { deletionTimestamp: before(-50), deletionGracePeriodSeconds: 60 };
const runtime = (change: Partial<RuntimeFacts>): RuntimeFacts => ({
  endpoint: 'unix:///run/c.sock',
  failure: undefined,
  conditions: [],
  handlers: undefined,
  sandboxes: [],
  containers: [],
  ...change,
});

const tables: readonly { readonly rule: Rule<PodFacts>; readonly cases: readonly RuleCase[] }[] = [
  {
    rule: probeFails,
    cases: [
      {
        what: 'readiness',
        facts: facts(
          { container: { readinessProbe: { httpGet: { port: 8080, path: '/r' } } }, state: { ...running } },
          { events: [event('Unhealthy', 'Readiness probe failed: HTTP probe failed with statuscode: 503')] },
        ),
        finds: [
          'its readiness probe fails: HTTP probe failed with statuscode: 503',
          'HTTP GET POD:8080/r',
          'every 10 s, has 1 s to answer',
        ],
        state: 'broken',
      },
      {
        what: 'startup',
        facts: facts(
          {
            container: { startupProbe: { exec: { command: ['check', 'it is'] } } },
            state: { ...running, started: false },
          },
          { events: [event('Unhealthy', 'Startup probe failed: cold')] },
        ),
        finds: ['its startup probe fails: cold', "-- check 'it is'"],
      },
      {
        what: 'too early',
        facts: facts({
          container: { readinessProbe: { httpGet: { port: 1 }, initialDelaySeconds: 60 } },
          state: running,
        }),
        finds: ['has not been answered yet'],
        state: 'waiting',
      },
      { what: 'no probe', facts: facts({ state: running }), finds: undefined },
    ],
  },
  {
    rule: readinessGate,
    cases: [
      {
        what: 'not set',
        facts: facts({
          spec: { readinessGates: [{ conditionType: 'lb' }] },
          status: { phase: 'Running', conditions: readyConditions },
        }),
        finds: ['its readiness gate lb is not set'],
      },
      {
        what: 'false, with a message',
        facts: facts({
          spec: { readinessGates: [{ conditionType: 'lb' }] },
          status: {
            phase: 'Running',
            conditions: [...readyConditions, { type: 'lb', status: 'False', message: 'draining' }],
          },
        }),
        finds: ['is False', 'has set it to False: draining'],
      },
      { what: 'none', facts: facts({ status: { phase: 'Running', conditions: readyConditions } }), finds: undefined },
    ],
  },
  {
    rule: ready,
    cases: [
      {
        what: 'Ready',
        facts: facts({
          status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: before(60) }] },
        }),
        finds: ['it is Ready, for 1 min'],
        state: 'ready',
      },
      { what: 'not Ready', facts: facts(), finds: undefined },
    ],
  },
  {
    rule: nodeAway,
    cases: [
      {
        what: 'not Ready',
        facts: facts(
          {},
          {
            nodes: [
              node('n1', {
                status: { conditions: [{ type: 'Ready', status: 'Unknown', message: 'stopped posting' }] },
              }),
            ],
          },
        ),
        finds: ['its node n1 is not Ready: stopped posting', '$ nodelet explain node n1'],
      },
      {
        what: 'a pod that is being deleted',
        facts: facts({ meta: deleted }, { nodes: [node('n1', { status: {} })] }),
        finds: ['it is being deleted, and no agent ends it: its node n1', '--grace-period=0 --force'],
      },
      { what: 'gone', facts: facts({}, { nodes: [node('n2')] }), finds: ['its node n1 does not exist'] },
      {
        what: 'never reported',
        facts: facts({}, { nodes: [node('n1', { status: {} })] }),
        finds: ['it has never reported'],
      },
      {
        what: 'an agent that reports',
        facts: facts({}, { nodes: [node('n1', { status: { conditions: [{ type: 'Ready', status: 'False' }] } })] }),
        finds: undefined,
      },
      { what: 'Ready', facts: facts(), finds: undefined },
    ],
  },
  {
    rule: nodeUnready,
    cases: [
      {
        what: 'no network',
        facts: facts(
          {},
          {
            nodes: [
              node('n1', { status: { conditions: [{ type: 'Ready', status: 'False', message: 'no network' }] } }),
            ],
          },
        ),
        finds: ['its node n1 is not Ready: no network'],
      },
      { what: 'Ready', facts: facts(), finds: undefined },
    ],
  },
  {
    rule: runtimeAway,
    cases: [
      {
        what: 'no answer',
        facts: facts({}, { runtime: runtime({ failure: 'Status: connect ENOENT' }) }),
        finds: [
          'the container runtime of its node does not answer',
          'Status → unix:///run/c.sock: Status: connect ENOENT',
        ],
      },
      {
        what: 'no answer, while the pod is being deleted',
        facts: facts(
          { meta: deleted, state: running },
          {
            runtime: runtime({ failure: 'Status: DEADLINE_EXCEEDED' }),
            open: [{ id: 1, kind: 'cri', name: 'StopContainer', start: plusMs(NOW, -9_000), attributes: {} }],
          },
        ),
        finds: [
          'it is being deleted, and the container runtime of its node does not answer',
          'the agent waits for StopContainer',
          'none yet, after 9 s',
        ],
        state: 'broken',
      },
      {
        what: 'no network',
        facts: facts(
          {},
          {
            runtime: runtime({
              conditions: [
                { type: 'NetworkReady', status: false, reason: 'NetworkPluginNotReady', message: 'no conf' },
              ],
            }),
          },
        ),
        finds: ['its network is not ready: no conf'],
      },
      { what: 'all is well', facts: facts({}, { runtime: runtime({}) }), finds: undefined },
      { what: 'elsewhere', facts: facts(), finds: undefined },
    ],
  },
];

describe.each(tables)('$rule.name', ({ rule, cases }) => {
  test.each(cases)('$what', (each) => {
    expect(mismatches(rule, each)).toEqual([]);
  });
});
