// What the DaemonSet controller decides, as tables: nodes, pods on each node, steps of an update, the status.

import type { Taint, Toleration } from 'kubernetes-types/core/v1';
import { describe, expect, it } from 'vitest';
import type { Node, Pod, PodSpec } from '../../../../client/types.ts';
import { type Facts, manage, podsByNode } from '../../../../controlplane/controllers/daemonset/manage.ts';
import {
  isUpdated,
  placementOn,
  targetNode,
  templateFor,
  tolerationsOf,
} from '../../../../controlplane/controllers/daemonset/placement.ts';
import { rollingStep } from '../../../../controlplane/controllers/daemonset/rolling.ts';
import { daemonSetStatus } from '../../../../controlplane/controllers/daemonset/status.ts';
import type { DaemonSet } from '../../../../controlplane/controllers/shared/objects.ts';
import { makeNode, makePod } from '../environment.ts';
import { AT, daemonPod, daemonSet, setWith } from './daemon-cases.ts';

const taint = (effect: string, key = 'dedicated'): Taint => ({ key, effect });
const node = (name: string, labels: Record<string, string> = {}, taints: Taint[] = []): Node => {
  const made = makeNode(name, 'True', { taints });
  return { ...made, metadata: { ...made.metadata, labels } };
};
const YES = { run: true, stay: true };
const NO = { run: false, stay: false };
const STAYS = { run: false, stay: true };

describe('nodes', () => {
  const affinity = (field: object): NonNullable<PodSpec['affinity']> => ({
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [field] } },
  });
  const disk = { matchExpressions: [{ key: 'disk', operator: 'In', values: ['ssd'] }] };
  const named = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['b'] }] };
  const tolerates: Toleration = { key: 'dedicated', operator: 'Exists', effect: 'NoSchedule' };

  it.each<[string, Partial<PodSpec>, Node, object]>([
    ['any node', {}, node('a'), YES],
    ['the node that spec.nodeName names', { nodeName: 'a' }, node('a'), YES],
    ['no other than that', { nodeName: 'b' }, node('a'), NO],
    ['nodes of the selector', { nodeSelector: { disk: 'ssd' } }, node('a', { disk: 'ssd' }), YES],
    ['no others', { nodeSelector: { disk: 'ssd' } }, node('a'), NO],
    ['nodes of the affinity', { affinity: affinity(disk) }, node('a', { disk: 'ssd' }), YES],
    ['no others than those', { affinity: affinity(disk) }, node('a', { disk: 'hdd' }), NO],
    ['a node by its name', { affinity: affinity(named) }, node('b'), YES],
    ['no node of another name', { affinity: affinity(named) }, node('a'), NO],
    ['no tainted node, and none is evicted by NoSchedule', {}, node('a', {}, [taint('NoSchedule')]), STAYS],
    ['a tainted node that is tolerated', { tolerations: [tolerates] }, node('a', {}, [taint('NoSchedule')]), YES],
    ['no node with NoExecute', {}, node('a', {}, [taint('NoExecute')]), NO],
    ['a node that would rather not', {}, node('a', {}, [taint('PreferNoSchedule')]), YES],
    ['a cordoned node', {}, node('a', {}, [taint('NoSchedule', 'node.kubernetes.io/unschedulable')]), YES],
    ['a node that is not ready', {}, node('a', {}, [taint('NoExecute', 'node.kubernetes.io/not-ready')]), YES],
    ['not yet ready', {}, node('a', {}, [taint('NoSchedule', 'node.kubernetes.io/not-ready')]), STAYS],
    ['a node that is lost', {}, node('a', {}, [taint('NoExecute', 'node.kubernetes.io/unreachable')]), YES],
    ['a node under pressure', {}, node('a', {}, [taint('NoSchedule', 'node.kubernetes.io/memory-pressure')]), YES],
    ['none without network', {}, node('a', {}, [taint('NoSchedule', 'node.kubernetes.io/network-unavailable')]), STAYS],
    [
      'one without network for a pod of the host’s',
      { hostNetwork: true },
      node('a', {}, [taint('NoSchedule', 'node.kubernetes.io/network-unavailable')]),
      YES,
    ],
  ])('%s', (_what, spec, where, wanted) => expect(placementOn(setWith({}, spec), where)).toEqual(wanted));
});

