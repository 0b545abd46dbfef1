// Network configurations on disk: which file of the conf dir is in force, and whether it is valid.
// Reads files, never watches them and never looks for plugin binaries.

import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { errorMessage, isErrno } from '../lib/errors.ts';
import { getOwn, setOwn } from '../lib/own-property.ts';
import { isJsonObject } from './json.ts';
import type { JsonObject, NetworkConfigList, PluginConfig } from './types.ts';
import { isSupported, negotiateVersion, parseVersion, SUPPORTED_VERSIONS } from './version.ts';

/** A configuration that cannot be used; names the file and, where it is one, the field. */
export class ConflistError extends Error {
  override name = 'ConflistError';
  readonly file: string;
  readonly field: string | undefined;
  constructor(file: string, field: string | undefined, problem: string, options?: ErrorOptions) {
    super(`${file}: ${field === undefined ? '' : `${field}: `}${problem}`, options);
    this.file = file;
    this.field = field;
  }
}

export interface LoadedNetwork {
  /** Path of the file that is in force. */
  readonly file: string;
  readonly list: NetworkConfigList;
  /** Files that come before it in order and cannot be used. */
  readonly skipped: readonly ConflistError[];
}

const CONF_EXTENSIONS = ['.conflist', '.conf', '.json'];
const NETWORK_NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

/** Paths of the configuration files of a directory, in lexical order of their names; none when it does not exist. */
export async function confFiles(dir: string, extensions: readonly string[] = CONF_EXTENSIONS): Promise<string[]> {
  let names: string[];
  try {
    names = await readdir(dir);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
  // Byte order, as Go sorts strings: what containerd takes first is what we take first.
  return names
    .filter((name) => extensions.includes(extname(name)))
    .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    .map((name) => join(dir, name));
}

/**
 * The first usable configuration of `dir`. Rejects with ConflistError, for the first file's problem, when files are
 * there but none is usable; resolves to undefined when there are no files.
 */
export async function loadNetwork(dir: string): Promise<LoadedNetwork | undefined> {
  const skipped: ConflistError[] = [];
  for (const file of await confFiles(dir)) {
    try {
      return { file, list: await loadConflist(file), skipped };
    } catch (error) {
      if (!(error instanceof ConflistError)) throw error;
      skipped.push(error);
    }
  }
  const [first] = skipped;
  if (first !== undefined) throw first;
  return undefined;
}

/** Reads one .conflist, or one .conf or .json, which is a chain of a single plugin. Rejects with ConflistError. */
export async function loadConflist(file: string): Promise<NetworkConfigList> {
  const text = await readText(file);
  if (extname(file) !== '.conflist') return parseSingleConf(file, text);
  const raw = parseObject(file, text);
  const list = parseConflistObject(file, raw);
  if (optionalFlag(file, raw, 'loadOnlyInlinedPlugins')) return list;
  // 1.1.0: a directory beside the conflist, named as its network, may hold more plugins of the chain.
  const extra: PluginConfig[] = [];
  for (const path of await confFiles(join(dirname(file), list.name), ['.conf'])) {
    extra.push(parsePlugin(path, undefined, parseObject(path, await readText(path))));
  }
  const plugins = [...list.plugins, ...extra];
  if (plugins.length === 0) throw new ConflistError(file, 'plugins', 'the network has no plugins');
  return { ...list, plugins };
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new ConflistError(file, undefined, `cannot be read: ${errorMessage(error)}`, { cause: error });
  }
}

/** Parses a conflist's text; the result has the plugins that are written in it, at least one. */
export function parseConflist(file: string, text: string): NetworkConfigList {
  const list = parseConflistObject(file, parseObject(file, text));
  if (list.plugins.length === 0) throw new ConflistError(file, 'plugins', 'the network has no plugins');
  return list;
}

/** Parses a plugin's configuration as a chain of that plugin alone. */
export function parseSingleConf(file: string, text: string): NetworkConfigList {
  const raw = parseObject(file, text);
  const plugin = parsePlugin(file, undefined, raw);
  const header = parseHeader(file, raw);
  return { ...header, disableCheck: false, disableGC: false, plugins: [plugin] };
}

function parseObject(file: string, text: string): JsonObject {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch (error) {
    throw new ConflistError(file, undefined, `is not JSON: ${errorMessage(error)}`, { cause: error });
  }
  if (!isJsonObject(raw)) throw new ConflistError(file, undefined, 'is not a JSON object');
  return raw;
}

