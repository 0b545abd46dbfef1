// The rules for pods whose volumes, sandbox or images cannot be had, by tables.

import { describe, expect, test } from 'vitest';
import type { PodFacts } from '../../../../cli/explain/facts.ts';
import type { Rule } from '../../../../cli/explain/finding.ts';
import { pullError } from '../../../../cli/explain/pull-error.ts';
import { csiDriverMissing } from '../../../../cli/explain/rules/csi-driver-missing.ts';
import { imageName, whatIsWrong } from '../../../../cli/explain/rules/image-name.ts';
import { imageNever } from '../../../../cli/explain/rules/image-never.ts';
import { imagePull } from '../../../../cli/explain/rules/image-pull.ts';
import { runtimeClass } from '../../../../cli/explain/rules/runtime-class.ts';
import { sandboxFailed, sandboxReason } from '../../../../cli/explain/rules/sandbox-failed.ts';
import { volumeFailed } from '../../../../cli/explain/rules/volume-failed.ts';
import { volumeObjectMissing } from '../../../../cli/explain/rules/volume-object-missing.ts';
import { epochMs } from '../../../../lib/clock.ts';
import type { Span } from '../../../../lib/trace.ts';
import { claim, event, facts, mismatches, NOW, type RuleCase, references, waiting } from './facts.ts';

const mounts = { volumeMounts: [{ name: 'data', mountPath: '/data' }] };
const config = { volumes: [{ name: 'data', configMap: { name: 'setings', items: [{ key: 'a', path: 'a' }] } }] };
const secret = { volumes: [{ name: 'data', secret: { secretName: 'keys' } }] };
const csi = { volumes: [{ name: 'data', csi: { driver: 'd.example.com' } }] };
const absent = { state: 'absent' } as const;
const account = (location: string, user: string) =>
  ({ state: 'found', value: { keys: ['.dockerconfigjson'], accounts: [{ location, user }] } }) as const;
const keyed = (...keys: string[]) => ({ state: 'found', value: { keys } }) as const;

function span(kind: Span['kind'], name: string, change: Partial<Span> = {}): Span {
  const start = epochMs(NOW - 4_000);
  return {
    id: 1,
    kind,
    name,
    start,
    durationMs: 1_000,
    outcome: 'error',
    error: 'it broke',
    attributes: {},
    ...change,
  };
}

const mount = span('volume', 'MountVolume.SetUp', { attributes: { volume: 'data' } });
const runningState = { state: { running: { startedAt: '2026-01-02T11:59:00Z' } } };

