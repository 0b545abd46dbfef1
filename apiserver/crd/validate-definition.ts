// The rules for CustomResourceDefinitions themselves: names, versions, columns, subresources, conversion. Messages and paths are
// the API server's: what all versions have in common stands at spec.validation, spec.subresources and so on, as in its
// internal form.

import { sameJson } from '../../lib/same-json.ts';
import { addErrors, forbidden, IMMUTABLE, invalid, notSupported, required } from '../kinds/field-errors.ts';
import { dns1035Label, dns1123Label, dns1123Subdomain } from '../kinds/names.ts';
import type { FieldError } from '../kinds/resource.ts';
import { evaluateJsonPath, JsonPathError, parseJsonPath, plainFields } from './json-path.ts';
import {
  type Definition,
  type DefinitionSpec,
  type DefinitionVersion,
  isTrue,
  type JsonSchema,
  type Names,
  properties,
} from './types.ts';
import { validateSchema } from './validate-schema.ts';

const APPROVED = 'api-approved.kubernetes.io';

/** Throws Pending where its rules have to be compiled first. `old` is what it replaces. */
export function validateDefinition(definition: Definition, old?: Definition): FieldError[] {
  const { spec = {}, metadata } = definition;
  const errors: FieldError[] = [];
  const name = `${spec.names?.plural ?? ''}.${spec.group ?? ''}`;
  if (metadata.name !== name)
    errors.push(invalid('metadata.name', metadata.name, 'must be spec.names.plural+"."+spec.group'));
  addErrors(errors, validateSpec(spec, old?.spec?.versions ?? []));
  const group = spec.group ?? '';
  if (/(^|\.)(k8s|kubernetes)\.io$/.test(group) && metadata.annotations?.[APPROVED] === undefined) {
    const why = `protected groups must have approval annotation "${APPROVED}", see https://github.com/kubernetes/enhancements/pull/1111`;
    errors.push(required(`metadata.annotations[${APPROVED}]`, why));
  }
  return errors;
}

export function validateDefinitionUpdate(definition: Definition, old: Definition): FieldError[] {
  const { spec = {} } = definition;
  const before = old.spec ?? {};
  const errors = sameJson(spec, before) ? [] : validateDefinition(definition, old);
  const fixed = (field: string, now: unknown, was: unknown): void => {
    if (now !== was) errors.push(invalid(field, now, IMMUTABLE));
  };
  if (isTrue(old, 'Established')) {
    fixed('spec.scope', spec.scope, before.scope);
    fixed('spec.names.kind', spec.names?.kind, before.names?.kind);
  }
  fixed('spec.group', spec.group, before.group);
  fixed('spec.names.plural', spec.names?.plural, before.names?.plural);
  const names = new Set((spec.versions ?? []).map((version) => version.name));
  for (const [index, stored] of (definition.status?.storedVersions ?? []).entries()) {
    if (names.has(stored)) continue;
    const why = `missing from spec.versions; ${stored} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${stored} and removes ${stored} from status.storedVersions`;
    errors.push(invalid(`status.storedVersions[${index}]`, stored, why));
  }
  return errors;
}

function joined(field: string, value: string | undefined, rule: (text: string) => string[]): FieldError[] {
  const messages = rule(value ?? '');
  return messages.length === 0 ? [] : [invalid(field, value ?? '', messages.join(','))];
}

