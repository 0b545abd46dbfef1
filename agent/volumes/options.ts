// What the volume manager has to be given, and what it offers beyond the PodVolumes port. Types only.

import type { Pod } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { ObjectReader } from '../ports/api.ts';
import type { Mounter } from '../ports/mounter.ts';
import type { PodVolumes } from '../ports/node.ts';

export interface PodVolumesOptions {
  /** The agent's root: pods/<uid>/volumes lies below. */
  readonly rootDir: string;
  readonly mounter: Mounter;
  readonly objects: ObjectReader;
  readonly tracer: Tracer;
  readonly clock: Clock;
  /** Allocatable quantities of the node: the default of a missing limit in a downward API resourceFieldRef. */
  readonly allocatable?: () => Readonly<Record<string, string>>;
  /** Whether the runtime that runs this pod can make read-only mounts recursively so (RuntimeStatus.handlers). */
  readonly recursiveReadOnlyMounts?: (pod: Pod) => boolean;
  /** Told when a refresh of a mounted volume failed; the files stay as they were and the next refresh tries again. */
  readonly onRefreshFailure?: (pod: Pod, error: Error) => void;
  /** 0 ≤ x < 1, for spreading refreshes; Math.random by default. */
  readonly random?: () => number;
}

export interface VolumeManager extends PodVolumes {
  /** Brings ConfigMaps, Secrets, downward API and tokens of a mounted pod up to date now. Rejects with VolumeError. */
  update(pod: Pod): Promise<void>;
  /** Stops refreshing. Mounts stay. */
  close(): void;
}
