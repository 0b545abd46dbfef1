// Volumes that cannot be had, by the pod's name, and the message of the event that reports it.

import type { PodSpec } from '../../../client/types.ts';

export const ABSENT: readonly [string, NonNullable<PodSpec['volumes']>[number] & { image?: object }, RegExp][] = [
  [
    'a-directory',
    { name: 'v', hostPath: { path: '/etc/passwd', type: 'Directory' } },
    /hostPath type check failed: \/etc\/passwd is not a directory/,
  ],
  [
    'a-file',
    { name: 'v', hostPath: { path: '/etc', type: 'File' } },
    /hostPath type check failed: \/etc is not a file/,
  ],
  [
    'a-socket',
    { name: 'v', hostPath: { path: '/etc', type: 'Socket' } },
    /hostPath type check failed: \/etc is not a socket file/,
  ],
  [
    'a-device',
    { name: 'v', hostPath: { path: '/dev/null', type: 'BlockDevice' } },
    /hostPath type check failed: \/dev\/null is not a block device/,
  ],
  [
    'a-char',
    { name: 'v', hostPath: { path: '/etc', type: 'CharDevice' } },
    /hostPath type check failed: \/etc is not a character device/,
  ],
  ['no-secret', { name: 'v', secret: { secretName: 'nowhere' } }, /secret "nowhere" not found/],
  ['no-map', { name: 'v', configMap: { name: 'nowhere' } }, /configmap "nowhere" not found/],
  [
    'no-key',
    { name: 'v', configMap: { name: 'settings', items: [{ key: 'nope', path: 'p' }] } },
    /configmap references non-existent config key: nope/,
  ],
  [
    'no-server',
    { name: 'v', nfs: { server: 'files.invalid', path: '/none' } },
    /mount failed: exit status 32\nMounting command: mount\nMounting arguments: .*-t nfs files\.invalid:\/none .*\nOutput: \S/,
  ],
  [
    'no-image',
    { name: 'v', image: { reference: 'busybox:stable' } },
    /no volume plugin matched: containerd \S+ cannot mount images, 2\.1 or newer is needed/,
  ],
];