const tables: readonly { readonly rule: Rule<PodFacts>; readonly cases: readonly RuleCase[] }[] = [
  {
    rule: volumeObjectMissing,
    cases: [
      {
        what: 'no ConfigMap, but one of nearly that name',
        facts: facts(
          { spec: config, container: mounts },
          {
            references: references({
              configMaps: new Map([['setings', absent]]),
              configMapNames: ['settings', 'other'],
            }),
            events: [
              event('FailedMount', 'MountVolume.SetUp failed for volume "data" : configmap "setings" not found'),
            ],
          },
        ),
        finds: [
          'volume data cannot be mounted: ConfigMap setings does not exist (there is one called settings)',
          'GET configmaps/setings → the API server with namespace demo: configmaps "setings" not found',
        ],
        state: 'broken',
      },
      {
        what: 'no key',
        facts: facts(
          { spec: config, container: mounts },
          { references: references({ configMaps: new Map([['setings', keyed('b', 'c')]]) }) },
        ),
        finds: ['ConfigMap setings has no key a (it has b and c)'],
      },
      {
        what: 'no Secret',
        facts: facts(
          { spec: secret, container: mounts },
          { references: references({ secrets: new Map([['keys', absent]]) }) },
        ),
        finds: ['Secret keys does not exist', 'GET secrets/keys'],
      },
      {
        what: 'a Secret that may be absent',
        facts: facts(
          { spec: { volumes: [{ name: 'data', secret: { secretName: 'keys', optional: true } }] }, container: mounts },
          { references: references({ secrets: new Map([['keys', absent]]) }) },
        ),
        finds: undefined,
      },
      {
        what: 'a volume that no container mounts',
        facts: facts({ spec: secret }, { references: references({ secrets: new Map([['keys', absent]]) }) }),
        finds: undefined,
      },
      {
        what: 'an object that could not be read',
        facts: facts(
          { spec: secret, container: mounts },
          { references: references({ secrets: new Map([['keys', { state: 'unknown', why: 'forbidden' }]]) }) },
        ),
        finds: undefined,
      },
      {
        what: 'a pod that runs already',
        facts: facts(
          { spec: secret, container: mounts, state: runningState },
          { references: references({ secrets: new Map([['keys', absent]]) }) },
        ),
        finds: undefined,
      },
    ],
  },
  {
    rule: csiDriverMissing,
    cases: [
      {
        what: 'a driver that is not registered',
        facts: facts(
          { spec: csi, container: mounts },
          {
            references: references({ drivers: ['other'] }),
            events: [event('FailedMount', 'MountVolume.SetUp failed for volume "data" : not found in the list')],
          },
        ),
        finds: [
          'needs CSI driver d.example.com, which is not registered on node n1 (other is)',
          'not found in the list',
        ],
      },
      {
        what: 'no failure yet',
        facts: facts({ spec: csi }, { references: references({ drivers: [] }) }),
        finds: undefined,
      },
      {
        what: 'registered',
        facts: facts(
          { spec: csi },
          { references: references({ drivers: ['d.example.com'] }), events: [event('FailedMount', 'x')] },
        ),
        finds: undefined,
      },
      {
        what: 'the driver of a claim’s volume',
        facts: facts(
          { spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] } },
          {
            references: references({
              drivers: [],
              claims: new Map([
                [
                  'data',
                  {
                    state: 'found',
                    value: claim({
                      volume: {
                        metadata: { name: 'v', uid: 'v', resourceVersion: '1' },
                        spec: { csi: { driver: 'd.example.com', volumeHandle: 'h' } },
                      },
                    }),
                  },
                ],
              ]),
            }),
            events: [event('FailedMount', 'x')],
          },
        ),
        finds: ['needs CSI driver d.example.com', '(none is)'],
      },
    ],
  },
  {
    rule: volumeFailed,
    cases: [
      {
        what: 'staging, in the driver’s words',
        facts: facts(
          {},
          {
            events: [
              event('FailedMount', 'MountVolume.MountDevice failed for volume "pv" : rpc error: the pool is gone'),
            ],
            spans: [span('csi', 'NodeStageVolume', { error: 'the pool is gone' })],
          },
        ),
        finds: [
          'volume pv cannot be mounted: rpc error: the pool is gone',
          'staging it on the node fails',
          'NodeStageVolume → the CSI driver: the pool is gone',
        ],
      },
      {
        what: 'a timeout that names no volume',
        facts: facts({}, { events: [event('FailedMount', 'Unable to attach or mount')] }),
        finds: undefined,
      },
    ],
  },
  {
    rule: runtimeClass,
    cases: [
      {
        what: 'no such class',
        facts: facts({ spec: { runtimeClassName: 'kata' } }, { references: references({ runtimeClass: absent }) }),
        finds: ['it names RuntimeClass kata, which does not exist'],
      },
      {
        what: 'no such handler',
        facts: facts(
          { spec: { runtimeClassName: 'kata' } },
          {
            references: references({ runtimeClass: { state: 'found', value: { handler: 'kata-qemu' } } }),
            events: [
              event('FailedCreatePodSandBox', 'Failed to create pod sandbox: no runtime for "kata-qemu" is configured'),
            ],
          },
        ),
        finds: [
          'RuntimeClass kata names handler kata-qemu',
          'RunPodSandbox → the container runtime with runtime_handler kata-qemu',
        ],
      },
      { what: 'no class', facts: facts(), finds: undefined },
    ],
  },
  {
    rule: sandboxFailed,
    cases: [
      {
        what: 'a plugin that is not there, with the plugin’s own call',
        facts: facts(
          {},
          {
            events: [
              event(
                'FailedCreatePodSandBox',
                'Failed to create pod sandbox: plugin type="x" failed (add): failed to find plugin "x" in path [/opt/cni/bin]',
              ),
            ],
            spans: [span('cni', 'ADD x', { error: 'failed to find plugin "x"' })],
          },
        ),
        finds: ['CNI plugin x, whose program is not there', 'ADD x → the CNI plugin: failed to find plugin "x"'],
      },
      {
        what: 'the network of the node is not ready',
        facts: facts(
          {},
          { events: [event('NetworkNotReady', 'network is not ready: container runtime network not ready')] },
        ),
        finds: ['the network of its node is not ready'],
      },
      { what: 'no failure', facts: facts(), finds: undefined },
    ],
  },
  {
    rule: imageName,
    cases: [
      {
        what: 'capitals',
        facts: facts({ container: { image: 'Nginx' }, state: waiting('InvalidImageName', 'bad') }),
        finds: ['no valid image name: "Nginx" – repository names are in lower case'],
      },
      { what: 'another reason', facts: facts({ state: waiting('ErrImagePull') }), finds: undefined },
    ],
  },
  {
    rule: imageNever,
    cases: [
      {
        what: 'not on the node',
        facts: facts({ state: waiting('ErrImageNeverPull') }),
        finds: [
          'is not on node n1, and imagePullPolicy Never',
          'ImageStatus → the container runtime with busybox:stable',
        ],
      },
      { what: 'another reason', facts: facts({ state: waiting('ErrImagePull') }), finds: undefined },
    ],
  },
  {
    rule: imagePull,
    cases: [
      {
        what: 'refused, without credentials',
        facts: facts({
          container: { image: 'r.example.com/a:1' },
          state: waiting('ImagePullBackOff', 'failed to authorize: 401 Unauthorized'),
        }),
        finds: [
          'registry r.example.com refused it',
          'the pod has no imagePullSecrets',
          '$ kubectl -n demo create secret docker-registry',
        ],
      },
      {
        what: 'refused, with a Secret that is not there',
        facts: facts(
          { spec: { imagePullSecrets: [{ name: 'pull' }] }, state: waiting('ErrImagePull', '403 Forbidden') },
          { references: references({ secrets: new Map([['pull', absent]]) }) },
        ),
        finds: ['Secret pull of its imagePullSecrets does not exist'],
      },
      {
        what: 'refused, with a Secret',
        facts: facts(
          { spec: { imagePullSecrets: [{ name: 'pull' }] }, state: waiting('ErrImagePull', '403 Forbidden') },
          { references: references({ secrets: new Map([['pull', keyed('.dockerconfigjson')]]) }) },
        ),
        finds: ['Secret pull has no credentials for registries'],
      },
      {
        what: 'refused, with the credentials of a user',
        facts: facts(
          {
            container: { image: 'r.example.com/a:1' },
            spec: { imagePullSecrets: [{ name: 'pull' }, { name: 'other' }] },
            state: waiting('ErrImagePull', '401 Unauthorized'),
          },
          {
            references: references({
              secrets: new Map([
                ['pull', account('r.example.com', 'me')],
                ['other', account('*.example.org', 'you')],
              ]),
            }),
          },
        ),
        finds: [
          'the credentials of Secret pull were used: user me for r.example.com',
          'Secret other has credentials for *.example.org, and none for this registry',
        ],
      },
      {
        what: 'refused, with a Secret that is no JSON',
        facts: facts(
          { spec: { imagePullSecrets: [{ name: 'pull' }] }, state: waiting('ErrImagePull', '401 Unauthorized') },
          {
            references: references({
              secrets: new Map([['pull', { state: 'found', value: { keys: [], problem: 'it is not JSON' } }]]),
            }),
          },
        ),
        finds: ['Secret pull cannot be used: it is not JSON'],
      },
      {
        what: 'too many pulls',
        facts: facts({
          container: { image: 'r.example.com/a:1' },
          state: waiting('ErrImagePull', 'unexpected status code [manifests 1]: 429 Too Many Requests'),
        }),
        finds: ['refuses more pulls for now: its rate limit is used up', '$ curl -sI https://r.example.com/v2/'],
      },
      {
        what: 'another processor',
        facts: facts({
          container: { image: 'r.example.com/a:1' },
          state: waiting('ErrImagePull', 'no match for platform in manifest: not found'),
        }),
        finds: ['not for this node’s processor and system', '$ uname -sm'],
      },
      { what: 'another reason', facts: facts({ state: waiting('CrashLoopBackOff') }), finds: undefined },
    ],
  },
];

