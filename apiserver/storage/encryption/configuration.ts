// An EncryptionConfiguration (apiserver.config.k8s.io/v1) as it is in its file: types, and reading it strictly. What its values
// may be is validate.ts's.

import { parseDocument } from 'yaml';
import { getOwn } from '../../../lib/own-property.ts';

export interface KeyConfig {
  readonly name?: string;
  readonly secret?: string;
}

export type ProviderName = 'aesgcm' | 'aescbc' | 'secretbox' | 'identity' | 'kms';

export interface ResourceConfig {
  readonly resources?: readonly string[];
  readonly providers?: readonly Readonly<
    Partial<Record<ProviderName, { readonly keys?: readonly KeyConfig[] } | null>>
  >[];
}

export interface EncryptionConfiguration {
  readonly resources?: readonly ResourceConfig[];
}

const FIELDS: Readonly<Record<string, readonly string[]>> = {
  '': ['kind', 'apiVersion', 'resources'],
  resources: ['resources', 'providers'],
  providers: ['aesgcm', 'aescbc', 'secretbox', 'identity', 'kms'],
  keys: ['name', 'secret'],
};

/** What is wrong with a configuration. */
export class ConfigurationError extends Error {
  override name = 'ConfigurationError';
}

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** YAML or JSON into a configuration that may be wrong, but has its types. Throws ConfigurationError. */
export function parseConfiguration(text: string): EncryptionConfiguration {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) throw new ConfigurationError(error.message.split('\n')[0] ?? '');
  const value: unknown = document.toJS({ maxAliasCount: 100 });
  if (!isFields(value)) throw new ConfigurationError('it is not an object');
  const { apiVersion, kind } = value;
  if (kind !== 'EncryptionConfiguration' || apiVersion !== 'apiserver.config.k8s.io/v1') {
    throw new ConfigurationError(
      `no kind ${JSON.stringify(kind ?? '')} is registered for version ${JSON.stringify(apiVersion ?? '')}: ` +
        'expected EncryptionConfiguration of apiserver.config.k8s.io/v1',
    );
  }
  known(value, '', '');
  return {
    resources: objects(value, 'resources', 'resources').map((one, index) => resourceConfig(one, `resources[${index}]`)),
  };
}

function resourceConfig(value: Fields, at: string): ResourceConfig {
  const resources = list(value, 'resources', `${at}.resources`).map((one) => {
    if (typeof one !== 'string') throw new ConfigurationError(`${at}.resources: expected strings`);
    return one;
  });
  const providers = objects(value, 'providers', `${at}.providers`).map((one, index) => {
    const names = Object.keys(one).map(
      (name) => [name, provider(one, name, `${at}.providers[${index}].${name}`)] as const,
    );
    return Object.fromEntries(names.filter(([, config]) => config !== undefined));
  });
  return { resources, providers };
}

function provider(value: Fields, name: string, at: string): { keys?: readonly KeyConfig[] } | undefined {
  const config = getOwn(value, name);
  if (config === null || config === undefined) return undefined;
  if (!isFields(config)) throw new ConfigurationError(`${at}: expected an object`);
  if (name === 'identity' || name === 'kms') return {};
  const unknown = Object.keys(config).find((field) => field !== 'keys');
  if (unknown !== undefined) throw new ConfigurationError(`strict decoding error: unknown field "${at}.${unknown}"`);
  const keys = objects(config, 'keys', `${at}.keys`).map((key) => {
    const { name: keyName, secret } = key;
    return {
      ...(typeof keyName === 'string' ? { name: keyName } : {}),
      ...(typeof secret === 'string' ? { secret } : {}),
    };
  });
  return { keys };
}

function list(value: Fields, field: string, at: string): readonly unknown[] {
  const found = getOwn(value, field) ?? [];
  if (!Array.isArray(found)) throw new ConfigurationError(`${at}: expected a list`);
  return found;
}

function objects(value: Fields, field: string, at: string): readonly Fields[] {
  return list(value, field, at).map((one, index) => {
    if (!isFields(one)) throw new ConfigurationError(`${at}[${index}]: expected an object`);
    known(one, field, `${at}[${index}].`);
    return one;
  });
}

function known(value: Fields, field: string, at: string): void {
  const unknown = Object.keys(value).find((name) => !(getOwn(FIELDS, field) ?? []).includes(name));
  if (unknown !== undefined) throw new ConfigurationError(`strict decoding error: unknown field "${at}${unknown}"`);
}

/** "secrets", "deployments.apps", "*.apps", "*." (the core group), "*.*" */
export function groupResource(text: string): { readonly group: string; readonly plural: string } {
  const dot = text.indexOf('.');
  return dot < 0 ? { group: '', plural: text } : { group: text.slice(dot + 1), plural: text.slice(0, dot) };
}
