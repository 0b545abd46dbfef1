// What ReplicaSets and ReplicationControllers have in common: the numbers of their status and of their tables.

import type { FieldError, TableColumn } from '../resource.ts';
import { allOf, validateBounds, validateCounts } from './counts.ts';

const COUNTS = [
  'replicas',
  'fullyLabeledReplicas',
  'readyReplicas',
  'availableReplicas',
  'observedGeneration',
  'terminatingReplicas',
];
const LIMIT = 'cannot be greater than status.replicas';

export function validateReplicaStatus(status: { readonly [field: string]: unknown } = {}): FieldError[] {
  return allOf(
    validateCounts('status', status, COUNTS),
    validateBounds('status', status, [
      ['fullyLabeledReplicas', 'replicas', LIMIT],
      ['readyReplicas', 'replicas', LIMIT],
      ['availableReplicas', 'replicas', LIMIT],
      ['availableReplicas', 'readyReplicas', 'cannot be greater than readyReplicas'],
    ]),
  );
}

export const replicaColumns: readonly TableColumn[] = [
  { name: 'Desired', type: 'integer', description: 'Number of pods that there should be.' },
  { name: 'Current', type: 'integer', description: 'Number of pods that there are.' },
  { name: 'Ready', type: 'integer', description: 'Number of pods that are ready.' },
];
