// A query of the node's logs (KEP-2258): which services or which file, of when, and how many lines; and the journalctl that
// answers it. Pure.

import type { EpochMs } from '../../lib/clock.ts';
import { parseRfc3339, rfc3339 } from '../../lib/rfc3339.ts';

/** What a caller may ask for at most. */
const MAX_TAIL_LINES = 100_000;
const MAX_SERVICE_LENGTH = 256;
const MAX_SERVICES = 4;
/** What a service may not have in its name: it becomes an argument of a program. */
const UNSAFE = /[^a-zA-Z\-_.:0-9@]/;

export interface NodeLogQuery {
  readonly services: readonly string[];
  /** Paths below the log directory. */
  readonly files: readonly string[];
  readonly options: {
    readonly sinceTime?: EpochMs;
    readonly untilTime?: EpochMs;
    readonly tailLines?: number;
    /** 0 is this boot, -1 the one before it. */
    readonly boot?: number;
    /** A regular expression. */
    readonly pattern?: string;
  };
}

export type ParsedQuery =
  | { readonly query: NodeLogQuery | undefined; readonly errors?: undefined }
  | { readonly query?: undefined; readonly errors: readonly string[] };

const invalid = (field: string, value: string, why: string): string => `${field}: Invalid value: ${value}: ${why}`;
const quoted = (text: string): string => JSON.stringify(text);
const goList = (texts: readonly string[]): string => `[]string{${texts.map(quoted).join(', ')}}`;

/** No query where the URL has none of its parameters. */
export function parseNodeLogQuery(parameters: URLSearchParams): ParsedQuery {
  const errors: string[] = [];
  const all = parameters.getAll('query');
  const isFile = (text: string): boolean => /[/\\]/.test(text);
  const files = all.filter(isFile);
  const services = all.filter((text) => !isFile(text) && text.trim() !== '');
  if (all.length > 0 && files.length + services.length === 0) {
    errors.push(invalid('query', goList(all), 'may not be empty'));
  }
  const time = (name: string): EpochMs | undefined => {
    const text = parameters.get(name) ?? '';
    if (text === '') return undefined;
    const at = parseRfc3339(text);
    if (at !== undefined) return at;
    errors.push(invalid(name, quoted(text), 'invalid time format'));
    return undefined;
  };
  const whole = (name: string): number | undefined => {
    const text = parameters.get(name) ?? '';
    if (text === '') return undefined;
    if (/^[+-]?\d+$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
    errors.push(invalid(name, quoted(text), `strconv.Atoi: parsing ${quoted(text)}: invalid syntax`));
    return undefined;
  };
  const options = withoutUndefined({
    sinceTime: time('sinceTime'),
    untilTime: time('untilTime'),
    boot: whole('boot'),
    tailLines: whole('tailLines'),
    pattern: parameters.get('pattern') || undefined,
  });
  if (errors.length > 0) return { errors };
  const isEmpty = files.length + services.length + Object.keys(options).length === 0;
  return { query: isEmpty ? undefined : { services, files, options } };
}

function withoutUndefined(options: { [K in keyof NodeLogQuery['options']]: NodeLogQuery['options'][K] | undefined }) {
  const { sinceTime, untilTime, boot, tailLines, pattern } = options;
  return {
    ...(sinceTime === undefined ? {} : { sinceTime }),
    ...(untilTime === undefined ? {} : { untilTime }),
    ...(boot === undefined ? {} : { boot }),
    ...(tailLines === undefined ? {} : { tailLines }),
    ...(pattern === undefined ? {} : { pattern }),
  };
}

/** Why a query cannot be answered; whether its file is there is checked when it is opened. */
export function nodeLogQueryErrors({ services, files, options }: NodeLogQuery): string[] {
  const errors: string[] = [];
  for (const service of services) {
    if (service.length > MAX_SERVICE_LENGTH) {
      errors.push(invalid('query', quoted(service), `length must be less than ${MAX_SERVICE_LENGTH}`));
    } else if (UNSAFE.test(service) || service.startsWith('-')) {
      errors.push(invalid('query', quoted(service), 'input contains unsupported characters'));
    }
  }
  if (services.length > MAX_SERVICES) {
    errors.push(`query: Too many: ${services.length}: must have at most ${MAX_SERVICES} items`);
  }
  if (files.length + services.length === 0) errors.push('query: Required value: cannot be empty with options');
  else if (files.length > 0 && services.length > 0) {
    const both = quoted(`[${files.join(' ')}], [${services.join(' ')}]`);
    errors.push(invalid('query', both, 'cannot specify a file and service'));
  } else if (files.length > 1) errors.push(invalid('query', goList(files), 'cannot specify more than one file'));
  else if (files.length === 1 && Object.keys(options).length > 0) {
    errors.push(invalid('query', goList(files), 'cannot specify file with options'));
  }
  const { sinceTime, untilTime, boot, tailLines, pattern } = options;
  if (sinceTime !== undefined && untilTime !== undefined && sinceTime > untilTime) {
    errors.push(invalid('untilTime', rfc3339(untilTime), 'must be after `sinceTime`'));
  }
  if (boot !== undefined && boot > 0) errors.push(invalid('boot', String(boot), 'must be less than 1'));
  if (tailLines !== undefined && (tailLines < 0 || tailLines > MAX_TAIL_LINES)) {
    errors.push(invalid('tailLines', String(tailLines), `must be between 0 and ${MAX_TAIL_LINES}, inclusive`));
  }
  // The expression is journalctl's (PCRE2); a line break or a zero byte is no expression but another argument's.
  if (pattern?.includes('\0')) errors.push(invalid('pattern', quoted(pattern), 'contains a zero byte'));
  return errors;
}

/** "2006-1-2 15:4:5" in UTC, as journalctl reads it with --utc. */
function journalTime(at: EpochMs): string {
  return rfc3339(at).slice(0, 19).replace('T', ' ');
}

export function journalctlArguments(services: readonly string[], options: NodeLogQuery['options']): string[] {
  const { sinceTime, untilTime, boot, tailLines, pattern } = options;
  return [
    '--utc',
    '--no-pager',
    '--output=short-precise',
    ...(sinceTime === undefined ? [] : [`--since=${journalTime(sinceTime)} UTC`]),
    ...(untilTime === undefined ? [] : [`--until=${journalTime(untilTime)} UTC`]),
    ...(tailLines === undefined ? [] : ['--pager-end', `--lines=${tailLines}`]),
    ...services.map((service) => `--unit=${service}`),
    ...(pattern === undefined ? [] : [`--grep=${pattern}`]),
    ...(boot === undefined ? [] : ['--boot', String(boot)]),
  ];
}

/** The files that a service without journal may log to, in the order in which they are tried. */
export function logFilesOf(service: string): readonly string[] {
  return [service, `${service}.log`, `${service}/${service}.log`];
}