function validateSpec(spec: DefinitionSpec, before: readonly DefinitionVersion[]): FieldError[] {
  const errors: FieldError[] = [];
  const { group = '', scope = '', names = {}, versions = [] } = spec;
  if (group === '') errors.push(required('spec.group'));
  else {
    addErrors(errors, joined('spec.group', group, dns1123Subdomain));
    if (!group.includes('.')) errors.push(invalid('spec.group', group, 'should be a domain with at least one dot'));
  }
  if (scope === '') errors.push(required('spec.scope'));
  else if (scope !== 'Cluster' && scope !== 'Namespaced') {
    errors.push(notSupported('spec.scope', scope, ['Cluster', 'Namespaced']));
  }
  if (spec.preserveUnknownFields === true) {
    const why =
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
    errors.push(invalid('spec.preserveUnknownFields', true, why));
  }
  addErrors(errors, validateVersions(versions), validateNames(names), validateConversion(spec));
  for (const field of ['plural', 'singular', 'kind', 'listKind'] as const) {
    if ((names[field] ?? '') === '') errors.push(required(`spec.names.${field}`));
  }
  addErrors(
    errors,
    perVersion(
      versions,
      'validation',
      'schema',
      (one) => one.schema,
      (version, field) => validateVersionSchema(version, field, before),
    ),
    perVersion(versions, 'subresources', 'subresources', (one) => one.subresources, validateSubresources),
    perVersion(
      versions,
      'additionalPrinterColumns',
      'additionalPrinterColumns',
      (one) => one.additionalPrinterColumns,
      validateColumns,
    ),
    perVersion(versions, 'selectableFields', 'selectableFields', (one) => one.selectableFields, validateSelectable),
  );
  return errors;
}

/** Once at spec.<common> where all versions have the same, else for each version at its own place. */
function perVersion(
  versions: readonly DefinitionVersion[],
  common: string,
  own: string,
  part: (version: DefinitionVersion) => unknown,
  validate: (version: DefinitionVersion, field: string) => FieldError[],
): FieldError[] {
  const [first] = versions;
  if (first === undefined) return [];
  if (versions.every((version) => sameJson(part(version), part(first)))) return validate(first, `spec.${common}`);
  return versions.flatMap((version, index) => validate(version, `spec.versions[${index}].${own}`));
}

function validateVersions(versions: readonly DefinitionVersion[]): FieldError[] {
  const errors: FieldError[] = [];
  const names = versions.map((version) => version.name ?? '');
  for (const [index, version] of versions.entries()) {
    const field = `spec.versions[${index}]`;
    addErrors(errors, joined(`${field}.name`, version.name, dns1035Label));
    const warning = version.deprecationWarning;
    if (warning === undefined) continue;
    if (version.deprecated !== true) {
      errors.push(invalid(`${field}.deprecationWarning`, warning, 'can only be set for deprecated versions'));
    }
    if (Buffer.byteLength(warning) > 256) {
      errors.push(invalid(`${field}.deprecationWarning`, warning, 'must be <= 256 UTF-8 bytes in length'));
    }
  }
  if (new Set(names).size < names.length) {
    errors.push(invalid('spec.versions', names, 'must contain unique version names'));
  }
  if (versions.filter((version) => version.storage === true).length !== 1) {
    errors.push(invalid('spec.versions', names, 'must have exactly one version marked as storage version'));
  }
  return errors;
}

export function validateNames(names: Names, path = 'spec.names'): FieldError[] {
  const errors: FieldError[] = [];
  const { plural = '', singular = '', kind = '', listKind = '' } = names;
  if (plural !== '') addErrors(errors, joined(`${path}.plural`, plural, dns1035Label));
  if (singular !== '') addErrors(errors, joined(`${path}.singular`, singular, dns1035Label));
  for (const [field, value] of [
    ['kind', kind],
    ['listKind', listKind],
  ] as const) {
    const messages = value === '' ? [] : dns1035Label(value.toLowerCase());
    if (messages.length > 0) {
      const why = `may have mixed case, but should otherwise match: ${messages.join(',')}`;
      errors.push(invalid(`${path}.${field}`, value, why));
    }
  }
  for (const [index, name] of (names.shortNames ?? []).entries()) {
    addErrors(errors, joined(`${path}.shortNames[${index}]`, name, dns1035Label));
  }
  if (kind !== '' && kind === listKind) {
    errors.push(invalid(`${path}.listKind`, listKind, 'kind and listKind may not be the same'));
  }
  for (const [index, name] of (names.categories ?? []).entries()) {
    addErrors(errors, joined(`${path}.categories[${index}]`, name, dns1035Label));
  }
  return errors;
}

