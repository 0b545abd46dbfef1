// The rows of one CustomResourceDefinition: one for each served version, with everything that built-in rows have: decoding,
// defaults, validation, subresources, selectors and the table.

import { createHash } from 'node:crypto';
import { getOwn, setOwn } from '../../lib/own-property.ts';
import { sameJson } from '../../lib/same-json.ts';
import { typeOfCustomResource } from '../apply/json-schema.ts';
import { age, type Cell, NAME_COLUMN } from '../kinds/columns.ts';
import { defineKind, STANDARD_FINALIZERS } from '../kinds/metadata.ts';
import { qualifiedName } from '../kinds/names.ts';
import type {
  CustomKind,
  FieldError,
  KubeObject,
  ResourceKind,
  ResourceStrategy,
  TableColumn,
} from '../kinds/resource.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import { checkBodyAs } from '../schema/decode.ts';
import { duplicateFields } from '../schema/duplicates.ts';
import type { VersionConverter } from './conversion.ts';
import { evaluateJsonPath, parseJsonPath, plainFields } from './json-path.ts';
import { openapiOf } from './openapi.ts';
import { applyDefaults, prune } from './prune.ts';
import { checkRules, rulesOf } from './rules.ts';
import { storedForm } from './stored-form.ts';
import { type Definition, type DefinitionVersion, isTrue, type JsonSchema, type PrinterColumn } from './types.ts';
import { newErrors, validateValue } from './validate.ts';

const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
const EMPTY: JsonSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/** "stable.example.com", "v1", "CronTab" → "com.example.stable.v1.CronTab" */
function schemaName(group: string, version: string, kind: string): string {
  return `${group.split('.').reverse().join('.')}.${version}.${kind}`;
}

/** No rows before its names are accepted. `converter` is to be there where the strategy is Webhook. */
export function rowsOf(definition: Definition, converter?: VersionConverter): ResourceKind[] {
  if (!isTrue(definition, 'Established')) return [];
  const versions = definition.spec?.versions ?? [];
  return versions.filter((version) => version.served === true).map((version) => rowOf(definition, version, converter));
}

function rowOf(definition: Definition, version: DefinitionVersion, converter?: VersionConverter): ResourceKind {
  const { spec = {}, status = {} } = definition;
  const { group = '' } = spec;
  const names = status.acceptedNames ?? {};
  const { kind = '', plural = '', singular = '', listKind = `${kind}List`, shortNames, categories } = names;
  const name = version.name ?? '';
  const schema = version.schema?.openAPIV3Schema ?? EMPTY;
  const subresources = version.subresources ?? {};
  const warning = version.deprecationWarning ?? `${group}/${name} ${kind} is deprecated`;
  const storedAs = storedForm(definition, version, EMPTY, converter);
  return defineKind({
    group,
    version: name,
    kind,
    plural,
    singular,
    listKind,
    ...(shortNames === undefined ? {} : { shortNames }),
    ...(categories === undefined ? {} : { categories }),
    namespaced: spec.scope === 'Namespaced',
    subresources: Object.keys(subresources).filter((one) => one === 'status' || one === 'scale'),
    schema: schemaName(group, name, kind),
    standardFinalizers: false,
    ...(version.deprecated === true ? { warning } : {}),
    ...(storedAs === undefined ? {} : { storedAs }),
    strategy: strategyOf(version, schema),
    valueType: typeOfCustomResource(schema),
    custom: customOf(definition, version, schema),
  });
}

function customOf(definition: Definition, version: DefinitionVersion, schema: JsonSchema): CustomKind {
  const scale = version.subresources?.scale;
  const fields = (path: string | undefined): readonly string[] => plainFields(parseJsonPath(path ?? '')) ?? [];
  const kind = definition.status?.acceptedNames?.kind ?? '';
  return {
    checkBody: (object, text) => checkBody(object, text, schema),
    schema,
    openapi: (form, reference) =>
      openapiOf(definition.spec?.group ?? '', version.name ?? '', kind, schema, form, reference),
    revision: createHash('sha256')
      .update(JSON.stringify([version, definition.status?.acceptedNames]))
      .digest('hex'),
    ...(scale === undefined
      ? {}
      : {
          scale: {
            replicas: fields(scale.specReplicasPath),
            statusReplicas: fields(scale.statusReplicasPath),
            ...((scale.labelSelectorPath ?? '') === '' ? {} : { selector: fields(scale.labelSelectorPath) }),
          },
        }),
    ...(definition.metadata.deletionTimestamp === undefined
      ? {}
      : { noCreate: 'create not allowed while custom resource definition is terminating' }),
  };
}

/** Metadata by its own type, the rest by the schema: what neither names is dropped and reported. */
function checkBody(
  object: Record<string, unknown>,
  text: string | undefined,
  schema: JsonSchema,
): ReturnType<CustomKind['checkBody']> {
  const strict = new Set<string>();
  if (text !== undefined)
    for (const path of duplicateFields(text)) strict.add(`duplicate field ${JSON.stringify(path)}`);
  let fatal: string | undefined;
  const checkMetadata = (path: string, metadata: JsonObject): void => {
    const decoded = checkBodyAs(OBJECT_META, metadata);
    fatal ??= decoded.fatal;
    for (const error of decoded.strict) strict.add(error.replace('unknown field "', `unknown field "${path}.`));
  };
  if (isObject(object['metadata'])) checkMetadata('metadata', object['metadata']);
  const unknown = (path: string): void => void strict.add(`unknown field ${JSON.stringify(path)}`);
  prune(object, schema, { unknown, metadata: checkMetadata });
  return fatal === undefined ? { strict: [...strict] } : { strict: [], fatal };
}

