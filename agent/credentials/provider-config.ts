// Reads --image-credential-provider-config (CredentialProviderConfig of kubelet.config.k8s.io): which plugins there are,
// for which images, with what. Text in, checked providers out; everything wrong is one UserError. Touches no files.

import { UserError } from '../../lib/errors.ts';
import { parseGoDuration } from '../../lib/go-duration.ts';
import { isRecord, readYamlObject } from '../config/yaml-object.ts';

export interface TokenAttributes {
  readonly serviceAccountTokenAudience: string;
  /** What a cached answer belongs to: the token itself, or the service account. */
  readonly cacheType: 'Token' | 'ServiceAccount';
  /** Without a service account the plugin is not run. */
  readonly requireServiceAccount: boolean;
  readonly requiredServiceAccountAnnotationKeys: readonly string[];
  readonly optionalServiceAccountAnnotationKeys: readonly string[];
}

export interface CredentialProviderConfig {
  /** The name of the program in --image-credential-provider-bin-dir. */
  readonly name: string;
  readonly matchImages: readonly string[];
  /** How long a response without cacheDuration is cached. ms. */
  readonly defaultCacheMs: number;
  /** Version of the request and the response: "credentialprovider.kubelet.k8s.io/v1". */
  readonly apiVersion: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly tokenAttributes?: TokenAttributes;
}

const CONFIG_VERSIONS = ['v1', 'v1beta1', 'v1alpha1'].map((version) => `kubelet.config.k8s.io/${version}`);
export const EXEC_VERSIONS: readonly string[] = ['v1', 'v1beta1', 'v1alpha1'].map(
  (version) => `credentialprovider.kubelet.k8s.io/${version}`,
);
const PROVIDER_FIELDS = ['name', 'matchImages', 'defaultCacheDuration', 'apiVersion', 'args', 'env', 'tokenAttributes'];
const TOKEN_FIELDS = [
  'serviceAccountTokenAudience',
  'cacheType',
  'requireServiceAccount',
  'requiredServiceAccountAnnotationKeys',
  'optionalServiceAccountAnnotationKeys',
];

type Say = (path: string, what: string) => void;

function known(value: Record<string, unknown>, fields: readonly string[], path: string, say: Say): void {
  for (const field of Object.keys(value)) if (!fields.includes(field)) say(`${path}.${field}`, 'unknown field');
}

function texts(value: unknown, path: string, say: Say): readonly string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.every((item): item is string => typeof item === 'string')) return value;
  say(path, 'must be a list of strings');
  return [];
}

function text(value: unknown, path: string, say: Say): string {
  if (typeof value === 'string' && value !== '') return value;
  say(path, value === undefined || value === null || value === '' ? 'is required' : 'must be a string');
  return '';
}

/** The providers of one file. `file` is named in the UserError. */
export function parseCredentialProviders(source: string, file: string): readonly CredentialProviderConfig[] {
  const problems: string[] = [];
  const say: Say = (path, what) => problems.push(`${path}: ${what}`);
  const fail = (why: string, cause?: unknown): UserError =>
    new UserError(`image credential provider configuration ${file}: ${why}`, { cause });
  const value = readYamlObject(source, 'CredentialProviderConfig', fail);
  if (!CONFIG_VERSIONS.includes(String(value['apiVersion']))) {
    throw fail(`apiVersion must be one of ${CONFIG_VERSIONS.join(', ')}, not ${JSON.stringify(value['apiVersion'])}`);
  }
  if (value['kind'] !== 'CredentialProviderConfig') {
    throw fail(`kind must be CredentialProviderConfig, not ${JSON.stringify(value['kind'])}`);
  }
  known(value, ['apiVersion', 'kind', 'providers'], '', say);
  const list = value['providers'];
  if (!Array.isArray(list) || list.length === 0) throw fail('providers: at least 1 item in plugins is required');
  const providers = list.map((item, index) => readProvider(item, `providers[${index}]`, say));
  const names = new Set<string>();
  for (const [index, { name }] of providers.entries()) {
    if (name !== '' && names.has(name)) say(`providers[${index}].name`, `"${name}" is there twice`);
    names.add(name);
  }
  if (problems.length > 0) throw fail(problems.join('; '));
  return providers;
}

