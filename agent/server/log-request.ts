// The options of a /containerLogs request, and the container instance it selects. Pure; messages are the
// kubelet's, which kubectl shows.

import type { ContainerStatus, PodStatus } from '../../client/types.ts';
import { type EpochMs, plusMs } from '../../lib/clock.ts';
import { getOwn } from '../../lib/own-property.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { LogOptions } from '../ports/logs.ts';
import { HttpError } from './http-answer.ts';

export interface LogRequest {
  readonly options: LogOptions;
  readonly previous: boolean;
}

const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const FALSE: ReadonlySet<string> = new Set(['', '0', 'f', 'F', 'false', 'FALSE', 'False']);

/** Reads PodLogOptions from a query. Throws HttpError 400 for what does not parse, 422 for what makes no sense. */
export function parseLogRequest(query: URLSearchParams, now: EpochMs): LogRequest {
  const flag = (name: string): boolean => {
    const value = query.get(name) ?? '';
    if (TRUE.has(value)) return true;
    if (FALSE.has(value)) return false;
    throw new HttpError(400, `{"message": "Unable to decode query."}`);
  };
  const integer = (...names: readonly string[]): number | undefined => {
    const value = names.map((name) => query.get(name)).find((found) => found !== null && found !== '');
    if (value === undefined || value === null) return undefined;
    if (!/^[+-]?\d+$/.test(value)) throw new HttpError(400, `{"message": "Unable to decode query."}`);
    return Number(value);
  };
  const invalid = (): HttpError => new HttpError(422, `{"message": "Invalid request."}`);

  const tail = query.get('tail') === 'all' ? undefined : integer('tailLines', 'tail');
  const limitBytes = integer('limitBytes');
  const sinceSeconds = integer('sinceSeconds');
  const since = query.get('sinceTime') ?? '';
  const sinceTime = parseRfc3339(since);
  if (since !== '' && sinceTime === undefined) {
    throw new HttpError(400, `{"message": "Unable to decode query."}`);
  }
  if (tail !== undefined && tail < 0) throw invalid();
  if (limitBytes !== undefined && limitBytes < 1) throw invalid();
  if (sinceSeconds !== undefined && (sinceSeconds < 1 || sinceTime !== undefined)) throw invalid();
  const stream = query.get('stream') ?? '';
  if (!['', 'All', 'Stdout', 'Stderr'].includes(stream)) throw invalid();

  const from = sinceSeconds === undefined ? sinceTime : plusMs(now, -sinceSeconds * 1000);
  return {
    previous: flag('previous'),
    options: {
      follow: flag('follow'),
      timestamps: flag('timestamps'),
      ...(tail === undefined ? {} : { tailLines: tail }),
      ...(limitBytes === undefined ? {} : { limitBytes }),
      ...(from === undefined ? {} : { sinceTime: from }),
      ...(stream === 'Stdout' || stream === 'Stderr' ? { stream: stream === 'Stdout' ? 'stdout' : 'stderr' } : {}),
    },
  };
}

function statusOf(status: PodStatus | undefined, container: string): ContainerStatus | undefined {
  return [
    ...(status?.containerStatuses ?? []),
    ...(status?.initContainerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ].find(({ name }) => name === container);
}

/** "containerd://abc" → "abc"; '' for a container that has none. */
export function bareContainerId(id: string | undefined): string {
  return (id ?? '').replace(/^[^:]*:\/\//, '');
}

/**
 * The id of the selected instance: the newest, or the one before with `previous`. Throws HttpError 400 when
 * there is none, with the reason why the container waits.
 */
export function logContainerId(
  status: PodStatus | undefined,
  pod: string,
  container: string,
  previous: boolean,
): string {
  const found = statusOf(status, container);
  const refuse = (what: string): HttpError => new HttpError(400, `container "${container}" in pod "${pod}" ${what}`);
  if (found === undefined) throw refuse('is not available');
  const { state, lastState } = found;
  const last = bareContainerId(lastState?.terminated?.containerID);
  if (previous) {
    if (last !== '') return last;
    throw new HttpError(400, `previous terminated container "${container}" in pod "${pod}" not found`);
  }
  if (state?.running !== undefined) return bareContainerId(found.containerID);
  const ended = bareContainerId(state?.terminated?.containerID);
  if (ended !== '' || last !== '') return ended === '' ? last : ended;
  if (state?.terminated !== undefined || lastState?.terminated !== undefined) throw refuse('is terminated');
  const reason = state?.waiting?.reason;
  if (reason === undefined) throw refuse('is waiting to start - no logs yet');
  const words: Readonly<Record<string, string>> = {
    ErrImagePull: "image can't be pulled",
    ImagePullBackOff: 'trying and failing to pull image',
  };
  throw refuse(`is waiting to start: ${getOwn(words, reason) ?? reason}`);
}
