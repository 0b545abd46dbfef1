import { describe, expect, test } from 'vitest';
import type { RuntimeImage } from '../../../../../agent/ports/runtime.ts';
import { namespaceOptions } from '../../../../../agent/runtime/config/namespaces.ts';
import {
  containerSecurity,
  runAsNonRootProblem,
  sandboxSecurity,
} from '../../../../../agent/runtime/config/security.ts';
import type { Container, Pod } from '../../../../../client/types.ts';
import { container, IMAGE, pod } from '../fixtures.ts';

type Own = NonNullable<Container['securityContext']>;
type Whole = NonNullable<Pod['spec']['securityContext']>;

const SETTINGS = { seccompDefault: false, seccompProfileRoot: '/var/lib/kubelet/seccomp' };

function security(own: Own, whole: Whole = {}, image: RuntimeImage = IMAGE, settings = SETTINGS, annotations = {}) {
  const one = container({ securityContext: own });
  const of = pod({ containers: [one], securityContext: whole }, { annotations });
  return containerSecurity(of, one, image, { settings, userns: undefined });
}

test('a container has the groups of its pod’s volumes, too', () => {
  const one = container();
  const of = pod({ containers: [one], securityContext: { fsGroup: 20, supplementalGroups: [30] } });
  const context = { settings: SETTINGS, userns: undefined, groups: [1234] };
  expect(containerSecurity(of, one, IMAGE, context).supplemental_groups).toEqual([20, 30, 1234]);
});

describe('security context of a container', () => {
  test.each<[string, Own, Whole, RuntimeImage, object]>([
    ['the image’s numeric user by default', {}, {}, { ...IMAGE, uid: 101 }, { run_as_user: { value: 101 } }],
    ['root where the image names nobody', {}, {}, IMAGE, { run_as_user: { value: 0 } }],
    ['the image’s user name when it has no number', {}, {}, { ...IMAGE, username: 'web' }, { run_as_username: 'web' }],
    ['the pod’s user before the image’s', {}, { runAsUser: 5 }, { ...IMAGE, uid: 101 }, { run_as_user: { value: 5 } }],
    [
      'the container’s before the pod’s',
      { runAsUser: 0, runAsGroup: 7 },
      { runAsUser: 5, runAsGroup: 6 },
      IMAGE,
      { run_as_user: { value: 0 }, run_as_group: { value: 7 } },
    ],
    [
      'fsGroup and the supplemental groups',
      {},
      { fsGroup: 20, supplementalGroups: [30, 40] },
      IMAGE,
      { supplemental_groups: [20, 30, 40], supplemental_groups_policy: 'Merge' },
    ],
    [
      'no new privileges when escalation is forbidden',
      { allowPrivilegeEscalation: false },
      {},
      IMAGE,
      { no_new_privs: true },
    ],
    ['a read-only root', { readOnlyRootFilesystem: true }, {}, IMAGE, { readonly_rootfs: true }],
    [
      'capabilities',
      { capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] } },
      {},
      IMAGE,
      { capabilities: { add_capabilities: ['NET_ADMIN'], drop_capabilities: ['ALL'] } },
    ],
    [
      'privileged, which runtimes mask nothing of whatever the lists say',
      { privileged: true },
      {},
      IMAGE,
      {
        privileged: true,
        masked_paths: expect.arrayContaining(['/proc/kcore']),
        readonly_paths: expect.arrayContaining(['/proc/sys']),
      },
    ],
    [
      'procMount Unmasked',
      { procMount: 'Unmasked' },
      {},
      IMAGE,
      { privileged: false, masked_paths: [], readonly_paths: [] },
    ],
    [
      'SELinux of the container before the pod’s',
      { seLinuxOptions: { level: 's0:c1' } },
      { seLinuxOptions: { level: 's0:c2', type: 't' } },
      IMAGE,
      { selinux_options: { level: 's0:c1' } },
    ],
  ])('%s', (_rule, own, whole, image, expected) => {
    expect(security(own, whole, image)).toMatchObject(expected);
  });

  test('/proc and /sys are masked by default', () => {
    const { masked_paths, readonly_paths } = security({});
    expect(masked_paths).toContain('/proc/kcore');
    expect(readonly_paths).toContain('/proc/sys');
  });

  test.each<[string, Own['seccompProfile'], Whole['seccompProfile'], boolean, object]>([
    ['none by default', undefined, undefined, false, { profile_type: 'Unconfined' }],
    ['the runtime’s with seccompDefault', undefined, undefined, true, { profile_type: 'RuntimeDefault' }],
    ['the pod’s', undefined, { type: 'RuntimeDefault' }, false, { profile_type: 'RuntimeDefault' }],
    ['the container’s first', { type: 'Unconfined' }, { type: 'RuntimeDefault' }, true, { profile_type: 'Unconfined' }],
    [
      'a file of the node’s',
      { type: 'Localhost', localhostProfile: 'audit.json' },
      undefined,
      false,
      { profile_type: 'Localhost', localhost_ref: '/var/lib/kubelet/seccomp/audit.json' },
    ],
  ])('seccomp: %s', (_rule, own, whole, seccompDefault, expected) => {
    const result = security(
      own === undefined ? {} : { seccompProfile: own },
      whole === undefined ? {} : { seccompProfile: whole },
      IMAGE,
      { ...SETTINGS, seccompDefault },
    );
    expect(result.seccomp).toEqual(expected);
  });

  const ANNOTATION = 'container.apparmor.security.beta.kubernetes.io/main';
  test.each<[string, Own, Whole, Record<string, string>, object | undefined, string | undefined]>([
    ['none asked for', {}, {}, {}, undefined, undefined],
    [
      'the field',
      { appArmorProfile: { type: 'RuntimeDefault' } },
      {},
      {},
      { profile_type: 'RuntimeDefault' },
      'runtime/default',
    ],
    [
      'the pod’s field',
      {},
      { appArmorProfile: { type: 'Unconfined' } },
      {},
      { profile_type: 'Unconfined' },
      'unconfined',
    ],
    [
      'the annotation of old',
      {},
      {},
      { [ANNOTATION]: 'localhost/mine' },
      { profile_type: 'Localhost', localhost_ref: 'mine' },
      'localhost/mine',
    ],
    [
      'the field before the annotation',
      { appArmorProfile: { type: 'Localhost', localhostProfile: 'new' } },
      {},
      { [ANNOTATION]: 'localhost/old' },
      { profile_type: 'Localhost', localhost_ref: 'new' },
      'localhost/new',
    ],
  ])('AppArmor: %s', (_rule, own, whole, annotations, profile, legacy) => {
    const result = security(own, whole, IMAGE, SETTINGS, annotations);
    expect(result.apparmor).toEqual(profile);
    expect(result.apparmor_profile).toBe(legacy);
  });
});

