// Namespaces: the row and its rules. Its life and death are the registry's and the namespace controller's.

import type { Namespace } from 'kubernetes-types/core/v1';
import { namedTable, text } from './columns.ts';
import { syntax } from './field-errors.ts';
import { defineKind } from './metadata.ts';
import { dns1123Label, qualifiedName } from './names.ts';
import type { KubeObject } from './resource.ts';
import { as } from './shapes.ts';

const of = (object: KubeObject) => as<Namespace>(object, 'Namespace');

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
  nameRule: dns1123Label,
  strategy: {
    countsGenerations: false,
    applyDefaults: (object) => {
      const name = object.metadata.name ?? '';
      if (name !== '') {
        object.metadata.labels = { ...object.metadata.labels, 'kubernetes.io/metadata.name': name };
      }
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
      (of(object).spec?.finalizers ?? []).flatMap((finalizer) =>
        syntax('spec.finalizers', finalizer, qualifiedName(finalizer)),
      ),
    selectableFields: {
      'status.phase': (object) => of(object).status?.phase ?? '',
      name: (o) => o.metadata.name ?? '',
    },
    table: namedTable([text('Status', 'The status of the namespace')], (object) => [of(object).status?.phase ?? '']),
  },
});
