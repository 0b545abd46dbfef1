// Answers of containerd and what crictl 1.36 printed of them, both recorded on one lab. Only the times of commands and the
// lab's directory are made up.

import { describe, expect, test } from 'vitest';
import {
  containerDetails,
  containerStatusJson,
  containerTable,
  shownImage,
} from '../../../../cli/crictl/containers.ts';
import { formatMessage, formatStatuses, withInfo } from '../../../../cli/crictl/format.ts';
import { imageDetails, imageFsTable, imageTable } from '../../../../cli/crictl/images.ts';
import { logPath } from '../../../../cli/crictl/logs.ts';
import { podDetails, podTable } from '../../../../cli/crictl/pods.ts';
import { infoJson, withoutEmpty } from '../../../../cli/crictl/runtime.ts';
import { containerStatsTable } from '../../../../cli/crictl/stats.ts';
import { epochMs } from '../../../../lib/clock.ts';
import type { Container__Output } from '../../../../proto/gen/runtime/v1/Container.ts';
import type { ContainerStats__Output } from '../../../../proto/gen/runtime/v1/ContainerStats.ts';
import type { ContainerStatus__Output } from '../../../../proto/gen/runtime/v1/ContainerStatus.ts';
import type { Image__Output } from '../../../../proto/gen/runtime/v1/Image.ts';
import type { PodSandbox__Output } from '../../../../proto/gen/runtime/v1/PodSandbox.ts';

const CONTAINER: Container__Output = {
  id: '6e9e9d04d1937a6dc2488c4906f114bcf19c07e59b3d0dabb6ed38a620150778',
  pod_sandbox_id: '08081b887d6c3802a3a06dacef35314d456cbf3ee76493f3fa6149d59ad40989',
  metadata: { name: 'busybox', attempt: 0 },
  image: {
    image: 'docker.io/library/busybox:stable',
    annotations: {},
    user_specified_image: '',
    runtime_handler: '',
    image_ref: '',
  },
  image_ref: 'sha256:13a334ddad95ce6d38f71d7c95730b2d0a1f1ca0752bd07edca966c740e4411e',
  state: 'CONTAINER_RUNNING',
  created_at: '1795366423879055747',
  labels: { app: 'x<y&z' },
  annotations: {},
  image_id: '',
};
const CREATED_MS = 1_795_366_423_879;

const POD: PodSandbox__Output = {
  id: '08081b887d6c3802a3a06dacef35314d456cbf3ee76493f3fa6149d59ad40989',
  metadata: { name: 'busybox-sandbox', uid: 'hdishd83djaidwnduwk28bcsb', namespace: 'default', attempt: 1 },
  state: 'SANDBOX_READY',
  created_at: '1795366421660230180',
  labels: {},
  annotations: {},
  runtime_handler: '',
};

const image = (id: string, name: string, tags: readonly string[], digest: string, size: string): Image__Output => ({
  id: `sha256:${id}`,
  repo_tags: tags.map((tag) => `${name}:${tag}`),
  repo_digests: [`${name}@sha256:${digest}`],
  size,
  uid: null,
  username: '',
  spec: null,
  pinned: false,
});
const IMAGES = [
  image(
    '13a334ddad95ce6d38f71d7c95730b2d0a1f1ca0752bd07edca966c740e4411e',
    'docker.io/library/busybox',
    ['latest', 'stable'],
    '39910c060c3d6982aca66d7ae77886cf3cd8c9e9ab6c1573f0f8701482929b33',
    '2139927',
  ),
  image(
    '7aa386219e5edfb2356cd0a1412ca256d8894d23d45fe2566385dfbc62daecab',
    'registry.k8s.io/pause',
    ['3.9'],
    '5628d764497d2fc45cfb7b9597de90eeb49e7d14a74a141da8294b4915ccdc62',
    '716082',
  ),
];

