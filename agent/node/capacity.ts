// What the node has and what pods may have of it: capacity, and allocatable = capacity − kubeReserved − systemReserved −
// hard eviction thresholds. The kubelet's rules (pkg/kubelet/cm/node_container_manager_linux.go). Pure.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { formatBytes, formatMilli, quantityMilli, quantityValue } from '../../lib/quantity.ts';
import type { MachineFacts } from './facts.ts';
import type { NodeConfig } from './options.ts';

export type ResourceList = Readonly<Record<string, string>>;

type CapacityConfig = Pick<NodeConfig, 'maxPods' | 'podsPerCore' | 'kubeReserved' | 'systemReserved' | 'evictionHard'>;

const HUGEPAGES = 'hugepages-';

/** Amount in millicores for cpu, in whole units otherwise. */
function amountOf(name: string, quantity: string): number {
  return name === 'cpu' ? quantityMilli(quantity) : quantityValue(quantity);
}

function format(name: string, amount: number): string {
  if (name === 'cpu') return formatMilli(amount);
  return name === 'pods' ? String(amount) : formatBytes(amount);
}

/**
 * `known` is the capacity that the Node has now: resources of other components (extended ones that were patched
 * in) are kept.
 */
export function capacityOf(facts: MachineFacts, config: CapacityConfig, known: ResourceList = {}): ResourceList {
  const perCore = config.podsPerCore > 0 ? config.podsPerCore * facts.cpus : config.maxPods;
  const others = Object.entries(known).filter(([name]) => !name.startsWith(HUGEPAGES));
  return {
    ...Object.fromEntries(others),
    cpu: formatMilli(facts.cpus * 1000),
    'ephemeral-storage': formatBytes(facts.diskBytes),
    ...Object.fromEntries(
      Object.entries(facts.hugepages).map(([size, bytes]) => [`${HUGEPAGES}${size}`, formatBytes(bytes)]),
    ),
    memory: formatBytes(facts.memoryBytes),
    pods: String(Math.min(config.maxPods, perCore)),
  };
}

/** The part of `capacity` that pods may request. Never below zero. */
export function allocatableOf(capacity: ResourceList, config: CapacityConfig): ResourceList {
  const allocatable: Record<string, string> = {};
  for (const [name, quantity] of Object.entries(capacity)) {
    let amount = amountOf(name, quantity);
    for (const reserved of [getOwn(config.kubeReserved, name), getOwn(config.systemReserved, name)]) {
      if (reserved !== undefined) amount -= amountOf(name, reserved);
    }
    amount -= evictionReserve(name, quantity, config.evictionHard);
    // Memory in huge pages is gone for everything else.
    if (name === 'memory') amount -= hugepageBytes(capacity);
    setOwn(allocatable, name, format(name, Math.max(0, amount)));
  }
  return allocatable;
}

const SIGNAL: Readonly<Record<string, string>> = {
  memory: 'memory.available',
  'ephemeral-storage': 'nodefs.available',
};

/** What a hard threshold ("100Mi", "10%") keeps back of a resource. */
function evictionReserve(name: string, capacity: string, thresholds: Readonly<Record<string, string>>): number {
  const threshold = getOwn(thresholds, getOwn(SIGNAL, name) ?? '');
  if (threshold === undefined) return 0;
  const percent = /^(\d+(?:\.\d+)?)%$/.exec(threshold)?.[1];
  if (percent === undefined) return quantityValue(threshold);
  return Math.trunc((quantityValue(capacity) * Number(percent)) / 100);
}

function hugepageBytes(capacity: ResourceList): number {
  return Object.entries(capacity)
    .filter(([name]) => name.startsWith(HUGEPAGES))
    .reduce((sum, [, quantity]) => sum + quantityValue(quantity), 0);
}
