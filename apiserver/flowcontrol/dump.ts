// What /debug/api_priority_and_fairness/… shows, in kube-apiserver's tables. Pure.

import { elapsedMs, epochMs, plusMs } from '../../lib/clock.ts';
import { rfc3339Nano } from '../../lib/rfc3339.ts';
import type { Ticket } from './flow-control.ts';
import type { LevelState } from './levels.ts';
import type { Entry } from './queue-set.ts';

export const DEBUG_PREFIX = '/debug/api_priority_and_fairness/';

type States = ReadonlyMap<string, LevelState<Ticket>>;
type Row = readonly (string | number | boolean)[];

/** Cells padded as Go's tabwriter does it with a minimum width of 8. */
function table(rows: readonly Row[]): string {
  const texts = rows.map((row) => row.map((cell, index) => `${cell}${index < row.length - 1 ? ',' : ''}`));
  const columns = Math.max(...texts.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(8, ...texts.map((row) => (column < row.length - 1 ? (row[column]?.length ?? 0) + 1 : 0))),
  );
  const lines = texts.map((row) =>
    row.map((cell, index) => (index < row.length - 1 ? cell.padEnd(widths[index] ?? 0) : cell)).join(''),
  );
  return lines.map((line) => `${line}\n`).join('');
}

function sorted(states: States): LevelState<Ticket>[] {
  return [...states.values()].sort((a, b) => (a.level.name < b.level.name ? -1 : 1));
}

function dumpLevels(states: States): string {
  const header =
    'PriorityLevelName ActiveQueues IsIdle IsQuiescing WaitingRequests ExecutingRequests DispatchedRequests RejectedRequests TimedoutRequests CancelledRequests';
  const rows = sorted(states).map(({ level, queues, isQuiescing, dispatched, rejected, timedOut, cancelled }): Row => {
    const active = queues.queues.filter(({ waiting }) => waiting.length > 0).length;
    const counts = [queues.waiting, queues.executing.size, dispatched, rejected, timedOut, cancelled];
    return [level.name, active, queues.isIdle, isQuiescing, ...counts];
  });
  return table([header.split(' '), ...rows]);
}

const seatSeconds = (ms: number): string => `${(ms / 1000).toFixed(8)}ss`;

function dumpQueues(states: States): string {
  const header =
    'PriorityLevelName Index PendingRequests ExecutingRequests SeatsInUse NextDispatchR InitialSeatsSum MaxSeatsSum TotalWorkSum';
  const rows = sorted(states).flatMap(({ level, queuing, queues }) => {
    const busy = new Map(queues.queues.map((queue) => [queue.index, queue]));
    const count = Math.max(
      typeof queuing.queues === 'number' ? queuing.queues : 0,
      ...[...busy.keys()].map((index) => index + 1),
    );
    return Array.from({ length: count }, (_, index): Row => {
      const { waiting = [], executing = 0, seatsInUse = 0, nextStart = 0, waitingSeats = 0 } = busy.get(index) ?? {};
      const work = seatSeconds(waitingSeats * 3);
      return [
        level.name,
        index,
        waiting.length,
        executing,
        seatsInUse,
        seatSeconds(nextStart),
        waitingSeats,
        waitingSeats,
        work,
      ];
    });
  });
  return table([header.split(' '), ...rows]);
}

const ZERO = '0001-01-01T00:00:00Z';

function dumpRequests(states: States, details: boolean): string {
  const header =
    'PriorityLevelName FlowSchemaName QueueIndex RequestIndexInQueue FlowDistingsher ArriveTime InitialSeats FinalSeats AdditionalLatency StartTime';
  const more = 'UserName Verb APIPath Namespace Name APIVersion Resource SubResource';
  const rows = sorted(states).flatMap(({ level, queues }) => {
    const rowOf = (entry: Entry<Ticket>, queue: number, index: number): Row => {
      const { item, seats, arrivedAt, startedAt } = entry;
      const { request, arrived } = item;
      const started =
        startedAt === undefined ? ZERO : rfc3339Nano(plusMs(epochMs(arrived), elapsedMs(arrivedAt, startedAt)));
      const base = [
        level.name,
        item.schema,
        queue,
        index,
        item.distinguisher,
        rfc3339Nano(epochMs(arrived)),
        seats,
        0,
        '0s',
        started,
      ];
      if (!details) return base;
      const {
        group = '',
        version = '',
        resource = '',
        subresource = '',
        namespace = '',
        name = '',
      } = request.resource ?? {};
      const apiVersion = group === '' ? version : `${group}/${version}`;
      return [...base, request.user, request.verb, request.path, namespace, name, apiVersion, resource, subresource];
    };
    const waiting = queues.queues.flatMap((queue) =>
      queue.waiting.map((entry, index) => rowOf(entry, queue.index, index)),
    );
    return [...waiting, ...Array.from(queues.executing, (entry) => rowOf(entry, entry.queue?.index ?? -1, -1))];
  });
  return table([[...header.split(' '), ...(details ? more.split(' ') : [])], ...rows]);
}

/** The table of a path below DEBUG_PREFIX; undefined for one that is not there. */
export function dump(path: string, query: URLSearchParams, states: States): string | undefined {
  switch (path.slice(DEBUG_PREFIX.length)) {
    case 'dump_priority_levels':
      return dumpLevels(states);
    case 'dump_queues':
      return dumpQueues(states);
    case 'dump_requests':
      return dumpRequests(states, (query.get('includeRequestDetails') ?? '') !== '');
    default:
      return undefined;
  }
}
