// The rules for what is under way and has not failed: pulls with figures, volumes that are attached, formatted or walked through;
// and for pods that the API server has forgotten. By tables.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { absent } from '../../../../cli/explain/collect/absent.ts';
import { containerdRoot, downloadsBelow } from '../../../../cli/explain/collect/downloads.ts';
import { secretFact } from '../../../../cli/explain/collect/references.ts';
import type { Download, GonePodFacts, PodFacts, RuntimeFacts } from '../../../../cli/explain/facts.ts';
import type { Rule } from '../../../../cli/explain/finding.ts';
import { findingsOf } from '../../../../cli/explain/findings.ts';
import { GONE_POD_RULES } from '../../../../cli/explain/rules/gone-pod-rules.ts';
import { starting } from '../../../../cli/explain/rules/starting.ts';
import { volumeAttach } from '../../../../cli/explain/rules/volume-attach.ts';
import { formatFailure, volumeFailed } from '../../../../cli/explain/rules/volume-failed.ts';
import { volumeUnderWay } from '../../../../cli/explain/rules/volume-under-way.ts';
import type { Secret } from '../../../../client/types.ts';
import { plusMs } from '../../../../lib/clock.ts';
import type { OpenCall } from '../../../../lib/trace.ts';
import { before, claim, event, facts, mismatches, NOW, type RuleCase, references, textOf, waiting } from './facts.ts';

const ago = (seconds: number) => plusMs(NOW, -seconds * 1000);

function open(kind: OpenCall['kind'], name: string, seconds: number, change: Partial<OpenCall> = {}): OpenCall {
  return { id: 1, kind, name, start: ago(seconds), attributes: {}, ...change };
}

const creating = { state: waiting('ContainerCreating') };
const download = (change: Partial<Download> = {}): Download => ({
  part: 'layer-sha256:abc',
  bytes: 4 * 1024 * 1024,
  total: 16 * 1024 * 1024,
  since: ago(8),
  updated: ago(1),
  ...change,
});

const volume = {
  metadata: { name: 'pv', uid: 'v', resourceVersion: '1' },
  spec: { csi: { driver: 'd.example.com', volumeHandle: 'h' } },
};
type Attachment = PodFacts['references']['attachments'][number];
const attachment = (status: NonNullable<Attachment['status']>, meta = {}): Attachment => ({
  metadata: { name: 'csi-1', uid: 'a', resourceVersion: '1', creationTimestamp: before(30), ...meta },
  spec: { attacher: 'd.example.com', nodeName: 'n1', source: { persistentVolumeName: 'pv' } },
  status,
});
const bound = (change: Partial<PodFacts['references']>): Partial<PodFacts> => ({
  references: references({
    claims: new Map([['data', { state: 'found', value: claim({ volume }, {}, 'Bound') }]]),
    attachDrivers: ['d.example.com'],
    ...change,
  }),
});

const mountCall = open('volume', 'MountVolume.SetUp', 20, { id: 7, attributes: { volume: 'data' } });
const stageCall = open('volume', 'MountVolume.StageAndPublish', 19, {
  id: 8,
  parent: 7,
  attributes: { driver: 'd.example.com' },
});