function validateConversion({ conversion }: DefinitionSpec): FieldError[] {
  const errors: FieldError[] = [];
  const strategy = conversion?.strategy ?? 'None';
  const field = 'spec.conversion';
  if (strategy === '') return [required(`${field}.strategy`)];
  if (strategy === 'None') {
    if (conversion?.webhook === undefined) return [];
    return [forbidden(`${field}.webhook`, 'should not be set when strategy is not set to Webhook')];
  }
  if (strategy !== 'Webhook') return [notSupported(`${field}.strategy`, strategy, ['None', 'Webhook'])];
  const { clientConfig, conversionReviewVersions = [] } = conversion?.webhook ?? {};
  const at = `${field}.webhookClientConfig`;
  if (clientConfig === undefined) errors.push(required(at, 'required when strategy is set to Webhook'));
  else if ((clientConfig.url === undefined) === (clientConfig.service === undefined)) {
    errors.push(required(at, 'exactly one of url or service is required'));
  } else if (clientConfig.url !== undefined && !/^https:\/\/[^/]/.test(clientConfig.url)) {
    errors.push(invalid(`${at}.url`, clientConfig.url, "'https' is the only allowed URL scheme"));
  } else if (clientConfig.service !== undefined) {
    for (const name of ['name', 'namespace'] as const) {
      const value = clientConfig.service[name] ?? '';
      if (value === '') errors.push(required(`${at}.service.${name}`, `service ${name} is required`));
      else addErrors(errors, joined(`${at}.service.${name}`, value, dns1123Label));
    }
  }
  const versions = `${field}.conversionReviewVersions`;
  if (conversionReviewVersions.length === 0) errors.push(required(versions));
  else if (!conversionReviewVersions.includes('v1')) {
    errors.push(invalid(versions, conversionReviewVersions, 'must include at least one of v1, v1beta1'));
  }
  return errors;
}

/** Allowed at the root beside a status subresource. */
const ROOT_FIELDS = [
  'description',
  'properties',
  'required',
  'title',
  'type',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-validations',
];

function validateVersionSchema(
  version: DefinitionVersion,
  field: string,
  before: readonly DefinitionVersion[],
): FieldError[] {
  const schema = version.schema?.openAPIV3Schema;
  if (schema === undefined) return [required(`${field}.openAPIV3Schema`, 'schemas are required')];
  const errors: FieldError[] = [];
  if (version.subresources?.status !== undefined) {
    const other = Object.keys(schema).find((name) => !ROOT_FIELDS.includes(name));
    if (other !== undefined) {
      const allowed = ROOT_FIELDS.join(' ');
      const why = `only [${allowed}] fields are allowed at the root of the schema if the status subresource is enabled`;
      errors.push(invalid(`${field}.openAPIV3Schema`, other, why));
    }
  }
  const isUnchanged = before.some(({ name, schema: was }) => name === version.name && sameJson(was, version.schema));
  addErrors(errors, validateSchema(schema, `${field}.openAPIV3Schema`, isUnchanged));
  return errors;
}

/** A path of plain fields below one of `roots`. */
function pathBelow(field: string, path: string | undefined, roots: readonly string[]): FieldError[] {
  if (path === undefined || path === '') return [required(field)];
  if (plain(path)?.[0] !== undefined && roots.includes(plain(path)?.[0] ?? '') && path.startsWith('.')) return [];
  const where = roots.map((root) => `.${root}`).join(' or ');
  const either = roots.length > 1 ? 'either ' : '';
  return [invalid(field, path, `should be a json path under ${either}${where}`)];
}

function plain(path: string): string[] | undefined {
  try {
    return plainFields(parseJsonPath(path));
  } catch (error) {
    if (error instanceof JsonPathError) return undefined;
    throw error;
  }
}

