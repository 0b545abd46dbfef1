// CustomResourceDefinitions and their schemas as types: what decoding against the generated schema guarantees, any field may
// be absent.

import type { KubeObject } from '../kinds/resource.ts';
import { isObject } from '../patch/json-value.ts';
import type { JsonSchema } from './json-schema.ts';

export type { JsonSchema, ValidationRule } from './json-schema.ts';

export interface PrinterColumn {
  name?: string;
  type?: string;
  format?: string;
  description?: string;
  priority?: number;
  jsonPath?: string;
}

export interface ScaleSubresource {
  specReplicasPath?: string;
  statusReplicasPath?: string;
  labelSelectorPath?: string;
}

export interface DefinitionVersion {
  name?: string;
  served?: boolean;
  storage?: boolean;
  deprecated?: boolean;
  deprecationWarning?: string;
  schema?: { openAPIV3Schema?: JsonSchema };
  subresources?: { status?: Record<string, unknown>; scale?: ScaleSubresource };
  additionalPrinterColumns?: PrinterColumn[];
  selectableFields?: { jsonPath?: string }[];
}

export interface Names {
  plural?: string;
  singular?: string;
  kind?: string;
  listKind?: string;
  shortNames?: string[];
  categories?: string[];
}

export interface WebhookClientConfig {
  url?: string;
  caBundle?: string;
  service?: { namespace?: string; name?: string; path?: string; port?: number };
}

export interface DefinitionSpec {
  group?: string;
  scope?: string;
  names?: Names;
  versions?: DefinitionVersion[];
  preserveUnknownFields?: boolean;
  conversion?: {
    strategy?: string;
    webhook?: { clientConfig?: WebhookClientConfig; conversionReviewVersions?: string[] };
  };
}

export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  lastTransitionTime: string;
}

export interface DefinitionStatus {
  acceptedNames?: Names;
  conditions?: Condition[];
  storedVersions?: string[];
}

export type Definition = KubeObject & { spec?: DefinitionSpec; status?: DefinitionStatus };

function isDefinition(object: KubeObject): object is Definition {
  return object.kind === 'CustomResourceDefinition';
}

/** Throws TypeError for an object of another kind. */
export function definitionOf(object: KubeObject): Definition {
  if (!isDefinition(object)) throw new TypeError(`a ${object.kind} is no CustomResourceDefinition`);
  return object;
}

function isSchema(value: unknown): value is JsonSchema {
  return isObject(value);
}

/** The schema of a map's values; undefined where additionalProperties is absent, true or false. */
export function valueSchema(schema: JsonSchema): JsonSchema | undefined {
  return isSchema(schema.additionalProperties) ? schema.additionalProperties : undefined;
}

/** The schema of a list's items; undefined where there is none, and for a list of schemas, which no definition may have. */
export function itemSchema({ items }: JsonSchema): JsonSchema | undefined {
  return isSchema(items) ? items : undefined;
}

/** Name and value of each entry, own ones only. */
export function properties(schema: JsonSchema): [string, JsonSchema][] {
  return Object.entries(schema.properties ?? {});
}

export function condition(definition: Definition, type: string): Condition | undefined {
  return definition.status?.conditions?.find((one) => one.type === type);
}

export function isTrue(definition: Definition, type: string): boolean {
  return condition(definition, type)?.status === 'True';
}

/** The CAs of the conversion webhook, PEM in base64; '' where there are none. */
export function bundleOf({ spec }: Definition): string {
  return spec?.conversion?.webhook?.clientConfig?.caBundle ?? '';
}

export const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';
