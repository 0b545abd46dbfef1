// The rules for containers that do not start, end, or are not ready; for pods that are deleted or have ended. By tables.
// Past 500 lines by the rows of its tables.

import { describe, expect, test } from 'vitest';
import type { PodFacts, ProcessFact, RuntimeFacts } from '../../../../cli/explain/facts.ts';
import type { Rule } from '../../../../cli/explain/finding.ts';
import { containerStart } from '../../../../cli/explain/rules/container-start.ts';
import { crashLoop } from '../../../../cli/explain/rules/crash-loop.ts';
import { deadlineExceeded } from '../../../../cli/explain/rules/deadline-exceeded.ts';
import { environmentMissing } from '../../../../cli/explain/rules/environment-missing.ts';
import { evicted } from '../../../../cli/explain/rules/evicted.ts';
import { failed } from '../../../../cli/explain/rules/failed.ts';
import { finalizer } from '../../../../cli/explain/rules/finalizer.ts';
import { hookFailed } from '../../../../cli/explain/rules/hook-failed.ts';
import { nodeAway } from '../../../../cli/explain/rules/node-away.ts';
import { nodeUnready } from '../../../../cli/explain/rules/node-unready.ts';
import { outOfMemory } from '../../../../cli/explain/rules/out-of-memory.ts';
import { probeFails } from '../../../../cli/explain/rules/probe-fails.ts';
import { probeKills } from '../../../../cli/explain/rules/probe-kills.ts';
import { readinessGate } from '../../../../cli/explain/rules/readiness-gate.ts';
import { ready } from '../../../../cli/explain/rules/ready.ts';
import { rejected } from '../../../../cli/explain/rules/rejected.ts';
import { runAsNonRoot } from '../../../../cli/explain/rules/run-as-non-root.ts';
import { runtimeAway } from '../../../../cli/explain/rules/runtime-away.ts';
import { starting } from '../../../../cli/explain/rules/starting.ts';
import { succeeded } from '../../../../cli/explain/rules/succeeded.ts';
import { terminating } from '../../../../cli/explain/rules/terminating.ts';
import { volumeBusy } from '../../../../cli/explain/rules/volume-busy.ts';
import { startProblem } from '../../../../cli/explain/start-error.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import {
  before,
  crashed,
  event,
  facts,
  mismatches,
  NOW,
  node,
  pod,
  type RuleCase,
  references,
  waiting,
} from './facts.ts';

