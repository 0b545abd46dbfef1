// Reads a kubelet's /metrics/resource: the CPU time and memory of its node and containers, with the times of their reading.
// What is in no known form is passed over, as metrics-server does. Pure.

import { type EpochMs, epochMs } from '../../lib/clock.ts';

/** One reading of a node or a container. */
export interface Point {
  readonly at: EpochMs;
  /** When it began; undefined for nodes, and where the kubelet does not say. */
  readonly startedAt: EpochMs | undefined;
  /** Processor time in all, seconds. */
  readonly cpu: number;
  /** Working set, bytes. */
  readonly memory: number;
}

export interface PodPoints {
  readonly namespace: string;
  readonly name: string;
  /** By container. */
  readonly containers: ReadonlyMap<string, Point>;
}

export interface NodePoints {
  /** undefined where a figure is missing. */
  readonly node: Point | undefined;
  /** By `namespace/name`; only pods of whose containers all figures are there. */
  readonly pods: ReadonlyMap<string, PodPoints>;
}

interface Partial {
  at: EpochMs | undefined;
  startedAt: EpochMs | undefined;
  cpu: number | undefined;
  memory: number | undefined;
}

const SAMPLE = /^([a-z_]+)(?:\{([^}]*)\})? (\S+)(?: (\d+))?$/;
const LABEL = /(\w+)="([^"]*)"/g;

/** Samples of other families are passed over. */
export function parseResourceMetrics(text: string): NodePoints {
  const node = empty();
  const pods = new Map<string, { namespace: string; name: string; containers: Map<string, Partial> }>();
  for (const line of text.split('\n')) {
    if (!line.startsWith('node_') && !line.startsWith('container_')) continue;
    const match = SAMPLE.exec(line);
    if (match === null) continue;
    const [, name = '', labelText = '', valueText = '', time] = match;
    const value = Number(valueText);
    if (!Number.isFinite(value)) continue;
    const at = time === undefined ? undefined : epochMs(Number(time));
    if (name.startsWith('node_')) {
      enter(node, name.slice('node_'.length), value, at);
      continue;
    }
    const labels = new Map(Array.from(labelText.matchAll(LABEL), ([, key = '', text = '']) => [key, text]));
    const [namespace = '', pod = '', container = ''] = ['namespace', 'pod', 'container'].map((key) => labels.get(key));
    if (container === '') continue;
    const key = `${namespace}/${pod}`;
    const known = pods.get(key) ?? { namespace, name: pod, containers: new Map<string, Partial>() };
    pods.set(key, known);
    const partial = known.containers.get(container) ?? empty();
    known.containers.set(container, partial);
    enter(partial, name.slice('container_'.length), value, at);
  }
  const whole = new Map<string, PodPoints>();
  for (const [key, { namespace, name, containers }] of pods) {
    const points = [...containers].flatMap(([container, partial]) => {
      const point = pointOf(partial);
      return point === undefined ? [] : [[container, point] as const];
    });
    // A pod with a part of its containers would look smaller than it is.
    if (points.length === containers.size) whole.set(key, { namespace, name, containers: new Map(points) });
  }
  return { node: pointOf(node), pods: whole };
}

function empty(): Partial {
  return { at: undefined, startedAt: undefined, cpu: undefined, memory: undefined };
}

function enter(partial: Partial, figure: string, value: number, at: EpochMs | undefined): void {
  if (figure === 'cpu_usage_seconds_total') {
    partial.cpu = value;
    partial.at = at;
  } else if (figure === 'memory_working_set_bytes') partial.memory = value;
  else if (figure === 'start_time_seconds') partial.startedAt = epochMs(value * 1000);
}

/** undefined where a figure is missing, or is 0, which is none that has been read. */
function pointOf({ at, startedAt, cpu, memory }: Partial): Point | undefined {
  if (at === undefined || cpu === undefined || memory === undefined || cpu === 0 || memory === 0) return undefined;
  return { at, startedAt, cpu, memory };
}