describe.each(tables)('$rule.name', ({ rule, cases }) => {
  test.each(cases)('$what', (each) => {
    expect(mismatches(rule, each)).toEqual([]);
  });
});

test('when a mount is tried again follows from the trace, or from the event', () => {
  const broken = { spec: secret, container: mounts };
  const change = { references: references({ secrets: new Map([['keys', absent]]) }) };
  const next = (more: Partial<PodFacts>) =>
    volumeObjectMissing.find(facts(broken, { ...change, ...more }))?.chain[1]?.next;
  // Two failures, the last of which ended 3 s ago: a second later.
  expect(next({ spans: [mount, mount] })).toBe(NOW - 3_000 + 1_000);
  // A success between them: one failure.
  expect(next({ spans: [mount, { ...mount, outcome: 'ok' }, mount] })).toBe(NOW - 3_000 + 500);
  expect(next({ events: [event('FailedMount', 'failed for volume "data" : x')] })).toBe(NOW - 5_000 + 2_000);
  expect(next({})).toBeUndefined();
});

test.each([
  ['Nginx', /lower case/],
  ['REGISTRY.example.com/nginx:1', /a character/],
  ['nginx latest', /space/],
  ['https://example.com/nginx', /scheme/],
  ['nginx:', /empty/],
  ['nginx:a b', /space/],
  ['nginx:ü', /no tag/],
])('%s: %s', (image, expected) => {
  expect(whatIsWrong(image)).toMatch(expected);
});