const running = { state: { running: { startedAt: before(40) } }, started: true };
const readyConditions = [
  { type: 'PodScheduled', status: 'True' },
  { type: 'ContainersReady', status: 'True' },
];
const variable = { env: [{ name: 'COLOUR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'colour' } } }] };
const noDevice =
  'Error: failed to generate container "9f" spec: failed to generate spec: lstat /dev/vdb: no such file or directory';
const deleted = { deletionTimestamp: before(-50), deletionGracePeriodSeconds: 60 };
const ended = (reason: string, message = ''): { phase: string; reason: string; message: string } => ({
  phase: 'Failed',
  reason,
  message,
});
const runtime = (change: Partial<RuntimeFacts>): RuntimeFacts => ({
  endpoint: 'unix:///run/c.sock',
  failure: undefined,
  conditions: [],
  handlers: undefined,
  sandboxes: [],
  containers: [],
  ...change,
});
const stubborn: ProcessFact = {
  pid: 42,
  container: 'main',
  command: 'sleep 1000',
  state: 'S',
  waitsIn: 'hrtimer_nanosleep',
  stack: ['hrtimer_nanosleep'],
  term: 'ignored',
};
const CACHE = '/var/lib/kubelet/pods/u1/volumes/kubernetes.io~empty-dir/cache';
const umount = (error: string): PodFacts['spans'][number] => ({
  id: 1,
  kind: 'mount',
  name: 'umount',
  start: NOW,
  durationMs: 3,
  outcome: 'error',
  error,
  attributes: { target: CACHE },
});

const tables: readonly { readonly rule: Rule<PodFacts>; readonly cases: readonly RuleCase[] }[] = [
  {
    rule: environmentMissing,
    cases: [
      {
        what: 'no ConfigMap',
        facts: facts(
          { container: variable, state: waiting('CreateContainerConfigError', 'configmap "settings" not found') },
          { references: references({ configMaps: new Map([['settings', { state: 'absent' }]]) }) },
        ),
        finds: ['variable COLOUR of container main cannot be set: ConfigMap settings does not exist'],
      },
      {
        what: 'an empty ConfigMap',
        facts: facts(
          { container: variable, state: waiting('CreateContainerConfigError', "couldn't find key") },
          { references: references({ configMaps: new Map([['settings', { state: 'found', value: { keys: [] } }]]) }) },
        ),
        finds: ['has no key colour (it is empty)'],
      },
      {
        what: 'all is there',
        facts: facts({ container: variable, state: waiting('CreateContainerConfigError') }),
        finds: undefined,
      },
    ],
  },
  {
    rule: runAsNonRoot,
    cases: [
      {
        what: 'an image of root',
        facts: facts({
          state: waiting('CreateContainerConfigError', 'container has runAsNonRoot and image will run as root'),
        }),
        finds: ['may not run as root (runAsNonRoot), and image busybox:stable would run as root'],
      },
      {
        what: 'a user by name',
        facts: facts({
          state: waiting(
            'CreateContainerConfigError',
            'container has runAsNonRoot and image has non-numeric user (app), cannot verify',
          ),
        }),
        finds: ['is the name app'],
      },
      { what: 'another error', facts: facts({ state: waiting('CreateContainerConfigError', 'x') }), finds: undefined },
    ],
  },
  {
    rule: containerStart,
    cases: [
      {
        what: 'no such command',
        facts: facts({
          container: { command: ['serve'] },
          state: crashed({
            exitCode: 128,
            reason: 'StartError',
            message: 'exec: "serve": executable file not found in $PATH: unknown',
          }),
        }),
        finds: [
          'its command serve is not in the image',
          'StartContainer → the container runtime with command ["serve"]',
        ],
      },
      {
        what: 'a profile',
        facts: facts({
          state: waiting('CreateContainerError', 'cannot load seccomp profile "/x/none.json": no such file'),
        }),
        finds: ['seccomp profile /x/none.json cannot be loaded', 'CreateContainer → '],
      },
      { what: 'a crash', facts: facts({ state: crashed({ exitCode: 1, reason: 'Error' }) }), finds: undefined },
      {
        what: 'one that ended, and whose next instance cannot be made',
        facts: facts({ state: crashed({ exitCode: 137, reason: 'Error' }) }, { events: [event('Failed', noDevice)] }),
        finds: [
          'cannot be created: device /dev/vdb is not there',
          'the reason is CrashLoopBackOff',
          'CreateContainer → ',
        ],
      },
      {
        what: 'one that ended again after its last instance could not be made once',
        facts: facts(
          { state: crashed({ exitCode: 137, reason: 'Error' }) },
          { events: [event('Failed', noDevice, { last: plusMs(NOW, -20_000) })] },
        ),
        finds: undefined,
      },
      {
        what: 'one whose image cannot be pulled again',
        facts: facts(
          { state: crashed({ exitCode: 137, reason: 'Error' }) },
          { events: [event('Failed', 'Error: ErrImagePull')] },
        ),
        finds: undefined,
      },
      {
        what: 'deleted',
        facts: facts({ meta: deleted, state: waiting('CreateContainerError', 'x') }),
        finds: undefined,
      },
    ],
  },
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
    rule: finalizer,
    cases: [
      {
        what: 'only the finalizer keeps it',
        facts: facts({ meta: { ...deleted, finalizers: ['example.com/backup'] }, status: { phase: 'Succeeded' } }),
        finds: ['finalizer example.com/backup keeps it', 'example.com has to take out its own'],
      },
      {
        what: 'containers run',
        facts: facts({ meta: { ...deleted, finalizers: ['a/b'] }, state: running }),
        finds: undefined,
      },
      { what: 'not deleted', facts: facts({ meta: { finalizers: ['a/b'] } }), finds: undefined },
    ],
  },
  {
    rule: volumeBusy,
    cases: [
      {
        what: 'a process works in it',
        facts: facts(
          { meta: deleted },
          {
            spans: [umount('umount: target is busy.')],
            machine: {
              memory: undefined,
              oomKills: [],
              processes: [],
              mounts: [{ path: CACHE, users: [{ pid: 77, command: 'tail -f x', uses: 'its working directory' }] }],
            },
          },
        ),
        finds: [
          'volume cache cannot be unmounted: process 77 (tail -f x) uses it',
          'umount → the kernel',
          'target is busy',
          'process 77 (tail -f x) uses its working directory',
          '$ kill 77',
        ],
        state: 'broken',
      },
      {
        what: 'the driver refuses',
        facts: facts(
          { meta: deleted },
          { spans: [{ ...umount('device is in use'), kind: 'csi', name: 'NodeUnpublishVolume' }] },
        ),
        finds: ['cannot be unmounted: device is in use', 'NodeUnpublishVolume → the CSI driver'],
        state: 'broken',
      },
      {
        what: 'it was unmounted at the second try',
        facts: facts(
          { meta: deleted },
          { spans: [umount('umount: target is busy.'), { ...umount(''), outcome: 'ok' }] },
        ),
        finds: undefined,
      },
      { what: 'containers run', facts: facts({ meta: deleted, state: running }), finds: undefined },
      { what: 'not deleted', facts: facts({}), finds: undefined },
    ],
  },
  {
    rule: terminating,
    cases: [
      {
        what: 'a process that ignores SIGTERM',
        facts: facts(
          { meta: deleted, state: running },
          { machine: { memory: undefined, oomKills: [], processes: [stubborn] } },
        ),
        finds: [
          'process 42 ignores SIGTERM (it is killed in 50 s)',
          'is sleeping in hrtimer_nanosleep and ignores SIGTERM',
          '$ cat /proc/42/status',
        ],
        state: 'waiting',
      },
      {
        what: 'a preStop hook',
        facts: facts({
          meta: deleted,
          state: running,
          container: { lifecycle: { preStop: { exec: { command: ['drain'] } } } },
        }),
        finds: ['the preStop hook of container main has not ended', 'with the command drain'],
      },
      {
        what: 'the grace period is over',
        facts: facts({ meta: { ...deleted, deletionTimestamp: before(9) }, state: running }),
        finds: ['(the grace period is over)', 'SIGKILL is due'],
        state: 'broken',
      },
      {
        what: 'a runtime that has not answered StopContainer',
        facts: facts(
          { meta: { ...deleted, deletionTimestamp: before(9) }, state: running },
          {
            open: [{ id: 1, kind: 'cri', name: 'StopContainer', start: plusMs(NOW, -30_000), attributes: {} }],
          },
        ),
        finds: ['StopContainer → the container runtime with timeout 60 s: none yet, after 30 s'],
      },
      {
        what: 'preempted by the scheduler',
        facts: facts({
          meta: deleted,
          state: running,
          status: {
            conditions: [
              {
                type: 'DisruptionTarget',
                status: 'True',
                reason: 'PreemptionByScheduler',
                message: 'default-scheduler: preempting to accommodate a higher priority pod',
              },
            ],
          },
        }),
        finds: ['the scheduler needs its room for a pod of higher priority (preempted): default-scheduler: preempting'],
      },
      { what: 'all has ended', facts: facts({ meta: deleted }), finds: ['the node cleans up'], state: 'waiting' },
      { what: 'not deleted', facts: facts({ state: running }), finds: undefined },
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
  {
    rule: rejected,
    cases: [
      {
        what: 'OutOfmemory, with the figures',
        facts: facts({
          status: ended(
            'OutOfmemory',
            "Node didn't have enough resource: memory, requested: 2147483648, used: 1048576, capacity: 1073741824",
          ),
        }),
        finds: [
          'it has too little memory left',
          'requested 2 GiB; of the node’s 1 GiB, 1 MiB were in use, 1023 MiB free',
        ],
        state: 'ended',
      },
      {
        what: 'NodeAffinity',
        facts: facts({ spec: { nodeSelector: { disk: 'ssd' } }, status: ended('NodeAffinity') }),
        finds: ['the node lacks disk=ssd (it has no such label)'],
      },
      {
        what: 'NodeAffinity by expressions',
        facts: facts({
          spec: {
            affinity: {
              nodeAffinity: {
                requiredDuringSchedulingIgnoredDuringExecution: {
                  nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a', 'b'] }] }],
                },
              },
            },
          },
          status: ended('NodeAffinity'),
        }),
        finds: ['node affinity demands zone In (a, b); the node has no label zone'],
      },
      {
        what: 'preempted for a critical pod',
        facts: facts(
          {
            spec: { priority: 0 },
            container: { resources: { requests: { cpu: '500m' } } },
            status: ended('Preempting', 'Preempted in order to admit critical pod'),
          },
          {
            placed: [
              pod({
                meta: { name: 'critical' },
                spec: { priority: 2_000_000_000 },
                container: { resources: { requests: { cpu: '1', memory: '1Mi' } } },
              }),
            ],
          },
        ),
        finds: [
          'node n1 preempted it: a critical pod needed the room',
          'priority 0; it requested 500m cpu',
          'pod demo/critical is there with priority 2000000000; it requests 1 cpu and 1 MiB',
        ],
        state: 'ended',
      },
      { what: 'another failure', facts: facts({ status: ended('Evicted') }), finds: undefined },
    ],
  },
  {
    rule: evicted,
    cases: [
      {
        what: 'pressure',
        facts: facts({
          status: ended('Evicted', 'The node was low on resource: memory. Container main was using 1Gi'),
        }),
        finds: ['the node ran low on memory'],
      },
      {
        what: 'a volume’s limit',
        facts: facts({ status: ended('Evicted', 'Usage of EmptyDir volume "data" exceeds the limit "1Mi". ') }),
        finds: ['emptyDir volume data grew beyond its sizeLimit of 1Mi'],
      },
      {
        what: 'the containers’ limit',
        facts: facts({
          status: ended('Evicted', 'Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. '),
        }),
        finds: ['more local storage than its limit'],
      },
      { what: 'another failure', facts: facts({ status: ended('NodeAffinity') }), finds: undefined },
    ],
  },
  {
    rule: deadlineExceeded,
    cases: [
      {
        what: 'too long',
        facts: facts({
          spec: { activeDeadlineSeconds: 30 },
          status: { ...ended('DeadlineExceeded'), startTime: before(60) },
        }),
        finds: ['it was ended after 30 s', '30 s after it was made'],
      },
      { what: 'another failure', facts: facts({ status: ended('Evicted') }), finds: undefined },
    ],
  },
  {
    rule: failed,
    cases: [
      {
        what: 'a container’s exit',
        facts: facts({
          spec: { restartPolicy: 'Never' },
          status: { phase: 'Failed' },
          state: { state: { terminated: { exitCode: 5, reason: 'Error', finishedAt: before(3) } } },
        }),
        finds: ['container main failed with exit code 5, and restartPolicy Never'],
      },
      {
        what: 'a reason that is not known',
        facts: facts({ status: ended('Odd', 'why') }),
        finds: ['the reason is Odd', 'why'],
      },
      { what: 'a pod that runs', facts: facts({ state: running }), finds: undefined },
    ],
  },
  {
    rule: succeeded,
    cases: [
      {
        what: 'all is done',
        facts: facts({ status: { phase: 'Succeeded' } }),
        finds: ['it has finished'],
        state: 'ended',
      },
      { what: 'it runs', facts: facts({ state: running }), finds: undefined },
    ],
  },
  {
    rule: starting,
    cases: [
      {
        what: 'an image is pulled',
        facts: facts(
          { state: waiting('ContainerCreating') },
          { events: [event('Pulling', 'Pulling image "a:1"', { type: 'Normal' })] },
        ),
        finds: ['image a:1 is being pulled'],
        state: 'waiting',
      },
      { what: 'all run', facts: facts({ state: running }), finds: undefined },
      { what: 'something has failed', facts: facts({ state: waiting('RegistryUnavailable') }), finds: undefined },
      ...[
        {
          what: 'an init container runs',
          init: {},
          started: true,
          finds: 'init container prepare runs; the others wait for it to succeed',
        },
        {
          what: 'a sidecar has not started',
          init: { restartPolicy: 'Always' },
          started: false,
          finds: 'the others wait for it to have started',
        },
        {
          what: 'a sidecar has started',
          init: { restartPolicy: 'Always' },
          started: true,
          finds: 'its containers are created and started',
        },
      ].map(({ what, init, started, finds }) => ({
        what,
        facts: facts({
          spec: { initContainers: [{ name: 'prepare', image: 'busybox:stable', ...init }] },
          status: {
            initContainerStatuses: [
              { ...running, name: 'prepare', image: '', imageID: '', ready: false, restartCount: 0, started },
            ],
          },
          state: waiting('PodInitializing'),
        }),
        finds: [finds],
        state: 'waiting' as const,
      })),
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

test.each([
  [/not in the image/, 'exec: "serve": executable file not found in $PATH: unknown'],
  [/not in the image/, 'exec: "/bin/serve": stat /bin/serve: no such file or directory: unknown'],
  [/cannot be executed/, 'exec: "/etc/passwd": permission denied: unknown'],
  [/another processor/, 'exec: "/app": exec format error'],
  [/working directory \/work/, 'chdir to cwd ("/work") set in config.json failed: no such file or directory'],
  [
    /working directory \/etc\/passwd cannot be made \(not a directory\)/,
    'container init: mkdir /etc/passwd: not a directory: unknown',
  ],
  [/user is not in the image/, 'open /run/tmpmounts/containerd-mount13/etc/passwd: no such file or directory'],
  [/read-only/, 'error mounting "/x" to rootfs: mkdir /y: read-only file system'],
  [/over a file/, 'not a directory: Are you trying to mount a directory onto a file'],
  [/AppArmor/, 'apparmor profile not found'],
  [/shared mount/, 'path "/x" is mounted on "/" but it is not a shared mount'],
  [/limits cannot be set, or are too low/, 'container init was OOM-killed (memory limit too low?)'],
  [/user is not in the image/, 'unable to find user app: no matching entries in passwd file'],
  [
    /device \/dev\/vdb is not there/,
    'failed to generate container "9f" spec: lstat /dev/vdb: no such file or directory',
  ],
  [/cannot start: boom/, 'OCI runtime create failed: runc create failed: boom: unknown'],
])('a start that fails: %s', (expected, message) => {
  expect(startProblem(message).verdict).toMatch(expected);
});
