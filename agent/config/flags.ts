// The agent's flags: adds them to a commander command, and turns what commander read, together with the configuration
// file, into AgentOptions. Flags lie over the file, as in the kubelet. Every mistake is a UserError naming the flag.

import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { getOwn, setOwn } from '../../lib/own-property.ts';
import { FIELD_FLAGS, type FlagKind, type FlagRow, OWN_FLAGS, type OwnFlag } from './flag-table.ts';
import {
  completeConfiguration,
  type RawConfiguration,
  readConfigurationText,
  settingsWithoutEffect,
} from './kubelet-configuration.ts';
import { KUBELET_FIELDS } from './kubelet-fields.ts';
import { parseNodeLabels } from './node-labels.ts';
import type { AgentOptions } from './options.ts';
import type { Effect, FieldTable } from './schema.ts';

export const DEFAULT_ROOT_DIR = '/var/lib/nodelet/kubelet';
export const DEFAULT_RUNTIME_ENDPOINT = 'unix:///run/containerd/containerd.sock';

const REPEATED: ReadonlySet<FlagKind> = new Set(['list', 'map', 'boolMap', 'taints', 'headers']);
const PLACEHOLDER: Readonly<Record<FlagKind, string>> = {
  text: '<value>',
  int: '<n>',
  bool: '[true|false]',
  list: '<a,b>',
  map: '<k=v,…>',
  boolMap: '<k=true,…>',
  taints: '<k=v:effect,…>',
  headers: '<name:value,…>',
};

/** Adds every flag to `command`. Nothing has a commander default: absent means "not given". */
export function addAgentFlags(command: Command): Command {
  for (const row of [...OWN_FLAGS, ...FIELD_FLAGS]) {
    const names = row.flag === 'v' ? '-v, --v' : `--${row.flag}`;
    const about = `${row.about}${NOTES[effectOf(row)]}`;
    const option = new Option(`${names} ${PLACEHOLDER[row.kind]}`, about);
    if (REPEATED.has(row.kind)) {
      option.argParser((value: string, before: readonly string[] | undefined) => [...(before ?? []), value]);
    }
    command.addOption(option);
  }
  return command;
}

/** The help's note on a flag whose field has no effect. */
const NOTES: Readonly<Record<Effect['kind'], string>> = {
  acted: '',
  ends: ' [only the default]',
  warns: ' [no effect]',
};

function effectOf({ field }: FlagRow): Effect['kind'] {
  let table: FieldTable | undefined = KUBELET_FIELDS;
  for (const name of field ?? []) {
    const found: FieldTable[string] | undefined = getOwn(table, name);
    if (found !== undefined && found.effect.kind !== 'acted') return found.effect.kind;
    table = found?.fields;
  }
  return 'acted';
}

