// Namespaces: the row and its rules. Its life and death are the registry's and the namespace controller's.

import type { Namespace } from 'kubernetes-types/core/v1';
import { namedTable, text } from './columns.ts';
import { invalid, syntax } from './field-errors.ts';
import { defineKind } from './metadata.ts';
import { dns1123Label, qualifiedName } from './names.ts';
import type { FieldError, KubeObject } from './resource.ts';
import { as } from './shapes.ts';

const of = (object: KubeObject) => as<Namespace>(object, 'Namespace');

/** One of Kubernetes' own, or with a domain. */
function validateFinalizer(field: string, finalizer: string): FieldError[] {
  const errors = syntax(field, finalizer, qualifiedName(finalizer));
  if (!finalizer.includes('/') && !['orphan', 'foregroundDeletion', 'kubernetes'].includes(finalizer)) {
    const why = 'name is neither a standard finalizer name nor is it fully qualified';
    errors.push(invalid(field, finalizer, why));
  }
  return errors;
}

export const namespaces = defineKind({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  singular: 'namespace',
  shortNames: ['ns'],
  namespaced: false,
  subresources: ['status', 'finalize'],
  verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  schema: 'io.k8s.api.core.v1.Namespace',
  updateMeta: ['rules', 'create', 'update'],
  nameRule: dns1123Label,
  strategy: {
    countsGenerations: false,
    applyDefaults: (object) => {
      const namespace = of(object);
      namespace.status ??= {};
      namespace.status.phase ??= 'Active';
      const name = object.metadata.name ?? '';
      if (name !== '') {
        object.metadata.labels = { ...object.metadata.labels, 'kubernetes.io/metadata.name': name };
      }
    },
    validateStatusUpdate: (object) => {
      const wanted = object.metadata.deletionTimestamp === undefined ? 'Active' : 'Terminating';
      const why = wanted === 'Active' ? 'is empty' : 'is not empty';
      const phase = of(object).status?.phase ?? '';
      if (phase === wanted) return [];
      return [invalid('status.Phase', phase, `may only be '${wanted}' if \`deletionTimestamp\` ${why}`)];
    },
    prepareForCreate: (object) => {
      const namespace = of(object);
      const finalizers = namespace.spec?.finalizers ?? [];
      if (!finalizers.includes('kubernetes')) finalizers.push('kubernetes');
      namespace.spec = { ...namespace.spec, finalizers };
      namespace.status = { phase: 'Active' };
    },
    // Only the finalize subresource removes a namespace's finalizer.
    prepareForUpdate: (object, old) => {
      const namespace = of(object);
      const before = of(old);
      namespace.spec = { ...namespace.spec, finalizers: before.spec?.finalizers };
      namespace.status = before.status;
    },
    validateCreate: (object) =>
      (of(object).spec?.finalizers ?? []).flatMap((finalizer) => validateFinalizer('spec.finalizers', finalizer)),
    selectableFields: {
      'status.phase': (object) => of(object).status?.phase ?? '',
      name: (o) => o.metadata.name ?? '',
    },
    table: namedTable([text('Status', 'The status of the namespace')], (object) => [of(object).status?.phase ?? '']),
  },
});
