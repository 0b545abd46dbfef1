// FlowSchemas: the row and its rules. What they do to requests is flowcontrol/.

import type { FlowSchema } from 'kubernetes-types/flowcontrol/v1';
import { getOwn } from '../../../lib/own-property.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { namedTable, text } from '../columns.ts';
import { addErrors, duplicate, forbidden, invalid, notSupported, required, syntax } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import { dns1123Label, dns1123Subdomain } from '../names.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Of } from '../shapes.ts';
import { allOf } from '../shared/counts.ts';
import { FLOW_SCHEMAS } from './default-objects.ts';

const of = (object: KubeObject): Of<FlowSchema> => as<FlowSchema>(object, 'FlowSchema');
type Spec = NonNullable<Of<FlowSchema>['spec']>;
type Rules = NonNullable<Spec['rules']>[number];
type Subject = NonNullable<Rules['subjects']>[number];

const MAX_PRECEDENCE = 10_000;
const METHODS = ['ByNamespace', 'ByUser'];
const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'proxy', 'update', 'watch'];
const SUBJECTS = { ServiceAccount: 'serviceAccount', User: 'user', Group: 'group' } as const;

function validateSubject(at: string, subject: Subject): FieldError[] {
  const { kind = '', serviceAccount, user, group } = subject;
  const own = Object.entries(SUBJECTS).find(([name]) => name === kind)?.[1];
  if (own === undefined) return [notSupported(`${at}.kind`, kind, ['Group', 'ServiceAccount', 'User'])];
  const errors: FieldError[] = [];
  if (subject[own] === undefined)
    errors.push(required(`${at}.${own}`, `${own} is required when subject kind is '${kind}'`));
  else if (own === 'serviceAccount') addErrors(errors, validateAccount(`${at}.serviceAccount`, serviceAccount));
  else if (((own === 'user' ? user : group)?.name ?? '') === '') errors.push(required(`${at}.${own}.name`));
  for (const [other, field] of Object.entries(SUBJECTS)) {
    if (field === own || subject[field] === undefined) continue;
    errors.push(forbidden(`${at}.${field}`, `${field} is forbidden when subject kind is not '${other}'`));
  }
  return errors;
}

function validateAccount(at: string, account: Subject['serviceAccount'] = {}): FieldError[] {
  const { name = '', namespace = '' } = account;
  const errors = name === '' ? [required(`${at}.name`)] : [];
  if (name !== '' && name !== '*') addErrors(errors, syntax(`${at}.name`, name, dns1123Subdomain(name)));
  if (namespace === '') errors.push(required(`${at}.namespace`, 'must specify namespace for service account'));
  else addErrors(errors, syntax(`${at}.namespace`, namespace, dns1123Label(namespace)));
  return errors;
}

/** A list that may be "*" alone. */
function validateWildcard(field: string, list: readonly string[], what: string): FieldError[] {
  if (list.length < 2 || !list.includes('*')) return [];
  return [invalid(field, list, `if '*' is present, must not specify other ${what}`)];
}

function validateVerbs(field: string, verbs: readonly string[] = []): FieldError[] {
  if (verbs.length === 0) return [required(field, 'verbs must contain at least one value')];
  if (verbs.includes('*')) return validateWildcard(field, verbs, 'verbs');
  return verbs.every((verb) => VERBS.includes(verb)) ? [] : [notSupported(field, verbs, VERBS)];
}

function validateUrl(field: string, url: string): FieldError[] {
  const wrong = (why: string): FieldError[] => [invalid(field, url, why)];
  if (url === '') return wrong('must not be empty');
  if (!url.startsWith('/')) return wrong('must start with slash');
  if (url.includes(' ')) return wrong('must not contain white-space');
  if (url.includes('//')) return wrong('must not contain double slash');
  const star = url.indexOf('*');
  return star >= 0 && (star !== url.length - 1 || !url.endsWith('/*'))
    ? wrong('wildcard can only do suffix matching')
    : [];
}

function validateResourceRule(at: string, rule: NonNullable<Rules['resourceRules']>[number]): FieldError[] {
  const { verbs, apiGroups = [], resources = [], namespaces = [], clusterScope = false } = rule;
  const needed = (field: string, list: readonly string[], one: string, many: string): FieldError[] =>
    list.length === 0
      ? [required(field, `resource rules must supply at least one ${one}`)]
      : validateWildcard(field, list, many);
  const errors = allOf(
    validateVerbs(`${at}.verbs`, verbs),
    needed(`${at}.apiGroups`, apiGroups, 'api group', 'api groups'),
    needed(`${at}.resources`, resources, 'resource', 'resources'),
  );
  const field = `${at}.namespaces`;
  if (namespaces.length === 0 && !clusterScope) {
    errors.push(required(field, 'resource rules that are not cluster scoped must supply at least one namespace'));
  }
  if (namespaces.includes('*')) return errors.concat(validateWildcard(field, namespaces, 'namespaces'));
  for (const [index, name] of namespaces.entries()) {
    const messages = dns1123Label(name).map(
      (message) => `each member of this list must be '*' or a DNS-1123 label; ${message}`,
    );
    addErrors(errors, syntax(`${field}[${index}]`, name, messages));
  }
  return errors;
}

