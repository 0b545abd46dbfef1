// KubeSchedulerConfiguration: what is read, what is refused and in which words, and which plugins a profile comes to have.

import { describe, expect, it } from 'vitest';
import { decodeSchedulerConfiguration } from '../../../../controlplane/scheduler/config/decode.ts';
import { DEFAULT_SETTINGS } from '../../../../controlplane/scheduler/config/model.ts';
import type { ExtensionPoint, Framework } from '../../../../controlplane/scheduler/framework/framework.ts';
import { makeFramework } from '../../../../controlplane/scheduler/framework/profile.ts';
import { Nominator } from '../../../../controlplane/scheduler/nominator.ts';
import { PLUGINS } from '../../../../controlplane/scheduler/plugins/registry.ts';
import { UserError } from '../../../../lib/errors.ts';
import { noStorage } from './support.ts';

const HEAD = 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n';
const decode = (text: string) => decodeSchedulerConfiguration(HEAD + text);
const profileOf = (text: string) => decode(`profiles:\n- ${text.replaceAll('\n', '\n  ')}`).profiles[0] ?? raise();

function raise(): never {
  throw new Error('not to be called');
}

function frameworkOf(text: string): Framework {
  return makeFramework(
    profileOf(text),
    PLUGINS,
    {
      client: { create: () => raise() },
      storage: noStorage(),
      volumes: { bind: () => raise() },
      preemption: { budgets: () => [], isPreempting: () => false, random: () => 0 },
      defaultSelector: () => undefined,
    },
    new Nominator(),
  );
}

const names = (framework: Framework, point: ExtensionPoint): readonly string[] =>
  framework.at(point).map(({ name }) => name);

describe('a configuration', () => {
  it('without fields has the defaults', () => {
    expect(decode('')).toEqual(DEFAULT_SETTINGS);
  });

  it('is read as a whole', () => {
    const settings = decode(`
percentageOfNodesToScore: 30
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
profiles:
- schedulerName: packer
  percentageOfNodesToScore: 100
  plugins:
    score: {disabled: [{name: ImageLocality}], enabled: [{name: NodeAffinity, weight: 7}]}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}, {name: memory}]}
  - name: PodTopologySpread
    args: {defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 9, ignorePreferredTermsOfExistingPods: true}
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 20}
  - name: VolumeBinding
    args: {bindTimeoutSeconds: 5}
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [a]}]}]
- {}
`);
    expect(settings).toMatchObject({
      percentageOfNodesToScore: 30,
      podInitialBackoffSeconds: 2,
      podMaxBackoffSeconds: 20,
      profiles: [{ schedulerName: 'packer', percentageOfNodesToScore: 100 }, { schedulerName: 'default-scheduler' }],
    });
    expect(settings.profiles[0]?.args).toMatchObject({
      NodeResourcesFit: {
        strategy: 'MostAllocated',
        resources: [
          { name: 'cpu', weight: 3 },
          { name: 'memory', weight: 1 },
        ],
      },
      PodTopologySpread: {
        system: false,
        defaultConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
      },
      InterPodAffinity: { hardPodAffinityWeight: 9, ignorePreferredTermsOfExistingPods: true },
      DefaultPreemption: { minCandidateNodesPercentage: 20, minCandidateNodesAbsolute: 100 },
      VolumeBinding: { bindTimeoutSeconds: 5 },
      NodeAffinity: { addedAffinity: { requiredDuringSchedulingIgnoredDuringExecution: expect.anything() } },
    });
  });

  it.each<[string, string]>([
    ['podMaxBackoff: 1', 'podMaxBackoff: unknown field'],
    ['podMaxBackoffSeconds: 0', 'podMaxBackoffSeconds: must be a whole number from 1 to 2147483647'],
    ['podInitialBackoffSeconds: 20', 'podMaxBackoffSeconds: must be greater than or equal to PodInitialBackoffSeconds'],
    ['percentageOfNodesToScore: 101', 'percentageOfNodesToScore: must be a whole number from 0 to 100'],
    ['extenders: []', 'extenders: is not there: no extender is called'],
    ['parallelism: 16', 'parallelism: is not there: a scheduling cycle is one piece of work here'],
    [
      'leaderElection: {leaderElect: true}',
      'leaderElection: is not there: the lease is set by the flags of nodelet controlplane',
    ],
    ['profiles: 1', 'profiles: must be a list'],
    ['profiles: [{name: a}]', 'profiles[0].name: unknown field'],
    ['profiles: [{}, {}]', 'profiles[1].schedulerName: "default-scheduler" is there twice'],
    ['profiles: [{plugins: {filters: {}}}]', 'profiles[0].plugins.filters: unknown field'],
    [
      'profiles: [{plugins: {score: {enabled: [{name: Mine}]}}}]',
      'profiles[0].plugins.score.enabled[0].name: plugin "Mine" does not exist',
    ],
    [
      'profiles: [{pluginConfig: [{name: NodeName, args: {}}]}]',
      'profiles[0].pluginConfig[0].name: plugin "NodeName" has no arguments',
    ],
    [
      'profiles: [{pluginConfig: [{name: VolumeBinding, args: {shape: []}}]}]',
      'profiles[0].pluginConfig[0].args.shape: scoring by the free capacity of storage (StorageCapacityScoring, alpha) is not there',
    ],
    [
      'profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: Best}}}]}]',
      'profiles[0].pluginConfig[0].args.scoringStrategy.type: must be one of LeastAllocated, MostAllocated, RequestedToCapacityRatio',
    ],
    [
      'profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 5}, {utilization: 5}]}}}}]}]',
      'profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape[1].utilization: utilization values must be sorted in increasing order',
    ],
    [
      'profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}}]}]',
      'profiles[0].pluginConfig[0].args.defaultConstraints: when .defaultingType is System, .defaultConstraints must be empty',
    ],
  ])('%s is refused', (text, message) => {
    expect(() => decode(text)).toThrow(new UserError(message));
  });

  it('of another version or kind is refused', () => {
    expect(() => decodeSchedulerConfiguration('kind: KubeSchedulerConfiguration')).toThrow(
      'apiVersion: must be kubescheduler.config.k8s.io/v1',
    );
    expect(() => decodeSchedulerConfiguration('[]')).toThrow('the configuration: must be an object');
    expect(() => decodeSchedulerConfiguration('a: [')).toThrow('not YAML or JSON');
  });
});

