// InterPodAffinity and PodTopologySpread: filters and scores over several nodes and zones.

import type { TopologySpreadConstraint } from 'kubernetes-types/core/v1';
import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../../client/types.ts';
import { podInfo } from '../../../../controlplane/scheduler/cache/pod-info.ts';
import { CycleState } from '../../../../controlplane/scheduler/framework/cycle-state.ts';
import {
  INTER_POD_AFFINITY_DEFAULTS,
  interPodAffinity,
} from '../../../../controlplane/scheduler/plugins/inter-pod-affinity.ts';
import { podTopologySpread, SPREAD_DEFAULTS } from '../../../../controlplane/scheduler/plugins/pod-topology-spread.ts';
import { cluster, filtered, inZone, node, on, pod, scored } from './support.ts';

const ZONE = 'topology.kubernetes.io/zone';
const HOST = 'kubernetes.io/hostname';
const nodes = [
  node('a1', { labels: inZone('a') }),
  node('a2', { labels: inZone('a') }),
  node('b1', { labels: inZone('b') }),
  node('x'),
];
const app = (name: string) => ({ matchLabels: { app: name } });
type Term = { topologyKey: string; labelSelector?: object; namespaces?: string[]; namespaceSelector?: object };
const near = (...required: Term[]): Partial<Pod['spec']> => ({
  affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } },
});
const away = (...required: Term[]): Partial<Pod['spec']> => ({
  affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } },
});
const prefers = (
  kind: 'podAffinity' | 'podAntiAffinity',
  weight: number,
  podAffinityTerm: Term,
): Partial<Pod['spec']> => ({
  affinity: { [kind]: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight, podAffinityTerm }] } },
});
const elsewhere = (namespace: string, one: Pod): Pod => ({ ...one, metadata: { ...one.metadata, namespace } });
/** The names of the nodes that pass; of the others what keeps the pod away, short. */
const short = (verdicts: readonly string[]): string =>
  verdicts
    .map((verdict) =>
      verdict
        .replace("node(s) didn't match pod affinity rules (UnschedulableAndUnresolvable)", 'not near')
        .replace("node(s) didn't match pod anti-affinity rules (Unschedulable)", 'too near')
        .replace("node(s) didn't satisfy existing pods anti-affinity rules (Unschedulable)", 'kept away')
        .replace(
          "node(s) didn't match pod topology spread constraints (missing required label) (UnschedulableAndUnresolvable)",
          'no label',
        )
        .replace("node(s) didn't match pod topology spread constraints (Unschedulable)", 'skewed'),
    )
    .join(', ');