function validateSubresources({ subresources }: DefinitionVersion, field: string): FieldError[] {
  const scale = subresources?.scale;
  if (scale === undefined) return [];
  const selector = scale.labelSelectorPath ?? '';
  return [
    ...pathBelow(`${field}.scale.specReplicasPath`, scale.specReplicasPath, ['spec']),
    ...pathBelow(`${field}.scale.statusReplicasPath`, scale.statusReplicasPath, ['status']),
    ...(selector === '' ? [] : pathBelow(`${field}.scale.labelSelectorPath`, selector, ['status', 'spec'])),
  ];
}

const COLUMN_TYPES = ['boolean', 'date', 'integer', 'number', 'string'];
const COLUMN_FORMATS = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];

function validateColumns({ additionalPrinterColumns = [] }: DefinitionVersion, path: string): FieldError[] {
  return additionalPrinterColumns.flatMap(({ name = '', type = '', format = '', jsonPath = '' }, index) => {
    const errors: FieldError[] = [];
    const field = `${path}[${index}]`;
    if (name === '') errors.push(required(`${field}.name`));
    if (type === '') errors.push(required(`${field}.type`, `must be one of ${COLUMN_TYPES.join(',')}`));
    else if (!COLUMN_TYPES.includes(type)) {
      errors.push(invalid(`${field}.type`, type, `must be one of ${COLUMN_TYPES.join(',')}`));
    }
    if (format !== '' && !COLUMN_FORMATS.includes(format)) {
      errors.push(invalid(`${field}.format`, format, `must be one of ${COLUMN_FORMATS.join(',')}`));
    }
    addErrors(errors, validateJsonPath(`${field}.jsonPath`, jsonPath));
    return errors;
  });
}

function validateJsonPath(field: string, path: string): FieldError[] {
  if (path === '') return [required(field)];
  if (!path.startsWith('.')) return [invalid(field, path, 'is an invalid path: does not start with .')];
  try {
    evaluateJsonPath(parseJsonPath(path), {});
    return [];
  } catch (error) {
    if (error instanceof JsonPathError) return [invalid(field, path, `is an invalid path: ${error.message}`)];
    throw error;
  }
}

const MAX_SELECTABLE = 8;

function validateSelectable({ selectableFields = [], schema }: DefinitionVersion, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (selectableFields.length > MAX_SELECTABLE) {
    errors.push({
      type: 'FieldValueTooMany',
      field: path,
      detail: `Too many: ${selectableFields.length}: must have at most ${MAX_SELECTABLE} items`,
    });
  }
  const seen = new Set<string>();
  for (const [index, { jsonPath = '' }] of selectableFields.entries()) {
    const field = `${path}[${index}].jsonPath`;
    const wrong = (why: string): void => void errors.push(invalid(field, jsonPath, why));
    if (jsonPath === '') {
      errors.push(required(field));
      continue;
    }
    const names = jsonPath.startsWith('.') ? plain(jsonPath) : undefined;
    if (names === undefined) wrong('is an invalid path: must be a simple path of fields');
    else if (names[0] === 'metadata') wrong('must not point to fields in metadata');
    else {
      const target = fieldAt(schema?.openAPIV3Schema, names);
      if (target === undefined) wrong('is an invalid path: does not refer to a valid field');
      else if (!['boolean', 'integer', 'string'].includes(target.type ?? '')) {
        wrong(
          'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.',
        );
      }
    }
    if (seen.has(jsonPath))
      errors.push({ type: 'FieldValueDuplicate', field, detail: `Duplicate value: ${JSON.stringify(jsonPath)}` });
    seen.add(jsonPath);
  }
  return errors;
}

function fieldAt(schema: JsonSchema | undefined, names: readonly string[]): JsonSchema | undefined {
  let at = schema;
  for (const name of names) at = at === undefined ? undefined : new Map(properties(at)).get(name);
  return at;
}
