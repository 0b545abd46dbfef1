// Every call as one line of JSON, for tests, and to see what a CO does: method, request, code, time. What is
// secret is replaced before it is written: secrets' values, tokens, mount flags.

import { appendFileSync } from 'node:fs';
import type { EpochMs } from '../../lib/clock.ts';
import { TOKENS_KEY } from './names.ts';

export interface CallRecord {
  /** Epoch ms at which the call arrived. */
  readonly at: EpochMs;
  readonly method: string;
  readonly request: unknown;
  /** The gRPC status name; "OK" when the call succeeded. */
  readonly code: string;
  readonly message?: string;
  readonly durationMs: number;
}

/** The request without anything secret in it, and without the empty fields. Pure. */
export function withoutSecrets(value: unknown, field = ''): unknown {
  if (Array.isArray(value)) {
    return field === 'mount_flags' ? value.map(() => '***') : value.map((each) => withoutSecrets(each));
  }
  if (typeof value !== 'object' || value === null) return value;
  const shown = Object.entries(value)
    .filter(([, each]) => !isEmpty(each))
    .map(([key, each]) => {
      if (field === 'secrets') return [key, '***'];
      if (key === TOKENS_KEY) return [key, `*** (${String(each).length} characters)`];
      return [key, withoutSecrets(each, key)];
    });
  return Object.fromEntries(shown);
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '' || value === false || value === 0 || value === '0')
    return true;
  return Array.isArray(value) && value.length === 0;
}

/**
 * Appends to `file`; lines of calls that end at the same time stay whole. Written synchronously, since it happens between
 * the end of the work and the response: a measurement of the driver should not contain the wait for a thread.
 */
export function fileCallLog(file: string): (record: CallRecord) => void {
  return (record) =>
    appendFileSync(file, `${JSON.stringify({ ...record, request: withoutSecrets(record.request) })}\n`);
}
