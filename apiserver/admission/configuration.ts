// The file of --admission-control-config-file: an AdmissionConfiguration, which has the configuration of each plugin, or names its
// file. Of the plugins here PodSecurity can be configured; the configuration of another is refused by name.

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseDocument } from 'yaml';
import { errorMessage, UserError } from '../../lib/errors.ts';
import {
  ConfigurationError,
  type PodSecurityConfiguration,
  podSecurityConfiguration,
  WITHOUT_CONFIGURATION,
} from './podsecurity/configuration.ts';

export interface PluginConfigurations {
  readonly podSecurity: PodSecurityConfiguration;
}

export const NO_CONFIGURATIONS: PluginConfigurations = { podSecurity: WITHOUT_CONFIGURATION };

const FLAG = '--admission-control-config-file';
const VERSIONS = ['apiserver.config.k8s.io/v1', 'apiserver.k8s.io/v1alpha1'];

interface PluginEntry {
  readonly name: string;
  /** Present where the configuration is in another file. */
  readonly path: string | undefined;
  readonly configuration: unknown;
}

/** Of kube-apiserver's plugins those that read a configuration, and are not here or read none here. */
const ELSEWHERE = new Set([
  'EventRateLimit',
  'ImagePolicyWebhook',
  'MutatingAdmissionWebhook',
  'PodNodeSelector',
  'PodTolerationRestriction',
  'ResourceQuota',
  'ValidatingAdmissionWebhook',
]);

/** Throws UserError for a file that cannot be read, or says what has no effect here. */
export function readConfigurations(file: string | undefined): PluginConfigurations {
  if (file === undefined) return NO_CONFIGURATIONS;
  let podSecurity: PodSecurityConfiguration | undefined;
  for (const { name, path, configuration } of pluginsOf(documentOf(file), file)) {
    if (name !== 'PodSecurity') throw new UserError(`${FLAG}: ${file}: ${refusal(name)}`);
    // As upstream: the first one counts, and of its two forms the one in place.
    if (podSecurity !== undefined) continue;
    const place = configuration === undefined && path !== undefined ? resolve(dirname(file), path) : undefined;
    const value = place === undefined ? configuration : documentOf(place);
    podSecurity = value === undefined ? WITHOUT_CONFIGURATION : configured(value, place ?? file);
  }
  return { podSecurity: podSecurity ?? WITHOUT_CONFIGURATION };
}

function refusal(name: string): string {
  if (ELSEWHERE.has(name)) return `the plugin ${name} cannot be configured here`;
  return `there is no plugin ${JSON.stringify(name)} that has a configuration`;
}

function configured(value: unknown, file: string): PodSecurityConfiguration {
  try {
    return podSecurityConfiguration(value);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    throw new UserError(`${FLAG}: ${file}: the configuration of PodSecurity: ${error.message}`);
  }
}

/** YAML or JSON. */
function documentOf(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new UserError(
      `unable to read admission control configuration from ${JSON.stringify(file)} [${errorMessage(error)}]`,
    );
  }
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) throw new UserError(`${FLAG}: ${file}: ${error.message.split('\n')[0] ?? ''}`);
  return document.toJS({ maxAliasCount: 100 });
}

function pluginsOf(value: unknown, file: string): readonly PluginEntry[] {
  const refuse = (why: string): UserError => new UserError(`${FLAG}: ${file}: ${why}`);
  const fields = (one: unknown, what: string, known: readonly string[]): Readonly<Record<string, unknown>> => {
    if (typeof one !== 'object' || one === null || Array.isArray(one)) throw refuse(`${what} is not an object`);
    const unknown = Object.keys(one).find((name) => !known.includes(name));
    if (unknown !== undefined) throw refuse(`strict decoding error: unknown field "${unknown}" of ${what}`);
    return { ...one };
  };
  const { apiVersion, kind, plugins } = fields(value, 'the file', ['apiVersion', 'kind', 'plugins']);
  if (kind !== 'AdmissionConfiguration' || typeof apiVersion !== 'string' || !VERSIONS.includes(apiVersion)) {
    const [shownKind, version] = [JSON.stringify(kind ?? ''), JSON.stringify(apiVersion ?? '')];
    throw refuse(`no kind ${shownKind} is registered for version ${version}: expected AdmissionConfiguration`);
  }
  if (plugins !== undefined && plugins !== null && !Array.isArray(plugins)) throw refuse('plugins is not a list');
  const list: readonly unknown[] = plugins ?? [];
  return list.map((one, index) => {
    const { name, path, configuration } = fields(one, `plugins[${index}]`, ['name', 'path', 'configuration']);
    if (typeof name !== 'string') throw refuse(`plugins[${index}].name: expected a string`);
    if (path !== undefined && typeof path !== 'string') throw refuse(`plugins[${index}].path: expected a string`);
    return { name, path: path === '' ? undefined : path, configuration: configuration ?? undefined };
  });
}