describe('a pod', () => {
  it('is for one node, tolerates what befalls it, and has hash and generation', () => {
    const preferred = [{ weight: 1, preference: {} }];
    const required = { nodeSelectorTerms: [{ matchExpressions: [{ key: 'disk', operator: 'Exists' }] }] };
    const affinity: NonNullable<PodSpec['affinity']> = {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: required,
        preferredDuringSchedulingIgnoredDuringExecution: preferred,
      },
    };
    const { metadata, spec } = templateFor(setWith({}, { affinity }), 'new', 'a');
    expect(metadata?.labels).toEqual({ app: 'web', 'pod-template-generation': '1', 'controller-revision-hash': 'new' });
    expect(spec?.nodeName).toBeUndefined();
    expect(spec?.affinity?.nodeAffinity).toEqual({
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] }],
      },
      preferredDuringSchedulingIgnoredDuringExecution: preferred,
    });
    expect(spec?.tolerations?.map(({ key, effect }) => `${key?.split('/')[1]}:${effect}`)).toEqual([
      'not-ready:NoExecute',
      'unreachable:NoExecute',
      'disk-pressure:NoSchedule',
      'memory-pressure:NoSchedule',
      'pid-pressure:NoSchedule',
      'unschedulable:NoSchedule',
    ]);
  });

  it('tolerates for ever what the template tolerates for some time', () => {
    const own: Toleration[] = [
      { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 },
      { key: 'mine', operator: 'Exists' },
    ];
    const tolerations = tolerationsOf({ containers: [], tolerations: own });
    expect(tolerations.slice(0, 3)).toEqual([
      { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
      own[1],
      { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' },
    ]);
    expect(tolerations).toHaveLength(7);
  });

  it.each<[string, Pod, string | undefined]>([
    ['the one it is on', makePod('p', { nodeName: 'a' }), 'a'],
    ['the one it waits for', daemonPod('p@a unbound'), 'a'],
    ['none', makePod('p'), undefined],
  ])('’s node: %s', (_what, pod, wanted) => expect(targetNode(pod)).toBe(wanted));

  it('is up to date by hash, or by generation', () => {
    const pod = makePod('p');
    const labelled = (labels: Record<string, string>): Pod => ({ ...pod, metadata: { ...pod.metadata, labels } });
    const set = daemonSet();
    expect(isUpdated(set, labelled({ 'controller-revision-hash': 'new' }), 'new')).toBe(true);
    expect(isUpdated(set, labelled({ 'pod-template-generation': '1' }), 'new')).toBe(true);
    expect(isUpdated(set, labelled({ 'pod-template-generation': '2' }), 'new')).toBe(false);
  });
});

function factsOf(set: DaemonSet, nodes: readonly Node[], pods: readonly string[]): Facts {
  return { set, nodes, pods: podsByNode(pods.map(daemonPod)), hash: 'new', now: AT };
}
const names = ({ create, remove }: { create: readonly string[]; remove: readonly Pod[] }): string =>
  [...create.map((name) => `+${name}`), ...remove.map((pod) => `-${pod.metadata.name}`)].join(' ');

type Strategy = NonNullable<DaemonSet['spec']['updateStrategy']>;
type Case = readonly [what: string, strategy: Strategy, pods: readonly string[], steps: string];
const unavailable = (maxUnavailable: number | string): Strategy => ({
  type: 'RollingUpdate',
  rollingUpdate: { maxUnavailable, maxSurge: 0 },
});
const surge = (maxSurge: number | string): Strategy => ({
  type: 'RollingUpdate',
  rollingUpdate: { maxSurge, maxUnavailable: 0 },
});
const NODES = [
  node('a'),
  node('b'),
  node('full', {}, [taint('NoSchedule')]),
  node('drained', {}, [taint('NoExecute')]),
];

describe('pods on nodes', () => {
  it.each<Case>([
    ['one on each node that takes it', unavailable(1), [], '+a +b'],
    ['no second one', unavailable(1), ['p@a ready', 'q@b pending'], ''],
    ['one that waits for its node counts', unavailable(1), ['p@a unbound', 'q@b ready'], ''],
    ['none while one is on its way out', unavailable(1), ['p@a ready terminating', 'q@b ready'], ''],
    ['one beside that with surge', surge(1), ['p@a ready terminating', 'q@b ready'], '+a'],
    ['one where an ended one is on its way out', unavailable(1), ['p@a failed terminating', 'q@b ready'], '+a'],
    ['the oldest of several', unavailable(1), ['p@a', 'old@a age:9', 'q@b'], '-p'],
    ['a bound one rather than an older one', unavailable(1), ['p@a', 'old@a age:9 unbound', 'q@b'], '-old'],
    ['one that is there stays where no new one may come', unavailable(1), ['p@full', 'x@a', 'y@b'], ''],
    ['none where none may be', unavailable(1), ['p@drained', 'x@a', 'y@b'], '-p'],
    ['none for a node that is gone', unavailable(1), ['p@gone unbound', 'x@a', 'y@b'], '-p'],
    ['one on a node that is gone is left to others', unavailable(1), ['p@gone', 'x@a', 'y@b'], ''],
    ['a failed one goes', unavailable(1), ['p@a failed', 'y@b'], '-p'],
    ['one that has ended well goes', unavailable(1), ['p@a succeeded', 'y@b'], '-p'],
    ['two with surge while the new one is not available', surge(1), ['n@a', 'o@a ready old', 'y@b'], ''],
    ['one when it is', surge(1), ['n@a ready', 'o@a ready old', 'y@b'], '-o'],
    ['the new one when the old one does not serve', surge(1), ['n@a', 'o@a old', 'y@b'], '-o'],
    [
      'one old and one new of several',
      surge(1),
      ['n@a', 'n2@a age:9', 'o@a ready old', 'o2@a ready old', 'y@b'],
      '-n -o2',
    ],
  ])('%s', (_what, updateStrategy, pods, steps) => {
    expect(names(manage(factsOf(setWith({ updateStrategy }), NODES, pods), () => false))).toBe(steps);
  });

  it('are not replaced again and again: a failed one stays until the delay is over', () => {
    const facts = factsOf(daemonSet(), NODES, ['p@a failed', 'y@b']);
    const managed = manage(facts, (name) => name === 'a');
    expect([names(managed), managed.delayed]).toEqual(['', ['a']]);
    const two = manage(factsOf(daemonSet(), NODES, ['p@a failed', 'q@a failed', 'y@b']), () => false);
    expect([names(two), two.delayed]).toEqual(['-p', ['a']]);
  });
});