const tables: readonly { readonly rule: Rule<PodFacts>; readonly cases: readonly RuleCase[] }[] = [
  {
    rule: starting,
    cases: [
      {
        what: 'a pull with figures',
        facts: facts(creating, {
          open: [open('cri', 'PullImage', 9, { attributes: { image: 'app:1' } })],
          downloads: [download(), download({ part: 'config-sha256:def', bytes: 1024, total: 1024, since: ago(1) })],
        }),
        finds: [
          'image app:1 is being pulled: 4 MiB of 16 MiB in 8 s, 512 KiB a second',
          'PullImage → the container runtime with app:1: none yet; it has 4 MiB of 16 MiB',
          'layer-sha256:abc: 4 MiB of 16 MiB',
        ],
        state: 'waiting',
      },
      {
        what: 'a pull that has stalled, and what an earlier one has left',
        facts: facts(creating, {
          open: [open('cri', 'PullImage', 60, { attributes: { image: 'app:1' } })],
          downloads: [download({ part: 'old', updated: ago(3600) }), download({ since: ago(32), updated: ago(30) })],
        }),
        finds: ['4 MiB of 16 MiB in 32 s, 128 KiB a second; nothing has come for 30 s'],
      },
      {
        what: 'a size that the registry does not tell',
        facts: facts(creating, {
          open: [open('cri', 'PullImage', 9, { attributes: { image: 'app:1' } })],
          downloads: [download({ total: undefined })],
        }),
        finds: ['is being pulled: 4 MiB in 8 s, 512 KiB a second'],
      },
      {
        what: 'a kubelet, which has no trace',
        facts: facts(creating, { events: [event('Pulling', 'Pulling image "app:2"', { type: 'Normal' })] }),
        finds: [/image app:2 is being pulled$/m],
      },
    ],
  },
  {
    rule: volumeAttach,
    cases: [
      {
        what: 'the driver refuses',
        facts: facts(
          creating,
          bound({
            attachments: [
              attachment({ attached: false, attachError: { message: 'the rack is full', time: before(4) } }),
            ],
          }),
        ),
        finds: [
          'volume pv of claim data is not attached to node n1: attacher d.example.com: the rack is full',
          'ControllerPublishVolume → CSI driver d.example.com with volume pv, node n1: the rack is full',
          '$ kubectl describe volumeattachment csi-1',
        ],
        state: 'broken',
      },
      {
        what: 'no answer yet',
        facts: facts(creating, bound({ attachments: [attachment({ attached: false })] })),
        finds: ['attacher d.example.com has not answered, after 30 s'],
        state: 'waiting',
      },
      {
        what: 'of another pod, and on its way out',
        facts: facts(
          creating,
          bound({ attachments: [attachment({ attached: false }, { deletionTimestamp: before(2) })] }),
        ),
        finds: ['it is still being detached'],
      },
      {
        what: 'no controller has requested it',
        facts: facts(creating, bound({})),
        finds: ['there is no VolumeAttachment for it', 'the attach/detach controller (of kube-controller-manager)'],
        state: 'waiting',
      },
      {
        what: 'attached',
        facts: facts(creating, bound({ attachments: [attachment({ attached: true })] })),
        finds: undefined,
      },
      {
        what: 'a driver that attaches nothing',
        facts: facts(creating, bound({ attachDrivers: [] })),
        finds: undefined,
      },
    ],
  },
  {
    rule: volumeUnderWay,
    cases: [
      {
        what: 'the walk for fsGroup, with its count',
        facts: facts(creating, {
          open: [
            mountCall,
            open('volume', 'applyFSGroup', 12, {
              id: 9,
              parent: 7,
              attributes: { path: '/p/volumes/kubernetes.io~csi/pv/mount', gid: 2000, files: 51200 },
            }),
          ],
        }),
        finds: [
          'volume data is given to the pod’s fsGroup for 12 s: 51200 files so far',
          'each file of the volume gets group 2000',
        ],
        state: 'waiting',
      },
      {
        what: 'the same, as a kubelet reports it',
        facts: facts(creating, {
          events: [
            event(
              'VolumePermissionChangeInProgress',
              'Setting volume ownership for u1/volumes/kubernetes.io~csi/pv/mount, processed 7000 files.',
            ),
          ],
        }),
        finds: ['volume pv is given to the pod’s fsGroup', '7000 files so far'],
      },
      {
        what: 'mkfs',
        facts: facts(creating, {
          open: [mountCall, open('mount', 'format ext4', 15, { id: 9, parent: 7, attributes: { device: '/dev/sdb' } })],
        }),
        finds: ['volume data is being formatted: mkfs.ext4 has run on /dev/sdb for 15 s', 'mkfs.ext4 → the node'],
        state: 'waiting',
      },
      {
        what: 'a call of a driver',
        facts: facts(creating, {
          open: [mountCall, stageCall, open('csi', 'NodeStageVolume', 18, { id: 9, parent: 8 })],
        }),
        finds: [
          'volume data waits for CSI driver d.example.com: NodeStageVolume has not returned for 18 s',
          'NodeStageVolume → CSI driver d.example.com: none yet',
        ],
        state: 'waiting',
      },
      {
        what: 'a call that has only begun',
        facts: facts(creating, { open: [open('csi', 'NodePublishVolume', 0)] }),
        finds: undefined,
      },
      { what: 'nothing', facts: facts(creating), finds: undefined },
    ],
  },
  {
    rule: volumeFailed,
    cases: [
      {
        what: 'mkfs',
        facts: facts(creating, {
          events: [
            event(
              'FailedMount',
              'MountVolume.SetUp failed for volume "pv" : mkfs.ext4 /dev/loop7 failed: mke2fs 1.47.0 (5-Feb-2023)\nmkfs.ext4: Operation not permitted while setting up superblock',
            ),
          ],
        }),
        finds: [
          'volume pv cannot be formatted: mkfs.ext4 on /dev/loop7 fails: mkfs.ext4: Operation not permitted while setting up superblock',
          'mkfs.ext4 → the node with /dev/loop7',
        ],
        state: 'broken',
      },
    ],
  },
];

describe.each(tables)('$rule.name', ({ rule, cases }) => {
  test.each(cases)('$what', (each) => {
    expect(mismatches(rule, each)).toEqual([]);
  });
});

test('a kubelet’s words for a device that could not be formatted', () => {
  const message =
    'MountVolume.MountDevice failed for volume "pv" : format of disk "/dev/vdb" failed: type:("xfs") target:("/t") options:("defaults") errcode:(exit status 1) output:(mkfs.xfs: cannot open /dev/vdb: Device or resource busy\n) ';
  expect(formatFailure(message)).toEqual({
    program: 'mkfs.xfs',
    device: '/dev/vdb',
    output: 'mkfs.xfs: cannot open /dev/vdb: Device or resource busy',
  });
  expect(formatFailure('the pool is gone')).toBeUndefined();
});

