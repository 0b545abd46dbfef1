import type { PodSpec, Taint, Toleration } from 'kubernetes-types/core/v1';
import { describe, expect, it } from 'vitest';
import { tolerates } from '../../../client/selectors.ts';
import type { Node, Pod } from '../../../client/types.ts';
import { acceptsNode } from '../../../controlplane/scheduler/affinity.ts';
import { type NodeView, place, whyNot } from '../../../controlplane/scheduler/filter.ts';
import { podRequests, portsConflict } from '../../../controlplane/scheduler/requests.ts';

function pod(spec: Partial<PodSpec> = {}, name = 'p'): Pod {
  return {
    metadata: { name, namespace: 'demo', uid: name, resourceVersion: '1' },
    spec: { containers: [{ name: 'c' }], ...spec },
  };
}

type NodeParts = {
  labels?: Record<string, string>;
  spec?: Node['spec'];
  allocatable?: Record<string, string>;
  ready?: string;
};
function node(name: string, { labels = {}, spec = {}, allocatable = {}, ready = 'True' }: NodeParts = {}): Node {
  return {
    metadata: { name, uid: name, resourceVersion: '1', labels: { 'kubernetes.io/hostname': name, ...labels } },
    spec,
    status: {
      allocatable: { cpu: '2', memory: '4Gi', pods: '110', ...allocatable },
      conditions: [{ type: 'Ready', status: ready }],
    },
  };
}
const view = (name: string, parts: NodeParts = {}, pods: Pod[] = []): NodeView => ({ node: node(name, parts), pods });
const asks = (requests: Record<string, string>): Partial<PodSpec> => ({
  containers: [{ name: 'c', resources: { requests } }],
});
const port = (hostPort: number, hostIP?: string): Partial<PodSpec> => ({
  containers: [{ name: 'c', ports: [{ containerPort: 80, hostPort, ...(hostIP === undefined ? {} : { hostIP }) }] }],
});

describe('whyNot', () => {
  const taint: Taint = { key: 'gpu', value: 'yes', effect: 'NoSchedule' };
  it.each<[string, Partial<PodSpec>, NodeView, string[]]>([
    ['an empty pod fits', {}, view('n'), []],
    ['exactly what is left fits', asks({ cpu: '1500m' }), view('n', {}, [pod(asks({ cpu: '500m' }), 'q')]), []],
    [
      'one millicore too much',
      asks({ cpu: '1501m' }),
      view('n', {}, [pod(asks({ cpu: '500m' }), 'q')]),
      ['Insufficient cpu'],
    ],
    [
      'every resource that is short',
      asks({ cpu: '3', memory: '5Gi' }),
      view('n'),
      ['Insufficient cpu', 'Insufficient memory'],
    ],
    ['a resource that the node lacks', asks({ 'example.com/gpu': '1' }), view('n'), ['Insufficient example.com/gpu']],
    ['a full node', {}, view('n', { allocatable: { pods: '1' } }, [pod({}, 'q')]), ['Too many pods']],
    [
      'a limit stands for a missing request',
      { containers: [{ name: 'c', resources: { limits: { cpu: '3' } } }] },
      view('n'),
      ['Insufficient cpu'],
    ],
    ['a cordoned node', {}, view('n', { spec: { unschedulable: true } }), ['node(s) were unschedulable']],
    [
      'a cordoned node, tolerated',
      { tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }] },
      view('n', { spec: { unschedulable: true } }),
      [],
    ],
    ['a taint', {}, view('n', { spec: { taints: [taint] } }), ['node(s) had untolerated taint {gpu: yes}']],
    [
      'a tolerated taint',
      { tolerations: [{ key: 'gpu', value: 'yes' }] },
      view('n', { spec: { taints: [taint] } }),
      [],
    ],
    [
      'a taint that only asks to stay away',
      {},
      view('n', { spec: { taints: [{ ...taint, effect: 'PreferNoSchedule' }] } }),
      [],
    ],
    [
      'a node that is not ready and not tainted yet',
      {},
      view('n', { ready: 'False' }),
      ['node(s) had untolerated taint {node.kubernetes.io/not-ready: }'],
    ],
    [
      'a node selector',
      { nodeSelector: { disk: 'ssd' } },
      view('n', { labels: { disk: 'hdd' } }),
      ["node(s) didn't match Pod's node affinity/selector"],
    ],
    ['a matching node selector', { nodeSelector: { disk: 'ssd' } }, view('n', { labels: { disk: 'ssd' } }), []],
    [
      'a taken host port',
      port(80),
      view('n', {}, [pod(port(80), 'q')]),
      ["node(s) didn't have free ports for the requested pod ports"],
    ],
    [
      'the same host port on another address',
      port(80, '10.0.0.1'),
      view('n', {}, [pod(port(80, '10.0.0.2'), 'q')]),
      [],
    ],
    [
      'the first rule that fails speaks alone',
      { ...asks({ cpu: '9' }), nodeSelector: { a: 'b' } },
      view('n'),
      ["node(s) didn't match Pod's node affinity/selector"],
    ],
  ])('%s', (_what, spec, nodeView, reasons) => {
    expect(whyNot(pod(spec), nodeView)).toEqual(reasons);
  });
});

