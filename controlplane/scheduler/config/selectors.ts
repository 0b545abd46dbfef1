// Node affinity and label selectors inside plugins' arguments. Each field is checked, since no API server has.

import type { NodeAffinity, NodeSelectorTerm, TopologySpreadConstraint } from 'kubernetes-types/core/v1';
import type { Reader } from './reader.ts';

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'] as const;
const MAX = 2 ** 31 - 1;

function requirement(reader: Reader) {
  const key = reader.string('key') ?? reader.fail('key', 'is required');
  const operator = reader.oneOf('operator', OPERATORS) ?? reader.fail('operator', 'is required');
  const values = [...reader.strings('values')];
  reader.end();
  return { key, operator, values };
}

function term(reader: Reader): NodeSelectorTerm {
  const matchExpressions = reader.objects('matchExpressions').map(requirement);
  const matchFields = reader.objects('matchFields').map(requirement);
  reader.end();
  return { matchExpressions, matchFields };
}

export function nodeAffinityOf(reader: Reader): NodeAffinity {
  const required = reader.object('requiredDuringSchedulingIgnoredDuringExecution');
  const nodeSelectorTerms = required?.objects('nodeSelectorTerms').map(term);
  required?.end();
  const preferred = reader.objects('preferredDuringSchedulingIgnoredDuringExecution').map((each) => {
    const weight = each.integer('weight', { min: 1, max: 100 }) ?? each.fail('weight', 'is required');
    const preference = term(each.object('preference') ?? each.fail('preference', 'is required'));
    each.end();
    return { weight, preference };
  });
  reader.end();
  return {
    preferredDuringSchedulingIgnoredDuringExecution: preferred,
    ...(nodeSelectorTerms === undefined
      ? {}
      : { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } }),
  };
}

/** A default constraint has no selector: the pod's Services and workload are its selector. */
export function defaultConstraint(reader: Reader): TopologySpreadConstraint {
  const topologyKey = reader.string('topologyKey') ?? reader.fail('topologyKey', 'is required');
  const maxSkew = reader.integer('maxSkew', { min: 1, max: MAX }) ?? reader.fail('maxSkew', 'is required');
  const whenUnsatisfiable =
    reader.oneOf('whenUnsatisfiable', ['DoNotSchedule', 'ScheduleAnyway']) ??
    reader.fail('whenUnsatisfiable', 'is required');
  const minDomains = reader.integer('minDomains', { min: 1, max: MAX });
  const nodeAffinityPolicy = reader.oneOf('nodeAffinityPolicy', ['Honor', 'Ignore']);
  const nodeTaintsPolicy = reader.oneOf('nodeTaintsPolicy', ['Honor', 'Ignore']);
  reader.refuse({ labelSelector: 'constraint must not define a selector, as they deduced for each pod' });
  reader.end();
  return {
    topologyKey,
    maxSkew,
    whenUnsatisfiable,
    ...(minDomains === undefined ? {} : { minDomains }),
    ...(nodeAffinityPolicy === undefined ? {} : { nodeAffinityPolicy }),
    ...(nodeTaintsPolicy === undefined ? {} : { nodeTaintsPolicy }),
  };
}