describe('tables', () => {
  test('ps', () => {
    const shown = (each: Container__Output): string => shownImage(each, false);
    expect(containerTable([CONTAINER], epochMs(CREATED_MS + 4500), false, shown)).toBe(
      `CONTAINER           IMAGE                              CREATED             STATE               NAME                ATTEMPT             POD ID              POD                 NAMESPACE
6e9e9d04d1937       docker.io/library/busybox:stable   4 seconds ago       Running             busybox             0                   08081b887d6c3       unknown             unknown
`,
    );
    expect(
      shownImage({ ...CONTAINER, image: { ...CONTAINER.image, image: CONTAINER.image_ref } as never }, false),
    ).toBe('13a334ddad95c');
  });

  test('ps -v', () => {
    expect(containerDetails(CONTAINER, epochMs(CREATED_MS + 10_500))).toBe(
      `ID: 6e9e9d04d1937a6dc2488c4906f114bcf19c07e59b3d0dabb6ed38a620150778
PodID: 08081b887d6c3802a3a06dacef35314d456cbf3ee76493f3fa6149d59ad40989
Namespace: unknown
Name: busybox
Attempt: 0
State: Running
Image: docker.io/library/busybox:stable
Created: 10 seconds ago
Labels:
	app -> x<y&z

`,
    );
  });

  test('pods, and pods -v', () => {
    expect(podTable([POD], epochMs(1_795_366_430_700), false)).toBe(
      `POD ID              CREATED             STATE               NAME                NAMESPACE           ATTEMPT             RUNTIME
08081b887d6c3       9 seconds ago       Ready               busybox-sandbox     default             1                   (default)
`,
    );
    expect(podDetails(POD).replace(/Created: .*/, 'Created: then')).toBe(
      `ID: 08081b887d6c3802a3a06dacef35314d456cbf3ee76493f3fa6149d59ad40989
Name: busybox-sandbox
UID: hdishd83djaidwnduwk28bcsb
Namespace: default
Attempt: 1
Status: Ready
Created: then
Runtime: (default)

`,
    );
  });

  test('images --digests --pinned, and images -v', () => {
    expect(imageTable(IMAGES, { digests: true, pinned: true, wholeIds: false })).toBe(
      `IMAGE                       TAG                 DIGEST              IMAGE ID            SIZE                PINNED
docker.io/library/busybox   latest              39910c060c3d6       13a334ddad95c       2.14MB              false
docker.io/library/busybox   stable              39910c060c3d6       13a334ddad95c       2.14MB              false
registry.k8s.io/pause       3.9                 5628d764497d2       7aa386219e5ed       716kB               false
`,
    );
    expect(IMAGES.slice(1).map(imageDetails).join('')).toBe(
      `ID: sha256:7aa386219e5edfb2356cd0a1412ca256d8894d23d45fe2566385dfbc62daecab
RepoTags: registry.k8s.io/pause:3.9
RepoDigests: registry.k8s.io/pause@sha256:5628d764497d2fc45cfb7b9597de90eeb49e7d14a74a141da8294b4915ccdc62
Size: 716082

`,
    );
  });

  test('imagefsinfo', () => {
    const usage = {
      timestamp: '1795366612334332778',
      fs_id: { mountpoint: '/lab/overlayfs' },
      used_bytes: { value: '14958592' },
      inodes_used: { value: '673' },
    };
    expect(imageFsTable({ image_filesystems: [usage], container_filesystems: [] })).toBe(
      `Container Filesystem 
Image Filesystem 
TimeStamp[0]: 1795366612334332778
Disk[0]: 14.96MB
Inodes[0]: 673
Mountpoint[0]: /lab/overlayfs
`,
    );
  });

  test('stats count CPU between two measurements, and leave out what does not run', () => {
    const stats = (id: string, nanos: string, at: string): ContainerStats__Output => ({
      attributes: { id, metadata: { name: 'busybox', attempt: 0 }, labels: {}, annotations: {} },
      cpu: { timestamp: at, usage_core_nano_seconds: { value: nanos }, usage_nano_cores: null, psi: null },
      memory: {
        timestamp: at,
        working_set_bytes: { value: nanos === '0' ? '0' : '221184' },
        available_bytes: null,
        usage_bytes: null,
        rss_bytes: null,
        page_faults: null,
        major_page_faults: null,
        psi: null,
      },
      writable_layer: { timestamp: at, fs_id: null, used_bytes: { value: '8192' }, inodes_used: { value: '5' } },
      swap: null,
      io: null,
    });
    const before = [stats(CONTAINER.id, '1000', '5000'), stats('stopped', '0', '5000')];
    const after = [stats(CONTAINER.id, '1250', '6000'), stats('stopped', '0', '6000'), stats('new', '5', '6000')];
    expect(containerStatsTable(before, after, false)).toBe(
      `CONTAINER           NAME                CPU %               MEM                 DISK                INODES              SWAP
6e9e9d04d1937       busybox             25.00               221.2kB             8.192kB             5                   0B
`,
    );
    expect(containerStatsTable(before, after, true)).toMatch(/\nstopped +busybox +0\.00 +0B /);
    expect(() => containerStatsTable(before, before, false)).toThrow('cpu stat is not updated during sample');
  });
});

