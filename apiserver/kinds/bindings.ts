// Bindings: not stored, only a request to put a pod on a node. The registry carries it out.

import type { Binding } from 'kubernetes-types/core/v1';
import { notSupported, required } from './field-errors.ts';
import { defineKind } from './metadata.ts';
import { pathSegment } from './names.ts';
import { as } from './shapes.ts';

export const bindings = defineKind({
  group: '',
  version: 'v1',
  kind: 'Binding',
  plural: 'bindings',
  singular: 'binding',
  namespaced: true,
  subresources: [],
  verbs: ['create'],
  schema: 'io.k8s.api.core.v1.Binding',
  nameRule: pathSegment,
  strategy: {
    validateCreate: (object) => {
      const target = as<Binding>(object, 'Binding').target ?? {};
      const kind = target.kind ?? '';
      return [
        ...(kind !== '' && kind !== 'Node' ? [notSupported('target.kind', kind, ['Node', '<empty>'])] : []),
        ...((target.name ?? '') === '' ? [required('target.name')] : []),
      ];
    },
  },
});
