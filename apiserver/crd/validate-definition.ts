// The rules for CustomResourceDefinitions themselves: names, versions, columns, subresources, conversion. Messages and paths are
// the API server's: what all versions have in common stands at spec.validation, spec.subresources and so on, as in its
// internal form.

import { sameJson } from '../../lib/same-json.ts';
import { addErrors, forbidden, IMMUTABLE, invalid, notSupported, required } from '../kinds/field-errors.ts';
import { dns1035Label, dns1123Subdomain } from '../kinds/names.ts';
import type { FieldError } from '../kinds/resource.ts';
import { validateBundle, validateService, validateUrl } from '../kinds/webhook-clients.ts';
import { evaluateJsonPath, JsonPathError, parseJsonPath, plainFields } from './json-path.ts';
import { validateSelectable } from './openapi-rules.ts';
import { hasDefaults } from './prune.ts';
import { bundleOf, type Definition, type DefinitionSpec, type DefinitionVersion, isTrue, type Names } from './types.ts';
import { validateSchema } from './validate-schema.ts';

const APPROVED = 'api-approved.kubernetes.io';

/** Throws Pending where its rules have to be compiled first. */
export function validateDefinition(definition: Definition): FieldError[] {
  const { spec = {}, metadata } = definition;
  const errors: FieldError[] = [];
  const name = `${spec.names?.plural ?? ''}.${spec.group ?? ''}`;
  if (metadata.name !== name)
    errors.push(invalid('metadata.name', metadata.name, 'must be spec.names.plural+"."+spec.group'));
  addErrors(errors, validateSpec(spec, [], false), validateStored(definition), validateApproval(definition));
  if (spec.preserveUnknownFields === true) errors.push(preserves());
  return errors;
}

export function validateDefinitionUpdate(definition: Definition, old: Definition): FieldError[] {
  const { spec = {} } = definition;
  const before = old.spec ?? {};
  const errors = sameJson(spec, before) ? [] : validateSpec(spec, before.versions ?? [], needsGoodBundle(old));
  const fixed = (field: string, now: unknown, was: unknown): void => {
    if (now !== was) errors.push(invalid(field, now, IMMUTABLE));
  };
  if (isTrue(old, 'Established')) {
    fixed('spec.scope', spec.scope, before.scope);
    fixed('spec.names.kind', spec.names?.kind, before.names?.kind);
  }
  fixed('spec.group', spec.group, before.group);
  fixed('spec.names.plural', spec.names?.plural, before.names?.plural);
  addErrors(errors, validateStored(definition));
  // One that was accepted without approval goes on as it is.
  if (approval(definition).state !== approval(old).state) addErrors(errors, validateApproval(definition));
  if (spec.preserveUnknownFields === true && before.preserveUnknownFields !== true) errors.push(preserves());
  return errors;
}

/** Before it is established a bundle may be bad, which then keeps it from being so; one that was bad may stay bad. */
function needsGoodBundle(old: Definition): boolean {
  return isTrue(old, 'Established') && validateBundle('', bundleOf(old)).length === 0;
}

function preserves(): FieldError {
  const why = 'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
  return invalid('spec.preserveUnknownFields', true, why);
}

/** The versions that objects may be stored in. */
function validateStored({ spec, status }: Definition): FieldError[] {
  const field = 'status.storedVersions';
  const stored = status?.storedVersions ?? [];
  if (stored.length === 0) return [invalid(field, null, 'must have at least one stored version')];
  const errors: FieldError[] = [];
  const left = new Set(stored);
  for (const { name = '', storage } of spec?.versions ?? []) {
    if (!left.delete(name) && storage === true) {
      errors.push(invalid(field, stored, `must have the storage version ${name}`));
    }
  }
  for (const [index, name] of stored.entries()) {
    if (!left.has(name)) continue;
    const why = `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`;
    errors.push(invalid(`${field}[${index}]`, name, why));
  }
  return errors;
}