describe('InterPodAffinity, required', () => {
  const db = on('a1', pod('db', {}, { app: 'db' }));
  const zone = { topologyKey: ZONE, labelSelector: app('db') };
  const host = { ...zone, topologyKey: HOST };
  const all = 'a1, a2, b1, x';
  it.each<[string, Pod, readonly Pod[], string]>([
    ['nothing is wanted', pod('p'), [db], all],
    ['near, by zone', pod('p', near(zone)), [db], 'a1, a2, b1: not near, x: not near'],
    ['near, by host', pod('p', near(host)), [db], 'a1, a2: not near, b1: not near, x: not near'],
    ['near to what is not there', pod('p', near(zone)), [], 'a1: not near, a2: not near, b1: not near, x: not near'],
    ['the first of a group', pod('p', near(zone), { app: 'db' }), [], 'a1, a2, b1, x: not near'],
    ['a later one of the group', pod('p', near(zone), { app: 'db' }), [db], 'a1, a2, b1: not near, x: not near'],
    [
      'near to pods that match both terms alone',
      pod('p', near(zone, { topologyKey: ZONE, labelSelector: app('web') })),
      [db, on('a2', pod('web', {}, { app: 'web' }))],
      'a1: not near, a2: not near, b1: not near, x: not near',
    ],
    [
      'a pod of another namespace is not meant',
      pod('p', near(zone)),
      [elsewhere('other', db)],
      'a1: not near, a2: not near, b1: not near, x: not near',
    ],
    [
      'unless the term names the namespace',
      pod('p', near({ ...zone, namespaces: ['other'] })),
      [elsewhere('other', db)],
      'a1, a2, b1: not near, x: not near',
    ],
    [
      'or selects it by its labels',
      pod('p', near({ ...zone, namespaceSelector: { matchLabels: { team: 'x' } } })),
      [elsewhere('other', db)],
      'a1, a2, b1: not near, x: not near',
    ],
    [
      'an empty namespace selector selects all',
      pod('p', away({ ...zone, namespaceSelector: {} })),
      [elsewhere('other', db)],
      'a1: too near, a2: too near, b1, x',
    ],
    ['away, by zone', pod('p', away(zone)), [db], 'a1: too near, a2: too near, b1, x'],
    ['away, by host', pod('p', away(host)), [db], 'a1: too near, a2, b1, x'],
    ['a term without a selector matches nothing', pod('p', away({ topologyKey: ZONE })), [db], all],
    [
      'kept away by a pod that is there',
      pod('p', {}, { app: 'web' }),
      [on('a1', pod('q', away({ topologyKey: ZONE, labelSelector: app('web') })))],
      'a1: kept away, a2: kept away, b1, x',
    ],
    [
      'a pod that keeps others away is no matter to those',
      pod('p'),
      [on('a1', pod('q', away({ topologyKey: ZONE, labelSelector: app('web') })))],
      all,
    ],
    [
      'both: away from one, near to another',
      pod('p', {
        affinity: { ...near(zone).affinity, ...away({ topologyKey: HOST, labelSelector: app('db') }).affinity },
      }),
      [db],
      'a1: too near, a2, b1: not near, x: not near',
    ],
  ])('%s', (_what, incoming, placed, expected) => {
    const cache = cluster(nodes, placed, { other: { team: 'x' } });
    expect(short(filtered(interPodAffinity(), incoming, cache))).toBe(expected);
  });

  it('follows pods that come, change and go, and nodes that change their zone', () => {
    const cache = cluster(nodes, [on('a1', pod('q', away({ topologyKey: ZONE, labelSelector: app('web') })))]);
    const web = pod('p', {}, { app: 'web' });
    const verdict = () => short(filtered(interPodAffinity(), web, cache));
    expect(verdict()).toBe('a1: kept away, a2: kept away, b1, x');
    cache.setNode(node('a1', { labels: inZone('b') }));
    expect(verdict()).toBe('a1: kept away, a2, b1: kept away, x');
    cache.removeNode('a1');
    expect(verdict()).toBe('a2, b1, x');
    cache.setNode(node('a1', { labels: inZone('a') }));
    expect(verdict()).toBe('a1: kept away, a2: kept away, b1, x');
    cache.removePod('uid-q');
    expect(verdict()).toBe(all);
  });

  it('counts pods that are added and removed for a try, in the copy alone', () => {
    const cache = cluster(nodes, [db]);
    const plugin = interPodAffinity();
    const [state, info] = [new CycleState(), podInfo(pod('p', away(zone)))];
    plugin.preFilter?.(state, info, cache);
    const copy = state.clone();
    const a1 = cache.get('a1');
    if (a1 === undefined) throw new Error('no node a1');
    plugin.removePod?.(copy, info, podInfo(db), a1);
    expect([plugin.filter?.(copy, info, a1), plugin.filter?.(state, info, a1)?.code]).toEqual([
      undefined,
      'Unschedulable',
    ]);
    plugin.addPod?.(copy, info, podInfo(db), a1);
    expect(plugin.filter?.(copy, info, a1)?.code).toBe('Unschedulable');
  });
});