const HEAD = 'failed to pull and unpack image "r.example.com/a:1": failed to resolve reference "r.example.com/a:1": ';
const request = `${HEAD}failed to do request: Head "https://r.example.com/v2/a/manifests/1": `;

test.each([
  ['dns', `${request}dial tcp: lookup r.example.com on 10.0.0.53:53: no such host`],
  ['dns', `${request}dial tcp: lookup r.example.com on 10.0.0.53:53: read udp: i/o timeout`],
  ['tcp', `${request}dial tcp 192.0.2.1:443: connect: connection refused`],
  ['tcp', `${request}dial tcp 192.0.2.1:443: connect: no route to host`],
  ['timeout', `${request}dial tcp 192.0.2.1:443: i/o timeout`],
  ['tls', `${request}tls: failed to verify certificate: x509: certificate signed by unknown authority`],
  ['tls', `${request}http: server gave HTTP response to HTTPS client`],
  ['unauthorized', `${HEAD}failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized`],
  ['unauthorized', `${HEAD}pull access denied, repository does not exist or may require authorization`],
  ['not-found', `${HEAD}r.example.com/a:1: not found`],
  ['not-found', 'failed to resolve reference "127.0.0.1:34035/a:1": 127.0.0.1:34035/a:1: not found'],
  ['rate', `${HEAD}unexpected status code https://r.example.com/v2/a/manifests/1: 429 Too Many Requests`],
  ['http', `${HEAD}unexpected status code [manifests 1]: 500 Internal Server Error`],
  ['platform', `${HEAD}no match for platform in manifest: not found`],
  ['disk', 'failed to extract layer: write /var/lib/x: no space left on device'],
  ['other', 'something else'],
])('a failed pull is %s: %s', (step, message) => {
  const error = pullError(message, 'r.example.com/a:1');
  expect(error.step).toBe(step);
  if (step === 'tcp') expect(error.fine).toEqual(['the name r.example.com was found']);
});

test('a mirror that failed is named, and where the error names none, nothing is claimed of the registry', () => {
  const at = 'http://127.0.0.1:5000/v2/limited/a/manifests/1?ns=docker.io';
  const limited = pullError(
    `failed to copy: httpReadSeeker: failed open: unexpected status code ${at}: 429 Too Many`,
    'limited/a:1',
  );
  expect(limited).toMatchObject({ step: 'rate', host: '127.0.0.1:5000', origin: 'http://127.0.0.1:5000' });
  expect(limited.verdict).toMatch(/^registry 127\.0\.0\.1:5000 refuses more pulls/);
  const missing = pullError(
    'failed to resolve reference "docker.io/library/a:1": docker.io/library/a:1: not found',
    'a:1',
  );
  expect(missing).toMatchObject({ step: 'not-found', host: undefined });
  expect(missing.fine).toEqual(['a registry or a mirror of it answered']);
});

test.each([
  [
    /no free address/,
    'plugin type="bridge" failed (add): failed to allocate for range 0: no IP addresses available in range set',
  ],
  [/whose program is not there/, 'failed to find plugin "x" in path [/opt/cni/bin]'],
  [/no network configuration/, 'cni plugin not initialized'],
  [/network cannot be set up/, 'failed to setup network for sandbox "1": plugin type="bridge" failed (add): boom'],
  [/pause container/, 'failed to get sandbox image "pause:3.9": failed to pull image'],
  [/too little memory for the sandbox itself/, 'container init was OOM-killed (memory limit too low?): unknown'],
  [
    /too little memory for the sandbox itself/,
    'unable to apply cgroup configuration: mkdir /sys/fs/cgroup/memory/kubepods/podx/y: cannot allocate memory',
  ],
  [/cgroup/, 'failed to create cgroup /kubepods: no space left'],
  [/its sandbox cannot be made/, 'boom'],
])('a sandbox that failed: %s', (expected, message) => {
  expect(sandboxReason(message).verdict).toMatch(expected);
});