describe('runAsNonRoot', () => {
  test.each<[string, Own, Whole, RuntimeImage, RegExp | undefined]>([
    ['not asked for', {}, {}, { ...IMAGE, uid: 0 }, undefined],
    ['a user above root', { runAsNonRoot: true, runAsUser: 1 }, {}, IMAGE, undefined],
    [
      'root by the pod',
      { runAsNonRoot: true },
      { runAsUser: 0 },
      IMAGE,
      /runAsUser breaks non-root policy \(pod: "web_demo\(1234-abcd\)", container: main\)/,
    ],
    ['root by the image', {}, { runAsNonRoot: true }, { ...IMAGE, uid: 0 }, /image will run as root/],
    ['an image that says nothing is root', { runAsNonRoot: true }, {}, IMAGE, /image will run as root/],
    ['a number above root in the image', { runAsNonRoot: true }, {}, { ...IMAGE, uid: 101 }, undefined],
    ['a name in the image', { runAsNonRoot: true }, {}, { ...IMAGE, username: 'web' }, /non-numeric user \(web\)/],
    ['the container may lift what the pod asks', { runAsNonRoot: false }, { runAsNonRoot: true }, IMAGE, undefined],
  ])('%s', (_rule, own, whole, image, expected) => {
    const one = container({ securityContext: own });
    const problem = runAsNonRootProblem(pod({ containers: [one], securityContext: whole }), one, image);
    if (expected === undefined) expect(problem).toBeUndefined();
    else expect(problem).toMatch(expected);
  });
});

describe('namespaces', () => {
  test.each<[string, Partial<Pod['spec']>, object]>([
    ['of the pod’s own by default', {}, { network: 'POD', pid: 'CONTAINER', ipc: 'POD' }],
    ['the host’s', { hostNetwork: true, hostPID: true, hostIPC: true }, { network: 'NODE', pid: 'NODE', ipc: 'NODE' }],
    ['processes shared in the pod', { shareProcessNamespace: true }, { pid: 'POD' }],
  ])('%s', (_rule, spec, expected) => {
    const own = { mode: 'NODE' };
    expect(namespaceOptions(pod(spec), undefined)).toMatchObject({ ...expected, userns_options: own });
  });

  test('an ephemeral container joins its target’s processes; a user namespace maps ids', () => {
    expect(namespaceOptions(pod(), { hostId: 65536, length: 65536 }, 'cid')).toEqual({
      network: 'POD',
      ipc: 'POD',
      pid: 'TARGET',
      target_id: 'cid',
      userns_options: {
        mode: 'POD',
        uids: [{ container_id: 0, host_id: 65536, length: 65536 }],
        gids: [{ container_id: 0, host_id: 65536, length: 65536 }],
      },
    });
  });
});

test('a sandbox is privileged when one of its containers is, and always has a seccomp profile', () => {
  const privileged = container({ name: 'p', securityContext: { privileged: true } });
  expect(sandboxSecurity(pod({ initContainers: [privileged] }), undefined)).toMatchObject({
    privileged: true,
    seccomp: { profile_type: 'RuntimeDefault' },
  });
  expect(
    sandboxSecurity(pod({ securityContext: { runAsUser: 5, runAsGroup: 6, fsGroup: 7 } }), undefined),
  ).toMatchObject({
    privileged: false,
    run_as_user: { value: 5 },
    run_as_group: { value: 6 },
    supplemental_groups: [7],
  });
});
