// When a CronJob's next job is due, which of the times that were missed is made up for, and how many were missed. Pure.

import { type EpochMs, elapsedMs, later, plusMs, ZERO_TIME } from '../../../lib/clock.ts';
import type { CronSchedule } from '../../../lib/cron-schedule.ts';
import { nextTime } from '../../../lib/cron-times.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { CronJob } from '../shared/objects.ts';

/** So much after the time that is due, the controller looks: clocks of a cluster are not quite the same. */
const CLOCK_SKEW_MS = 100;
/** More missed times than these are worth a warning. */
export const MANY_MISSED = 100;

export interface Due {
  /** The latest time that is due; undefined where none is. */
  readonly time: EpochMs | undefined;
  /** About how many there were since the last one, with it. */
  readonly missed: number;
}

/** A schedule and the zone of the clock that it is read on. */
export interface Plan {
  readonly schedule: CronSchedule;
  readonly timeZone: string;
}

/** Valid by its grammar, and yet it never comes up. */
export class ScheduleNeverDue extends Error {
  override name = 'ScheduleNeverDue';
}

const next = ({ schedule, timeZone }: Plan, after: EpochMs): EpochMs | undefined => nextTime(schedule, after, timeZone);

/** The last time a job was due, or the creation; with `deadline`, not before what may still be started. */
function earliest({ metadata, spec, status }: CronJob, now: EpochMs, deadline: boolean): EpochMs {
  const last = parseRfc3339(status?.lastScheduleTime) ?? parseRfc3339(metadata.creationTimestamp) ?? ZERO_TIME;
  const { startingDeadlineSeconds } = spec;
  if (!deadline || startingDeadlineSeconds === undefined) return last;
  return later(last, plusMs(now, -1000 * startingDeadlineSeconds));
}

/**
 * Times are not counted one by one, since there may be millions: their number is taken from the first two, and the latest is searched
 * from near the end. Throws ScheduleNeverDue.
 */
function latestDue(plan: Plan, since: EpochMs, now: EpochMs): Due {
  const first = next(plan, since);
  const second = first === undefined ? undefined : next(plan, first);
  if (first !== undefined && first > now) return { time: undefined, missed: 0 };
  if (first !== undefined && second !== undefined && second > now) return { time: first, missed: 1 };
  if (first === undefined || second === undefined) {
    throw new ScheduleNeverDue('time difference between two schedules is less than 1 second');
  }
  const interval = elapsedMs(first, second);
  const missed = Math.floor(elapsedMs(first, now) / interval) + 1;
  // They are not all of one length: from further and further back, until one is found.
  for (let back = 2; ; back *= 2) {
    const from = plusMs(first, Math.max(0, missed - back) * interval);
    let time = back >= missed ? first : undefined;
    for (let at = next(plan, from); at !== undefined && at <= now; at = next(plan, at)) time = at;
    if (time !== undefined) return { time, missed };
  }
}

/** What is to be started now, but for concurrency and deadlines. Throws ScheduleNeverDue. */
export function dueTime(cronJob: CronJob, plan: Plan, now: EpochMs): Due {
  return latestDue(plan, earliest(cronJob, now, true), now);
}

/** Ms until the controller has to look again; undefined where the schedule never comes up again. */
export function nextLookMs(cronJob: CronJob, plan: Plan, now: EpochMs): number | undefined {
  const at = next(plan, lookFrom(cronJob, plan, now));
  return at === undefined ? undefined : Math.max(0, elapsedMs(now, plusMs(at, CLOCK_SKEW_MS)));
}

function lookFrom(cronJob: CronJob, plan: Plan, now: EpochMs): EpochMs {
  const since = earliest(cronJob, now, false);
  try {
    return latestDue(plan, since, now).time ?? since;
  } catch (error) {
    if (error instanceof ScheduleNeverDue) return now;
    throw error;
  }
}

/** The same name for the same minute, so that no job is made twice. */
export function jobName({ metadata }: CronJob, time: EpochMs): string {
  return `${metadata.name}-${Math.floor(time / 60_000)}`;
}