describe('json and yaml', () => {
  test('ps -o json', () => {
    expect(formatMessage('ListContainersResponse', { containers: [CONTAINER] }, 'json')).toBe(`{
  "containers": [
    {
      "id": "6e9e9d04d1937a6dc2488c4906f114bcf19c07e59b3d0dabb6ed38a620150778",
      "podSandboxId": "08081b887d6c3802a3a06dacef35314d456cbf3ee76493f3fa6149d59ad40989",
      "metadata": {
        "name": "busybox",
        "attempt": 0
      },
      "image": {
        "image": "docker.io/library/busybox:stable",
        "annotations": {},
        "userSpecifiedImage": "",
        "runtimeHandler": "",
        "imageRef": ""
      },
      "imageRef": "sha256:13a334ddad95ce6d38f71d7c95730b2d0a1f1ca0752bd07edca966c740e4411e",
      "state": "CONTAINER_RUNNING",
      "createdAt": "1795366423879055747",
      "labels": {
        "app": "x<y&z"
      },
      "annotations": {},
      "imageId": ""
    }
  ]
}
`);
  });

  test('pods -o yaml', () => {
    expect(formatMessage('ListPodSandboxResponse', { items: [POD] }, 'yaml')).toBe(`items:
- annotations: {}
  createdAt: "1795366421660230180"
  id: 08081b887d6c3802a3a06dacef35314d456cbf3ee76493f3fa6149d59ad40989
  labels: {}
  metadata:
    attempt: 1
    name: busybox-sandbox
    namespace: default
    uid: hdishd83djaidwnduwk28bcsb
  runtimeHandler: ""
  state: SANDBOX_READY

`);
    expect(formatMessage('ListPodSandboxResponse', {}, 'table')).toBeUndefined();
  });

  const STATUS = {
    ...CONTAINER,
    state: 'CONTAINER_CREATED',
    created_at: '0',
    started_at: '5',
    finished_at: '6',
    exit_code: 0,
    reason: '',
    message: '',
    mounts: [],
    log_path: '/logs/1.log',
    resources: null,
    user: null,
    stop_signal: 'RUNTIME_DEFAULT',
  } satisfies ContainerStatus__Output & Container__Output;

  test('inspect has null for messages that are not set, and no times that have not come', () => {
    const json = containerStatusJson(STATUS);
    expect(json).toMatchObject({ resources: null, user: null, logPath: '/logs/1.log', labels: { app: 'x<y&z' } });
    const zero = '0001-01-01T00:00:00Z';
    expect([json.startedAt, json.finishedAt]).toEqual([zero, zero]);
    const exited = containerStatusJson({ ...STATUS, state: 'CONTAINER_EXITED' });
    expect([exited.startedAt, exited.finishedAt]).not.toContain(zero);
  });

  test('info is opened where it is JSON, and loses its quotes where it is not', () => {
    expect(withInfo({ status: {} }, { config: '{"a":[1]}', runtimeType: '"io.x"', pid: '7' })).toEqual({
      status: {},
      config: { a: [1] },
      runtimeType: 'io.x',
      pid: '7',
    });
    expect(() => withInfo({}, { info: '{' })).toThrow('unmarshal status info JSON: info');
  });

  test('statuses have sorted keys; one stands alone, and HTML is escaped', () => {
    const [a, b] = [{ z: 1, a: '<&>' }, { b: null }];
    expect(formatStatuses([a], 'json', '')).toBe('{\n  "a": "\\u003c\\u0026\\u003e",\n  "z": 1\n}\n');
    expect(formatStatuses([a, b], 'yaml', '')).toBe('- a: <&>\n  z: 1\n- b: null\n\n');
    expect(formatStatuses([a, b], 'go-template', '{{len .}} {{(index . 0).z}}')).toBe('2 1\n');
    expect(() => formatStatuses([a], 'xml', '')).toThrow('unsupported format: "xml"');
  });

  test('what YAML 1.1 would take for something else is quoted', () => {
    const yaml = formatStatuses([{ time: '2026-11-22T16:53:43Z', mac: '00:00:00:00:00:00', word: 'on' }], 'yaml', '');
    expect(yaml).toBe('mac: "00:00:00:00:00:00"\ntime: "2026-11-22T16:53:43Z"\nword: "on"\n\n');
  });

  test('info shows handlers and features in the .proto file’s names, without what is empty', () => {
    const features = { recursive_read_only_mounts: true, user_namespaces: false };
    expect(withoutEmpty('RuntimeHandler', { name: 'runc', features })).toEqual({
      name: 'runc',
      features: { recursive_read_only_mounts: true },
    });
    const answer = { status: { conditions: [] }, info: {}, runtime_handlers: [], features: null };
    expect(infoJson(answer)).toEqual({ status: { conditions: [] } });
  });
});

test('the log of the instance before has its number', () => {
  const status = (attempt: number) => ({ log_path: '/logs/web/2.log', metadata: { name: 'web', attempt } });
  expect([logPath(status(2), false), logPath(status(2), true)]).toEqual(['/logs/web/2.log', '/logs/web/1.log']);
  expect(() => logPath(status(0), true)).toThrow('previous terminated container web not found');
  expect(() => logPath({ ...status(0), log_path: '' }, false)).toThrow('the container has not set log path');
});
