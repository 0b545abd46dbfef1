// The rules for pods that are deleted, refused by their node, or have ended. By tables.

import { describe, expect, test } from 'vitest';
import type { PodFacts, ProcessFact } from '../../../../cli/explain/facts.ts';
import type { Rule } from '../../../../cli/explain/finding.ts';
import { deadlineExceeded } from '../../../../cli/explain/rules/deadline-exceeded.ts';
import { evicted } from '../../../../cli/explain/rules/evicted.ts';
import { failed } from '../../../../cli/explain/rules/failed.ts';
import { finalizer } from '../../../../cli/explain/rules/finalizer.ts';
import { rejected } from '../../../../cli/explain/rules/rejected.ts';
import { succeeded } from '../../../../cli/explain/rules/succeeded.ts';
import { terminating } from '../../../../cli/explain/rules/terminating.ts';
import { volumeBusy } from '../../../../cli/explain/rules/volume-busy.ts';
import { plusMs } from '../../../../lib/clock.ts';
import { before, facts, mismatches, NOW, pod, type RuleCase } from './facts.ts';

const running = { state: { running: { startedAt: before(40) } }, started: true };
const deleted = { deletionTimestamp: before(-50), deletionGracePeriodSeconds: 60 };
const ended = (reason: string, message = ''): { phase: string; reason: string; message: string } => ({
  phase: 'Failed',
  reason,
  message,
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
];

describe.each(tables)('$rule.name', ({ rule, cases }) => {
  test.each(cases)('$what', (each) => {
    expect(mismatches(rule, each)).toEqual([]);
  });
});
