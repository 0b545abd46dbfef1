// The rules of `nodelet tap diff --ignore FILE`: differences that are known, and texts that stand for each other.

import { UserError } from '../../lib/errors.ts';
import { isJsonObject } from './json.ts';
import type { Replacement } from './mask.ts';
import { matchesPattern } from './patterns.ts';
import { parseRulesFile, readRulesFile } from './rules-file.ts';

export interface IgnoreRule {
  /** Method, or a pattern with "*"; all when absent. */
  readonly method: string | undefined;
  /** Field path, or a pattern; absent: whole calls of the method, their number and order too. */
  readonly field: string | undefined;
  readonly pod: string | undefined;
}

export interface IgnoreRules {
  readonly rules: readonly IgnoreRule[];
  readonly replacements: readonly Replacement[];
}

export const NOTHING_IGNORED: IgnoreRules = { rules: [], replacements: [] };

const KEYS = new Set(['method', 'field', 'pod', 'why']);

/** Throws UserError. */
export function parseIgnore(text: string, file: string): IgnoreRules {
  const value = parseRulesFile(text, file, ['ignore', 'replace'], '"ignore" or "replace"');
  const list = (key: string): readonly unknown[] => {
    const entries = key === 'ignore' ? value['ignore'] : value['replace'];
    if (entries === undefined || entries === null) return [];
    if (!Array.isArray(entries)) throw new UserError(`${file}: ${key} must be a list`);
    return entries;
  };
  return {
    rules: list('ignore').map((entry, index) => rule(entry, `${file}: ignore[${index}]`)),
    replacements: list('replace').map((entry, index) => replacement(entry, `${file}: replace[${index}]`)),
  };
}

/** Rejects with UserError. */
export async function readIgnoreFile(path: string): Promise<IgnoreRules> {
  return parseIgnore(await readRulesFile(path), path);
}

function rule(entry: unknown, where: string): IgnoreRule {
  if (!isJsonObject(entry)) throw new UserError(`${where} must have "method", "field" or "pod"`);
  for (const [key, value] of Object.entries(entry)) {
    if (!KEYS.has(key)) throw new UserError(`${where}.${key} is none of method, field, pod, why`);
    if (typeof value !== 'string') throw new UserError(`${where}.${key} must be a text`);
  }
  const { method, field, pod } = entry;
  if (method === undefined && field === undefined && pod === undefined)
    throw new UserError(`${where} must have "method", "field" or "pod"`);
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
  return { method: text(method), field: text(field), pod: text(pod) };
}

function replacement(entry: unknown, where: string): Replacement {
  if (
    !isJsonObject(entry) ||
    typeof entry['from'] !== 'string' ||
    typeof entry['to'] !== 'string' ||
    entry['from'] === ''
  )
    throw new UserError(`${where} must have "from" and "to"`);
  return { from: entry['from'], to: entry['to'] };
}

/** Whether a difference is to be left out. `field` is undefined for calls that only one has. */
export function isIgnored(
  rules: readonly IgnoreRule[],
  method: string,
  pod: string,
  field: string | undefined,
): boolean {
  return rules.some(
    (each) =>
      (each.method === undefined || matchesPattern(each.method, method)) &&
      (each.pod === undefined || matchesPattern(each.pod, pod)) &&
      // A rule for a field also covers the fields below it.
      (each.field === undefined ||
        (field !== undefined && ['', '.*', '[*'].some((below) => matchesPattern(`${each.field}${below}`, field)))),
  );
}