function strategyOf(version: DefinitionVersion, schema: JsonSchema): ResourceStrategy {
  const hasStatus = version.subresources?.status !== undefined;
  const rules = (object: KubeObject, old?: KubeObject): FieldError[] => {
    const { root } = rulesOf(schema);
    return root === undefined ? [] : checkRules(root, object, old);
  };
  const validate = (object: KubeObject, old?: KubeObject): FieldError[] => {
    const placed = validateValue(object, schema);
    const errors = old === undefined ? placed.map(({ error }) => error) : newErrors(placed, object, old, schema);
    // Rules read values by their types: they wait until those are right.
    return placed.length > 0 ? errors : rules(object, old);
  };
  return {
    applyDefaults: (object) => applyDefaults(object, schema),
    prepareForCreate: (object) => {
      if (hasStatus) delete object['status'];
      object.metadata.generation = 1;
    },
    prepareForUpdate: (object, old) => {
      if (hasStatus) keep(object, old, 'status');
      const generation = old.metadata.generation ?? 0;
      object.metadata.generation = sameBut(object, old, hasStatus ? ['metadata', 'status'] : ['metadata'])
        ? generation
        : generation + 1;
    },
    prepareForStatusUpdate: (object, old) => {
      const { resourceVersion, managedFields } = object.metadata;
      object.metadata = { ...old.metadata };
      if (resourceVersion !== undefined) object.metadata.resourceVersion = resourceVersion;
      if (managedFields !== undefined) object.metadata.managedFields = managedFields;
    },
    validateCreate: (object) => validate(object),
    validateUpdate: validate,
    validateStatusUpdate: validate,
    warnings: finalizerWarnings,
    selectableFields: selectable(version),
    table: tableOf(version.additionalPrinterColumns ?? []),
  };
}

/** Of finalizers that are new: any name will do, but one without a domain may be another controller's, too. */
function finalizerWarnings(object: KubeObject, old?: KubeObject): string[] {
  const before = old?.metadata.finalizers ?? [];
  const added = new Set((object.metadata.finalizers ?? []).filter((finalizer) => !before.includes(finalizer)));
  return [...added].sort().flatMap((finalizer) => {
    const prefix = `metadata.finalizers: ${JSON.stringify(finalizer)}: `;
    const wrong = qualifiedName(finalizer).map((message) => prefix + message);
    if (finalizer.includes('/') || STANDARD_FINALIZERS.includes(finalizer)) return wrong;
    const how = finalizer.includes('.') ? ' including a path (/)' : '';
    const why = 'to avoid accidental conflicts with other finalizer writers';
    return [...wrong, `${prefix}prefer a domain-qualified finalizer name${how} ${why}`];
  });
}

function keep(object: KubeObject, old: KubeObject, field: string): void {
  const value = getOwn(old, field);
  if (value === undefined) delete object[field];
  else setOwn(object, field, value);
}

function sameBut(object: KubeObject, old: KubeObject, fields: readonly string[]): boolean {
  const rest = (from: KubeObject): unknown =>
    Object.fromEntries(Object.entries(from).filter(([key]) => !fields.includes(key)));
  return sameJson(rest(object), rest(old));
}

function selectable({ selectableFields = [] }: DefinitionVersion): Record<string, (object: KubeObject) => string> {
  return Object.fromEntries(
    selectableFields.map(({ jsonPath = '' }) => {
      const path = parseJsonPath(jsonPath);
      const read = (object: KubeObject): string => {
        const [value] = evaluateJsonPath(path, object);
        return value === undefined || value === null ? '' : String(value);
      };
      return [jsonPath.replace(/^\./, ''), read];
    }),
  );
}

const COLUMN_TYPES = ['string', 'integer', 'number', 'boolean', 'date'] as const;
const AGE: PrinterColumn = {
  name: 'Age',
  type: 'date',
  description: 'CreationTimestamp is a timestamp representing the server time when this object was created.',
  jsonPath: '.metadata.creationTimestamp',
};

function tableOf(printed: readonly PrinterColumn[]): NonNullable<ResourceStrategy['table']> {
  const shown = printed.length === 0 ? [AGE] : printed;
  const columns = shown.map((column) => {
    const type = COLUMN_TYPES.find((one) => one === column.type) ?? 'string';
    const { name = '', format, description = '', priority } = column;
    // An age is counted here.
    const definition: TableColumn = {
      name,
      type: type === 'date' ? 'string' : type,
      description,
      ...(format === undefined ? {} : { format }),
      ...(priority === undefined ? {} : { priority }),
    };
    return { definition, type, path: parseJsonPath(column.jsonPath ?? '') };
  });
  return {
    columns: [NAME_COLUMN, ...columns.map(({ definition }) => definition)],
    row: (object, now) => [
      object.metadata.name ?? '',
      ...columns.map(({ type, path }): Cell => {
        const values = evaluateJsonPath(path, object);
        const [value] = values;
        if (type !== 'date') return cellOf(type, values);
        return value === undefined ? null : age(typeof value === 'string' ? value : undefined, now);
      }),
    ],
  };
}

/** Nothing where the value is missing or of another type than the column's. */
function cellOf(type: string, values: readonly unknown[]): Cell {
  const [value] = values;
  if (value === undefined || value === null) return null;
  if (type === 'integer') return typeof value === 'number' ? Math.trunc(value) : null;
  if (type === 'number') return typeof value === 'number' ? value : null;
  if (type === 'boolean') return typeof value === 'boolean' ? value : null;
  const text = (one: unknown): string => (typeof one === 'string' ? one : JSON.stringify(one));
  return values.length === 1 ? text(value) : values.map(text).join(',');
}
