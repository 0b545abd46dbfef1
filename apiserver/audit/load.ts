// The file of --audit-policy-file: read strictly and validated, with kube-apiserver's messages. What a policy decides is
// policy.ts.

import { readFileSync } from 'node:fs';
import { parseDocument } from 'yaml';
import { aggregate } from '../../lib/aggregate.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { getOwn } from '../../lib/own-property.ts';
import { invalid, notSupported, required } from '../kinds/field-errors.ts';
import { dns1123Subdomain } from '../kinds/names.ts';
import type { FieldError } from '../kinds/resource.ts';
import { type GroupResources, LEVELS, type Policy, type PolicyRule, STAGES } from './policy.ts';

/** Throws UserError with everything that is wrong with the file. */
export function loadPolicy(path: string): Policy {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new UserError(
      `loading audit policy file: failed to read file path ${JSON.stringify(path)}: ${errorMessage(error)}`,
    );
  }
  try {
    return readPolicy(text);
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    throw new UserError(`loading audit policy file: ${error.message}: from file ${path}`);
  }
}

/** What is wrong with a policy. */
export class PolicyError extends Error {
  override name = 'PolicyError';
}

/** YAML or JSON. Throws PolicyError. */
export function readPolicy(text: string): Policy {
  const policy = parsePolicy(text);
  const errors = validatePolicy(policy).map(({ field, detail }) => `${field}: ${detail}`);
  if (errors.length > 0) throw new PolicyError(aggregate(errors));
  if (policy.rules.length === 0) throw new PolicyError('loaded illegal policy with 0 rules');
  return policy;
}

type Fields = Readonly<Record<string, unknown>>;

const TOP = ['kind', 'apiVersion', 'metadata', 'rules', 'omitStages', 'omitManagedFields'];
const LISTS = ['users', 'userGroups', 'verbs', 'namespaces', 'nonResourceURLs', 'omitStages'] as const;
const RULE = ['level', 'resources', 'omitManagedFields', ...LISTS];
const RESOURCES = ['group', 'resources', 'resourceNames'];

function failed(why: string): PolicyError {
  return new PolicyError(`failed decoding: ${why}`);
}

function parsePolicy(text: string): Policy {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) throw failed(error.message.split('\n')[0] ?? '');
  const value = fieldsOf(document.toJS({ maxAliasCount: 100 }), 'the policy');
  const { apiVersion, kind } = value;
  if (kind !== 'Policy' || apiVersion !== 'audit.k8s.io/v1') {
    const [shownKind, version] = [JSON.stringify(kind ?? ''), JSON.stringify(apiVersion ?? '')];
    throw failed(`no kind ${shownKind} is registered for version ${version}: expected Policy of audit.k8s.io/v1`);
  }
  known(value, TOP, '');
  return {
    rules: list(value, 'rules', '').map((one, index) => ruleOf(fieldsOf(one, `rules[${index}]`), `rules[${index}].`)),
    omitStages: strings(value, 'omitStages', ''),
    omitManagedFields: truth(value, '') ?? false,
  };
}

function ruleOf(value: Fields, at: string): PolicyRule {
  known(value, RULE, at);
  const omitManagedFields = truth(value, at);
  return {
    level: text(value, 'level', at),
    users: strings(value, 'users', at),
    userGroups: strings(value, 'userGroups', at),
    verbs: strings(value, 'verbs', at),
    namespaces: strings(value, 'namespaces', at),
    nonResourceURLs: strings(value, 'nonResourceURLs', at),
    omitStages: strings(value, 'omitStages', at),
    resources: list(value, 'resources', at).map((one, index) => {
      const place = `${at}resources[${index}]`;
      return resourcesOf(fieldsOf(one, place), `${place}.`);
    }),
    ...(omitManagedFields === undefined ? {} : { omitManagedFields }),
  };
}

function resourcesOf(value: Fields, at: string): GroupResources {
  known(value, RESOURCES, at);
  return {
    group: text(value, 'group', at),
    resources: strings(value, 'resources', at),
    resourceNames: strings(value, 'resourceNames', at),
  };
}

function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw failed(`${what} is not an object`);
  return { ...value };
}

function known(value: Fields, fields: readonly string[], at: string): void {
  const unknown = Object.keys(value).find((name) => !fields.includes(name));
  if (unknown !== undefined) throw failed(`strict decoding error: unknown field "${at}${unknown}"`);
}

function list(value: Fields, field: string, at: string): readonly unknown[] {
  const found = getOwn(value, field) ?? [];
  if (!Array.isArray(found)) throw failed(`${at}${field}: expected a list`);
  return found;
}

function strings(value: Fields, field: string, at: string): readonly string[] {
  return list(value, field, at).map((one) => {
    if (typeof one !== 'string') throw failed(`${at}${field}: expected strings`);
    return one;
  });
}

function text(value: Fields, field: string, at: string): string {
  const found = getOwn(value, field) ?? '';
  if (typeof found !== 'string') throw failed(`${at}${field}: expected a string`);
  return found;
}

function truth(value: Fields, at: string): boolean | undefined {
  const found = getOwn(value, 'omitManagedFields') ?? undefined;
  if (found !== undefined && typeof found !== 'boolean') throw failed(`${at}omitManagedFields: expected true or false`);
  return found;
}

/** Pure. */
export function validatePolicy({ rules }: Policy): FieldError[] {
  return rules.flatMap((rule, index) => validateRule(rule, `rules[${index}]`));
}

function validateRule(rule: PolicyRule, at: string): FieldError[] {
  const { level, nonResourceURLs, resources, namespaces } = rule;
  const errors: FieldError[] = [];
  if (level === '') errors.push(required(`${at}.level`));
  else if (!LEVELS.some((one) => one === level)) errors.push(notSupported(`${at}.level`, level, LEVELS));
  errors.push(...nonResourceURLs.flatMap((url, index) => validateUrl(url, `${at}.nonResourceURLs[${index}]`)));
  errors.push(...resources.flatMap((one) => validateResources(one, `${at}.resources`)));
  errors.push(...validateStages(rule.omitStages, `${at}.omitStages`));
  if (nonResourceURLs.length > 0 && (resources.length > 0 || namespaces.length > 0)) {
    const why = 'rules cannot apply to both regular resources and non-resource URLs';
    errors.push(invalid(`${at}.nonResourceURLs`, nonResourceURLs, why));
  }
  return errors;
}

function validateUrl(url: string, at: string): FieldError[] {
  const errors: FieldError[] = [];
  if (url === '*') return errors;
  if (!url.startsWith('/')) errors.push(invalid(at, url, "non-resource URL rules must begin with a '/' character"));
  if (url.slice(0, -1).includes('*')) {
    errors.push(invalid(at, url, "non-resource URL wildcards '*' must be the final character of the rule"));
  }
  return errors;
}

function validateResources({ group, resources, resourceNames }: GroupResources, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const wrong = group === '' ? [] : dns1123Subdomain(group);
  if (wrong.length > 0) errors.push(invalid(`${at}.group`, group, wrong.join(',')));
  if (resourceNames.length > 0 && resources.length === 0) {
    errors.push(invalid(`${at}.resourceNames`, resourceNames, 'using resourceNames requires at least one resource'));
  }
  return errors;
}

function validateStages(stages: readonly string[], at: string): FieldError[] {
  return stages.flatMap((stage, index) =>
    STAGES.some((one) => one === stage)
      ? []
      : [invalid(`${at}[${index}]`, stage, `allowed stages are ${STAGES.join(',')}`)],
  );
}