describe('place', () => {
  it('takes the node with the most room, by name when there is no difference', () => {
    const busy = view('a', {}, [pod(asks({ cpu: '1', memory: '1Gi' }), 'q')]);
    expect(place(pod(), [busy, view('c'), view('b')])).toEqual({ kind: 'node', node: 'b' });
  });

  it('prefers what the pod prefers, and avoids PreferNoSchedule above all', () => {
    const wants = pod({
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 10, preference: { matchExpressions: [{ key: 'zone', operator: 'In', values: ['x'] }] } },
          ],
        },
      },
    });
    const avoided = view('a', { labels: { zone: 'x' }, spec: { taints: [{ key: 't', effect: 'PreferNoSchedule' }] } });
    expect(place(wants, [view('b'), view('c', { labels: { zone: 'x' } })])).toEqual({ kind: 'node', node: 'c' });
    expect(place(wants, [view('b'), avoided])).toEqual({ kind: 'node', node: 'b' });
  });

  it.each<[string, NodeView[], string]>([
    ['no nodes', [], 'no nodes available to schedule pods'],
    ['one node', [view('a')], '0/1 nodes are available: 1 Insufficient cpu.'],
    [
      'several nodes, reasons counted and sorted',
      [
        view('a'),
        view('b'),
        view('c', { spec: { unschedulable: true } }),
        view('d', { allocatable: { cpu: '1', pods: '0' } }),
      ],
      '0/4 nodes are available: 1 Too many pods, 1 node(s) were unschedulable, 3 Insufficient cpu.',
    ],
  ])('says why it fits nowhere: %s', (_what, views, message) => {
    expect(place(pod(asks({ cpu: '64' })), views)).toEqual({ kind: 'unschedulable', message });
  });
});

describe('podRequests', () => {
  const c = (cpu: string, extra: object = {}) => ({ name: cpu, resources: { requests: { cpu } }, ...extra });
  const sidecar = { restartPolicy: 'Always' };
  it.each<[string, Partial<PodSpec>, number]>([
    ['containers add up', { containers: [c('100m'), c('200m')] }, 300],
    [
      'the largest init container counts when it is larger',
      { containers: [c('100m')], initContainers: [c('500m'), c('300m')] },
      500,
    ],
    ['sidecars run beside the containers', { containers: [c('100m')], initContainers: [c('50m', sidecar)] }, 150],
    [
      'an init container runs beside the sidecars before it',
      { containers: [c('100m')], initContainers: [c('50m', sidecar), c('200m')] },
      250,
    ],
    ['not beside those after it', { containers: [c('100m')], initContainers: [c('200m'), c('50m', sidecar)] }, 200],
    ['overhead comes on top', { containers: [c('100m')], overhead: { cpu: '10m' } }, 110],
  ])('%s', (_what, spec, millicores) => {
    expect(podRequests(pod(spec)).get('cpu')).toBe(millicores);
  });

  it('pod-level requests win', () => {
    const spec = { containers: [c('100m')], resources: { requests: { cpu: '1' } } };
    expect(podRequests(pod(spec)).get('cpu')).toBe(1000);
  });
});

describe('tolerates', () => {
  const taint: Taint = { key: 'k', value: 'v', effect: 'NoExecute' };
  it.each<[Toleration, boolean]>([
    [{ key: 'k', operator: 'Equal', value: 'v', effect: 'NoExecute' }, true],
    [{ key: 'k', value: 'v' }, true],
    [{ key: 'k', value: 'w' }, false],
    [{ key: 'k', operator: 'Exists' }, true],
    [{ key: 'k', operator: 'Exists', effect: 'NoSchedule' }, false],
    [{ operator: 'Exists' }, true],
    [{ key: 'other', operator: 'Exists' }, false],
    [{}, false],
  ])('%j: %s', (toleration, expected) => {
    expect(tolerates(toleration, taint)).toBe(expected);
  });
});

describe('acceptsNode', () => {
  const required = (...matchExpressions: { key: string; operator: string; values?: string[] }[]): Partial<PodSpec> => ({
    affinity: {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] } },
    },
  });
  it.each<[string, Partial<PodSpec>, boolean]>([
    ['In', required({ key: 'zone', operator: 'In', values: ['a', 'b'] }), true],
    ['NotIn', required({ key: 'zone', operator: 'NotIn', values: ['a'] }), false],
    ['NotIn on a missing label', required({ key: 'none', operator: 'NotIn', values: ['a'] }), true],
    ['Exists', required({ key: 'none', operator: 'Exists' }), false],
    ['DoesNotExist', required({ key: 'none', operator: 'DoesNotExist' }), true],
    ['Gt', required({ key: 'cores', operator: 'Gt', values: ['7'] }), true],
    ['Lt', required({ key: 'cores', operator: 'Lt', values: ['8'] }), false],
    ['Gt on text', required({ key: 'zone', operator: 'Gt', values: ['1'] }), false],
    ['all of a term', required({ key: 'zone', operator: 'Exists' }, { key: 'none', operator: 'Exists' }), false],
    ['a term without requirements matches nothing', required(), false],
    [
      'any of several terms, and the name of the node',
      {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: 'none', operator: 'Exists' }] },
                { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] },
              ],
            },
          },
        },
      },
      true,
    ],
  ])('%s', (_what, spec, expected) => {
    expect(acceptsNode(pod(spec), node('n', { labels: { zone: 'a', cores: '8' } }))).toBe(expected);
  });
});

describe('portsConflict', () => {
  const on = (ip: string, portNumber = 80, protocol = 'TCP') => ({ ip, protocol, port: portNumber });
  it.each([
    [on('0.0.0.0'), on('10.0.0.1'), true],
    [on('10.0.0.1'), on('10.0.0.1'), true],
    [on('10.0.0.1'), on('10.0.0.2'), false],
    [on('0.0.0.0'), on('0.0.0.0', 81), false],
    [on('0.0.0.0'), on('0.0.0.0', 80, 'UDP'), false],
  ])('%j and %j: %s', (a, b, expected) => {
    expect(portsConflict(a, b)).toBe(expected);
  });
});
