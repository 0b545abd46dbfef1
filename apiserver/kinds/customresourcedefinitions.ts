// CustomResourceDefinitions as objects; crd/ makes rows of them.

import { CLEANUP_FINALIZER, type Definition, definitionOf } from '../crd/types.ts';
import { validateDefinition, validateDefinitionUpdate, validateNames } from '../crd/validate-definition.ts';
import { NAME_COLUMN } from './columns.ts';
import { defineKind } from './metadata.ts';
import type { KubeObject } from './resource.ts';

function applyDefaults(object: KubeObject): void {
  const { spec } = definitionOf(object);
  if (spec === undefined) return;
  const { names } = spec;
  if (names !== undefined) {
    if ((names.singular ?? '') === '') names.singular = (names.kind ?? '').toLowerCase();
    if ((names.listKind ?? '') === '' && (names.kind ?? '') !== '') names.listKind = `${names.kind}List`;
  }
  spec.conversion ??= { strategy: 'None' };
  const service = spec.conversion.webhook?.clientConfig?.service;
  if (service !== undefined) service.port ??= 443;
}

/** The version that is stored from now on is one that objects may be stored in. */
function addStoredVersion(definition: Definition): void {
  const storage = definition.spec?.versions?.find((version) => version.storage === true)?.name;
  const status = definition.status ?? {};
  const stored = status.storedVersions ?? [];
  if (storage !== undefined && !stored.includes(storage)) status.storedVersions = [...stored, storage];
  definition.status = status;
}

export const customresourcedefinitions = defineKind({
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  singular: 'customresourcedefinition',
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
  namespaced: false,
  subresources: ['status'],
  schema: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition',
  standardFinalizers: false,
  strategy: {
    applyDefaults,
    prepareForCreate: (object) => {
      const definition = definitionOf(object);
      definition.status = { conditions: [], acceptedNames: { kind: '', plural: '' } };
      addStoredVersion(definition);
    },
    prepareForUpdate: (object, old) => {
      const definition = definitionOf(object);
      definition.status = structuredClone(definitionOf(old).status ?? {});
      addStoredVersion(definition);
    },
    // Its objects go first; crd/controller.ts deletes them and takes the finalizer away.
    prepareForDelete: (object) => {
      const finalizers = object.metadata.finalizers ?? [];
      if (!finalizers.includes(CLEANUP_FINALIZER)) object.metadata.finalizers = [...finalizers, CLEANUP_FINALIZER];
    },
    validateCreate: (object) => validateDefinition(definitionOf(object)),
    validateUpdate: (object, old) => validateDefinitionUpdate(definitionOf(object), definitionOf(old)),
    validateStatusUpdate: (object) =>
      validateNames(definitionOf(object).status?.acceptedNames ?? {}, 'status.acceptedNames'),
    table: {
      columns: [NAME_COLUMN, { name: 'Created At', type: 'date' }],
      row: (object) => [object.metadata.name ?? '', object.metadata.creationTimestamp ?? ''],
    },
  },
});
