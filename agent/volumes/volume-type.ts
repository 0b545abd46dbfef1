// The one small interface that every volume type implements, one file each: a pure plan from the pod's spec, and acting
// on that plan. Types, and the layout on disk that they share.

import { join } from 'node:path';
import type { PersistentVolumeSpec } from 'kubernetes-types/core/v1';
import type { Pod } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Gate } from '../../lib/gate.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { EventRecorder, ObjectReader } from '../ports/api.ts';
import type { Mounter } from '../ports/mounter.ts';
import type { TokenCache } from './tokens.ts';

export type Volume = NonNullable<Pod['spec']['volumes']>[number];

/** A volume of the pod, or the source of a PersistentVolume: sources that pods cannot name themselves are in it, too. */
export type SourceVolume = Volume &
  Pick<PersistentVolumeSpec, 'local'> & {
    /** An image whose files are the volume: newer than the API types. */
    readonly image?: { readonly reference?: string; readonly pullPolicy?: string };
  };

/** What a plan is made from. */
export interface PlanInput {
  readonly pod: Pod;
  readonly volume: SourceVolume;
  /** `<root>/pods/<uid>` */
  readonly podDir: string;
  /** Allocatable quantities of the node. */
  readonly allocatable: Readonly<Record<string, string>>;
  /** Of a PersistentVolume: what to mount with, and whether the pod's claim is read-only or a device. */
  readonly mountOptions?: readonly string[];
  readonly readOnly?: boolean;
  readonly block?: boolean;
}

export interface VolumePlan {
  /** What containers get: a directory, or the file of a hostPath. */
  readonly path: string;
  /** Containers may only read it, whatever their mounts say. */
  readonly readOnly: boolean;
  /** The agent owns what is in it; the runtime may relabel it for SELinux. */
  readonly managed: boolean;
  /** What the runtime mounts in place of `path`. */
  readonly image?: { readonly reference: string; readonly pullPolicy: string | undefined };
}

/** What acting needs. */
export interface VolumeHost {
  readonly mounter: Mounter;
  readonly objects: ObjectReader;
  readonly tokens: TokenCache;
  readonly clock: Clock;
  readonly recorder: EventRecorder;
  readonly tracer: Tracer;
  /** Limits how many objects' contents are in memory at once, on their way from the API server to a volume. */
  readonly bigContents: Gate;
  /** Why the runtime cannot mount images; undefined when it can. */
  readonly imageVolumeProblem?: () => Promise<string | undefined>;
}

export interface VolumeType<P extends VolumePlan> {
  /** "kubernetes.io/configmap": the name in events, and with '~' the directory on disk. */
  readonly plugin: string;
  /** Pure. Throws an Error whose message ends a FailedMount event when the spec cannot be served. */
  plan(input: PlanInput): P;
  /** Makes the volume ready. Idempotent, also after a crash half-way. */
  mount(plan: P, pod: Pod, host: VolumeHost): Promise<void>;
  /** Brings the content up to date; absent where content never changes. */
  update?(plan: P, pod: Pod, host: VolumeHost): Promise<void>;
}

export function podsDir(rootDir: string): string {
  return join(rootDir, 'pods');
}

export function podDir(rootDir: string, uid: string): string {
  return join(podsDir(rootDir), uid);
}

/** `<pod>/volumes/kubernetes.io~<plugin>/<name>`, the kubelet's own layout. */
export function volumeDir(pod: string, plugin: string, name: string): string {
  return join(pod, 'volumes', plugin.replaceAll('/', '~'), name);
}

/** Where a plugin keeps its own notes about a volume of a pod. */
export function volumeMetaDir(pod: string, plugin: string, name: string): string {
  return join(pod, 'plugins', plugin.replaceAll('/', '~'), name);
}

/** `<pod>/volume-subpaths/<volume>/<container>/<index of the mount>` */
export function subPathTarget(pod: string, volume: string, container: string, index: number): string {
  return join(pod, 'volume-subpaths', volume, container, String(index));
}
