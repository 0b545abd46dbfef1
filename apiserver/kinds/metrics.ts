// NodeMetrics and PodMetrics (metrics.k8s.io/v1beta1): not stored, but made of what kubelets show when they are read
// (apiserver/metrics-api). Rows and tables.

import { formatBytes, quantityValue } from '../../lib/quantity.ts';
import { isObject } from '../patch/json-value.ts';
import { NAME_COLUMN } from './columns.ts';
import { defineKind } from './metadata.ts';
import type { KubeObject, TableColumn } from './resource.ts';

const SCHEMA = 'io.k8s.metrics.pkg.apis.metrics.v1beta1';
/** Of a quantity of cores, the largest first, in billionths. */
const UNITS = [
  ['', 1_000_000_000],
  ['m', 1_000_000],
  ['u', 1_000],
  ['n', 1],
] as const;

/** Billionths of a core as Go prints the quantity: in the largest unit that has no fraction. */
export function nanoQuantity(nanoCores: number): string {
  if (nanoCores === 0) return '0';
  const [unit, size] = UNITS.find(([, each]) => nanoCores % each === 0) ?? ['n', 1];
  return `${nanoCores / size}${unit}`;
}

function nanoCoresOf(quantity: string): number {
  const [, digits = '0', unit = ''] = /^(\d+)([num]?)$/.exec(quantity) ?? [];
  return Number(digits) * (UNITS.find(([name]) => name === unit)?.[1] ?? 1);
}

interface Amounts {
  readonly cpu: string;
  readonly memory: string;
}

function amountsOf(value: unknown): Amounts {
  const { cpu, memory } = isObject(value) ? value : {};
  return { cpu: typeof cpu === 'string' ? cpu : '0', memory: typeof memory === 'string' ? memory : '0' };
}

/** A pod uses what its containers use together. */
function usageOf(object: KubeObject): Amounts {
  const containers = object['containers'];
  if (!Array.isArray(containers)) return amountsOf(object['usage']);
  const all = containers.map((container) => amountsOf(isObject(container) ? container['usage'] : undefined));
  return {
    cpu: nanoQuantity(all.reduce((sum, { cpu }) => sum + nanoCoresOf(cpu), 0)),
    memory: formatBytes(all.reduce((sum, { memory }) => sum + quantityValue(memory), 0)),
  };
}

const column = (name: string, format: string): TableColumn => ({ name, type: 'string', format });
const TABLE = {
  columns: [NAME_COLUMN, column('cpu', 'quantity'), column('memory', 'quantity'), column('Window', 'duration')],
  row: (object: KubeObject) => {
    const { cpu, memory } = usageOf(object);
    const window = object['window'];
    return [object.metadata.name ?? '', cpu, memory, typeof window === 'string' ? window : ''];
  },
};

export const nodemetrics = defineKind({
  group: 'metrics.k8s.io',
  version: 'v1beta1',
  kind: 'NodeMetrics',
  plural: 'nodes',
  singular: '',
  namespaced: false,
  subresources: [],
  verbs: ['get', 'list'],
  computed: true,
  schema: `${SCHEMA}.NodeMetrics`,
  strategy: { table: TABLE },
});

export const podmetrics = defineKind({
  group: 'metrics.k8s.io',
  version: 'v1beta1',
  kind: 'PodMetrics',
  plural: 'pods',
  singular: '',
  namespaced: true,
  subresources: [],
  verbs: ['get', 'list'],
  computed: true,
  schema: `${SCHEMA}.PodMetrics`,
  strategy: { table: TABLE },
});