/** The key under which commander keeps a flag. */
export function flagKey(flag: string): string {
  return flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** What commander's `opts()` returns. */
export type FlagValues = Readonly<Record<string, unknown>>;

/**
 * The agent's options from its flags and the file that --config names. Throws UserError for anything wrong: a file
 * that cannot be read, a field or value that is not right.
 */
export function resolveAgentOptions(
  flags: FlagValues,
  readFile: (path: string) => string = (path) => readFileSync(path, 'utf8'),
  machineName: string = hostname(),
): AgentOptions {
  const flag = new FlagReader(flags);
  const file = flag.text('config');
  const fromFile = file === undefined ? {} : readConfigurationFile(resolve(file), readFile);
  const merged = FIELD_FLAGS.reduce((raw, row) => layOver(raw, row, getOwn(flags, flagKey(row.flag))), fromFile);
  const config = completeConfiguration(merged, file === undefined ? 'flags' : `kubelet configuration ${file}`);

  const rootDir = resolve(flag.text('root-dir') ?? DEFAULT_ROOT_DIR);
  const runtime = endpoint(config.containerRuntimeEndpoint || DEFAULT_RUNTIME_ENDPOINT, 'container-runtime-endpoint');
  const kubeconfig = flag.text('kubeconfig');
  const network = flag.text('network') ?? 'agent';
  if (network !== 'agent' && network !== 'runtime') {
    throw new UserError(`--network must be agent or runtime, not "${network}"`);
  }
  return deepFreeze({
    kubeconfig: kubeconfig === undefined ? undefined : resolve(kubeconfig),
    nodeName: nodeName(flag.text('hostname-override') ?? machineName),
    nodeIPs: flag.list('node-ip').map(nodeIP),
    nodeLabels: parseNodeLabels(flag.map('node-labels')),
    rootDir,
    socketDir: resolve(flag.text('socket-dir') ?? rootDir),
    certDir: resolve(flag.text('cert-dir') ?? join(rootDir, 'pki')),
    containerRuntimeEndpoint: runtime,
    imageServiceEndpoint:
      config.imageServiceEndpoint === '' ? runtime : endpoint(config.imageServiceEndpoint, 'image-service-endpoint'),
    network,
    cni: {
      confDir: resolve(flag.text('cni-conf-dir') ?? '/etc/cni/net.d'),
      binDirs: binDirs(flag.list('cni-bin-dir')),
      cacheDir: resolve(flag.text('cni-cache-dir') ?? '/var/lib/cni'),
      shimDir: resolve(flag.text('cni-shim-dir') ?? join(rootDir, 'cni-shim')),
    },
    ...credentialProviders(flag),
    verbosity: flag.int('v') ?? config.logging.verbosity,
    config,
    withoutEffect: settingsWithoutEffect(config),
  });
}

/** Both flags or neither. */
function credentialProviders(flag: FlagReader): Pick<AgentOptions, 'credentialProviders'> {
  const config = flag.text('image-credential-provider-config');
  const binDir = flag.text('image-credential-provider-bin-dir');
  if (config === undefined && binDir === undefined) return {};
  if (config === undefined || binDir === undefined) {
    throw new UserError('--image-credential-provider-config and --image-credential-provider-bin-dir go together');
  }
  return { credentialProviders: { config: resolve(config), binDir: resolve(binDir) } };
}

function readConfigurationFile(path: string, readFile: (path: string) => string): RawConfiguration {
  let source: string;
  try {
    source = readFile(path);
  } catch (error) {
    throw new UserError(`--config: ${path} cannot be read: ${errorMessage(error)}`, { cause: error });
  }
  return readConfigurationText(source, path);
}

function binDirs(dirs: readonly string[]): readonly string[] {
  return dirs.length === 0 ? ['/opt/cni/bin', '/usr/lib/cni'] : dirs.map((dir) => resolve(dir));
}

/** Values of the flags that have no field, by kind. */
class FlagReader {
  readonly #flags: FlagValues;
  constructor(flags: FlagValues) {
    this.#flags = flags;
  }
  text(flag: OwnFlag): string | undefined {
    return convert('text', flag, getOwn(this.#flags, flagKey(flag)));
  }
  int(flag: OwnFlag): number | undefined {
    return convert('int', flag, getOwn(this.#flags, flagKey(flag)));
  }
  list(flag: OwnFlag): readonly string[] {
    return convert('list', flag, getOwn(this.#flags, flagKey(flag))) ?? [];
  }
  map(flag: OwnFlag): Readonly<Record<string, string>> {
    return convert('map', flag, getOwn(this.#flags, flagKey(flag))) ?? {};
  }
}

interface Converted {
  text: string;
  int: number;
  bool: boolean;
  list: readonly string[];
  map: Readonly<Record<string, string>>;
  boolMap: Readonly<Record<string, boolean>>;
  taints: readonly { key: string; value: string; effect: string }[];
  headers: Readonly<Record<string, readonly string[]>>;
}

const CONVERTERS: { readonly [K in FlagKind]: (flag: string, value: unknown) => Converted[K] } = {
  text: (flag, value) => {
    if (typeof value !== 'string') throw new UserError(`--${flag} needs a value`);
    return value;
  },
  int: (flag, value) => {
    const text = String(value);
    if (!/^-?\d+$/.test(text)) throw new UserError(`--${flag} must be an integer, not "${text}"`);
    return Number(text);
  },
  bool: (flag, value) => {
    const text = String(value).toLowerCase();
    if (['true', 't', '1'].includes(text)) return true;
    if (['false', 'f', '0'].includes(text)) return false;
    throw new UserError(`--${flag} must be true or false, not "${String(value)}"`);
  },
  list: (_flag, value) => items(value),
  map: (flag, value) => Object.fromEntries(items(value).map((item) => pair(flag, item))),
  boolMap: (flag, value) =>
    Object.fromEntries(
      items(value)
        .map((item) => pair(flag, item))
        .map(([k, v]) => [k, CONVERTERS.bool(flag, v)]),
    ),
  taints: (flag, value) => items(value).map((item) => taint(flag, item)),
  headers: (flag, value) => {
    const found: Record<string, string[]> = {};
    for (const item of items(value)) {
      const at = item.indexOf(':');
      if (at <= 0) throw new UserError(`--${flag}: "${item}" is not name:value`);
      const name = item.slice(0, at).trim();
      setOwn(found, name, [...(getOwn(found, name) ?? []), item.slice(at + 1).trim()]);
    }
    return found;
  },
};

function convert<K extends FlagKind>(kind: K, flag: string, value: unknown): Converted[K] | undefined {
  return value === undefined ? undefined : CONVERTERS[kind](flag, value);
}

function items(value: unknown): readonly string[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values
    .flatMap((part) => String(part).split(','))
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** "a=b"; eviction thresholds are written "a<b". */
function pair(flag: string, item: string): readonly [string, string] {
  const at = item.search(flag.startsWith('eviction') ? /[<=]/ : /=/);
  if (at <= 0) throw new UserError(`--${flag}: "${item}" is not key=value`);
  return [item.slice(0, at).trim(), item.slice(at + 1).trim()];
}

function taint(flag: string, item: string): Converted['taints'][number] {
  const match = /^([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/.exec(item);
  if (match === null) {
    throw new UserError(`--${flag}: "${item}" is not key=value:NoSchedule, :PreferNoSchedule or :NoExecute`);
  }
  return { key: match[1] ?? '', value: match[2] ?? '', effect: match[3] ?? '' };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `raw` with one flag's value put at its field. Feature gates are merged one by one, everything else is replaced. */
function layOver(raw: RawConfiguration, row: FlagRow, value: unknown): RawConfiguration {
  const converted = convert(row.kind, row.flag, value);
  if (converted === undefined || row.field === undefined) return raw;
  const put = (node: unknown, [name, ...rest]: readonly string[]): RawConfiguration => {
    const object = isRecord(node) ? node : {};
    if (name === undefined) return object;
    const [next] = rest;
    if (next !== undefined) return { ...object, [name]: put(getOwn(object, name), rest) };
    const old = getOwn(object, name);
    return {
      ...object,
      [name]: row.kind === 'boolMap' && isRecord(old) ? { ...old, ...Object(converted) } : converted,
    };
  };
  return put(raw, row.field);
}

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

function nodeName(text: string): string {
  const name = text.trim().toLowerCase();
  if (name.length > 253 || !SUBDOMAIN.test(name)) {
    throw new UserError(`"${text}" cannot be the name of a node: give a DNS name with --hostname-override`);
  }
  return name;
}

function nodeIP(text: string): string {
  if (isIP(text) === 0) throw new UserError(`--node-ip must be an IP address, not "${text}"`);
  return text;
}

/** The kubelet takes "unix:///path" and, deprecated, the bare path. */
function endpoint(text: string, flag: string): string {
  const path = text.startsWith('unix://') ? text.slice('unix://'.length) : text;
  if (!path.startsWith('/')) throw new UserError(`--${flag} must be unix:///absolute/path, not "${text}"`);
  return `unix://${path}`;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    for (const child of Object.values(value)) deepFreeze(child);
    Object.freeze(value);
  }
  return value;
}
