// The json, yaml and go-template forms of answers. Pure.

import { UserError } from '../../lib/errors.ts';
import { yaml } from '../../lib/yaml.ts';
import { type Json, messageToJson } from './protojson.ts';
import { escapeHtml, runTemplate } from './template.ts';

export type Format = 'json' | 'yaml' | 'table' | 'go-template';

const isTable = (value: Json): value is { readonly [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Go's encoding/json sorts the keys of maps. */
function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isTable(value)) return value;
  const entries = Object.entries(value).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]));
}

/**
 * Sorted keys, lists not indented, long lines whole; an empty line after it, as crictl prints it. Texts that YAML 1.1 takes
 * for times or booleans are quoted.
 */
export function toYaml(value: Json): string {
  return `${yaml().stringify(sorted(value), { indentSeq: false, lineWidth: 0, version: '1.1' })}\n`;
}

/** A whole CRI message: fields in the order of the .proto file. Undefined for formats other than json and yaml. */
export function formatMessage(name: string, message: unknown, format: string): string | undefined {
  if (format !== 'json' && format !== 'yaml') return undefined;
  const json = messageToJson(name, message);
  return format === 'yaml' ? toYaml(json) : `${JSON.stringify(json, undefined, 2)}\n`;
}

/** What a runtime says about one object beside its status: texts, or JSON in a text. */
export type Info = Readonly<Record<string, string>>;

/** One entry of inspect: the status, and the runtime's info with its JSON opened. Throws UserError for broken JSON. */
export function withInfo(status: { readonly [key: string]: Json }, info: Info): { readonly [key: string]: Json } {
  const entries = Object.entries(info).map(([key, text]) => {
    if (!text.startsWith('{')) return [key, text.replace(/^"+|"+$/g, '')] as const;
    try {
      const parsed: Json = JSON.parse(text);
      return [key, parsed] as const;
    } catch (error) {
      if (error instanceof SyntaxError) throw new UserError(`unmarshal status info JSON: ${key}: ${error.message}`);
      throw error;
    }
  });
  return { ...status, ...Object.fromEntries(entries) };
}

/** Entries of inspect: one stands alone, several are a list. */
export function formatStatuses(
  statuses: readonly { readonly [key: string]: Json }[],
  format: string,
  template: string,
): string {
  const [only] = statuses;
  const value = sorted(statuses.length === 1 && only !== undefined ? only : statuses);
  if (format === 'yaml') return toYaml(value);
  if (format === 'json') return `${escapeHtml(JSON.stringify(value, undefined, 2))}\n`;
  if (format === 'go-template') return `${runTemplate(template, JSON.stringify(value))}\n`;
  throw new UserError(`unsupported format: "${format}"`);
}
