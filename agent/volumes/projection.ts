// From API objects to the files of a volume: which keys become which paths with which modes. Pure; the objects are
// passed in. Failures are worded as the kubelet's FailedMount events.

import type { ConfigMap, Pod, Secret } from '../../client/types.ts';
import type { ResourceFieldRef } from '../model/downward-api.ts';
import type { TrustRequest } from '../ports/api.ts';
import type { PayloadFile } from './atomic-writer.ts';
import { fieldText, resourceText } from './downward-values.ts';

/** One source of a content volume, normalised from its several spellings in the API. */
export type ContentSource =
  | {
      readonly kind: 'configMap' | 'secret';
      readonly name: string;
      readonly items: readonly Item[] | undefined;
      readonly optional: boolean;
    }
  | { readonly kind: 'downwardAPI'; readonly items: readonly DownwardItem[] }
  | ({ readonly kind: 'clusterTrustBundle'; readonly path: string } & TrustRequest)
  | {
      readonly kind: 'token';
      readonly path: string;
      readonly audience: string | undefined;
      readonly expirationSeconds: number;
    };

export interface Item {
  readonly key: string;
  readonly path: string;
  readonly mode?: number;
}

export interface DownwardItem {
  readonly path: string;
  readonly mode?: number;
  readonly fieldRef?: { readonly fieldPath: string };
  readonly resourceFieldRef?: ResourceFieldRef;
}

export type Files = readonly (readonly [path: string, file: PayloadFile & { readonly data: Uint8Array }])[];

/** Every key of a ConfigMap or Secret, as bytes. */
export function objectData(kind: 'configMap' | 'secret', object: ConfigMap | Secret): ReadonlyMap<string, Uint8Array> {
  const data = new Map<string, Uint8Array>();
  const decode = (map: Readonly<Record<string, string>> | undefined, encoding: BufferEncoding): void => {
    for (const [key, value] of Object.entries(map ?? {})) data.set(key, Buffer.from(value, encoding));
  };
  decode(object.data, kind === 'configMap' ? 'utf8' : 'base64');
  if ('binaryData' in object) decode(object.binaryData, 'base64');
  return data;
}

/**
 * The files of a ConfigMap or Secret: all keys, or just the items. A missing object (undefined) or key is an error
 * unless the source is optional.
 */
export function objectFiles(
  source: Extract<ContentSource, { kind: 'configMap' | 'secret' }>,
  object: ConfigMap | Secret | undefined,
  defaultMode: number,
): Files {
  if (object === undefined) {
    if (source.optional) return [];
    throw new Error(`${source.kind.toLowerCase()} "${source.name}" not found`);
  }
  const data = objectData(source.kind, object);
  // An empty list of items is no list, as protobuf has it.
  if (source.items === undefined || source.items.length === 0)
    return [...data].map(([key, bytes]) => [key, { data: bytes, mode: defaultMode }]);
  return source.items.flatMap(({ key, path, mode }) => {
    const bytes = data.get(key);
    if (bytes !== undefined) return [[path, { data: bytes, mode: mode ?? defaultMode }] as const];
    if (source.optional) return [];
    const missing =
      source.kind === 'configMap'
        ? 'configmap references non-existent config key'
        : 'references non-existent secret key';
    throw new Error(`${missing}: ${key}`);
  });
}

/** The files of a downward API source. */
export function downwardFiles(
  items: readonly DownwardItem[],
  pod: Pod,
  allocatable: Readonly<Record<string, string>>,
  defaultMode: number,
): Files {
  return items.map((item) => {
    const { fieldRef, resourceFieldRef } = item;
    let text = '';
    if (fieldRef !== undefined) text = fieldText(pod, fieldRef.fieldPath);
    else if (resourceFieldRef !== undefined) text = resourceText(pod, resourceFieldRef, allocatable);
    return [item.path, { data: Buffer.from(text), mode: item.mode ?? defaultMode }];
  });
}

/** The file of a token or of trust anchors: its owner's alone where that is known, and the group's with fsGroup. */
export function ownedFile(
  source: { readonly path: string },
  text: string,
  owner: { readonly uid: number | undefined; readonly gid: number | undefined },
  defaultMode: number,
): Files[number] {
  const narrow = owner.uid !== undefined || owner.gid !== undefined;
  const file = { data: Buffer.from(text), mode: narrow ? 0o600 : defaultMode };
  return [source.path, owner.uid === undefined ? file : { ...file, uid: owner.uid }];
}

/** The uid that every container of the pod runs as, or undefined when they differ or one does not say. */
export function commonUser(pod: Pod): number | undefined {
  const users = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].map(
    (container) => container.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser,
  );
  const [first] = users;
  return users.every((user) => user === first) ? first : undefined;
}