describe('a profile', () => {
  it('has by default kube-scheduler’s plugins in its order', () => {
    const framework = frameworkOf('{}');
    expect(names(framework, 'filter')).toEqual([
      'NodeUnschedulable',
      'NodeName',
      'TaintToleration',
      'NodeAffinity',
      'NodePorts',
      'NodeResourcesFit',
      'VolumeRestrictions',
      'NodeVolumeLimits',
      'VolumeBinding',
      'VolumeZone',
      'PodTopologySpread',
      'InterPodAffinity',
    ]);
    expect(names(framework, 'score')).toEqual([
      'TaintToleration',
      'NodeAffinity',
      'NodeResourcesFit',
      'PodTopologySpread',
      'InterPodAffinity',
      'NodeResourcesBalancedAllocation',
      'ImageLocality',
    ]);
    const others = ['preEnqueue', 'queueSort', 'postFilter', 'reserve', 'preBind', 'bind', 'permit'] as const;
    expect(others.map((point) => names(framework, point).join(' '))).toEqual([
      'SchedulingGates DefaultPreemption',
      'PrioritySort',
      'DefaultPreemption',
      'VolumeBinding',
      'VolumeBinding',
      'DefaultBinder',
      '',
    ]);
  });

  it.each<[string, string, ExtensionPoint, readonly string[]]>([
    [
      'one plugin less at one point',
      'plugins: {score: {disabled: [{name: ImageLocality}]}}',
      'score',
      ['-ImageLocality'],
    ],
    [
      'one plugin less at all points',
      'plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}',
      'filter',
      ['-TaintToleration'],
    ],
    [
      'none but one',
      'plugins: {filter: {disabled: [{name: "*"}], enabled: [{name: NodeName}]}}',
      'filter',
      ['NodeName'],
    ],
    [
      'none but one at all points, with what has to be',
      'plugins: {multiPoint: {disabled: [{name: "*"}], enabled: [{name: NodePorts}, {name: PrioritySort}, {name: DefaultBinder}]}}',
      'filter',
      ['NodePorts'],
    ],
  ])('can have %s', (_what, text, point, expected) => {
    const found = names(frameworkOf(text), point);
    const [first = ''] = expected;
    if (!first.startsWith('-')) expect(found).toEqual(expected);
    else expect(found).toEqual(names(frameworkOf('{}'), point).filter((name) => name !== first.slice(1)));
  });

  it.each<[string, string]>([
    [
      'plugins: {filter: {enabled: [{name: DefaultBinder}]}}',
      'profile "default-scheduler": plugin "DefaultBinder" does not extend filter plugin',
    ],
    ['plugins: {bind: {disabled: [{name: "*"}]}}', 'profile "default-scheduler": at least one bind plugin is needed'],
    [
      'plugins: {queueSort: {disabled: [{name: "*"}]}}',
      'profile "default-scheduler": only one queue sort plugin required, but got 0',
    ],
    [
      'plugins: {score: {enabled: [{name: NodeAffinity}, {name: NodeAffinity}]}}',
      'profile "default-scheduler": a score plugin is enabled twice',
    ],
  ])('%s is refused', (text, message) => {
    expect(() => frameworkOf(text)).toThrow(new UserError(message));
  });
});
