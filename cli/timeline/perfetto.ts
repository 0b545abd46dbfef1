// A timeline as Chrome's trace event format (JSON), which ui.perfetto.dev opens: a track for each row of each lane, bars as complete
// events ("X"), moments as instants ("i"), arrows of cause as flows ("s", "f"). Times are microseconds. Pure.

import type { Bar, Timeline } from './model.ts';

export interface TraceEvent {
  readonly ph: 'X' | 'i' | 'M' | 's' | 'f';
  readonly pid: number;
  readonly tid: number;
  readonly name: string;
  readonly ts?: number;
  readonly dur?: number;
  readonly cat?: string;
  readonly id?: number;
  /** Of an instant: how far it reaches; a thread. */
  readonly s?: 't';
  /** Of a flow's end: it belongs to the slice that encloses it. */
  readonly bp?: 'e';
  readonly args?: Readonly<Record<string, string | number>>;
}

export interface TraceFile {
  readonly traceEvents: readonly TraceEvent[];
  readonly displayTimeUnit: 'ms';
  readonly otherData: Readonly<Record<string, string>>;
}

const PATH_TID = 1;
/** Flows of one process; ids are the file's. */
const FLOW_IDS = 1_000_000;
/** Tracks of a lane: rows get their numbers from the lane's hundred. */
const LANE_TIDS = 100;

const micros = (ms: number): number => Math.round(ms * 1000);

function argsOf(bar: Bar): Readonly<Record<string, string>> {
  return {
    ...(bar.pod === undefined ? {} : { pod: bar.pod }),
    ...(bar.cause === undefined ? {} : { cause: bar.cause }),
    ...(bar.error === undefined ? {} : { error: bar.error }),
    ...Object.fromEntries(bar.facts.map(([name, value]) => [`fact.${name}`, value])),
  };
}

/** `pid`: of the process that stands for the timeline. */
function toTraceEvents({ title, source, lanes, bars, arrows, critical }: Timeline, pid: number): TraceEvent[] {
  const tids = new Map(lanes.map(({ id }, index) => [id, (index + 1) * LANE_TIDS]));
  const tidOf = ({ lane, row }: Bar): number => (tids.get(lane) ?? 0) + row;
  const meta = (tid: number, name: string, args: TraceEvent['args']): TraceEvent => ({
    ph: 'M',
    pid,
    tid,
    name,
    ...(args === undefined ? {} : { args }),
  });
  const tracks = [
    meta(0, 'process_name', { name: `${title}, ${source}` }),
    ...(critical === undefined
      ? []
      : [
          meta(PATH_TID, 'thread_name', { name: 'critical path' }),
          meta(PATH_TID, 'thread_sort_index', { sort_index: 0 }),
        ]),
    ...lanes.flatMap(({ id, title: lane, rows }) =>
      Array.from({ length: rows }, (_, row) => (tids.get(id) ?? 0) + row).flatMap((tid) => [
        meta(tid, 'thread_name', { name: lane }),
        meta(tid, 'thread_sort_index', { sort_index: tid }),
      ]),
    ),
  ];
  const slices = bars.map((bar): TraceEvent => {
    const common = {
      pid,
      tid: tidOf(bar),
      name: bar.name,
      cat: bar.lane,
      ts: micros(bar.start),
      args: argsOf(bar),
    };
    return bar.end > bar.start
      ? { ph: 'X', ...common, dur: micros(bar.end) - micros(bar.start) }
      : { ph: 'i', ...common, s: 't' };
  });
  const path = (critical?.segments ?? []).map(
    ({ start, end, text, owner }): TraceEvent => ({
      ph: 'X',
      pid,
      tid: PATH_TID,
      name: text,
      cat: owner,
      ts: micros(start),
      dur: micros(end) - micros(start),
    }),
  );
  const byId = new Map(bars.map((bar) => [bar.id, bar]));
  const flows = arrows.flatMap(({ from, to }, index): TraceEvent[] => {
    const [a, b] = [byId.get(from), byId.get(to)];
    if (a === undefined || b === undefined) return [];
    const common = { pid, name: 'cause', cat: 'cause', id: pid * FLOW_IDS + index };
    return [
      { ph: 's', ...common, tid: tidOf(a), ts: micros(Math.min(a.end, b.start)) },
      { ph: 'f', ...common, tid: tidOf(b), ts: micros(b.start), bp: 'e' },
    ];
  });
  return [...tracks, ...path, ...slices, ...flows];
}

/** Each timeline is a process of its own. */
export function toTraceFile(timelines: readonly Timeline[]): TraceFile {
  return {
    traceEvents: timelines.flatMap((timeline, index) => toTraceEvents(timeline, index + 1)),
    displayTimeUnit: 'ms',
    otherData: Object.fromEntries(
      timelines.map(({ title, source }, index) => [`timeline ${index + 1}`, `${title}, ${source}`]),
    ),
  };
}
