import { describe, expect, it } from 'vitest';
import { container, type Fields, validate, withContainer, withVolume } from './pod-support.ts';

describe('volumes and mounts', () => {
  const mount = (fields: Fields): Fields =>
    withVolume({ emptyDir: {} }, [{ name: 'data', mountPath: '/d', ...fields }]);
  const file = (fields: Fields): Fields => withVolume({ configMap: { name: 'c', ...fields } });
  it.each<[string, Fields, RegExp]>([
    ['a volume has a name', { volumes: [{ emptyDir: {} }] }, /^spec\.volumes\[0\]\.name: Required value$/],
    [
      'a volume name is a DNS label',
      { volumes: [{ name: 'A_B', emptyDir: {} }] },
      /volumes\[0\]\.name: Invalid value: "A_B"/,
    ],
    [
      'volume names differ',
      {
        volumes: [
          { name: 'a', emptyDir: {} },
          { name: 'a', emptyDir: {} },
        ],
      },
      /volumes\[1\]\.name: Duplicate value: "a"$/,
    ],
    [
      'a volume has one source',
      withVolume({ emptyDir: {}, configMap: { name: 'c' } }),
      /volumes\[0\]\.configMap: Forbidden: may not specify more than 1 volume type$/,
    ],
    ['a host path is required', withVolume({ hostPath: {} }), /hostPath\.path: Required value$/],
    [
      'a host path has no backsteps',
      withVolume({ hostPath: { path: '/a/../b' } }),
      /hostPath\.path: Invalid value: "\/a\/\.\.\/b": must not contain '\.\.'$/,
    ],
    [
      'a host path type is a known one',
      withVolume({ hostPath: { path: '/a', type: 'Door' } }),
      /hostPath\.type: Unsupported value: "Door"/,
    ],
    ['a secret has a name', withVolume({ secret: {} }), /secret\.secretName: Required value$/],
    ['a config map has a name', withVolume({ configMap: {} }), /configMap\.name: Required value$/],
    [
      'a mode is nine bits',
      file({ defaultMode: 0o1000 }),
      /defaultMode: Invalid value: 512: must be a number between 0 and 0777 \(octal\), both inclusive$/,
    ],
    ['an item has a key', file({ items: [{ path: 'a' }] }), /items\[0\]\.key: Required value$/],
    ['an item has a path', file({ items: [{ key: 'a' }] }), /items\[0\]\.path: Required value$/],
    [
      'an item path is relative',
      file({ items: [{ key: 'a', path: '/a' }] }),
      /items\[0\]\.path: Invalid value: "\/a": must be a relative path$/,
    ],
    [
      'an item path stays inside',
      file({ items: [{ key: 'a', path: 'x/../../a' }] }),
      /items\[0\]\.path: Invalid value: "x\/\.\.\/\.\.\/a": must not contain '\.\.'$/,
    ],
    [
      'a downward file has a source',
      withVolume({ downwardAPI: { items: [{ path: 'a' }] } }),
      /downwardAPI: Required value: one of fieldRef and resourceFieldRef is required$/,
    ],
    [
      'a downward resource names its container',
      withVolume({ downwardAPI: { items: [{ path: 'a', resourceFieldRef: { resource: 'limits.cpu' } }] } }),
      /resourceFieldRef\.containerName: Required value$/,
    ],
    [
      'a token lives ten minutes at least',
      withVolume({ projected: { sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 60 } }] } }),
      /expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes$/,
    ],
    [
      'projected paths do not clash',
      withVolume({
        projected: {
          sources: [
            { configMap: { name: 'a', items: [{ key: 'k', path: 'p' }] } },
            { secret: { name: 'a', items: [{ key: 'k', path: 'p' }] } },
          ],
        },
      }),
      /projected: Invalid value: "a": conflicting duplicate paths$/,
    ],
    [
      'a claim has a name',
      withVolume({ persistentVolumeClaim: {} }),
      /persistentVolumeClaim\.claimName: Required value$/,
    ],
    ['an image volume has a reference', withVolume({ image: {} }), /image\.reference: Required value$/],
    [
      'an NFS path is absolute',
      withVolume({ nfs: { server: 's', path: 'a' } }),
      /nfs\.path: Invalid value: "a": must be an absolute path$/,
    ],
    [
      'an ephemeral claim has access modes',
      withVolume({ ephemeral: { volumeClaimTemplate: { spec: { resources: { requests: { storage: '1Gi' } } } } } }),
      /spec\.accessModes: Required value: at least 1 access mode is required$/,
    ],
    [
      'a mount names a volume',
      withContainer({ volumeMounts: [{ name: 'gone', mountPath: '/d' }] }),
      /volumeMounts\[0\]\.name: Not found: "gone"$/,
    ],
    ['a mount has a path', mount({ mountPath: '' }), /volumeMounts\[0\]\.mountPath: Required value$/],
    [
      'mount paths differ',
      withVolume({ emptyDir: {} }, [
        { name: 'data', mountPath: '/d' },
        { name: 'data', mountPath: '/d' },
      ]),
      /volumeMounts\[1\]\.mountPath: Invalid value: "\/d": must be unique$/,
    ],
    ['a sub-path is relative', mount({ subPath: '/a' }), /subPath: Invalid value: "\/a": must be a relative path$/],
    [
      'a sub-path stays inside',
      mount({ subPath: '../a' }),
      /subPath: Invalid value: "..\/a": must not contain '\.\.'$/,
    ],
    [
      'subPath and subPathExpr exclude each other',
      mount({ subPath: 'a', subPathExpr: 'b' }),
      /subPathExpr: Invalid value: "b": subPathExpr and subPath are mutually exclusive$/,
    ],
    ['propagation is a known one', mount({ mountPropagation: 'Up' }), /mountPropagation: Unsupported value: "Up"/],
    [
      'propagation to the host needs privilege',
      mount({ mountPropagation: 'Bidirectional' }),
      /mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers$/,
    ],
    [
      'recursive read-only needs read-only',
      mount({ recursiveReadOnly: 'Enabled' }),
      /recursiveReadOnly: Forbidden: may only be specified when readOnly is true$/,
    ],
    [
      'a device is a claim',
      {
        volumes: [{ name: 'data', emptyDir: {} }],
        containers: [container({ volumeDevices: [{ name: 'data', devicePath: '/dev/x' }] })],
      },
      /volumeDevices\[0\]\.name: Invalid value: "data": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode$/,
    ],
  ])('%s', (_rule, spec, expected) => {
    expect(validate(spec)).toEqual([expect.stringMatching(expected)]);
  });
});
