// Times as the Kubernetes API and what is around it write them (RFC 3339, UTC). Nothing else in the tree parses or prints
// one. Pure.

import { type EpochMs, epochMs } from './clock.ts';

/** metav1.Time: whole seconds, cut off and never rounded up. */
export function rfc3339(at: EpochMs): string {
  // ".123Z" is at the end of each.
  return `${new Date(at).toISOString().slice(0, -5)}Z`;
}

/** metav1.MicroTime: six digits behind the point, the last three of them 0. */
export function rfc3339Micro(at: EpochMs): string {
  return new Date(at).toISOString().replace('Z', '000Z');
}

/** Three digits: what logs and traces show. */
export function rfc3339Milli(at: EpochMs): string {
  return new Date(at).toISOString();
}

/** Go's RFC3339NanoFixed: nine digits, the last six of them 0. */
export function rfc3339Nano(at: EpochMs): string {
  return new Date(at).toISOString().replace('Z', '000000Z');
}

/** The time; undefined for an absent field and for a text that is not a time. */
export function parseRfc3339(text: string | undefined): EpochMs | undefined {
  const parsed = Date.parse(text ?? '');
  return Number.isNaN(parsed) ? undefined : epochMs(parsed);
}
