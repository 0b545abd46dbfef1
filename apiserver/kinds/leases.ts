// Leases (coordination.k8s.io/v1): who holds what, until when. Nodes prove with them that they live.

import type { Lease } from 'kubernetes-types/coordination/v1';
import { namedTable, text } from './columns.ts';
import { invalid } from './field-errors.ts';
import { defineKind } from './metadata.ts';
import type { FieldError, KubeObject } from './resource.ts';
import { as } from './shapes.ts';

const of = (object: KubeObject) => as<Lease>(object, 'Lease');

function validate(object: KubeObject): FieldError[] {
  const spec = of(object).spec ?? {};
  const errors: FieldError[] = [];
  if (spec.leaseDurationSeconds !== undefined && spec.leaseDurationSeconds <= 0) {
    errors.push(invalid('spec.leaseDurationSeconds', spec.leaseDurationSeconds, 'must be greater than 0'));
  }
  if (spec.leaseTransitions !== undefined && spec.leaseTransitions < 0) {
    errors.push(invalid('spec.leaseTransitions', spec.leaseTransitions, 'must be greater than or equal to 0'));
  }
  if (spec.holderIdentity === '') errors.push(invalid('spec.holderIdentity', '', 'must not be empty'));
  return errors;
}

export const leases = defineKind({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  singular: 'lease',
  namespaced: true,
  subresources: [],
  schema: 'io.k8s.api.coordination.v1.Lease',
  standardFinalizers: false,
  updateMeta: ['rules', 'create', 'update', 'create'],
  strategy: {
    validateCreate: validate,
    table: namedTable([text('Holder', 'The identity that holds the lease.')], (object) => [
      of(object).spec?.holderIdentity ?? '',
    ]),
  },
});