const runtime: RuntimeFacts = {
  endpoint: 'unix:///run/c.sock',
  failure: undefined,
  conditions: [],
  handlers: undefined,
  sandboxes: [{ id: 's1', uid: 'u1', ready: true, created: ago(100), source: 'api' }],
  containers: [{ id: 'c1', name: 'main', attempt: 0, state: 'RUNNING' }],
};

function gone(change: Partial<GonePodFacts> = {}): GonePodFacts {
  return {
    kind: 'gone-pod',
    now: NOW,
    gaps: [],
    events: [],
    namespace: 'demo',
    name: 'web',
    node: 'n1',
    runtime,
    processes: [],
    open: [],
    ...change,
  };
}

test.each([
  [
    'deleted by force, and its end under way',
    gone({
      open: [open('cri', 'StopContainer', 6)],
      processes: [
        { pid: 42, container: 'main', command: 'sh -c x', state: 'S', waitsIn: '', stack: [], term: 'ignored' },
      ],
    }),
    'force-deleted',
    /deleted by force\), and container main runs still on node n1[\s\S]*StopContainer → the container runtime: none yet, after 6 s[\s\S]*process 42 \(sh -c x\) is sleeping and ignores SIGTERM/,
  ],
  [
    'only its sandbox is left',
    gone({ runtime: { ...runtime, containers: [{ id: 'c1', name: 'main', attempt: 0, state: 'EXITED' }] } }),
    'force-deleted',
    /its sandbox is still on node n1[\s\S]*crictl --runtime-endpoint \S+ stopp s1/,
  ],
  [
    'a static pod without a mirror',
    gone({
      runtime: { ...runtime, sandboxes: runtime.sandboxes.map((sandbox) => ({ ...sandbox, source: 'file' })) },
    }),
    'mirror-missing',
    /a static pod that runs on node n1, and the API server does not show it/,
  ],
] as const)('a pod that the API server does not have: %s', (_what, given, rule, text) => {
  const [finding] = findingsOf(GONE_POD_RULES, given);
  expect(textOf(finding)).toMatch(text);
  expect(finding?.rule).toBe(rule);
});

test('what containerd is fetching, from the directories of its content store', async () => {
  const root = await mkdtemp(join(tmpdir(), 'nodelet-downloads-'));
  try {
    const ingests = join(root, 'io.containerd.content.v1.content/ingest');
    const write = async (name: string, files: Readonly<Record<string, string>>): Promise<void> => {
      await mkdir(join(ingests, name), { recursive: true });
      for (const [file, text] of Object.entries(files)) await writeFile(join(ingests, name, file), text);
    };
    await write('b', { ref: 'k8s.io/3/layer-sha256:b', startedat: '2026-01-02T12:00:01Z', total: '9', data: 'abcd' });
    await write('a', { ref: 'k8s.io/2/config-sha256:a', startedat: '2026-01-02T12:00:00.5Z', data: '' });
    // Being made, or being moved away.
    await write('c', { startedat: '2026-01-02T12:00:00Z' });
    const updated = expect.any(Number);
    expect(await downloadsBelow(root)).toEqual([
      { part: 'config-sha256:a', bytes: 0, total: undefined, since: NOW + 500, updated },
      { part: 'layer-sha256:b', bytes: 4, total: 9, since: NOW + 1000, updated },
    ]);
  } finally {
    await rm(root, { recursive: true });
  }
});

test('containerd’s root is in its status; other runtimes have none', () => {
  expect(containerdRoot('{"containerdRootDir":"/var/lib/containerd","rootDir":"/x"}')).toBe('/var/lib/containerd');
  expect(containerdRoot('{"sandboxImage":"pause"}')).toBeUndefined();
  expect(containerdRoot(undefined)).toBeUndefined();
});

test('of a Secret for pulling only where it logs in and as whom is kept', () => {
  const secret = (auths: string): Secret => ({
    metadata: { name: 'pull', namespace: 'demo', uid: 's', resourceVersion: '1' },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(auths).toString('base64') },
  });
  const text = JSON.stringify({ auths: { 'https://r.example.com/v2/': { username: 'me', password: 'xyzzy' } } });
  expect(secretFact(secret(text))).toEqual({
    keys: ['.dockerconfigjson'],
    accounts: [{ location: 'r.example.com', user: 'me' }],
  });
  expect(secretFact(secret('nonsense')).problem).toMatch(/is not JSON/);
  expect(secretFact({ ...secret(''), type: 'Opaque', data: { a: '' } })).toEqual({ keys: ['a'] });
});

test.each([
  [['helthy', ['healthy', 'web']], 'there is no pod helthy in namespace demo: there is one called healthy'],
  [['other', ['b', 'a']], 'there is no pod other in namespace demo: there are a, b'],
  [['x', ['abc']], 'there is no pod x in namespace demo: there is abc'],
  [['x', []], 'there is no pod x in namespace demo: there are no pods'],
] as const)('an object that is not there: %j', ([name, names], message) => {
  expect(absent('pod', 'demo', name, names).message).toBe(message);
});
