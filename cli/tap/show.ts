// `nodelet tap show`: a recording as text or JSON, filtered. Prints nothing itself: calls become lines.

import { stringify } from 'yaml';
import { type EpochMs, plusMs } from '../../lib/clock.ts';
import { UserError } from '../../lib/errors.ts';
import { parseGoDuration } from '../../lib/go-duration.ts';
import { parseRfc3339, rfc3339Milli } from '../../lib/rfc3339.ts';
import { type DecodedCall, decodeCall, mapTexts } from './decoded.ts';
import { Names } from './names.ts';
import { matchesMethod, matchesPattern, matchesPod } from './patterns.ts';
import { type RecordingInfo, readRecording } from './recording.ts';
import { loadSchema } from './schema.ts';

export interface ShowFilter {
  /** "name" or "namespace/name" */
  readonly pod?: string;
  readonly container?: string;
  /** A method's name or path, "*" for any characters. */
  readonly call?: string;
  /** "12.5s" or "300ms" since the start, or RFC 3339. */
  readonly since?: string;
  readonly until?: string;
}

export interface ShowOptions extends ShowFilter {
  readonly output: 'text' | 'json';
  /** Text: with the messages. */
  readonly full?: boolean;
}

/** ms since the recording's start. Throws UserError. */
export function parseMoment(text: string, start: EpochMs, flag: string): number {
  const sinceStart = parseGoDuration(text);
  if (sinceStart !== undefined && sinceStart >= 0) return sinceStart;
  const moment = /^\d{4}-\d\d-\d\dT/.test(text) ? (parseRfc3339(text) ?? Number.NaN) : Number.NaN;
  if (Number.isNaN(moment))
    throw new UserError(`${flag} must be a time since the start ("12.5s") or RFC 3339, not "${text}"`);
  return moment - start;
}

export interface Window {
  readonly since: number;
  readonly until: number;
}

/** Whether a call is to be shown. A stream is about every pod that its messages are about. */
export function isShown(call: DecodedCall, filter: ShowFilter, window: Window, names: Names): boolean {
  const end = call.call.end?.at ?? Number.POSITIVE_INFINITY;
  if (end < window.since || call.call.begin > window.until) return false;
  if (filter.call !== undefined && !matchesMethod(filter.call, call.call.method)) return false;
  if (filter.pod === undefined && filter.container === undefined) return true;
  const subjects = [
    call.subject,
    ...(call.type?.responseStream === true ? call.responses.map(({ message }) => names.subject(message)) : []),
  ];
  return subjects.some(
    ({ pod, container }) =>
      (filter.pod === undefined || matchesPod(filter.pod, pod)) &&
      (filter.container === undefined || (container !== undefined && matchesPattern(filter.container, container))),
  );
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(3)} s`;

function aboutOf({ subject }: DecodedCall): string {
  return [subject.pod ?? '-', ...(subject.container === undefined ? [] : [subject.container])].join(' ');
}

/** One line for the call; with `full`, its messages in YAML below, ids with the names of what they belong to. */
export function printText(call: DecodedCall, names: Names, full: boolean): string {
  const { begin, end } = call.call;
  const took = end === undefined ? '' : `  ${(end.at - begin).toFixed(1)} ms`;
  const message = end?.message === undefined || end.message === '' ? '' : `  ${end.message}`;
  const count = call.type?.responseStream === true ? `  ${call.responses.length} messages` : '';
  const line = `${seconds(begin).padStart(11)}  ${aboutOf(call)}  ${call.name}  ${call.status}${took}${count}${message}`;
  if (!full) return line;
  const withNames = (text: string): string => {
    const name = names.describe(text);
    return name === undefined ? text : `${text} (${name})`;
  };
  const block = (title: string, messages: DecodedCall['requests']): string[] =>
    messages.map(({ at, message: each }) => {
      const yaml = stringify(mapTexts(each, withNames), { lineWidth: 0 }).trimEnd();
      return `    ${title} ${seconds(at)}\n${yaml.replace(/^/gm, '      ')}`;
    });
  return [line, ...block('request', call.requests), ...block('response', call.responses)].join('\n');
}

export function printJson(call: DecodedCall, info: { readonly start: EpochMs }): string {
  const { id, connection, method, begin, metadata, headers, end } = call.call;
  return JSON.stringify({
    call: id,
    connection,
    time: rfc3339Milli(plusMs(info.start, begin)),
    at: begin,
    method,
    ...call.subject,
    metadata,
    requests: call.requests,
    headers,
    responses: call.responses,
    status: call.status,
    end,
  });
}

/** Rejects with UserError. Calls are printed in the order of their ends, so that a recording of any length can be shown. */
export async function show(path: string, options: ShowOptions, print: (line: string) => void): Promise<RecordingInfo> {
  const schema = loadSchema();
  const names = new Names();
  const windowFrom = (start: EpochMs): Window => ({
    since: options.since === undefined ? 0 : parseMoment(options.since, start, '--since'),
    until: options.until === undefined ? Number.POSITIVE_INFINITY : parseMoment(options.until, start, '--until'),
  });
  let window: Window | undefined;
  const info = await readRecording(path, (recorded, start) => {
    window ??= windowFrom(start);
    const call = decodeCall(recorded, schema, names);
    if (!isShown(call, options, window, names)) return;
    print(options.output === 'json' ? printJson(call, { start }) : printText(call, names, options.full === true));
  });
  // What is wrong with the options is wrong without any call, too.
  windowFrom(info.start);
  return info;
}