describe('a step of an update', () => {
  const ABC = [node('a'), node('b'), node('c'), node('full', {}, [taint('NoSchedule')])];
  const OLD = ['a', 'b', 'c'].map((name) => `o${name}@${name} ready old`);

  it.each<Case>([
    ['takes one', unavailable(1), OLD, '-oa'],
    ['or as many as may be missing', unavailable(2), OLD, '-oa -ob'],
    ['a part in per cent, rounded up', unavailable('34%'), OLD, '-oa -ob'],
    ['takes none while one is missing', unavailable(1), ['n@a', ...OLD.slice(1)], ''],
    ['nor while none is there', unavailable(1), OLD.slice(1), ''],
    [
      'takes those that do not serve, whatever is missing',
      unavailable(1),
      ['oa@a old', 'ob@b old', 'oc@c ready old'],
      '-oa -ob',
    ],
    ['goes on when the new one serves', unavailable(1), ['n@a ready', ...OLD.slice(1)], '-ob'],
    ['waits where two are', unavailable(1), ['x@a ready old', ...OLD], ''],
    ['ends', unavailable(1), ['a', 'b', 'c'].map((name) => `n@${name} ready`), ''],
    ['makes one beside an old one with surge', surge(1), OLD, '+a'],
    ['as many as may be at a time', surge('50%'), OLD, '+a +b'],
    ['waits until that one serves', surge(1), ['n@a', ...OLD], ''],
    ['removes the old one then, and goes on', surge(1), ['n@a ready', ...OLD], '+b -oa'],
    ['makes one beside those that do not serve', surge(1), ['oa@a old', 'ob@b old', 'oc@c ready old'], '+a +b +c'],
    ['removes one that does not serve where none belongs', surge(1), [...OLD, 'x@full old'], '+a -x'],
    [
      'keeps one that serves there while others do not',
      surge(1),
      ['n@a', 'x@full ready old', 'n@b ready', 'n@c ready'],
      '',
    ],
    ['and removes it when all do', surge(1), ['n@a ready', 'x@full ready old', 'n@b ready', 'n@c ready'], '-x'],
  ])('%s', (_what, updateStrategy, pods, steps) => {
    expect(names(rollingStep(factsOf(setWith({ updateStrategy }), ABC, pods)))).toBe(steps);
  });

  it('counts pods that have been ready for long enough', () => {
    const set = setWith({ minReadySeconds: 10, updateStrategy: unavailable(1) });
    expect(names(rollingStep(factsOf(set, ABC, ['n@a ready:9', ...OLD.slice(1)])))).toBe('');
    expect(names(rollingStep(factsOf(set, ABC, ['n@a ready:10', ...OLD.slice(1)])))).toBe('-ob');
  });
});

describe('the status', () => {
  it('counts nodes, by the oldest pod of each', () => {
    const set = setWith({ minReadySeconds: 10 });
    const nodes = ['a', 'b', 'c', 'd'].map((name) => node(name)).concat(node('full', {}, [taint('NoSchedule')]));
    const pods = ['p@a ready:10', 'q@b ready:9 old', 'r@c', 'x@full', 'young@a old'];
    expect(daemonSetStatus(factsOf(set, nodes, pods), 1, undefined)).toEqual({
      desiredNumberScheduled: 4,
      currentNumberScheduled: 3,
      numberMisscheduled: 1,
      numberReady: 2,
      numberAvailable: 1,
      numberUnavailable: 3,
      updatedNumberScheduled: 2,
      observedGeneration: 1,
    });
  });
});
