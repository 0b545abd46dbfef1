// PodDisruptionBudgets: the row and its rules. Their status is the disruption controller's; what it allows counts at each
// eviction (registry/subresources/eviction.ts).

import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1';
import { namedTable, text } from '../columns.ts';
import { invalid, notSupported } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Of } from '../shapes.ts';
import { validateConditions } from '../shared/conditions.ts';
import { allOf, validateCounts } from '../shared/counts.ts';
import { type IntOrPercent, validateAtMostAll, validateIntOrPercent } from '../shared/int-or-percent.ts';
import { isUnusable, validateLabelSelector } from '../shared/selectors.ts';

const of = (object: KubeObject): Of<PodDisruptionBudget> => as<PodDisruptionBudget>(object, 'PodDisruptionBudget');
const POLICIES = ['AlwaysAllow', 'IfHealthyBudget'];

function validateSpec(spec: Of<PodDisruptionBudget>['spec'] = {}, anyValue = false): FieldError[] {
  const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy: policy } = spec;
  const both = minAvailable !== undefined && maxUnavailable !== undefined;
  return allOf(
    both ? [invalid('spec', spec, 'minAvailable and maxUnavailable cannot be both set')] : [],
    validateIntOrPercent('spec.minAvailable', minAvailable),
    validateAtMostAll('spec.minAvailable', minAvailable),
    validateIntOrPercent('spec.maxUnavailable', maxUnavailable),
    validateAtMostAll('spec.maxUnavailable', maxUnavailable),
    validateLabelSelector('spec.selector', selector, { anyValue }),
    policy === undefined || POLICIES.includes(policy)
      ? []
      : [notSupported('spec.unhealthyPodEvictionPolicy', policy, POLICIES)],
  );
}

const cell = (value: IntOrPercent | undefined): string => (value === undefined ? 'N/A' : String(value));

export const poddisruptionbudgets = defineKind({
  group: 'policy',
  version: 'v1',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  singular: 'poddisruptionbudget',
  shortNames: ['pdb'],
  namespaced: true,
  subresources: ['status'],
  schema: 'io.k8s.api.policy.v1.PodDisruptionBudget',
  updateMeta: [],
  statusMeta: [],
  strategy: {
    applyDefaults: (object) => {
      of(object).spec ??= {};
    },
    prepareForCreate: (object) => {
      of(object).status = { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 };
    },
    validateCreate: (object) => validateSpec(of(object).spec),
    validateUpdate: (object, old) => validateSpec(of(object).spec, isUnusable(of(old).spec?.selector)),
    validateStatusUpdate: (object) => {
      const { status = {} } = of(object);
      return allOf(
        validateConditions('status.conditions', status.conditions),
        validateCounts('status', status, ['disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods']),
      );
    },
    table: namedTable(
      [
        text('Min Available', 'The minimum number of pods that must be available.'),
        text('Max Unavailable', 'The maximum number of pods that may be unavailable.'),
        {
          name: 'Allowed Disruptions',
          type: 'integer',
          description: 'Calculated number of pods that may be disrupted at this time.',
        },
      ],
      (object) => {
        const { spec = {}, status = {} } = of(object);
        return [cell(spec.minAvailable), cell(spec.maxUnavailable), status.disruptionsAllowed ?? 0];
      },
    ),
  },
});
