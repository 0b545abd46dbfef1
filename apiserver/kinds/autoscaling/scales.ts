// Scales: the body of the scale subresources. They are no resource of their own; this row says how they are printed.

import { namedTable } from '../columns.ts';
import { defineKind } from '../metadata.ts';
import type { KubeObject, TableColumn } from '../resource.ts';
import { as, type Of } from '../shapes.ts';

interface Scale {
  spec?: { replicas?: number };
  status?: { replicas?: number };
}

const of = (object: KubeObject): Of<Scale> => as<Scale>(object, 'Scale');
const integer = (name: string, description: string): TableColumn => ({ name, type: 'integer', description });

export const scales = defineKind({
  group: 'autoscaling',
  version: 'v1',
  kind: 'Scale',
  plural: 'scales',
  singular: 'scale',
  namespaced: true,
  subresources: [],
  schema: 'io.k8s.api.autoscaling.v1.Scale',
  strategy: {
    table: namedTable(
      [
        integer('Desired', 'The number of instances that there should be.'),
        integer('Available', 'The number of instances that there are.'),
      ],
      (object) => [of(object).spec?.replicas ?? 0, of(object).status?.replicas ?? 0],
    ),
  },
});
