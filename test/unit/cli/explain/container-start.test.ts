// The rules for containers that do not start. By tables.

import { describe, expect, test } from 'vitest';
import type { PodFacts } from '../../../../cli/explain/facts.ts';
import type { Rule } from '../../../../cli/explain/finding.ts';
import { containerStart } from '../../../../cli/explain/rules/container-start.ts';
import { environmentMissing } from '../../../../cli/explain/rules/environment-missing.ts';
import { runAsNonRoot } from '../../../../cli/explain/rules/run-as-non-root.ts';
import { starting } from '../../../../cli/explain/rules/starting.ts';
import { startProblem } from '../../../../cli/explain/start-error.ts';
import { plusMs } from '../../../../lib/clock.ts';
import { before, crashed, event, facts, mismatches, NOW, type RuleCase, references, waiting } from './facts.ts';

const running = { state: { running: { startedAt: before(40) } }, started: true };
const variable = { env: [{ name: 'COLOUR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'colour' } } }] };
const noDevice =
  'Error: failed to generate container "9f" spec: failed to generate spec: lstat /dev/vdb: no such file or directory';
const deleted = { deletionTimestamp: before(-50), deletionGracePeriodSeconds: 60 };

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
];

describe.each(tables)('$rule.name', ({ rule, cases }) => {
  test.each(cases)('$what', (each) => {
    expect(mismatches(rule, each)).toEqual([]);
  });
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
