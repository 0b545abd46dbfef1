// Which quotas count an object: their scopes and scope selectors (pkg/quota/v1/evaluator/core). Pure.

import { computePodQOS } from '../qos-class.ts';
import type { Counted, CountedPod, CountingSpec } from './objects.ts';

/** What scopes look at in an object. */
export interface ScopeFacts {
  readonly kind: 'pod' | 'claim' | 'other';
  readonly terminating: boolean;
  readonly bestEffort: boolean;
  readonly crossNamespaceAffinity: boolean;
  /** The priority class of a pod, the VolumeAttributesClasses of a claim. */
  readonly classes: readonly string[];
}

const OTHER: ScopeFacts = {
  kind: 'other',
  terminating: false,
  bestEffort: false,
  crossNamespaceAffinity: false,
  classes: [],
};

function usesOtherNamespaces({ spec }: CountedPod): boolean {
  const { podAffinity, podAntiAffinity } = spec?.affinity ?? {};
  return [podAffinity, podAntiAffinity].some((affinity) =>
    [
      ...(affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
      ...(affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map((term) => term.podAffinityTerm ?? {}),
    ].some((term) => (term.namespaces ?? []).length > 0 || term.namespaceSelector !== undefined),
  );
}

export function scopeFacts(object: Counted): ScopeFacts {
  if (object.kind === 'pod') {
    const { pod } = object;
    const { activeDeadlineSeconds, priorityClassName = '' } = pod.spec ?? {};
    return {
      kind: 'pod',
      terminating: activeDeadlineSeconds !== undefined && activeDeadlineSeconds >= 0,
      bestEffort: computePodQOS(pod.spec ?? {}) === 'BestEffort',
      crossNamespaceAffinity: usesOtherNamespaces(pod),
      classes: priorityClassName === '' ? [] : [priorityClassName],
    };
  }
  if (object.kind !== 'claim') return OTHER;
  const { spec, status } = object.claim;
  const names = [
    spec?.volumeAttributesClassName ?? '',
    status?.currentVolumeAttributesClassName ?? '',
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName ?? '',
  ];
  return { ...OTHER, kind: 'claim', classes: names.filter((name) => name !== '') };
}

interface Requirement {
  readonly scopeName?: string | undefined;
  readonly operator?: string | undefined;
  readonly values?: readonly string[] | undefined;
}

function matchesClass({ operator, values = [] }: Requirement, classes: readonly string[]): boolean {
  switch (operator) {
    case 'In':
      return classes.some((name) => values.includes(name));
    case 'NotIn':
      return classes.length === 0 || classes.some((name) => !values.includes(name));
    case 'DoesNotExist':
      return classes.length === 0;
    default:
      return classes.length > 0;
  }
}

function matchesScope(requirement: Requirement, facts: ScopeFacts): boolean {
  const { scopeName } = requirement;
  if (scopeName === 'VolumeAttributesClass') return facts.kind === 'claim' && matchesClass(requirement, facts.classes);
  if (facts.kind !== 'pod') return false;
  switch (scopeName) {
    case 'Terminating':
      return facts.terminating;
    case 'NotTerminating':
      return !facts.terminating;
    case 'BestEffort':
      return facts.bestEffort;
    case 'NotBestEffort':
      return !facts.bestEffort;
    case 'CrossNamespacePodAffinity':
      return facts.crossNamespaceAffinity;
    case 'PriorityClass':
      return matchesClass(requirement, facts.classes);
    default:
      return false;
  }
}

/** Whether every scope of the quota holds; a quota without scopes counts everything. */
export function inScopes({ scopes = [], scopeSelector }: CountingSpec, facts: ScopeFacts): boolean {
  const all: Requirement[] = [
    ...scopes.map((scopeName) => ({ scopeName, operator: 'Exists' })),
    ...(scopeSelector?.matchExpressions ?? []),
  ];
  return all.every((requirement) => matchesScope(requirement, facts));
}
