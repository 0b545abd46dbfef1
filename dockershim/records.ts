// What CRI knows of a sandbox or container and Docker has no field for, kept as one label of the Docker container: the
// shim has no state of its own. CRI's labels are Docker labels as well, for `docker ps --filter`, but are never read
// back: an image's labels are among them. Pure.

import type { ContainerMetadata__Output } from '../proto/gen/runtime/v1/ContainerMetadata.ts';
import type { ImageSpec__Output } from '../proto/gen/runtime/v1/ImageSpec.ts';
import type { LinuxContainerResources__Output } from '../proto/gen/runtime/v1/LinuxContainerResources.ts';
import type { Mount__Output } from '../proto/gen/runtime/v1/Mount.ts';
import type { NamespaceOption__Output } from '../proto/gen/runtime/v1/NamespaceOption.ts';
import type { PodSandboxMetadata__Output } from '../proto/gen/runtime/v1/PodSandboxMetadata.ts';
import type { PortMapping__Output } from '../proto/gen/runtime/v1/PortMapping.ts';
import type { Signal__Output } from '../proto/gen/runtime/v1/Signal.ts';

type Labels = Readonly<Record<string, string>>;

interface CommonRecord {
  readonly labels: Labels;
  readonly annotations: Labels;
  /** Nanoseconds since the epoch, in decimal: Docker's lists have whole seconds. */
  readonly createdAt: string;
}

export interface SandboxRecord extends CommonRecord {
  readonly kind: 'sandbox';
  readonly metadata: PodSandboxMetadata__Output;
  readonly runtimeHandler: string;
  readonly namespaces: NamespaceOption__Output | null;
  readonly logDirectory: string;
  readonly portMappings: readonly PortMapping__Output[];
}

export interface ContainerRecord extends CommonRecord {
  readonly kind: 'container';
  readonly sandboxId: string;
  readonly metadata: ContainerMetadata__Output;
  readonly image: ImageSpec__Output;
  /** A repository digest of the image, or its id. */
  readonly imageRef: string;
  /** Absolute; '' for a container without a log. */
  readonly logPath: string;
  readonly mounts: readonly Mount__Output[];
  readonly resources: LinuxContainerResources__Output | null;
  readonly stopSignal: Signal__Output;
  readonly stdinOnce: boolean;
}

export type ShimRecord = SandboxRecord | ContainerRecord;

const PREFIX = 'io.nodelet.dockershim.';
export const KIND_LABEL = `${PREFIX}kind`;
export const SANDBOX_LABEL = `${PREFIX}sandbox`;
const RECORD_LABEL = `${PREFIX}record`;

/** Docker's labels for a record. */
export function encodeRecord(record: ShimRecord): Record<string, string> {
  const visible = Object.entries(record.labels).filter(([name]) => name !== '' && !name.startsWith(PREFIX));
  return {
    ...Object.fromEntries(visible),
    [KIND_LABEL]: record.kind,
    ...(record.kind === 'container' ? { [SANDBOX_LABEL]: record.sandboxId } : {}),
    [RECORD_LABEL]: JSON.stringify(record),
  };
}

/** The record in the labels of a Docker container; undefined for one that the shim did not make. */
export function decodeRecord(labels: Labels): ShimRecord | undefined {
  const text = labels[RECORD_LABEL];
  if (text === undefined) return undefined;
  try {
    const record: unknown = JSON.parse(text);
    if (typeof record !== 'object' || record === null || !('kind' in record)) return undefined;
    // Written by encodeRecord, under a name that is the shim's own.
    return record.kind === 'sandbox' || record.kind === 'container' ? (record as ShimRecord) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Docker takes letters, digits and `_.-` in names. */
function nameOf(parts: readonly (string | number)[]): string {
  return ['k8s', ...parts].join('_').replace(/[^a-zA-Z0-9_.-]/g, '-');
}

/** The name of a sandbox's pause container: Docker refuses a second one, as containerd reserves names. */
export function sandboxName({ name, namespace, uid, attempt }: PodSandboxMetadata__Output): string {
  return nameOf(['POD', name, namespace, uid, attempt]);
}

export function containerName(own: ContainerMetadata__Output, pod: PodSandboxMetadata__Output): string {
  return nameOf([own.name, pod.name, pod.namespace, pod.uid, own.attempt]);
}