/** Of Kubernetes' own groups: where they were reviewed, or that they were not. */
function approval({ metadata }: Definition): { readonly state: string; readonly text: string } {
  const text = metadata.annotations?.[APPROVED] ?? '';
  if (text === '') return { state: 'missing', text };
  if (text.startsWith('unapproved')) return { state: 'bypassed', text };
  return { state: /^[a-z][a-z0-9+.-]*:\/\/[^/?#]/i.test(text) ? 'approved' : 'invalid', text };
}

function validateApproval(definition: Definition): FieldError[] {
  if (!/(^|\.)(k8s|kubernetes)\.io$/.test(definition.spec?.group ?? '')) return [];
  const { state, text } = approval(definition);
  const field = `metadata.annotations[${APPROVED}]`;
  const needed = `protected groups must have approval annotation "${APPROVED}"`;
  const see = 'see https://github.com/kubernetes/enhancements/pull/1111';
  if (state === 'missing') return [required(field, `${needed}, ${see}`)];
  if (state !== 'invalid') return [];
  return [invalid(field, text, `${needed} with either a URL or a reason starting with "unapproved", ${see}`)];
}

function joined(field: string, value: string | undefined, rule: (text: string) => string[]): FieldError[] {
  const messages = rule(value ?? '');
  return messages.length === 0 ? [] : [invalid(field, value ?? '', messages.join(','))];
}

/** Parts of versions that stand at spec.<common> where all versions have the same. */
const PARTS = ['schema', 'subresources', 'additionalPrinterColumns', 'selectableFields'] as const;
type Part = (typeof PARTS)[number];

function validateSpec(spec: DefinitionSpec, before: readonly DefinitionVersion[], needsBundle: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const { group = '', scope = '', names = {}, versions = [] } = spec;
  const groupErrors = joined('spec.group', group, dns1123Subdomain);
  if (group === '') errors.push(required('spec.group'));
  else if (groupErrors.length > 0) addErrors(errors, groupErrors);
  else if (!group.includes('.')) errors.push(invalid('spec.group', group, 'should be a domain with at least one dot'));
  if (scope === '') errors.push(required('spec.scope'));
  else if (scope !== 'Cluster' && scope !== 'Namespaced') {
    errors.push(notSupported('spec.scope', scope, ['Cluster', 'Namespaced']));
  }
  for (const [index, { schema }] of versions.entries()) {
    if (schema?.openAPIV3Schema === undefined) errors.push(required(`spec.versions[${index}].schema.openAPIV3Schema`));
  }
  if (spec.preserveUnknownFields === true && versions.some(({ schema }) => hasDefaults(schema?.openAPIV3Schema))) {
    errors.push(invalid('spec.preserveUnknownFields', true, 'must be false in order to use defaults in the schema'));
  }
  const [first] = versions;
  const isCommon = (part: Part): boolean => versions.every((version) => sameJson(version[part], first?.[part]));
  const common = new Set(PARTS.filter(isCommon));
  const own = PARTS.filter((part) => !common.has(part));
  addErrors(errors, validateVersions(spec.versions, own, before));
  // Upstream's internal form has the first version once more.
  if (first !== undefined)
    addErrors(errors, (first.name ?? '') === '' ? [] : joined('spec.version', first.name, dns1035Label));
  for (const field of ['plural', 'singular', 'kind', 'listKind'] as const) {
    if ((names[field] ?? '') === '') errors.push(required(`spec.names.${field}`));
  }
  addErrors(errors, validateNames(names));
  if (first !== undefined) {
    const hasStatus = versions.some(({ subresources }) => subresources?.status !== undefined);
    for (const part of PARTS) {
      const field = part === 'schema' ? 'spec.validation' : `spec.${part}`;
      if (common.has(part)) addErrors(errors, validatePart(part, first, field, { before, hasStatus }));
    }
  }
  const { strategy = 'None' } = spec.conversion ?? {};
  if (strategy !== 'None' && spec.preserveUnknownFields === true) {
    errors.push(invalid('spec.conversion.strategy', strategy, 'must be None if spec.preserveUnknownFields is true'));
  }
  addErrors(errors, validateConversion(spec, needsBundle));
  return errors;
}

function validateVersions(
  given: readonly DefinitionVersion[] | undefined,
  own: readonly Part[],
  before: readonly DefinitionVersion[],
): FieldError[] {
  const errors: FieldError[] = [];
  const versions = given ?? [];
  const names = versions.map((version) => version.name ?? '');
  for (const [index, version] of versions.entries()) {
    const field = `spec.versions[${index}]`;
    const hasStatus = version.subresources?.status !== undefined;
    addErrors(errors, joined(`${field}.name`, version.name, dns1035Label), validateWarning(version, field));
    for (const part of own) addErrors(errors, validatePart(part, version, `${field}.${part}`, { before, hasStatus }));
  }
  if (new Set(names).size < names.length) {
    errors.push(invalid('spec.versions', names, 'must contain unique version names'));
  }
  if (versions.filter((version) => version.storage === true).length !== 1) {
    const shown = given === undefined ? null : names;
    errors.push(invalid('spec.versions', shown, 'must have exactly one version marked as storage version'));
  }
  return errors;
}

function validateWarning({ deprecated, deprecationWarning: warning }: DefinitionVersion, field: string): FieldError[] {
  if (warning === undefined) return [];
  const problems: string[] = [];
  if (deprecated !== true) problems.push('can only be set for deprecated versions');
  else {
    if (Buffer.byteLength(warning) > 256) problems.push('must be <= 256 characters long');
    if (warning === '') problems.push('must not be an empty string');
    const odd = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.exec(warning);
    if (odd !== null) {
      const at = Buffer.byteLength(warning.slice(0, odd.index));
      const what = 'must only contain printable UTF-8 characters; non-printable character found at index';
      problems.push(`${what} ${at}`);
    }
  }
  return problems.map((why) => invalid(`${field}.deprecationWarning`, warning, why));
}

/** One part of a version, or of all of them. */
function validatePart(
  part: Part,
  version: DefinitionVersion,
  field: string,
  { before, hasStatus }: { readonly before: readonly DefinitionVersion[]; readonly hasStatus: boolean },
): FieldError[] {
  const schema = version.schema?.openAPIV3Schema;
  if (part === 'subresources') return validateSubresources(version, field);
  if (part === 'additionalPrinterColumns') return validateColumns(version, field);
  if (part === 'selectableFields') {
    const { selectableFields = [] } = version;
    if (selectableFields.length === 0) return [];
    if (schema !== undefined) return validateSelectable(selectableFields, schema, field);
    const why =
      field === 'spec.selectableFields'
        ? 'may only be set when validations.schema is included'
        : 'may only be set when `version.schema.openAPIV3Schema` is not included';
    return [invalid(field, '', why)];
  }
  if (schema === undefined) return [];
  const isUnchanged = before.some(({ name, schema: was }) => name === version.name && sameJson(was, version.schema));
  return validateSchema(schema, `${field}.openAPIV3Schema`, { isUnchanged, hasStatus });
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

function validateConversion({ conversion }: DefinitionSpec, needsBundle: boolean): FieldError[] {
  if (conversion === undefined) return [];
  const { strategy = '', webhook } = conversion;
  const { clientConfig, conversionReviewVersions = [] } = webhook ?? {};
  const errors: FieldError[] = [];
  const field = 'spec.conversion';
  const at = `${field}.webhookClientConfig`;
  if (strategy === '') errors.push(required(`${field}.strategy`));
  else if (strategy !== 'None' && strategy !== 'Webhook') {
    errors.push(notSupported(`${field}.strategy`, strategy, ['None', 'Webhook']));
  }
  if (strategy !== 'Webhook') {
    const why = 'should not be set when strategy is not set to Webhook';
    if (clientConfig !== undefined) errors.push(forbidden(at, why));
    if (conversionReviewVersions.length > 0) errors.push(forbidden(`${field}.conversionReviewVersions`, why));
    return errors;
  }
  if (clientConfig === undefined) errors.push(required(at, 'required when strategy is set to Webhook'));
  else if ((clientConfig.url === undefined) === (clientConfig.service === undefined)) {
    errors.push(required(at, 'exactly one of url or service is required'));
  } else if (clientConfig.url !== undefined) addErrors(errors, validateUrl(`${at}.url`, clientConfig.url));
  else if (clientConfig.service !== undefined)
    addErrors(errors, validateService(`${at}.service`, clientConfig.service));
  if (needsBundle) addErrors(errors, validateBundle(`${at}.caBundle`, clientConfig?.caBundle ?? ''));
  addErrors(errors, validateReviewVersions(conversionReviewVersions, `${field}.conversionReviewVersions`));
  return errors;
}

function validateReviewVersions(versions: readonly string[], field: string): FieldError[] {
  if (versions.length === 0) return [required(field)];
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [index, version] of versions.entries()) {
    const at = `${field}[${index}]`;
    if (seen.has(version)) errors.push(invalid(at, version, 'duplicate version'));
    else for (const why of dns1035Label(version)) errors.push(invalid(at, version, why));
    seen.add(version);
  }
  if (!seen.has('v1') && !seen.has('v1beta1')) {
    errors.push(invalid(field, versions, 'must include at least one of v1, v1beta1'));
  }
  return errors;
}

/** A path of the scale subresource, below one of `roots`. */
function pathBelow(field: string, path: string, roots: readonly string[], where: string): FieldError[] {
  if (!path.startsWith('.')) return [invalid(field, path, 'must be a simple json path starting with .')];
  if (roots.some((root) => path.startsWith(`.${root}.`)) && isPlain(path)) return [];
  return [invalid(field, path, `should be a json path under ${where}`)];
}

/** Of fields alone: nothing else is read or written here. */
function isPlain(path: string): boolean {
  try {
    return plainFields(parseJsonPath(path)) !== undefined;
  } catch (error) {
    if (error instanceof JsonPathError) return false;
    throw error;
  }
}

function validateSubresources({ subresources }: DefinitionVersion, field: string): FieldError[] {
  const scale = subresources?.scale;
  if (scale === undefined) return [];
  const { specReplicasPath: spec = '', statusReplicasPath: status = '', labelSelectorPath: selector = '' } = scale;
  const at = `${field}.scale`;
  return [
    ...(spec === ''
      ? [required(`${at}.specReplicasPath`)]
      : pathBelow(`${at}.specReplicasPath`, spec, ['spec'], '.spec')),
    ...(status === ''
      ? [required(`${at}.statusReplicasPath`)]
      : pathBelow(`${at}.statusReplicasPath`, status, ['status'], '.status')),
    ...(selector === ''
      ? []
      : pathBelow(`${at}.labelSelectorPath`, selector, ['spec', 'status'], 'either .spec or .status')),
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
    addErrors(errors, validateJsonPath(`${field}.JSONPath`, jsonPath));
    return errors;
  });
}

function validateJsonPath(field: string, path: string): FieldError[] {
  if (path === '') return [required(field)];
  if (!path.startsWith('.')) return [invalid(field, path, 'must be a simple json path starting with .')];
  try {
    evaluateJsonPath(parseJsonPath(path), {});
    return [];
  } catch (error) {
    if (error instanceof JsonPathError) return [invalid(field, path, `is an invalid path: ${error.message}`)];
    throw error;
  }
}
