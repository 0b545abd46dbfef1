// Priority: a pod's class becomes its number and its preemption policy, and there is one default class at most
// (plugin/pkg/admission/priority).

import type { PriorityClass } from 'kubernetes-types/scheduling/v1';
import { getOwn } from '../../../lib/own-property.ts';
import type { KubeObject, ObjectLookup } from '../../kinds/resource.ts';
import { as, type PodSpec, podOf } from '../../kinds/shapes.ts';
import { SYSTEM_PRIORITIES } from '../../kinds/shared/system-priorities.ts';
import { AdmissionForbidden, type AdmissionPlugin } from '../plugin.ts';

const GROUP = 'scheduling.k8s.io';
const PLURAL = 'priorityclasses';

interface Priority {
  readonly name: string | undefined;
  readonly value: number;
  readonly preemptionPolicy: string;
}

function priorityFrom(stored: KubeObject): Priority {
  const { value = 0, preemptionPolicy = 'PreemptLowerPriority' } = as<PriorityClass>(stored, 'PriorityClass');
  return { name: stored.metadata.name, value, preemptionPolicy };
}

const isDefault = (stored: KubeObject): boolean => as<PriorityClass>(stored, 'PriorityClass').globalDefault === true;

function priorityOf(name: string, lookup: ObjectLookup): Priority {
  const builtIn = getOwn(SYSTEM_PRIORITIES, name);
  if (builtIn !== undefined) return { name, value: builtIn, preemptionPolicy: 'PreemptLowerPriority' };
  if (name !== '') {
    const stored = lookup.get(GROUP, PLURAL, '', name);
    if (stored === undefined) throw new AdmissionForbidden(`no PriorityClass with name ${name} was found`);
    return priorityFrom(stored);
  }
  const defaults = lookup
    .list(GROUP, PLURAL)
    .filter(isDefault)
    .map(priorityFrom)
    .sort((a, b) => a.value - b.value);
  return defaults[0] ?? { name: undefined, value: 0, preemptionPolicy: 'PreemptLowerPriority' };
}

function admitPod(spec: PodSpec, lookup: ObjectLookup): void {
  const found = priorityOf(spec.priorityClassName ?? '', lookup);
  if (spec.priority !== undefined && spec.priority !== found.value) {
    throw new AdmissionForbidden(
      `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${found.value} from the given PriorityClass name`,
    );
  }
  if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== found.preemptionPolicy) {
    throw new AdmissionForbidden(
      `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; priority admission controller computed ${found.preemptionPolicy} from the given PriorityClass name`,
    );
  }
  if (found.name !== undefined) spec.priorityClassName = found.name;
  spec.priority = found.value;
  spec.preemptionPolicy = found.preemptionPolicy;
}

export const priority: AdmissionPlugin = {
  name: 'Priority',
  handles: (operation, { group, plural, subresource }) =>
    subresource === '' &&
    ((group === '' && plural === 'pods' && operation === 'CREATE') ||
      (group === GROUP && plural === PLURAL && (operation === 'CREATE' || operation === 'UPDATE'))),
  admit: ({ object }, lookup) => {
    if (object?.kind !== 'Pod') return;
    const { spec } = podOf(object);
    if (spec !== undefined) admitPod(spec, lookup);
  },
  validate: ({ object }, lookup) => {
    if (object?.kind !== 'PriorityClass' || !isDefault(object)) return;
    const other = lookup
      .list(GROUP, PLURAL)
      .filter(isDefault)
      .find(({ metadata }) => metadata.name !== object.metadata.name);
    if (other !== undefined) {
      throw new AdmissionForbidden(
        `PriorityClass ${other.metadata.name} is already marked as default. Only one default can exist`,
      );
    }
  },
};
