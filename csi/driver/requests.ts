// Checks that many calls share: required fields, size limits, paths, contexts. Pure; each throws INVALID_ARGUMENT.

import { isAbsolute, normalize } from 'node:path';
import { getOwn } from '../../lib/own-property.ts';
import { parseQuantity } from '../../lib/quantity.ts';
import { invalid } from './errors.ts';
import { ALLOCATION_KEY, type Allocation, EPHEMERAL_KEY, isKubernetesKey, SIZE_KEY, TOKENS_KEY } from './names.ts';

const MAX_STRING_BYTES = 128;
const MAX_MAP_BYTES = 4096;
/** PATH_MAX; the specification requires at least 128. */
const MAX_PATH_BYTES = 4095;

type StringMap = Readonly<Record<string, string>>;

export function requireString(field: string, value: string, maxBytes = MAX_STRING_BYTES): string {
  if (value === '') throw invalid(`${field} is missing`);
  if (Buffer.byteLength(value) > maxBytes) throw invalid(`${field} exceeds ${maxBytes} bytes`);
  return value;
}

/** Control characters but tab, line feed and carriage return, as CreateVolumeRequest.name bans them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what the specification bans
const BANNED = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;

export function requireName(value: string): string {
  requireString('name', value);
  if (BANNED.test(value)) throw invalid('name holds a control character');
  return value;
}

/** Throws when the path is missing or too long; its form is not checked. */
export function requirePathLength(field: string, value: string): string {
  return requireString(field, value, MAX_PATH_BYTES);
}

function shortestForm(path: string): string {
  return normalize(path).replace(/(.)\/+$/, '$1');
}

/** Whether a path is absolute and has no "." or ".." in it, so that two spellings never mean one place. */
export function isPlainPath(path: string): boolean {
  return isAbsolute(path) && !path.includes('\0') && shortestForm(path) === path.replace(/(.)\/+$/, '$1');
}

/** The path without slashes at its end. Throws unless it is a plain one. */
export function requirePath(field: string, value: string): string {
  requirePathLength(field, value);
  if (!isAbsolute(value)) throw invalid(`${field} "${value}" is not absolute`);
  if (value.includes('\0')) throw invalid(`${field} holds a NUL`);
  const clean = shortestForm(value);
  if (!isPlainPath(value)) throw invalid(`${field} "${value}" is not in its shortest form, "${clean}"`);
  return clean;
}

export function requireEntries(field: string, value: number): number {
  if (value < 0) throw invalid(`${field} is negative`);
  return value;
}

function checkMapSize(field: string, map: StringMap): void {
  // A projected token alone may reach the limit, and Kubernetes bounds it.
  const bytes = Object.entries(map).reduce(
    (sum, [key, value]) => (key === TOKENS_KEY ? sum : sum + Buffer.byteLength(key) + Buffer.byteLength(value)),
    0,
  );
  if (bytes > MAX_MAP_BYTES) throw invalid(`${field} exceeds 4 KiB`);
}

/** Parameters of a StorageClass. Unknown ones are refused: a misspelt one would be silently without effect. */
export function parseParameters(parameters: StringMap, mutable: StringMap): { readonly allocation: Allocation } {
  checkMapSize('parameters', parameters);
  const unknown = Object.keys(parameters).filter((key) => key !== ALLOCATION_KEY && !isKubernetesKey(key));
  if (unknown.length > 0) throw invalid(`unknown parameter ${unknown.join(', ')}: there is only "${ALLOCATION_KEY}"`);
  if (Object.keys(mutable).length > 0) throw invalid('mutable_parameters are given without MODIFY_VOLUME');
  return { allocation: parseAllocation(parameters[ALLOCATION_KEY]) };
}

function parseAllocation(value: string | undefined): Allocation {
  if (value === undefined || value === 'sparse') return 'sparse';
  if (value === 'full') return 'full';
  throw invalid(`${ALLOCATION_KEY} "${value}" is neither "sparse" nor "full"`);
}

export function volumeContext(allocation: Allocation): Record<string, string> {
  return { [ALLOCATION_KEY]: allocation };
}

/** What is given must be what CreateVolume answered; keys that Kubernetes adds do not count. */
export function checkContext(given: StringMap, allocation: Allocation, presence: 'required' | 'optional'): void {
  checkMapSize('volume_context', given);
  const own = Object.entries(given).filter(([key]) => !isKubernetesKey(key));
  if (own.length === 0 && presence === 'optional') return;
  const expected = volumeContext(allocation);
  const wrong = own.filter(([key, value]) => getOwn(expected, key) !== value).map(([key]) => key);
  if (wrong.length > 0) throw invalid(`volume_context does not match the volume's: ${wrong.join(', ')}`);
  const missing = Object.keys(expected).filter((key) => getOwn(given, key) === undefined);
  if (missing.length > 0) throw invalid(`volume_context lacks what CreateVolume answered: ${missing.join(', ')}`);
}

export function isEphemeral(context: StringMap): boolean {
  return context[EPHEMERAL_KEY] === 'true';
}

const DEFAULT_EPHEMERAL_BYTES = 64 * 1024 * 1024;

/** Attributes of an inline volume: its size, nothing else. Returns bytes. */
export function parseEphemeral(context: StringMap): number | undefined {
  checkMapSize('volume_context', context);
  const unknown = Object.keys(context).filter((key) => key !== SIZE_KEY && !isKubernetesKey(key));
  if (unknown.length > 0)
    throw invalid(`unknown attribute ${unknown.join(', ')}: an inline volume has only "${SIZE_KEY}"`);
  const text = context[SIZE_KEY];
  if (text === undefined) return undefined;
  const nano = parseQuantity(text);
  if (nano === undefined || nano <= 0n) throw invalid(`${SIZE_KEY} "${text}" is not a quantity above zero`);
  return Number((nano + 999_999_999n) / 1_000_000_000n);
}

/** The size of an inline volume that names none; never below what its filesystem needs. */
export function ephemeralBytes(requested: number | undefined, minimum: number): number {
  return requested ?? Math.max(DEFAULT_EPHEMERAL_BYTES, minimum);
}
