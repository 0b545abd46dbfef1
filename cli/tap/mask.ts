// What differs between any two runs and says nothing about them: ids, times, addresses, UIDs, tokens. Pure.

import { isMessage, type Names } from './names.ts';
import type { Json, JsonMessage } from './wire.ts';

/** Replaced before anything is compared, as two kubelets' root directories. */
export interface Replacement {
  readonly from: string;
  readonly to: string;
}

/** int64 nanoseconds since the epoch. */
const TIME_FIELDS = new Set(['created_at', 'started_at', 'finished_at', 'timestamp', 'pulled_at']);

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  // Text may stand right before one ("pod<uid>"), and systemd's slices have underscores in it.
  [/[0-9a-f]{8}([-_])[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}/g, '<uid>'],
  // A kubelet hashes a static pod's manifest to have a UID.
  [/(?<![0-9a-z])(pod)?[0-9a-f]{32}(?![0-9a-z])/g, '$1<uid>'],
  [/(?<!sha256:|[0-9a-z])[0-9a-f]{64}(?![0-9a-z])/g, '<id>'],
  // A kubelet names the volume of a pod's token, and the file of a termination message, at random.
  [/\bkube-api-access-[a-z0-9]{5}\b/g, 'kube-api-access-<random>'],
  [/(\/containers\/[^/]+\/)[0-9a-f]{8}\b/g, '$1<random>'],
  [/\/(exec|attach|portforward)\/[A-Za-z0-9_-]{6,}/g, '/$1/<token>'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g, '<time>'],
  [/(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}\b(?!\.\d)/g, '<address>'],
  [/(?<![\w:])(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}(?![\w:])/g, '<address>'],
  [/(?<![\w:])(?:[0-9a-f]{1,4}:)+(?::[0-9a-f]{1,4})+(?![\w:])/g, '<address>'],
  // Behind an address it is a port that a runtime or a system has chosen.
  [/<address>:\d{4,5}\b/g, '<address>:<port>'],
];

/** Whatever in a text differs from run to run becomes a word for its kind; a known id becomes the name it stands for. */
export function maskText(text: string, names: Names | undefined, replacements: readonly Replacement[] = []): string {
  const known = names?.describe(text);
  if (known !== undefined) return `<id of ${replaceAll(known, replacements)}>`;
  return PATTERNS.reduce((masked, [pattern, word]) => masked.replace(pattern, word), replaceAll(text, replacements));
}

export function replaceAll(text: string, replacements: readonly Replacement[]): string {
  return replacements.reduce((replaced, { from, to }) => replaced.replaceAll(from, to), text);
}

export function maskMessage(
  message: JsonMessage,
  names: Names | undefined,
  replacements: readonly Replacement[] = [],
): JsonMessage {
  const mask = (value: Json, key: string): Json => {
    if (TIME_FIELDS.has(key) && (typeof value === 'number' || typeof value === 'string')) return '<time>';
    if (typeof value === 'string') return maskText(value, names, replacements);
    if (Array.isArray(value)) return value.map((each) => mask(each, key));
    return isMessage(value) ? maskMessage(value, names, replacements) : value;
  };
  return Object.fromEntries(Object.entries(message).map(([key, value]) => [key, mask(value, key)]));
}
