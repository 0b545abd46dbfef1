// The rules for containers that end and are started again. By tables.

import { describe, expect, test } from 'vitest';
import type { PodFacts } from '../../../../cli/explain/facts.ts';
import type { Rule } from '../../../../cli/explain/finding.ts';
import { crashLoop } from '../../../../cli/explain/rules/crash-loop.ts';
import { hookFailed } from '../../../../cli/explain/rules/hook-failed.ts';
import { outOfMemory } from '../../../../cli/explain/rules/out-of-memory.ts';
import { probeKills } from '../../../../cli/explain/rules/probe-kills.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { before, crashed, event, facts, mismatches, NOW, type RuleCase, waiting } from './facts.ts';

const running = { state: { running: { startedAt: before(40) } }, started: true };

const tables: readonly { readonly rule: Rule<PodFacts>; readonly cases: readonly RuleCase[] }[] = [
  {
    rule: outOfMemory,
    cases: [
      {
        what: 'the container’s limit, with the kernel’s words',
        facts: facts(
          {
            container: { resources: { limits: { memory: '16Mi' } } },
            state: crashed({ exitCode: 137, reason: 'OOMKilled' }),
          },
          {
            machine: {
              memory: { limit: 2 ** 24, peak: 2 ** 24 },
              processes: [],
              oomKills: [{ pid: 7, process: 'java', container: 'abc', residentBytes: 15 * 2 ** 20 }],
            },
          },
        ),
        finds: [
          'needs more memory than its limit of 16 MiB',
          'the most that the pod has used is 16 MiB',
          'killed process 7 (java), which had 15 MiB',
        ],
      },
      {
        what: 'without anything from the machine',
        facts: facts({ state: crashed({ exitCode: 137, reason: 'OOMKilled' }) }),
        finds: ['its memory limit is that of the pod or the node'],
      },
      {
        what: 'killed otherwise',
        facts: facts({ state: crashed({ exitCode: 137, reason: 'Error' }) }),
        finds: undefined,
      },
    ],
  },
  {
    rule: probeKills,
    cases: [
      {
        what: 'liveness',
        facts: facts(
          {
            container: { livenessProbe: { tcpSocket: { port: 80 }, periodSeconds: 5 } },
            state: crashed({ exitCode: 0 }),
          },
          {
            events: [
              event('Unhealthy', 'Liveness probe failed: connection refused'),
              event('Killing', 'Container main failed liveness probe, will be restarted', { type: 'Normal' }),
            ],
          },
        ),
        finds: ['because its liveness probe fails: connection refused', 'every 5 s', 'a TCP connection to POD:80'],
      },
      {
        what: 'a kill of long ago',
        facts: facts(
          { state: crashed({ exitCode: 1 }) },
          {
            events: [event('Killing', 'Container main failed liveness probe, will be restarted', { last: epochMs(0) })],
          },
        ),
        finds: undefined,
      },
      {
        what: 'kills whose later events were dropped',
        facts: facts(
          { state: crashed({ exitCode: 0 }, 6) },
          {
            events: [event('Killing', 'Container main failed liveness probe, will be restarted', { last: epochMs(0) })],
          },
        ),
        finds: ['because its liveness probe fails'],
      },
      { what: 'no kill', facts: facts({ state: crashed({ exitCode: 1 }) }), finds: undefined },
    ],
  },
  {
    rule: hookFailed,
    cases: [
      {
        what: 'postStart',
        facts: facts(
          {
            container: { lifecycle: { postStart: { exec: { command: ['false'] } } } },
            state: crashed({ exitCode: 137 }),
          },
          { events: [event('FailedPostStartHook', 'PostStartHook failed')] },
        ),
        finds: ['its postStart hook fails: PostStartHook failed', 'with the command false'],
      },
      {
        what: 'the container has not ended yet',
        facts: facts(
          {
            container: { lifecycle: { postStart: { exec: { command: ['false'] } } } },
            state: waiting('PostStartHookError', 'Exec lifecycle hook ([false]) failed - error: exited with 4'),
          },
          {
            events: [event('FailedPostStartHook', 'PostStartHook failed')],
            open: [{ id: 1, kind: 'cri', name: 'StopContainer', start: plusMs(NOW, -12_000), attributes: {} }],
          },
        ),
        finds: [
          'its postStart hook fails: exited with 4',
          'container main is being ended, with 30 s of grace, and is then started again after growing pauses',
          'the agent kills it because its postStart hook failed',
        ],
      },
      {
        what: 'its message, where the event is not there yet',
        facts: facts({
          container: { lifecycle: { postStart: { httpGet: { port: 80 } } } },
          state: waiting('PostStartHookError', 'HTTP 500'),
        }),
        finds: ['its postStart hook fails: HTTP 500', 'with HTTP GET POD:80/'],
      },
      { what: 'no hook', facts: facts({ state: crashed({ exitCode: 1 }) }), finds: undefined },
    ],
  },
  {
    rule: crashLoop,
    cases: [
      {
        what: 'an exit code',
        facts: facts({ state: crashed({ exitCode: 3, reason: 'Error' }) }),
        finds: [
          'container main ends again and again with exit code 3',
          'it was started again 3 times',
          'after it had run for 2 s',
        ],
      },
      {
        what: 'a signal',
        facts: facts({ state: crashed({ exitCode: 139, reason: 'Error' }) }),
        finds: ['exit code 139: SIGSEGV'],
      },
      {
        what: 'a good end',
        facts: facts({ state: crashed({ exitCode: 0 }) }),
        finds: ['restartPolicy Always starts it again'],
      },
      { what: 'it runs', facts: facts({ state: { ...running, ready: true } }), finds: undefined },
      {
        what: 'it has ended once, and is started again',
        facts: facts({ state: { state: { terminated: { exitCode: 1, finishedAt: before(1) } } } }),
        finds: ['ends again and again with exit code 1'],
      },
      ...[
        {
          what: 'an init container that runs again',
          init: {},
          finds: [
            'init container prepare ends again and again with exit code 4',
            'init container prepare runs again',
            'only when all init containers have succeeded',
          ],
        },
        { what: 'a sidecar that runs again', init: { restartPolicy: 'Always' }, finds: undefined },
      ].map(({ what, init, finds }) => ({
        what,
        facts: facts({
          spec: { initContainers: [{ name: 'prepare', image: 'busybox:stable', ...init }] },
          status: {
            initContainerStatuses: [
              {
                ...running,
                name: 'prepare',
                image: '',
                imageID: '',
                ready: false,
                restartCount: 2,
                lastState: { terminated: { exitCode: 4, finishedAt: before(50) } },
              },
            ],
          },
          state: waiting('PodInitializing'),
        }),
        finds,
      })),
      {
        what: 'a sidecar',
        facts: facts({
          spec: { initContainers: [{ name: 'side', image: 'busybox:stable', restartPolicy: 'Always' }] },
          status: {
            initContainerStatuses: [
              { name: 'side', image: '', imageID: '', ready: false, restartCount: 3, ...crashed({ exitCode: 7 }) },
            ],
          },
        }),
        finds: [/^sidecar side ends again and again with exit code 7(?![\s\S]*init containers)/],
      },
      {
        what: 'it has ended for good',
        facts: facts({ spec: { restartPolicy: 'Never' }, state: { state: { terminated: { exitCode: 1 } } } }),
        finds: undefined,
      },
    ],
  },
];

describe.each(tables)('$rule.name', ({ rule, cases }) => {
  test.each(cases)('$what', (each) => {
    expect(mismatches(rule, each)).toEqual([]);
  });
});

test('the next start is the last end and the pause', () => {
  const finding = crashLoop.find(facts({ state: crashed({ exitCode: 1 }) }));
  expect(finding?.chain[0]?.next).toBe(NOW - 10_000 + 40_000);
});
