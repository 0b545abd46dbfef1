// Kubernetes' protobuf messages: which one a kind is, and the fields of each by number. They are in
// apiserver/gen/protobuf.json, which is read with the first body or response that needs them.

import { readFileSync } from 'node:fs';

export const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf';

/** What is before the envelope of an object: "k8s" and a zero. */
export const MAGIC = Buffer.from([0x6b, 0x38, 0x73, 0x00]);

/** Message → field number → "<name>:<type>"; a name of "" is a struct whose fields are inlined in its owner. */
export type Messages = Readonly<Record<string, Readonly<Record<string, string>>>>;

let loaded: Messages | undefined;

export function messages(): Messages {
  if (loaded === undefined) {
    const read: Messages = JSON.parse(readFileSync(new URL('../gen/protobuf.json', import.meta.url), 'utf8'));
    loaded = read;
  }
  return loaded;
}

/** Kinds of every group. */
const META_KINDS: readonly string[] = ['DeleteOptions', 'Status'];

/** "authentication.k8s.io/v1", "TokenReview" → "authentication.v1.TokenReview" */
export function messageName(apiVersion: string, kind: string): string {
  if (META_KINDS.includes(kind)) return `meta.v1.${kind}`;
  const slash = apiVersion.indexOf('/');
  if (slash < 0) return `core.${apiVersion}.${kind}`;
  return `${apiVersion.slice(0, slash).split('.')[0]}.${apiVersion.slice(slash + 1)}.${kind}`;
}