describe('InterPodAffinity, preferred', () => {
  const zone = { topologyKey: ZONE, labelSelector: app('db') };
  const db = (name: string, where: string): Pod => on(where, pod(name, {}, { app: 'db' }));
  it.each<[string, Pod, readonly Pod[], Record<string, number> | undefined, object?]>([
    ['no pod prefers anything', pod('p'), [db('d', 'a1')], undefined],
    [
      'near, by the number of pods',
      pod('p', prefers('podAffinity', 5, zone)),
      [db('d', 'a1'), db('e', 'a2'), db('f', 'b1')],
      { a1: 100, a2: 100, b1: 50, x: 0 },
    ],
    ['away', pod('p', prefers('podAntiAffinity', 5, zone)), [db('d', 'a1')], { a1: 0, a2: 0, b1: 100, x: 100 }],
    [
      'a pod that is there prefers to be near',
      pod('p', {}, { app: 'db' }),
      [on('b1', pod('q', prefers('podAffinity', 3, zone)))],
      { a1: 0, a2: 0, b1: 100, x: 0 },
    ],
    [
      'a pod that is there has to be near',
      pod('p', {}, { app: 'db' }),
      [on('b1', pod('q', near(zone)))],
      { a1: 0, a2: 0, b1: 100, x: 0 },
    ],
    [
      'which the profile does not count',
      pod('p', {}, { app: 'db' }),
      [on('b1', pod('q', near(zone)))],
      undefined,
      { hardPodAffinityWeight: 0 },
    ],
    [
      'nor what pods that are there prefer',
      pod('p', {}, { app: 'db' }),
      [on('b1', pod('q', prefers('podAffinity', 3, zone)))],
      undefined,
      { ignorePreferredTermsOfExistingPods: true },
    ],
  ])('%s', (_what, incoming, placed, expected, args = {}) => {
    const plugin = interPodAffinity({ ...INTER_POD_AFFINITY_DEFAULTS, ...args });
    expect(scored(plugin, incoming, cluster(nodes, placed))).toEqual(expected);
  });
});

const constraint = (more: object = {}): TopologySpreadConstraint => ({
  topologyKey: ZONE,
  maxSkew: 1,
  whenUnsatisfiable: 'DoNotSchedule',
  labelSelector: app('web'),
  ...more,
});
const web = (name: string, where: string, more: Partial<Pod['metadata']> = {}): Pod => {
  const one = on(where, pod(name, {}, { app: 'web' }));
  return { ...one, metadata: { ...one.metadata, ...more } };
};