function validateUrls(field: string, urls: readonly string[] = []): FieldError[] {
  if (urls.length === 0) return [required(field, 'nonResourceURLs must contain at least one value')];
  if (urls.includes('*')) return validateWildcard(field, urls, 'non-resource URLs');
  return urls.flatMap((url, index) => validateUrl(`${field}[${index}]`, url));
}

function validateRules(at: string, rule: Rules): FieldError[] {
  const { subjects = [], resourceRules = [], nonResourceRules = [] } = rule;
  const idle = resourceRules.length + nonResourceRules.length === 0;
  return allOf(
    subjects.length === 0 ? [required(`${at}.subjects`, 'subjects must contain at least one value')] : [],
    ...subjects.map((subject, index) => validateSubject(`${at}.subjects[${index}]`, subject)),
    idle ? [required(at, 'at least one of resourceRules and nonResourceRules has to be non-empty')] : [],
    ...resourceRules.map((one, index) => validateResourceRule(`${at}.resourceRules[${index}]`, one)),
    ...nonResourceRules.map((one, index) =>
      allOf(
        validateVerbs(`${at}.nonResourceRules[${index}].verbs`, one.verbs),
        validateUrls(`${at}.nonResourceRules[${index}].nonResourceURLs`, one.nonResourceURLs),
      ),
    ),
  );
}

function validate(object: KubeObject): FieldError[] {
  const { spec = {}, metadata } = of(object);
  const { matchingPrecedence = 0, distinguisherMethod, priorityLevelConfiguration, rules = [] } = spec;
  const errors: FieldError[] = [];
  const field = 'spec.matchingPrecedence';
  if (matchingPrecedence <= 0) errors.push(invalid(field, matchingPrecedence, 'must be a positive value'));
  if (matchingPrecedence > MAX_PRECEDENCE) {
    errors.push(invalid(field, matchingPrecedence, `must not be greater than ${MAX_PRECEDENCE}`));
  }
  if (matchingPrecedence === 1 && metadata.name !== 'exempt') {
    errors.push(invalid(field, matchingPrecedence, "only the schema named 'exempt' may have matchingPrecedence 1"));
  }
  if (distinguisherMethod !== undefined && !METHODS.includes(distinguisherMethod.type ?? '')) {
    errors.push(notSupported('spec.distinguisherMethod.type', distinguisherMethod, METHODS));
  }
  const level = priorityLevelConfiguration?.name ?? '';
  const levelField = 'spec.priorityLevelConfiguration.name';
  if (level === '') errors.push(required(levelField, 'must reference a priority level'));
  else addErrors(errors, syntax(levelField, level, dns1123Subdomain(level)));
  addErrors(errors, ...rules.map((rule, index) => validateRules(`spec.rules[${index}]`, rule)));
  const fixed = getOwn(FLOW_SCHEMAS.mandatory, metadata.name ?? '');
  if (fixed !== undefined && !sameJson(spec, fixed)) {
    errors.push(invalid('spec', spec, `spec of '${metadata.name}' must equal the fixed value`));
  }
  return errors;
}

/** Also of priority levels. */
export function validateTypes(conditions: readonly { type?: string | undefined }[] = []): FieldError[] {
  const seen = new Set<string>();
  return conditions.flatMap(({ type = '' }, index) => {
    const field = `status.conditions[${index}].type`;
    const errors = seen.has(type) ? [duplicate(field, type)] : [];
    seen.add(type);
    return type === '' ? [...errors, required(field)] : errors;
  });
}

export const flowschemas = defineKind({
  group: 'flowcontrol.apiserver.k8s.io',
  version: 'v1',
  kind: 'FlowSchema',
  plural: 'flowschemas',
  singular: 'flowschema',
  namespaced: false,
  subresources: ['status'],
  schema: 'io.k8s.api.flowcontrol.v1.FlowSchema',
  strategy: {
    applyDefaults: (object) => {
      const schema = of(object);
      schema.spec ??= {};
      schema.spec.matchingPrecedence ??= 1000;
    },
    prepareForCreate: (object) => {
      of(object).status = {};
    },
    validateCreate: validate,
    validateUpdate: validate,
    validateStatusUpdate: (object) => validateTypes(of(object).status?.conditions),
    table: schemaTable(),
  },
});

/** The age stands before the last column. */
function schemaTable() {
  return namedTable(
    [
      text('PriorityLevel', 'The priority level of the requests.'),
      text('MatchingPrecedence', 'Where several match, the smallest counts.'),
      text('DistinguisherMethod', 'How requests are put into flows.'),
    ],
    (object) => {
      const { priorityLevelConfiguration, matchingPrecedence = 0, distinguisherMethod } = of(object).spec ?? {};
      return [priorityLevelConfiguration?.name ?? '', matchingPrecedence, distinguisherMethod?.type ?? '<none>'];
    },
    {
      columns: [text('MissingPL', 'references a broken or non-existent PriorityLevelConfiguration')],
      cells: (object) => [(of(object).status?.conditions ?? []).find(({ type }) => type === 'Dangling')?.status ?? '?'],
    },
  );
}
