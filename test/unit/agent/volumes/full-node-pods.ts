// The pods and objects of full-node.test.ts, the same for the server that has them and for the agent that mounts them.

import type { Pod } from '../../../../client/types.ts';

/** What an object of the API may be at most, about. */
export const OBJECT_BYTES = 950_000;
export const NAMESPACE = 'full';
/** Used by every pod. */
export const SHARED = 'shared';

export const objectName = (index: number): string => `object-${index}`;

/** Of a content, what is its own. A multiple of 3: each part of it is encoded by itself. */
const OWN_BYTES = 30;
const fillers = new Map<number, Record<'plain' | 'base64', Buffer>>();

/** What all contents of a version have in common. */
function fillerOf(version: number): Record<'plain' | 'base64', Buffer> {
  const known = fillers.get(version);
  if (known !== undefined) return known;
  const plain = Buffer.alloc(OBJECT_BYTES - OWN_BYTES, letterOf(version));
  const made = { plain, base64: Buffer.from(plain.toString('base64')) };
  fillers.set(version, made);
  return made;
}

const letterOf = (version: number): string => String.fromCharCode(97 + (version % 26));

/** What the file `content` of an object holds, in two parts: all of one letter, so that a mixture of two versions shows. */
export function contentOf(name: string, version: number): readonly [Buffer, Buffer] {
  return [Buffer.from(`${name} ${version} `.padEnd(OWN_BYTES, letterOf(version))), fillerOf(version).plain];
}

/** The same, encoded as in a Secret. */
export function encodedContentOf(name: string, version: number): readonly [Buffer, Buffer] {
  const [own] = contentOf(name, version);
  return [Buffer.from(own.toString('base64')), fillerOf(version).base64];
}

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
