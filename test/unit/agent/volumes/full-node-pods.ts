// The pods and objects of full-node.test.ts, the same for the server that has them and for the agent that mounts them.

import type { Pod } from '../../../../client/types.ts';

/** What an object of the API may be at most, about. */
export const OBJECT_BYTES = 950_000;
export const NAMESPACE = 'full';
/** Used by every pod. */
export const SHARED = 'shared';

export const objectName = (index: number): string => `object-${index}`;

/** What the file `content` of an object holds: all of one letter, so that a mixture of two versions shows. */
export const contentOf = (name: string, version: number): string =>
  `${name} ${version} `.padEnd(OBJECT_BYTES, String.fromCharCode(97 + (version % 26)));

/** Of each four pods two show a ConfigMap of their own, one a Secret, and one both in a projected volume. */
export function fullNodePod(index: number): Pod {
  const name = objectName(index);
  const own =
    index % 4 === 0
      ? { secret: { secretName: name } }
      : index % 4 === 1
        ? { projected: { sources: [{ secret: { name } }, { downwardAPI: { items: [] } }] } }
        : { configMap: { name } };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `pod-${index}`, namespace: NAMESPACE, uid: `uid-${index}`, resourceVersion: '1' },
    spec: {
      volumes: [
        { name: 'own', ...own },
        { name: 'shared', configMap: { name: SHARED, items: [{ key: 'note', path: 'note' }] } },
      ],
      containers: [
        {
          name: 'main',
          image: 'none',
          volumeMounts: [
            { name: 'own', mountPath: '/own' },
            { name: 'shared', mountPath: '/shared' },
          ],
        },
      ],
    },
  };
}

/** Whether the pod's own object is a Secret. */
export const isSecret = (index: number): boolean => index % 4 < 2;

/** Where the pod's own object lies below the agent's root. */
export function ownFile(index: number): string {
  const plugin = index % 4 === 0 ? 'secret' : index % 4 === 1 ? 'projected' : 'configmap';
  return `pods/uid-${index}/volumes/kubernetes.io~${plugin}/own/content`;
}
