// How large a volume becomes, and how much room there is for more. All figures are bytes. Pure.

import type { CapacityRange__Output } from '../../proto/gen/csi/v1/CapacityRange.ts';
import type { Capability } from './capability.ts';
import { DriverError, invalid } from './errors.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

/** Capacities are whole pages: a loop device ends at the last whole block of its file. */
const UNIT = 4 * KiB;
export const DEFAULT_CAPACITY = GiB;
/** ext4 files, which volumes are, end at 16 TiB. */
export const MAX_CAPACITY = 16 * 1024 * GiB - UNIT;

/** Smallest that works: mkfs.xfs refuses less than 300 MiB, and an ext4 below 1 MiB has no room for its journal. */
const MIN_CAPACITY: Readonly<Record<'block' | 'ext4' | 'xfs', number>> = {
  block: MiB,
  ext4: 2 * MiB,
  xfs: 300 * MiB,
};

export interface Range {
  /** 0: no lower bound. */
  readonly required: number;
  /** 0: no upper bound. */
  readonly limit: number;
}

/** Throws INVALID_ARGUMENT for a range that is empty or contradicts itself. */
export function parseRange(raw: CapacityRange__Output | null | undefined): Range | undefined {
  if (raw === null || raw === undefined) return undefined;
  const [required, limit] = [Number(raw.required_bytes), Number(raw.limit_bytes)];
  if (required < 0 || limit < 0) throw invalid('capacity_range is negative');
  if (required === 0 && limit === 0) throw invalid('capacity_range has neither required_bytes nor limit_bytes');
  if (limit !== 0 && limit < required) throw invalid('capacity_range: limit_bytes is below required_bytes');
  return { required, limit };
}

export function minimumCapacity(capabilities: readonly Capability[]): number {
  return Math.max(UNIT, ...capabilities.map((each) => MIN_CAPACITY[each.type === 'block' ? 'block' : each.fsType]));
}

export function roundUp(bytes: number): number {
  return Math.ceil(bytes / UNIT) * UNIT;
}

/** Throws OUT_OF_RANGE when no whole page lies within the range. `atLeast` is the size of a source. */
export function chooseCapacity(range: Range | undefined, minimum: number, atLeast = 0): number {
  const required = range?.required ?? 0;
  const floor = Math.max(roundUp(required), minimum, roundUp(atLeast));
  const allowed = range?.limit === undefined || range.limit === 0 ? MAX_CAPACITY : Math.min(range.limit, MAX_CAPACITY);
  const limit = allowed - (allowed % UNIT);
  if (floor > limit) {
    throw new DriverError(
      'OUT_OF_RANGE',
      `at least ${floor} bytes are needed, and ${limit} are the most that is allowed`,
    );
  }
  return required === 0 && atLeast === 0 ? Math.max(floor, Math.min(DEFAULT_CAPACITY, limit)) : floor;
}

/** Whether an existing volume of `bytes` is within a range. */
export function fitsRange(bytes: number, range: Range | undefined): boolean {
  return range === undefined || (bytes >= range.required && (range.limit === 0 || bytes <= range.limit));
}

export type Expansion = { readonly kind: 'enough' } | { readonly kind: 'grow'; readonly bytes: number };

/** Throws OUT_OF_RANGE: a volume never shrinks. */
export function decideExpansion(current: number, range: Range): Expansion {
  if (current >= range.required) {
    if (range.limit !== 0 && current > range.limit) {
      throw new DriverError(
        'OUT_OF_RANGE',
        `the volume has ${current} bytes, more than limit_bytes, and never shrinks`,
      );
    }
    return { kind: 'enough' };
  }
  return { kind: 'grow', bytes: chooseCapacity(range, current) };
}

export interface Pool {
  /** Free on the disk that holds the images. */
  readonly freeBytes: number;
  /** `--pool-size`: most that all volumes and snapshots together may have as their capacity; undefined: no such limit. */
  readonly poolBytes?: number;
  /** Sum of the capacities of all volumes and snapshots. */
  readonly provisionedBytes: number;
}

export interface Bounds {
  /** Undefined when there is no room for a volume of any size. */
  readonly largest: number | undefined;
  readonly smallest: number;
}

/** How large a volume can be made where `room` is left and the filesystem needs `minimum`. */
export function sizeBounds(room: number, minimum: number): Bounds {
  const largest = Math.min(MAX_CAPACITY, room - (room % UNIT));
  return { largest: largest < minimum ? undefined : largest, smallest: minimum };
}

/** Capacity that `--pool-size` still allows. */
function poolLeft({ poolBytes, provisionedBytes }: Pool): number {
  return poolBytes === undefined ? Number.POSITIVE_INFINITY : Math.max(0, poolBytes - provisionedBytes);
}

/**
 * Capacity that a new volume may have. Volumes are provisioned thinly: each could be filled at the moment it is made, and
 * nothing is set aside for the others. `poolBytes` bounds the sum of their capacities.
 */
export function availableCapacity(pool: Pool): number {
  return Math.min(pool.freeBytes, poolLeft(pool));
}

/**
 * Throws RESOURCE_EXHAUSTED when the pool cannot have `capacityBytes` more, or the disk has not `diskBytes` free now. A new
 * volume needs the same of both; a copy takes no more of the disk than its source does.
 */
export function checkCapacity(pool: Pool, capacityBytes: number, diskBytes = capacityBytes): void {
  const inPool = poolLeft(pool);
  if (capacityBytes > inPool) {
    throw new DriverError(
      'RESOURCE_EXHAUSTED',
      `${capacityBytes} bytes are needed, and ${inPool} are left in the pool`,
    );
  }
  if (diskBytes > pool.freeBytes) {
    throw new DriverError('RESOURCE_EXHAUSTED', `${diskBytes} bytes are needed, and ${pool.freeBytes} are free`);
  }
}