function readProvider(value: unknown, path: string, say: Say): CredentialProviderConfig {
  if (!isRecord(value)) {
    say(path, 'must be an object');
    return { name: '', matchImages: [], defaultCacheMs: 0, apiVersion: '', args: [], env: [] };
  }
  known(value, PROVIDER_FIELDS, path, say);
  const name = text(value['name'], `${path}.name`, say);
  if (/[/\s]/.test(name) || name === '.' || name === '..') {
    say(`${path}.name`, `must be the name of a program, without a path: "${name}"`);
  }
  const apiVersion = text(value['apiVersion'], `${path}.apiVersion`, say);
  if (apiVersion !== '' && !EXEC_VERSIONS.includes(apiVersion)) {
    say(`${path}.apiVersion`, `must be one of ${EXEC_VERSIONS.join(', ')}, not "${apiVersion}"`);
  }
  const matchImages = texts(value['matchImages'], `${path}.matchImages`, say);
  if (matchImages.length === 0) say(`${path}.matchImages`, 'at least one item is required');
  for (const [index, pattern] of matchImages.entries()) {
    if (!/^(https?:\/\/)?[^/:\s]+(:\d+)?(\/\S*)?$/.test(pattern)) {
      say(`${path}.matchImages[${index}]`, `must be a host, a port and a path, not "${pattern}"`);
    }
  }
  const tokens = value['tokenAttributes'];
  return {
    name,
    matchImages,
    defaultCacheMs: readDuration(value['defaultCacheDuration'], `${path}.defaultCacheDuration`, say),
    apiVersion,
    args: texts(value['args'], `${path}.args`, say),
    env: readEnv(value['env'], `${path}.env`, say),
    ...(tokens === undefined || tokens === null
      ? {}
      : { tokenAttributes: readTokens(tokens, apiVersion, `${path}.tokenAttributes`, say) }),
  };
}

function readDuration(value: unknown, path: string, say: Say): number {
  const ms = parseGoDuration(text(value, path, say));
  if (ms === undefined) say(path, `must be a duration, not ${JSON.stringify(value)}`);
  else if (ms < 0) say(path, 'must not be negative');
  return ms ?? 0;
}

function readEnv(value: unknown, path: string, say: Say): CredentialProviderConfig['env'] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    say(path, 'must be a list of names and values');
    return [];
  }
  return value.map((item, index) => {
    const entry = isRecord(item) ? item : {};
    const name = text(entry['name'], `${path}[${index}].name`, say);
    return { name, value: typeof entry['value'] === 'string' ? entry['value'] : '' };
  });
}

function readTokens(value: unknown, apiVersion: string, path: string, say: Say): TokenAttributes {
  const given = isRecord(value) ? value : {};
  if (!isRecord(value)) say(path, 'must be an object');
  known(given, TOKEN_FIELDS, path, say);
  if (apiVersion !== '' && apiVersion !== EXEC_VERSIONS[0]) {
    say(path, `tokenAttributes is only supported for ${EXEC_VERSIONS[0]} API version`);
  }
  const { requireServiceAccount, cacheType } = given;
  if (typeof requireServiceAccount !== 'boolean') say(`${path}.requireServiceAccount`, 'must be true or false');
  if (cacheType !== undefined && cacheType !== 'Token' && cacheType !== 'ServiceAccount') {
    say(`${path}.cacheType`, `must be Token or ServiceAccount, not ${JSON.stringify(cacheType)}`);
  }
  const required = texts(
    given['requiredServiceAccountAnnotationKeys'],
    `${path}.requiredServiceAccountAnnotationKeys`,
    say,
  );
  const also = texts(
    given['optionalServiceAccountAnnotationKeys'],
    `${path}.optionalServiceAccountAnnotationKeys`,
    say,
  );
  if (requireServiceAccount === false && required.length > 0) {
    say(
      `${path}.requiredServiceAccountAnnotationKeys`,
      'requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set',
    );
  }
  for (const key of also) {
    if (required.includes(key)) say(path, `annotation key "${key}" is both required and optional`);
  }
  return {
    serviceAccountTokenAudience: text(given['serviceAccountTokenAudience'], `${path}.serviceAccountTokenAudience`, say),
    cacheType: cacheType === 'ServiceAccount' ? 'ServiceAccount' : 'Token',
    requireServiceAccount: requireServiceAccount === true,
    requiredServiceAccountAnnotationKeys: required,
    optionalServiceAccountAnnotationKeys: also,
  };
}
