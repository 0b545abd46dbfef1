// pluginConfig: the arguments of each plugin that has some, with its defaults. What is wrong is refused by its path.

import { PREEMPTION_DEFAULTS } from '../plugins/default-preemption.ts';
import { INTER_POD_AFFINITY_DEFAULTS } from '../plugins/inter-pod-affinity.ts';
import { CPU_AND_MEMORY, FIT_DEFAULTS } from '../plugins/node-resources-fit.ts';
import { SPREAD_DEFAULTS } from '../plugins/pod-topology-spread.ts';
import type { ResourceWeight, ShapePoint } from '../plugins/resource-scoring.ts';
import { BIND_TIMEOUT_SECONDS } from '../plugins/volume-binding.ts';
import { DEFAULT_ARGS, type PluginArgs } from './model.ts';
import type { Reader } from './reader.ts';
import { defaultConstraint, nodeAffinityOf } from './selectors.ts';

const PERCENT = { min: 0, max: 100 };
const MAX = 2 ** 31 - 1;

function resources(reader: Reader): readonly ResourceWeight[] {
  const found = reader.objects('resources').map((each) => {
    const name = each.string('name') ?? each.fail('name', 'is required');
    const weight = each.integer('weight', { min: 1, max: 100 }) ?? 1;
    each.end();
    return { name, weight };
  });
  return found.length === 0 ? CPU_AND_MEMORY : found;
}

function shape(reader: Reader): readonly ShapePoint[] {
  const ratio = reader.object('requestedToCapacityRatio') ?? reader.fail('requestedToCapacityRatio', 'is required');
  const points = ratio.objects('shape').map((each) => {
    const utilization = each.integer('utilization', PERCENT) ?? 0;
    const score = each.integer('score', { min: 0, max: 10 }) ?? 0;
    each.end();
    return { utilization, score };
  });
  ratio.end();
  if (points.length === 0) ratio.fail('shape', 'at least one point must be specified');
  points.forEach((point, index) => {
    if (index > 0 && point.utilization <= (points[index - 1]?.utilization ?? 0)) {
      ratio.fail(`shape[${index}].utilization`, 'utilization values must be sorted in increasing order');
    }
  });
  return points;
}

function fit(reader: Reader): PluginArgs['NodeResourcesFit'] {
  const ignoredResources = reader.strings('ignoredResources');
  const ignoredResourceGroups = reader.strings('ignoredResourceGroups');
  const scoring = reader.object('scoringStrategy');
  if (scoring === undefined) return { ...FIT_DEFAULTS, ignoredResources, ignoredResourceGroups };
  const strategy =
    scoring.oneOf('type', ['LeastAllocated', 'MostAllocated', 'RequestedToCapacityRatio']) ??
    scoring.fail('type', 'is required');
  const weights = resources(scoring);
  const points = strategy === 'RequestedToCapacityRatio' ? shape(scoring) : [];
  scoring.end();
  return { ignoredResources, ignoredResourceGroups, strategy, resources: weights, shape: points };
}

function spread(reader: Reader): PluginArgs['PodTopologySpread'] {
  const defaultConstraints = reader.objects('defaultConstraints').map(defaultConstraint);
  const type = reader.oneOf('defaultingType', ['System', 'List']) ?? 'System';
  if (type === 'List') return { defaultConstraints, system: false };
  if (defaultConstraints.length > 0) {
    reader.fail('defaultConstraints', 'when .defaultingType is System, .defaultConstraints must be empty');
  }
  return SPREAD_DEFAULTS;
}

type Decoders = { readonly [Name in keyof PluginArgs]: (reader: Reader) => PluginArgs[Name] };

const DECODERS: Decoders = {
  DefaultPreemption: (reader) => ({
    minCandidateNodesPercentage:
      reader.integer('minCandidateNodesPercentage', PERCENT) ?? PREEMPTION_DEFAULTS.minCandidateNodesPercentage,
    minCandidateNodesAbsolute:
      reader.integer('minCandidateNodesAbsolute', { min: 0, max: MAX }) ??
      PREEMPTION_DEFAULTS.minCandidateNodesAbsolute,
  }),
  InterPodAffinity: (reader) => ({
    hardPodAffinityWeight:
      reader.integer('hardPodAffinityWeight', PERCENT) ?? INTER_POD_AFFINITY_DEFAULTS.hardPodAffinityWeight,
    ignorePreferredTermsOfExistingPods: reader.boolean('ignorePreferredTermsOfExistingPods') ?? false,
  }),
  NodeAffinity: (reader) => {
    const added = reader.object('addedAffinity');
    return added === undefined ? {} : { addedAffinity: nodeAffinityOf(added) };
  },
  NodeResourcesBalancedAllocation: (reader) => ({ resources: resources(reader) }),
  NodeResourcesFit: fit,
  PodTopologySpread: spread,
  VolumeBinding: (reader) => {
    reader.refuse({ shape: 'scoring by the free capacity of storage (StorageCapacityScoring, alpha) is not there' });
    return { bindTimeoutSeconds: reader.integer('bindTimeoutSeconds', { min: 0, max: MAX }) ?? BIND_TIMEOUT_SECONDS };
  },
};

const isNamed = (name: string): name is keyof PluginArgs => Object.hasOwn(DECODERS, name);

/** `profile.pluginConfig`. Throws UserError. */
export function pluginArgs(profile: Reader): PluginArgs {
  let args = DEFAULT_ARGS;
  const seen = new Set<string>();
  for (const entry of profile.objects('pluginConfig')) {
    const name = entry.string('name') ?? entry.fail('name', 'is required');
    if (seen.has(name)) entry.fail('name', `repeated config for plugin ${name}`);
    seen.add(name);
    const reader = entry.object('args') ?? entry.fail('args', 'is required');
    if (!isNamed(name)) return entry.fail('name', `plugin "${name}" has no arguments`);
    const kind = reader.string('kind');
    if (kind !== undefined && kind !== `${name}Args`) reader.fail('kind', `must be ${name}Args`);
    const version = reader.string('apiVersion');
    if (version !== undefined && version !== 'kubescheduler.config.k8s.io/v1') {
      reader.fail('apiVersion', 'must be kubescheduler.config.k8s.io/v1');
    }
    args = { ...args, ...decoded(name, reader) };
    reader.end();
    entry.end();
  }
  return args;
}

function decoded<Name extends keyof PluginArgs>(name: Name, reader: Reader): Pick<PluginArgs, Name> | object {
  return { [name]: DECODERS[name](reader) };
}
