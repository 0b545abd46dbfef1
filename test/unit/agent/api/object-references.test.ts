// Which ConfigMaps and Secrets a pod refers to, and whether a change of them has to reach its files.

import { describe, expect, test } from 'vitest';
import { objectReferences } from '../../../../agent/api/object-references.ts';
import type { Pod } from '../../../../client/types.ts';
import { pod } from '../volumes/support.ts';

describe('what a pod refers to', () => {
  const container = { name: 'c', image: 'i' };
  const rows: readonly [string, Partial<Pod['spec']>, Record<string, boolean>][] = [
    ['a configMap volume', { volumes: [{ name: 'v', configMap: { name: 'x' } }] }, { 'configMap/demo/x': true }],
    ['a secret volume', { volumes: [{ name: 'v', secret: { secretName: 'x' } }] }, { 'secret/demo/x': true }],
    [
      'projected sources',
      { volumes: [{ name: 'v', projected: { sources: [{ configMap: { name: 'x' } }, { secret: { name: 'y' } }] } }] },
      { 'configMap/demo/x': true, 'secret/demo/y': true },
    ],
    [
      'variables',
      {
        containers: [
          {
            ...container,
            env: [
              { name: 'A', valueFrom: { configMapKeyRef: { name: 'x', key: 'k' } } },
              { name: 'B', valueFrom: { secretKeyRef: { name: 'y', key: 'k' } } },
              { name: 'C', value: 'plain' },
            ],
          },
        ],
      },
      { 'configMap/demo/x': false, 'secret/demo/y': false },
    ],
    [
      'envFrom of init and ephemeral containers',
      {
        containers: [],
        initContainers: [{ ...container, envFrom: [{ configMapRef: { name: 'x' } }] }],
        ephemeralContainers: [{ ...container, envFrom: [{ secretRef: { name: 'y' } }] }],
      },
      { 'configMap/demo/x': false, 'secret/demo/y': false },
    ],
    ['pull secrets', { imagePullSecrets: [{ name: 'x' }, {}] }, { 'secret/demo/x': false }],
    [
      'an inline CSI volume',
      { volumes: [{ name: 'v', csi: { driver: 'd', nodePublishSecretRef: { name: 'x' } } }] },
      { 'secret/demo/x': false },
    ],
    [
      'a variable and a volume of one object',
      {
        containers: [{ ...container, envFrom: [{ configMapRef: { name: 'x' } }] }],
        volumes: [{ name: 'v', configMap: { name: 'x' } }],
      },
      { 'configMap/demo/x': true },
    ],
    ['nothing', { volumes: [{ name: 'v', emptyDir: {} }] }, {}],
  ];
  test.each(rows)('by %s', (_, spec, expected) => {
    const found = [...objectReferences(pod(spec))].map(([key, { live }]) => [key, live]);
    expect(Object.fromEntries(found)).toEqual(expected);
  });
});
