// The file of --encryption-provider-config: an EncryptionConfiguration (apiserver.config.k8s.io/v1) into a transformer for
// each resource. Validated as kube-apiserver does, with its messages. KMS providers are refused by name.

import { readFileSync } from 'node:fs';
import { aggregate } from '../../../lib/aggregate.ts';
import { errorMessage, UserError } from '../../../lib/errors.ts';
import { type FollowedFile, followFile } from '../../../lib/follow-file.ts';
import {
  ConfigurationError,
  type EncryptionConfiguration,
  groupResource,
  parseConfiguration,
  type ResourceConfig,
} from './configuration.ts';
import {
  aescbc,
  aesgcm,
  identity,
  type PrefixTransformer,
  prefixTransformers,
  secretbox,
  type Transformer,
} from './transformers.ts';
import { validateEncryption } from './validate.ts';

/** What is encrypted, and how. */
export interface Encryption {
  /** For "<group>/<plural>"; undefined where values are stored as they are. */
  transformer(resource: string): Transformer | undefined;
  /** What every value of the resource begins with that is written now: "k8s:enc:aescbc:v1:key1:"; '' for plain ones. */
  writePrefix(resource: string): string;
  /** Changes whenever the provider that writes any resource changes. */
  readonly fingerprint: string;
}

function readConfiguration(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const why = errorMessage(error);
    throw new UserError(`error opening encryption provider configuration file ${JSON.stringify(path)}: ${why}`);
  }
}

function encryptionIn(text: string, path: string): Encryption {
  if (text === '') throw new UserError(`encryption provider configuration file ${JSON.stringify(path)} is empty`);
  try {
    return encryptionOf(parseConfiguration(text));
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    throw new UserError(
      `error while parsing encryption provider configuration file ${JSON.stringify(path)}: ${error.message}`,
    );
  }
}

/** Reads the file. Throws UserError with everything that is wrong with it. */
export function loadEncryption(path: string): Encryption {
  return encryptionIn(readConfiguration(path), path);
}

/** --encryption-provider-config-automatic-reload: what is in the file now, or was when it was last valid. */
export class ReloadedEncryption implements Encryption {
  readonly #path: string;
  readonly #text: string;
  #current: Encryption;

  /** Throws UserError with everything that is wrong with the file. */
  constructor(path: string) {
    this.#path = path;
    this.#text = readConfiguration(path);
    this.#current = encryptionIn(this.#text, path);
  }

  get fingerprint(): string {
    return this.#current.fingerprint;
  }

  transformer(resource: string): Transformer | undefined {
    return this.#current.transformer(resource);
  }

  writePrefix(resource: string): string {
    return this.#current.writePrefix(resource);
  }

  /** Calls `changed` after each change. A file that is not valid changes nothing. Returns what ends it. */
  follow(changed: () => void, { clock, log }: Pick<FollowedFile, 'clock' | 'log'>): () => void {
    const path = this.#path;
    return followFile({
      path,
      text: this.#text,
      changed: (text) => {
        this.#current = encryptionIn(text, path);
        log(`encryption config file ${path} was read again: it counts from now on`);
        changed();
      },
      refused: (why) =>
        log(`error processing encryption config file ${path}: ${why}; the one from before still counts`),
      clock,
      log,
    });
  }
}

/** Throws ConfigurationError for a configuration that is not valid. */
export function encryptionOf(configuration: EncryptionConfiguration): Encryption {
  const errors = validateEncryption(configuration);
  if (errors.length > 0) throw new ConfigurationError(aggregate(errors));
  const rules = new Map<string, readonly Provider[]>();
  for (const { resources = [], providers = [] } of configuration.resources ?? []) {
    const added = providers.map(providerOf);
    for (const resource of resources) {
      const { group, plural } = groupResource(resource);
      // An earlier rule for the whole group, or for everything, hides this one.
      if (rules.has(`${group}/*`) || rules.has('*/*')) continue;
      const key = `${group}/${plural}`;
      rules.set(key, [...(rules.get(key) ?? []), ...added]);
    }
  }
  const transformers = new Map<string, Transformer>();
  for (const [key, [first, ...more]] of rules) {
    if (first !== undefined) transformers.set(key, prefixTransformers('no matching prefix found', [first, ...more]));
  }
  const ruleFor = (resource: string): string | undefined => {
    const group = resource.slice(0, resource.indexOf('/'));
    return [resource, `${group}/*`, '*/*'].find((key) => rules.has(key));
  };
  return {
    transformer: (resource) => transformers.get(ruleFor(resource) ?? ''),
    writePrefix: (resource) => rules.get(ruleFor(resource) ?? '')?.[0]?.writePrefix ?? '',
    fingerprint: JSON.stringify([...rules].map(([key, [first]]) => [key, first?.writePrefix])),
  };
}

interface Provider extends PrefixTransformer {
  readonly writePrefix: string;
}

const CIPHERS = { aescbc, aesgcm, secretbox } as const;
const KEY_UNKNOWN = {
  aescbc: 'no matching key was found for the provided AES transformer',
  aesgcm: 'no matching key was found for the provided AES transformer',
  secretbox: 'no matching key was found for the provided Secretbox transformer',
} as const;

function providerOf(config: NonNullable<ResourceConfig['providers']>[number]): Provider {
  for (const name of ['aesgcm', 'aescbc', 'secretbox'] as const) {
    const [first, ...more] = (config[name]?.keys ?? []).map((key) => ({
      prefix: `${key.name ?? ''}:`,
      transformer: CIPHERS[name](Buffer.from(key.secret ?? '', 'base64')),
    }));
    if (first === undefined) continue;
    const prefix = `k8s:enc:${name}:v1:`;
    const transformer = prefixTransformers(KEY_UNKNOWN[name], [first, ...more]);
    return { prefix, transformer, writePrefix: `${prefix}${first.prefix}` };
  }
  return { prefix: '', transformer: identity, writePrefix: '' };
}
