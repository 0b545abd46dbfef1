// What the volume manager has to be given, and what it offers beyond the PodVolumes port. Types only.

import type { Pod } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { EventRecorder, FollowedObjects, ObjectReader } from '../ports/api.ts';
import type { Mounter } from '../ports/mounter.ts';
import type { PodVolumes } from '../ports/node.ts';
import type { PodRef } from '../ports/runtime.ts';
import type { VolumeCount } from '../ports/stats.ts';
import type { PreparedVolume } from './registry.ts';
import type { PlanInput } from './volume-type.ts';

export interface PodVolumesOptions {
  /** The agent's root: pods/<uid>/volumes is below. */
  readonly rootDir: string;
  readonly mounter: Mounter;
  readonly objects: ObjectReader;
  readonly tracer: Tracer;
  readonly clock: Clock;
  /** FailedMount and FailedAttachVolume of every try go here. */
  readonly recorder: EventRecorder;
  /** Loads what serves claims and CSI volumes; without it they are refused as unsupported. */
  readonly persistent?: () => Promise<PersistentVolumes>;
  /** Allocatable quantities of the node: the default of a missing limit in a downward API resourceFieldRef. */
  readonly allocatable?: () => Readonly<Record<string, string>>;
  /** Whether the runtime that runs this pod can make read-only mounts recursively so (RuntimeStatus.handlers). */
  readonly recursiveReadOnlyMounts?: (pod: Pod) => Promise<boolean>;
  /** Why the runtime cannot mount images; undefined when it can. */
  readonly imageVolumeProblem?: () => Promise<string | undefined>;
  /** Keeps the objects of mounted pods current; without it files follow them once in a minute or so. */
  readonly followed?: FollowedObjects;
  /**
   * Whether the pod has logs. Its directory stays as long, empty: an agent that is killed leaves both, and the directory is what
   * shows that the logs, in a place that others use too, are those of its pods.
   */
  readonly hasLogs?: (pod: PodRef) => boolean;
  /** 0 ≤ x < 1, for spreading refreshes; Math.random by default. */
  readonly random?: () => number;
}

/** Volumes that are looked up before they are mounted: claims, and what CSI drivers serve. */
export interface PersistentVolumes {
  /** Finds out what the volume is. Rejects with VolumeStepError. */
  prepare(input: PlanInput, signal: AbortSignal): Promise<PreparedVolume>;
  /** Undoes such volumes of one pod, from what is on disk. Rejects when one fails; the others are gone then. */
  tearDown(pod: PodRef): Promise<void>;
}

export interface VolumeManager extends PodVolumes {
  /** Brings ConfigMaps, Secrets, downward API and tokens of a mounted pod up to date now. Rejects with VolumeError. */
  update(pod: Pod): Promise<void>;
  /** How many volumes of each plugin are wanted and how many are mounted, as the kubelet counts them. */
  counts(): readonly VolumeCount[];
  /** Stops refreshing. Mounts stay. */
  close(): void;
}
