// /etc/crictl.yaml: reading it, and changing it without losing its comments. The texts are pure; one function each
// reads and writes the file.

import { mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Document } from 'yaml';
import { writeFileAtomic } from '../../lib/atomic.ts';
import { errorMessage, isErrno, UserError } from '../../lib/errors.ts';
import { yaml } from '../../lib/yaml.ts';
import { parseGoBool } from './arguments.ts';

export const DEFAULT_CONFIG_PATH = '/etc/crictl.yaml';

export interface CrictlConfig {
  readonly 'runtime-endpoint': string;
  readonly 'image-endpoint': string;
  /** Seconds; 0 is the default. */
  readonly timeout: number;
  readonly debug: boolean;
  readonly 'pull-image-on-create': boolean;
  readonly 'disable-pull-on-run': boolean;
}

export const NO_CONFIG: CrictlConfig = {
  'runtime-endpoint': '',
  'image-endpoint': '',
  timeout: 0,
  debug: false,
  'pull-image-on-create': false,
  'disable-pull-on-run': false,
};

export const CONFIG_KEYS = [
  'runtime-endpoint',
  'image-endpoint',
  'timeout',
  'debug',
  'pull-image-on-create',
  'disable-pull-on-run',
] as const satisfies readonly (keyof CrictlConfig)[];

export function isConfigKey(key: string): key is keyof CrictlConfig {
  return CONFIG_KEYS.some((known) => known === key);
}

/** The value of an option from its text. Throws UserError. */
export function configValue(key: keyof CrictlConfig, text: string): string | number | boolean {
  const preset = NO_CONFIG[key];
  if (typeof preset === 'string') return text;
  const value = typeof preset === 'number' ? (/^[+-]?\d+$/.test(text) ? Number(text) : undefined) : parseGoBool(text);
  if (value === undefined) throw new UserError(`parse ${key} value '${text}': invalid syntax`);
  return value;
}

function readDocument(text: string): Document {
  const document = yaml().parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) throw new UserError(`load config file: ${error.message}`);
  return document;
}

/** Throws UserError for an option that crictl does not have, and for a value of the wrong type. */
export function parseConfig(text: string): CrictlConfig {
  const value: unknown = readDocument(text).toJS();
  if (value === null || value === undefined) return NO_CONFIG;
  if (typeof value !== 'object' || Array.isArray(value)) throw new UserError('load config file: it is no mapping');
  const entries = Object.entries(value).map(([key, item]) => {
    if (!isConfigKey(key)) throw new UserError(`load config file: Config option '${key}' is not valid`);
    return [key, configValue(key, item === null ? '' : String(item))] as const;
  });
  return { ...NO_CONFIG, ...Object.fromEntries(entries) };
}

/** The text with some options changed and every option present; comments stay. */
export function changeConfig(text: string, changes: Partial<CrictlConfig>): string {
  const document = readDocument(text);
  const all = { ...parseConfig(text), ...changes };
  for (const key of CONFIG_KEYS) document.set(key, all[key]);
  return document.toString({ lineWidth: 0 });
}

/** `key=value,key=value` as --set takes it. Throws UserError. */
export function parseSettings(settings: readonly string[]): Partial<CrictlConfig> {
  const entries = settings.map((setting) => {
    const pair = setting.split('=');
    const [key = '', text = ''] = pair;
    if (pair.length !== 2) throw new UserError(`incorrectly specified option: ${setting}`);
    if (!isConfigKey(key)) throw new UserError(`no configuration option named ${key}`);
    return [key, configValue(key, text)] as const;
  });
  return Object.fromEntries(entries);
}

/** The file's text; undefined when there is none. Throws UserError for one that cannot be read. */
export async function readConfigFile(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw new UserError(`load config file: ${errorMessage(error)}`);
  }
}

export async function writeConfigFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFileAtomic(path, text, 0o644);
}