function parseConflistObject(file: string, raw: JsonObject): NetworkConfigList {
  const header = parseHeader(file, raw);
  const inlinedOnly = optionalFlag(file, raw, 'loadOnlyInlinedPlugins');
  const plugins = raw['plugins'];
  if (plugins === undefined && inlinedOnly) {
    throw new ConflistError(file, 'plugins', 'missing, and loadOnlyInlinedPlugins is true');
  }
  if (plugins !== undefined && !Array.isArray(plugins)) throw new ConflistError(file, 'plugins', 'must be a list');
  if (Array.isArray(plugins) && plugins.length === 0) throw new ConflistError(file, 'plugins', 'the list is empty');
  const list: readonly unknown[] = plugins ?? [];
  return {
    ...header,
    disableCheck: optionalFlag(file, raw, 'disableCheck'),
    disableGC: optionalFlag(file, raw, 'disableGC'),
    plugins: list.map((plugin, index) => parsePlugin(file, `plugins[${index}]`, plugin)),
  };
}

function parseHeader(file: string, raw: JsonObject): { readonly name: string; readonly cniVersion: string } {
  const name = raw['name'];
  if (name === undefined) throw new ConflistError(file, 'name', 'missing');
  if (typeof name !== 'string') throw new ConflistError(file, 'name', 'must be a string');
  if (!NETWORK_NAME.test(name)) {
    throw new ConflistError(file, 'name', `"${name}" must start with a letter or digit, then letters, digits, _ . -`);
  }
  const single = raw['cniVersion'] === undefined ? undefined : versionOf(file, 'cniVersion', raw['cniVersion']);
  const many = raw['cniVersions'];
  if (many !== undefined && !Array.isArray(many)) throw new ConflistError(file, 'cniVersions', 'must be a list');
  const versions: readonly unknown[] | undefined = many;
  const offered = versions?.map((version, index) => versionOf(file, `cniVersions[${index}]`, version));
  const cniVersion = negotiateVersion(single, offered);
  if (cniVersion === undefined || !isSupported(cniVersion)) {
    const field = offered === undefined ? 'cniVersion' : 'cniVersions';
    const versionText = cniVersion ?? (offered ?? []).join(', ');
    throw new ConflistError(file, field, `"${versionText}" is not supported (${SUPPORTED_VERSIONS.join(', ')} are)`);
  }
  return { name, cniVersion };
}

function versionOf(file: string, field: string, value: unknown): string {
  if (typeof value !== 'string') throw new ConflistError(file, field, 'must be a string');
  const parts = parseVersion(value);
  if (parts === undefined) throw new ConflistError(file, field, `"${value}" is not a version`);
  return parts.join('.');
}

/** disableCheck and its like are booleans; libcni also takes them as the strings "true" and "false". */
function optionalFlag(file: string, raw: JsonObject, field: string): boolean {
  const value = getOwn(raw, field);
  if (value === undefined || value === false) return false;
  if (value === true) return true;
  if (typeof value === 'string' && /^(true|false)$/i.test(value)) return value.toLowerCase() === 'true';
  throw new ConflistError(file, field, `must be true or false, not ${JSON.stringify(value)}`);
}

function parsePlugin(file: string, path: string | undefined, value: unknown): PluginConfig {
  const at = (field: string): string => (path === undefined ? field : `${path}.${field}`);
  if (!isJsonObject(value)) throw new ConflistError(file, path, 'must be an object');
  const type = value['type'];
  if (type === undefined) {
    const hint = 'plugins' in value ? ` (a list of plugins belongs in a .conflist, not in ${basename(file)})` : '';
    throw new ConflistError(file, at('type'), `missing${hint}`);
  }
  if (typeof type !== 'string' || type === '') throw new ConflistError(file, at('type'), 'must be a non-empty string');
  if (type.includes('/') || type === '.' || type === '..') {
    throw new ConflistError(file, at('type'), `"${type}" must be the name of a plugin, not a path`);
  }
  const capabilities = value['capabilities'];
  if (capabilities === undefined) return { ...value, type, capabilities: {} };
  if (!isJsonObject(capabilities)) throw new ConflistError(file, at('capabilities'), 'must be an object');
  const flags: Record<string, boolean> = {};
  for (const [name, on] of Object.entries(capabilities)) {
    if (typeof on !== 'boolean') throw new ConflistError(file, at(`capabilities.${name}`), 'must be true or false');
    setOwn(flags, name, on);
  }
  return { ...value, type, capabilities: flags };
}
