import type { PodSpec, Taint, Toleration } from 'kubernetes-types/core/v1';
import { describe, expect, it } from 'vitest';
import { tolerates } from '../../../../client/selectors.ts';
import type { Node, Pod } from '../../../../client/types.ts';
import { acceptsNode } from '../../../../controlplane/scheduler/affinity.ts';
import { podRequests, portsConflict } from '../../../../controlplane/scheduler/requests.ts';

function pod(spec: Partial<PodSpec> = {}, name = 'p'): Pod {
  return {
    metadata: { name, namespace: 'demo', uid: name, resourceVersion: '1' },
    spec: { containers: [{ name: 'c' }], ...spec },
  };
}

function node(name: string, labels: Record<string, string>): Node {
  return { metadata: { name, uid: name, resourceVersion: '1', labels } };
}

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
    expect(acceptsNode(pod(spec), node('n', { zone: 'a', cores: '8' }))).toBe(expected);
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
