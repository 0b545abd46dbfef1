// Which lane a span belongs to, what its bar is called, and in which row of the lane it is drawn. Pure.

import { getOwn } from '../../lib/own-property.ts';
import type { Span, SpanAttribute, SpanKind } from '../../lib/trace.ts';
import type { LaneId } from './model.ts';

const LANE_OF: Readonly<Record<SpanKind, LaneId>> = {
  api: 'api',
  worker: 'worker',
  volume: 'volumes',
  mount: 'volumes',
  disk: 'volumes',
  csi: 'volumes',
  cgroup: 'cgroup',
  systemd: 'cgroup',
  cri: 'cri',
  docker: 'cri',
  credentials: 'cri',
  cni: 'cni',
  netlink: 'kernel',
  netfilter: 'kernel',
  dns: 'api',
  probe: 'probes',
  hook: 'probes',
};

export function laneOf(span: Span): LaneId {
  // A recording may come from a version that knows further kinds.
  return LANE_OF[span.kind] ?? 'worker';
}

/** "a, b" for a list, "" for nothing. */
export function attributeText(value: SpanAttribute): string {
  if (value === undefined) return '';
  return typeof value === 'object' ? value.join(', ') : String(value);
}

/** Ids as people read them: containerd's are 64 hexadecimal digits. */
const short = (text: string): string => text.replace(/\b[0-9a-f]{13,64}\b/g, (id) => id.slice(0, 12));

/** What tells two calls of one name apart: which container, volume, image. `names`: containers by id. */
export function barName(span: Span, names: ReadonlyMap<string, string>): string {
  const { attributes, name, kind } = span;
  const of = (...keys: readonly string[]): string => {
    const key = keys.find((each) => attributeText(getOwn(attributes, each)) !== '');
    if (key === undefined) return name;
    const text = attributeText(getOwn(attributes, key));
    return `${name} ${short(names.get(text) ?? text)}`;
  };
  switch (kind) {
    case 'cri':
      return of('container', 'containerId', 'image');
    case 'volume':
      return of('volume');
    case 'mount':
      return of('target', 'device').replace(/ \S*\/volumes\/kubernetes\.io~/, ' …/');
    case 'probe':
    case 'hook':
      return of('container');
    case 'csi':
      return of('driver');
    case 'worker':
      // The id of an action names its container.
      return name === 'startContainer' ? `${name} ${attributeText(attributes['action']).replace(/^start /, '')}` : name;
    default:
      return short(name);
  }
}

export interface Extent {
  readonly start: number;
  readonly end: number;
}

/**
 * The rows of bars, which are in the order of their starts, so that no two of a row overlap. Bars shorter than `minimum` count
 * as that long: they are drawn with a width that can be seen.
 */
export function packRows(bars: readonly Extent[], minimum: number): number[] {
  const ends: number[] = [];
  return bars.map(({ start, end }) => {
    let row = ends.findIndex((each) => each <= start);
    if (row < 0) row = ends.length;
    ends[row] = Math.max(end, start + minimum);
    return row;
  });
}
