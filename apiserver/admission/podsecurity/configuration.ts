// The configuration of the plugin PodSecurity (pod-security.admission.config.k8s.io): the policy of namespaces without labels, and who
// and what is exempt. Read strictly and validated, with kube-apiserver's messages. Pure.

import { aggregate } from '../../../lib/aggregate.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { duplicate, invalid } from '../../kinds/field-errors.ts';
import { dns1123Label, dns1123Subdomain } from '../../kinds/names.ts';
import type { FieldError } from '../../kinds/resource.ts';
import { DEFAULT_POLICY, LEVELS_IN_WORDS, type LevelVersion, type Policy, parseLevel, parseVersion } from './levels.ts';

export interface PodSecurityConfiguration {
  readonly defaults: Policy;
  readonly exemptions: {
    readonly namespaces: ReadonlySet<string>;
    readonly usernames: ReadonlySet<string>;
    readonly runtimeClasses: ReadonlySet<string>;
  };
}

const NONE: ReadonlySet<string> = new Set();
export const WITHOUT_CONFIGURATION: PodSecurityConfiguration = {
  defaults: DEFAULT_POLICY,
  exemptions: { namespaces: NONE, usernames: NONE, runtimeClasses: NONE },
};

/** What is wrong with a configuration. */
export class ConfigurationError extends Error {
  override name = 'ConfigurationError';
}

type Fields = Readonly<Record<string, unknown>>;

const GROUP = 'pod-security.admission.config.k8s.io';
const VERSIONS = ['v1', 'v1beta1', 'v1alpha1'].map((version) => `${GROUP}/${version}`);
const MODES = ['enforce', 'audit', 'warn'] as const;
const EXEMPT = ['usernames', 'runtimeClasses', 'namespaces'] as const;

/** `value`: the configuration as JSON. Throws ConfigurationError with everything that is wrong with it. */
export function podSecurityConfiguration(value: unknown): PodSecurityConfiguration {
  const fields = fieldsOf(value, 'the configuration');
  const { apiVersion = '', kind = '' } = fields;
  if (kind !== 'PodSecurityConfiguration' || typeof apiVersion !== 'string' || !VERSIONS.includes(apiVersion)) {
    const [shownKind, version] = [JSON.stringify(kind), JSON.stringify(apiVersion)];
    throw new ConfigurationError(`no kind ${shownKind} is registered for version ${version}`);
  }
  known(fields, ['apiVersion', 'kind', 'defaults', 'exemptions'], '');
  const defaults = fieldsOf(fields['defaults'] ?? {}, 'defaults');
  const exemptions = fieldsOf(fields['exemptions'] ?? {}, 'exemptions');
  known(defaults, [...MODES, ...MODES.map((mode) => `${mode}-version`)], 'defaults.');
  known(exemptions, EXEMPT, 'exemptions.');
  const errors: FieldError[] = [];
  const policy = {
    enforce: modeOf(defaults, 'enforce', errors),
    warn: modeOf(defaults, 'warn', errors),
    audit: modeOf(defaults, 'audit', errors),
  };
  const namespaces = namesOf(exemptions, 'namespaces', dns1123Label, errors);
  const runtimeClasses = namesOf(exemptions, 'runtimeClasses', dns1123Subdomain, errors);
  const emptyName = (name: string): string[] => (name === '' ? ['username must not be empty'] : []);
  const usernames = namesOf(exemptions, 'usernames', emptyName, errors);
  if (errors.length > 0) {
    const all = errors.map(({ field, detail }) => `${field}: ${detail}`);
    throw new ConfigurationError(aggregate(all));
  }
  return { defaults: policy, exemptions: { namespaces, usernames, runtimeClasses } };
}

function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ConfigurationError(`${what} is not an object`);
  }
  return { ...value };
}

function known(value: Fields, fields: readonly string[], at: string): void {
  const unknown = Object.keys(value).filter((name) => !fields.includes(name));
  if (unknown.length === 0) return;
  const list = unknown.map((name) => `unknown field "${at}${name}"`).join(', ');
  throw new ConfigurationError(`strict decoding error: ${list}`);
}

function modeOf(defaults: Fields, mode: string, errors: FieldError[]): LevelVersion {
  const [levelText, versionText] = [textOf(defaults, mode), textOf(defaults, `${mode}-version`)];
  const level = levelText === '' ? DEFAULT_POLICY.enforce.level : parseLevel(levelText);
  const version = versionText === '' ? DEFAULT_POLICY.enforce.version : parseVersion(versionText);
  if (level === undefined) errors.push(invalid(`defaults.${mode}`, levelText, `must be one of ${LEVELS_IN_WORDS}`));
  if (version === undefined) {
    errors.push(invalid(`defaults.${mode}-version`, versionText, 'must be "latest" or "v1.x"'));
  }
  return { level: level ?? DEFAULT_POLICY.enforce.level, version: version ?? DEFAULT_POLICY.enforce.version };
}

function textOf(fields: Fields, name: string): string {
  const found = getOwn(fields, name) ?? '';
  if (typeof found !== 'string') throw new ConfigurationError(`defaults.${name}: expected a string`);
  return found;
}

function namesOf(
  exemptions: Fields,
  field: (typeof EXEMPT)[number],
  check: (name: string) => readonly string[],
  errors: FieldError[],
): ReadonlySet<string> {
  const list = getOwn(exemptions, field) ?? [];
  if (!Array.isArray(list)) throw new ConfigurationError(`exemptions.${field}: expected a list`);
  const names = new Set<string>();
  for (const [index, name] of list.entries()) {
    if (typeof name !== 'string') throw new ConfigurationError(`exemptions.${field}: expected strings`);
    const at = `exemptions.${field}[${index}]`;
    const wrong = check(name);
    if (wrong.length > 0) errors.push(invalid(at, name, wrong.join(', ')));
    else if (names.has(name)) errors.push(duplicate(at, name));
    names.add(name);
  }
  return names;
}