describe('PodTopologySpread, DoNotSchedule', () => {
  const incoming = (constraints: object[], spec: Partial<Pod['spec']> = {}, labels = { app: 'web' }): Pod =>
    pod('p', { ...spec, topologySpreadConstraints: constraints.map(constraint) }, labels);
  it.each<[string, Pod, readonly Pod[], string]>([
    ['no pods', incoming([{}]), [], 'a1, a2, b1, x: no label'],
    ['one zone is ahead', incoming([{}]), [web('1', 'a1')], 'a1: skewed, a2: skewed, b1, x: no label'],
    ['a larger skew', incoming([{ maxSkew: 2 }]), [web('1', 'a1')], 'a1, a2, b1, x: no label'],
    [
      'a pod that is not of the kind itself',
      incoming([{}], {}, { app: 'other' }),
      [web('1', 'a1')],
      'a1, a2, b1, x: no label',
    ],
    [
      'pods of other namespaces do not count',
      incoming([{}]),
      [web('1', 'a1', { namespace: 'other' })],
      'a1, a2, b1, x: no label',
    ],
    ['nor those that end', incoming([{}]), [web('1', 'a1', { deletionTimestamp: 'x' })], 'a1, a2, b1, x: no label'],
    [
      'nodes outside the pod’s affinity are no domain',
      incoming([{}], { nodeSelector: inZone('a') }),
      [web('1', 'a1')],
      'a1, a2, b1, x: no label',
    ],
    [
      'unless the policy ignores affinity',
      incoming([{ nodeAffinityPolicy: 'Ignore' }], { nodeSelector: inZone('a') }),
      [web('1', 'a1')],
      'a1: skewed, a2: skewed, b1, x: no label',
    ],
    [
      'fewer domains than there should be',
      incoming([{ minDomains: 3 }]),
      [web('1', 'a1'), web('2', 'b1')],
      'a1: skewed, a2: skewed, b1: skewed, x: no label',
    ],
    [
      'two constraints',
      incoming([{}, { topologyKey: HOST }]),
      [web('1', 'a1'), web('2', 'b1')],
      'a1: skewed, a2, b1: skewed, x: no label',
    ],
    [
      'a constraint without a selector',
      incoming([{ labelSelector: undefined }]),
      [web('1', 'a1'), web('2', 'a1')],
      'a1, a2, b1, x: no label',
    ],
    [
      'pods of the same revision alone',
      pod('p', { topologySpreadConstraints: [constraint({ matchLabelKeys: ['rev'] })] }, { app: 'web', rev: '2' }),
      [web('1', 'a1', { labels: { app: 'web', rev: '1' } }), web('2', 'b1', { labels: { app: 'web', rev: '2' } })],
      'a1, a2, b1: skewed, x: no label',
    ],
  ])('%s', (_what, pod_, placed, expected) => {
    const plugin = podTopologySpread(SPREAD_DEFAULTS, () => undefined);
    expect(short(filtered(plugin, pod_, cluster(nodes, placed)))).toBe(expected);
  });

  it('honors taints where the policy says so', () => {
    const tainted = node('b1', { labels: inZone('b'), spec: { taints: [{ key: 't', effect: 'NoSchedule' }] } });
    const cache = cluster([node('a1', { labels: inZone('a') }), tainted], [web('1', 'a1')]);
    const plugin = podTopologySpread(SPREAD_DEFAULTS, () => undefined);
    expect(short(filtered(plugin, incoming([{}]), cache))).toBe('a1: skewed, b1');
    expect(short(filtered(plugin, incoming([{ nodeTaintsPolicy: 'Honor' }]), cache))).toBe('a1, b1');
  });

  it('counts what a try adds and removes, in the copy alone', () => {
    const one = web('1', 'a1');
    const cache = cluster(nodes, [one]);
    const plugin = podTopologySpread(SPREAD_DEFAULTS, () => undefined);
    const [state, info] = [new CycleState(), podInfo(incoming([{}]))];
    plugin.preFilter?.(state, info, cache);
    const copy = state.clone();
    const a1 = cache.get('a1');
    if (a1 === undefined) throw new Error('no node a1');
    plugin.removePod?.(copy, info, podInfo(one), a1);
    expect([plugin.filter?.(copy, info, a1), plugin.filter?.(state, info, a1)?.code]).toEqual([
      undefined,
      'Unschedulable',
    ]);
  });
});

describe('PodTopologySpread, ScheduleAnyway', () => {
  const three = nodes.slice(0, 3);
  it('prefers zones with fewer pods', () => {
    const plugin = podTopologySpread(SPREAD_DEFAULTS, () => undefined);
    const incoming = pod('p', { topologySpreadConstraints: [constraint({ whenUnsatisfiable: 'ScheduleAnyway' })] });
    const placed = [web('1', 'a1'), web('2', 'a2')];
    expect(scored(plugin, incoming, cluster(three, placed))).toEqual({ a1: 0, a2: 0, b1: 100 });
    expect(scored(plugin, incoming, cluster(three))).toEqual({ a1: 100, a2: 100, b1: 100 });
    expect(scored(plugin, incoming, cluster(nodes, placed))).toEqual({ a1: 0, a2: 0, b1: 100, x: 0 });
  });

  it('spreads a Service’s pods without constraints over hosts and zones, hosts without a zone too', () => {
    const plugin = podTopologySpread(SPREAD_DEFAULTS, () => app('web'));
    const scores = scored(
      plugin,
      pod('p', {}, { app: 'web' }),
      cluster(nodes, [web('1', 'a1'), web('2', 'a1'), web('3', 'a1'), web('4', 'b1')]),
    );
    const order = Object.entries(scores ?? {}).toSorted(([, a], [, b]) => b - a);
    expect(order.map(([name]) => name)).toEqual(['x', 'b1', 'a2', 'a1']);
    expect(
      scored(
        podTopologySpread(SPREAD_DEFAULTS, () => undefined),
        pod('p'),
        cluster(nodes),
      ),
    ).toBe(undefined);
  });
});
