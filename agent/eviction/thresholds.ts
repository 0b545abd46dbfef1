// Eviction thresholds: from the words of KubeletConfiguration ("memory.available": "100Mi", "nodefs.available": "10%") to
// figures, and what each signal is about. Pure; measures nothing.

import { parseQuantity, quantityValue } from '../../lib/quantity.ts';

/** What can run out. `allocatableMemory.available` follows from memory.available and cannot be configured. */
export type Signal =
  | 'memory.available'
  | 'allocatableMemory.available'
  | 'nodefs.available'
  | 'nodefs.inodesFree'
  | 'imagefs.available'
  | 'imagefs.inodesFree'
  | 'pid.available';

export type StarvedResource = 'memory' | 'ephemeral-storage' | 'inodes' | 'pids';
export type PressureCondition = 'MemoryPressure' | 'DiskPressure' | 'PIDPressure';

export const RESOURCE_OF: Readonly<Record<Signal, StarvedResource>> = {
  'memory.available': 'memory',
  'allocatableMemory.available': 'memory',
  'nodefs.available': 'ephemeral-storage',
  'nodefs.inodesFree': 'inodes',
  'imagefs.available': 'ephemeral-storage',
  'imagefs.inodesFree': 'inodes',
  'pid.available': 'pids',
};

export const CONDITION_OF: Readonly<Record<Signal, PressureCondition>> = {
  'memory.available': 'MemoryPressure',
  'allocatableMemory.available': 'MemoryPressure',
  'nodefs.available': 'DiskPressure',
  'nodefs.inodesFree': 'DiskPressure',
  'imagefs.available': 'DiskPressure',
  'imagefs.inodesFree': 'DiskPressure',
  'pid.available': 'PIDPressure',
};

const CONFIGURABLE: readonly Signal[] = [
  'memory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'pid.available',
];

/** An amount (bytes, inodes, processes) or a share of the capacity (0 to 1). `text` is as configured. */
export type ThresholdValue =
  | { readonly kind: 'amount'; readonly amount: number; readonly text: string }
  | { readonly kind: 'share'; readonly share: number };

export interface Threshold {
  readonly signal: Signal;
  readonly value: ThresholdValue;
  /** How long (ms) it must hold before pods are evicted; 0 is a hard threshold. */
  readonly gracePeriodMs: number;
  /** Beyond the threshold, how much must be free again before the threshold counts as resolved. */
  readonly minReclaim: ThresholdValue | undefined;
}

/** The eviction part of KubeletConfiguration; grace periods in ms. */
export interface ThresholdConfig {
  readonly evictionHard: Readonly<Record<string, string>>;
  readonly evictionSoft: Readonly<Record<string, string>>;
  readonly evictionSoftGracePeriod: Readonly<Record<string, number>>;
  readonly evictionMinimumReclaim: Readonly<Record<string, string>>;
  readonly enforceNodeAllocatable: readonly string[];
}

function parseValue(signal: string, text: string): ThresholdValue {
  const percent = /^(\d+(?:\.\d+)?)%$/.exec(text)?.[1];
  if (percent !== undefined) {
    const share = Number(percent) / 100;
    if (share > 1) throw new RangeError(`eviction percentage threshold ${signal} must be <= 100%: ${text}`);
    return { kind: 'share', share };
  }
  const nano = parseQuantity(text);
  if (nano === undefined)
    throw new RangeError(`eviction threshold ${signal} is not a quantity or percentage: "${text}"`);
  if (nano < 0n) throw new RangeError(`eviction threshold ${signal} must be positive: ${text}`);
  return { kind: 'amount', amount: quantityValue(text), text };
}

/** 0% and 100% switch a threshold off. Throws RangeError for what is no threshold. */
function parseStatements(
  statements: Readonly<Record<string, string>>,
): readonly { readonly signal: Signal; readonly value: ThresholdValue }[] {
  return CONFIGURABLE.flatMap((signal) => {
    const text = statements[signal];
    if (text === undefined || text === '0%' || text === '100%') return [];
    const value = parseValue(signal, text);
    if (value.kind === 'amount' && value.amount === 0) {
      throw new RangeError(`eviction threshold ${signal} must be positive: ${text}`);
    }
    return [{ signal, value }];
  });
}

/**
 * Every threshold of a configuration. Where kubepods is limited, the hard threshold on the node's memory holds inside
 * kubepods as well. The containerfs signals are no thresholds of their own: the kubelet assigns them those of the file
 * system that they share, nodefs or imagefs. Throws RangeError.
 */
export function parseThresholds(config: ThresholdConfig): readonly Threshold[] {
  const reclaim = (signal: Signal): ThresholdValue | undefined => {
    const text = config.evictionMinimumReclaim[signal];
    return text === undefined ? undefined : parseValue(signal, text);
  };
  const hard = parseStatements(config.evictionHard).map(
    ({ signal, value }): Threshold => ({ signal, value, gracePeriodMs: 0, minReclaim: reclaim(signal) }),
  );
  const soft = parseStatements(config.evictionSoft).map(({ signal, value }): Threshold => {
    const gracePeriodMs = config.evictionSoftGracePeriod[signal];
    if (gracePeriodMs === undefined)
      throw new RangeError(`grace period must be specified for the soft threshold ${signal}`);
    return { signal, value, gracePeriodMs, minReclaim: reclaim(signal) };
  });
  const memory = hard.find(({ signal }) => signal === 'memory.available');
  const allocatable =
    memory !== undefined && config.enforceNodeAllocatable.includes('pods')
      ? [{ ...memory, signal: 'allocatableMemory.available' as const }]
      : [];
  return [...allocatable, ...hard, ...soft];
}

/** The amount of a value, of which percentages refer to `capacity`. */
export function thresholdAmount(value: ThresholdValue, capacity: number): number {
  return value.kind === 'amount' ? value.amount : Math.trunc(capacity * value.share);
}
