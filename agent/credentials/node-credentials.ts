// The credentials that the node itself has: docker's own configuration files where the kubelet looks for them, and the
// plugins of --image-credential-provider-config. Puts them together; every failure is logged and leaves the others.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Pod } from '../../client/types.ts';
import { elapsedMs, type MonotonicMs } from '../../lib/clock.ts';
import { errorMessage, isErrno, UserError } from '../../lib/errors.ts';
import { parseDockerConfig } from '../model/docker-config.ts';
import type { PullCredentials, RegistryCredential } from '../ports/pull-credentials.ts';
import { CredentialPlugin, type PluginParts } from './plugin.ts';
import { type CredentialProviderConfig, parseCredentialProviders } from './provider-config.ts';

export interface NodeCredentialsOptions extends Omit<PluginParts, 'program'> {
  /** --root-dir: its config.json comes first. */
  readonly rootDir: string;
  /** --image-credential-provider-config: a file, or a directory of them; with the directory of the programs. */
  readonly providers?: { readonly config: string; readonly binDir: string };
  readonly log: (level: 'info' | 'warn', message: string, fields?: Readonly<Record<string, unknown>>) => void;
  /** Whose .docker/config.json is read; the agent's user's. */
  readonly home?: string;
}

/** How long docker's files are not read again. ms. */
const FILES_MS = 5 * 60_000;

/** Throws UserError for a configuration that cannot be used, or one that names a program that is not there. */
export function createNodeCredentials(options: NodeCredentialsOptions): PullCredentials {
  const { log, providers } = options;
  const plugins = providers === undefined ? [] : loadPlugins(providers, options);
  const files = dockerFiles(options);
  return {
    async find(pod: Pod, image: string) {
      const found: RegistryCredential[] = [...files()];
      for (const plugin of plugins) {
        try {
          found.push(...(await plugin.provide(pod, image)));
        } catch (error) {
          log('warn', 'Failed getting credential from external registry credential provider', {
            provider: plugin.name,
            image,
            error: errorMessage(error),
          });
        }
      }
      return found;
    },
  };
}

function loadPlugins(
  { config, binDir }: NonNullable<NodeCredentialsOptions['providers']>,
  parts: NodeCredentialsOptions,
): readonly CredentialPlugin[] {
  const configs = readConfigs(config);
  return configs.map((each) => {
    const program = join(binDir, each.name);
    try {
      if (!statSync(program).isFile()) throw new Error('it is no file');
    } catch (error) {
      throw new UserError(`credential provider ${each.name}: no program ${program}: ${errorMessage(error)}`, {
        cause: error,
      });
    }
    return new CredentialPlugin(each, { ...parts, program });
  });
}

function readConfigs(path: string): readonly CredentialProviderConfig[] {
  const fail = (why: string, cause?: unknown): UserError =>
    new UserError(`--image-credential-provider-config: ${why}`, { cause });
  let files: string[];
  try {
    files = statSync(path).isDirectory()
      ? readdirSync(path)
          .filter((name) => /\.(json|yaml|yml)$/.test(name))
          .sort()
          .map((name) => join(path, name))
      : [path];
  } catch (error) {
    throw fail(`${path} cannot be read: ${errorMessage(error)}`, error);
  }
  if (files.length === 0) throw fail(`no configuration files found in directory ${path}`);
  const all = files.flatMap((file) => {
    let text: string;
    try {
      text = readFileSync(file, 'utf8');
    } catch (error) {
      throw fail(`${file} cannot be read: ${errorMessage(error)}`, error);
    }
    return parseCredentialProviders(text, file);
  });
  const names = new Set<string>();
  for (const { name } of all) {
    if (names.has(name)) throw fail(`provider "${name}" is in more than one file of ${path}`);
    names.add(name);
  }
  return all;
}

/** config.json and .docker/config.json, or the older .dockercfg: the first that is there, read now and then. */
function dockerFiles(options: NodeCredentialsOptions): () => readonly RegistryCredential[] {
  const { clock, log, rootDir, home = homedir() } = options;
  const paths = [
    { path: join(rootDir, 'config.json'), legacy: false },
    { path: join(home, '.docker', 'config.json'), legacy: false },
    { path: join(rootDir, '.dockercfg'), legacy: true },
    { path: join(home, '.dockercfg'), legacy: true },
  ];
  let known: readonly RegistryCredential[] = [];
  let readAt: MonotonicMs | undefined;
  const read = (): readonly RegistryCredential[] => {
    for (const { path, legacy } of paths) {
      try {
        return parseDockerConfig(readFileSync(path, 'utf8'), legacy, path);
      } catch (error) {
        if (isErrno(error, 'ENOENT', 'ENOTDIR')) continue;
        log('warn', 'Unable to read Docker config file', { error: errorMessage(error) });
      }
    }
    return [];
  };
  return () => {
    if (readAt === undefined || elapsedMs(readAt, clock.monotonic()) >= FILES_MS) {
      readAt = clock.monotonic();
      known = read();
    }
    return known;
  };
}
