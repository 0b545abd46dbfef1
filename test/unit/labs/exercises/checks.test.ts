// What each exercise's check decides from what was read: nothing done, half done, done, and done in a way that is no answer.
// Each case lists what is missing. Here: exercises with pods, nodes and Services.

import { describe, expect, it } from 'vitest';
import type { Node, Pod, Service } from '../../../../client/types.ts';
import { chooseFile } from '../../../../labs/exercises/cni-files.ts';
import { evaluate as configError } from '../../../../labs/exercises/config-error/exercise.ts';
import { evaluate as crashLoop } from '../../../../labs/exercises/crash-loop/exercise.ts';
import { evaluate as creatingCni } from '../../../../labs/exercises/creating-cni/exercise.ts';
import { evaluate as creatingConfigmap } from '../../../../labs/exercises/creating-configmap/exercise.ts';
import { evaluate as imagePull } from '../../../../labs/exercises/image-pull/exercise.ts';
import { evaluate as nodeNotReady } from '../../../../labs/exercises/node-not-ready/exercise.ts';
import { evaluate as nodeSilent } from '../../../../labs/exercises/node-silent/exercise.ts';
import { evaluate as outOfMemory } from '../../../../labs/exercises/out-of-memory/exercise.ts';
import { evaluate as pendingResources } from '../../../../labs/exercises/pending-resources/exercise.ts';
import { evaluate as pendingSelector } from '../../../../labs/exercises/pending-selector/exercise.ts';
import { evaluate as pendingTaint } from '../../../../labs/exercises/pending-taint/exercise.ts';
import { podState } from '../../../../labs/exercises/pods.ts';
import { evaluateService } from '../../../../labs/exercises/services.ts';
import { evaluate as slowStart } from '../../../../labs/exercises/slow-start/exercise.ts';
import { evaluate as staticPod } from '../../../../labs/exercises/static-pod/exercise.ts';
import { type Container, missing, node, pod, type Shape } from './objects.ts';

describe('the state of a pod in words', () => {
  const waiting = (reason: string, restartCount: number): Pod =>
    pod('a', {
      status: {
        phase: 'Running',
        containerStatuses: [
          { name: 'main', image: '', imageID: '', ready: false, restartCount, state: { waiting: { reason } } },
        ],
      },
    });
  it.for<[string, Pod | undefined]>([
    ['there is no such pod', undefined],
    ['Pending, not Ready', pod('a')],
    ['Running, Ready', pod('a', { ready: true })],
    ['CrashLoopBackOff, 2 restarts', waiting('CrashLoopBackOff', 2)],
    ['ImagePullBackOff', waiting('ImagePullBackOff', 0)],
    [
      'Pending: 0/1 nodes are available',
      pod('a', {
        status: {
          phase: 'Pending',
          conditions: [{ type: 'PodScheduled', status: 'False', message: '0/1 nodes are available' }],
        },
      }),
    ],
    [
      'Error (exit 3), 1 restart',
      pod('a', {
        status: {
          containerStatuses: [
            {
              name: 'main',
              image: '',
              imageID: '',
              ready: false,
              restartCount: 1,
              state: { terminated: { exitCode: 3, reason: 'Error' } },
            },
          ],
        },
      }),
    ],
  ])('%s', ([expected, shown]) => expect(podState(shown)).toBe(expected));
});

describe('pods that are Pending', () => {
  const requests = (cpu: string | undefined, ready: boolean): readonly Pod[] => [
    pod('greedy', {
      ready,
      spec: ready
        ? {
            nodeName: 'n',
            containers: [{ name: 'main', ...(cpu === undefined ? {} : { resources: { requests: { cpu } } }) }],
          }
        : {},
      ...(ready || cpu === undefined ? {} : { container: { resources: { requests: { cpu } } } }),
    }),
  ];
  it.for<[string, readonly Pod[], number]>([
    ['as it was', requests('1000', false), 2],
    ['no pod', [], 3],
    ['with a request that fits', requests('10m', true), 0],
    ['without any request', requests(undefined, true), 1],
    ['with a request of nothing', requests('0', true), 1],
  ])('pending-resources: %s', ([, pods, count]) => expect(missing(pendingResources(pods))).toHaveLength(count));

  const fast = (ready: boolean, disk?: string): readonly Pod[] => [
    pod('fast', {
      ready,
      spec: { containers: [{ name: 'main' }], ...(disk === undefined ? {} : { nodeSelector: { disk } }) },
    }),
  ];
  it.for<[string, readonly Pod[], Node, number]>([
    ['as it was', fast(false, 'ssd'), node(), 2],
    ['with another label', fast(false, 'ssd'), node({}, 'True', { disk: 'hdd' }), 2],
    ['labelled', fast(true, 'ssd'), node({}, 'True', { disk: 'ssd' }), 0],
    ['with a pod that wants nothing any more', fast(true), node(), 2],
  ])('pending-selector: %s', ([, pods, now, count]) => expect(missing(pendingSelector(pods, now))).toHaveLength(count));

  const taint = { key: 'maintenance', value: 'disk', effect: 'NoSchedule' };
  const tolerant = pod('patient', {
    ready: true,
    spec: {
      containers: [{ name: 'main' }],
      tolerations: [{ key: 'maintenance', operator: 'Exists', effect: 'NoSchedule' }],
    },
  });
  it.for<[string, readonly Pod[], Node, number]>([
    ['as it was', [pod('patient')], node({ taints: [taint] }), 2],
    ['without the taint', [pod('patient', { ready: true })], node(), 0],
    ['with a pod that tolerates it', [tolerant], node({ taints: [taint] }), 0],
    ['without the taint, the pod starts', [pod('patient')], node(), 1],
  ])('pending-taint: %s', ([, pods, now, count]) => expect(missing(pendingTaint(pods, now))).toHaveLength(count));
});

describe('pods that are being created', () => {
  it.for<[string, Parameters<typeof creatingConfigmap>[0], number]>([
    ['as it was', { pods: [pod('shop')], keys: undefined, content: undefined }, 3],
    ['with another key', { pods: [pod('shop')], keys: ['color'], content: undefined }, 3],
    ['made', { pods: [pod('shop', { ready: true })], keys: ['colour'], content: 'blue' }, 0],
  ])('creating-configmap: %s', ([, facts, count]) => expect(missing(creatingConfigmap(facts))).toHaveLength(count));

  const up = pod('web', { ready: true });
  const addressed = { ...up, status: { ...up.status, podIP: '10.0.0.2' } };
  it.for<[string, Parameters<typeof creatingCni>[0], number]>([
    ['as it was', { pods: [pod('web')], subnet: '10.244.1.0' }, 3],
    ['with nonsense', { pods: [pod('web')], subnet: '10.244.1/24' }, 3],
    ['with too much', { pods: [pod('web')], subnet: '10.244.1.0/24/24' }, 3],
    ['without one', { pods: [pod('web')], subnet: undefined }, 3],
    ['mended, not yet tried again', { pods: [pod('web')], subnet: '10.244.1.0/24' }, 2],
    ['mended', { pods: [addressed], subnet: '10.244.1.0/24' }, 0],
  ])('creating-cni: %s', ([, facts, count]) => expect(missing(creatingCni(facts))).toHaveLength(count));

  it('a runtime takes the first file with the name of a configuration', () => {
    expect(chooseFile(['z.conf', '10-a.conflist.disabled', 'b.json'])).toBe('b.json');
    expect(chooseFile(['README'])).toBeUndefined();
  });

  const named = (image: string, ready: boolean): readonly Pod[] => [pod('web', { ready, container: { image } })];
  it.for<[string, Parameters<typeof imagePull>[0], number]>([
    ['as it was', { pods: named('busybox:stabel', false), images: ['docker.io/library/busybox:stable'] }, 3],
    ['mended', { pods: named('busybox:stable', true), images: ['docker.io/library/busybox:stable'] }, 0],
    ['another registry’s', { pods: named('example.com/a:1', true), images: ['example.com/a:1'] }, 0],
    ['no pod', { pods: [], images: [] }, 3],
  ])('image-pull: %s', ([, facts, count]) => expect(missing(imagePull(facts))).toHaveLength(count));

  it.for<[string, Parameters<typeof configError>[0], number]>([
    ['as it was', { pods: [pod('client')], keys: ['user'], environ: undefined }, 3],
    [
      'mended',
      { pods: [pod('client', { ready: true })], keys: ['user', 'password'], environ: ['DATABASE_PASSWORD=x'] },
      0,
    ],
    ['without the variable', { pods: [pod('client', { ready: true })], keys: ['user'], environ: ['A=b'] }, 2],
  ])('config-error: %s', ([, facts, count]) => expect(missing(configError(facts))).toHaveLength(count));
  it('config-error does not show the password', () => {
    const facts = { pods: [], keys: ['password'], environ: ['DATABASE_PASSWORD=open-sesame'] };
    expect(JSON.stringify(configError(facts))).not.toContain('sesame');
  });
});

describe('pods that crash', () => {
  const program = { command: ['sh', '-c', 'if test -z "$GREETING"; then exit 3; fi'] };
  it.for<[string, Parameters<typeof crashLoop>[0], number]>([
    ['as it was', { pods: [pod('greeter', { container: program })], environ: undefined }, 2],
    ['mended', { pods: [pod('greeter', { ready: true, container: program })], environ: ['GREETING=hello'] }, 0],
    [
      'with an empty greeting',
      { pods: [pod('greeter', { ready: true, container: program })], environ: ['GREETING='] },
      1,
    ],
    [
      'with another program',
      { pods: [pod('greeter', { ready: true, container: { command: ['sleep'] } })], environ: [] },
      2,
    ],
  ])('crash-loop: %s', ([, facts, count]) => expect(missing(crashLoop(facts))).toHaveLength(count));

  const MI = 1024 * 1024;
  it.for<[string, Parameters<typeof outOfMemory>[0], number]>([
    ['as it was', { pods: [pod('hungry')], limit: undefined }, 2],
    ['still too little', { pods: [pod('hungry')], limit: 32 * MI }, 2],
    ['mended', { pods: [pod('hungry', { ready: true })], limit: 64 * MI }, 0],
    ['without a limit', { pods: [pod('hungry', { ready: true })], limit: 'none' }, 1],
  ])('out-of-memory: %s', ([, facts, count]) => expect(missing(outOfMemory(facts))).toHaveLength(count));

  const probe = (failureThreshold: number, initialDelaySeconds = 0): NonNullable<Container['livenessProbe']> => ({
    periodSeconds: 1,
    failureThreshold,
    initialDelaySeconds,
  });
  it.for<[string, Shape, number]>([
    ['as it was', { container: { livenessProbe: probe(2) } }, 3],
    ['mended', { ready: true, container: { livenessProbe: probe(2), startupProbe: probe(30) } }, 0],
    ['with an impatient startup probe', { container: { livenessProbe: probe(2), startupProbe: probe(3) } }, 3],
    ['with a patient liveness probe', { ready: true, container: { livenessProbe: probe(30) } }, 2],
    ['with a delay', { ready: true, container: { livenessProbe: probe(2, 10) } }, 2],
    ['without a liveness probe', { ready: true, container: { startupProbe: probe(30) } }, 1],
  ])('slow-start: %s', ([, shape, count]) => expect(missing(slowStart([pod('slow', shape)]))).toHaveLength(count));
});

describe('nodes', () => {
  const cni = { files: ['10-nodelet.conflist'], chosen: '10-nodelet.conflist' };
  const none = { files: ['10-nodelet.conflist.disabled'], chosen: undefined };
  it.for<[string, Parameters<typeof nodeNotReady>[0], number]>([
    ['as it was', { pods: [pod('web')], node: node({}, 'False'), cni: none }, 3],
    ['renamed', { pods: [pod('web')], node: node({}, 'False'), cni }, 2],
    ['mended', { pods: [pod('web', { ready: true })], node: node(), cni }, 0],
  ])('node-not-ready: %s', ([, facts, count]) => expect(missing(nodeNotReady(facts))).toHaveLength(count));

  it.for<[string, Parameters<typeof nodeSilent>[0], number]>([
    ['just stopped', { agent: { pid: 1, state: 'T' }, leaseSeconds: 5, node: node() }, 1],
    ['given up', { agent: { pid: 1, state: 'T' }, leaseSeconds: 50, node: node({}, 'Unknown') }, 3],
    ['going on', { agent: { pid: 1, state: 'S' }, leaseSeconds: 1, node: node() }, 0],
    ['dead', { agent: undefined, leaseSeconds: 1, node: node() }, 1],
    ['a zombie', { agent: { pid: 1, state: 'Z' }, leaseSeconds: 1, node: node() }, 1],
  ])('node-silent: %s', ([, facts, count]) => expect(missing(nodeSilent(facts))).toHaveLength(count));

  const mirror = pod('static-n', { ready: true, annotations: { 'kubernetes.io/config.mirror': 'x' } });
  it.for<[string, Parameters<typeof staticPod>[0], number]>([
    ['as it was', { nodeName: 'n', staticPodPath: undefined, manifests: [], pods: [], container: undefined }, 5],
    ['configured', { nodeName: 'n', staticPodPath: '/m', manifests: ['a.yaml'], pods: [], container: undefined }, 3],
    ['done', { nodeName: 'n', staticPodPath: '/m', manifests: ['a.yaml'], pods: [mirror], container: 'c' }, 0],
    [
      'an ordinary pod of that name',
      {
        nodeName: 'n',
        staticPodPath: '/m',
        manifests: ['a.yaml'],
        pods: [pod('static-n', { ready: true })],
        container: 'c',
      },
      1,
    ],
  ])('static-pod: %s', ([, facts, count]) => expect(missing(staticPod(facts))).toHaveLength(count));
});

describe('Services', () => {
  const service = (selector: Record<string, string>, targetPort: number | string): Service => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'shop', uid: 'u', resourceVersion: '1' },
    spec: { selector, ports: [{ port: 80, targetPort }] },
  });
  const web = (app: string, ready = true, deleted = false): Pod =>
    pod('web', {
      ready,
      deleted,
      labels: { app },
      container: { ports: [{ name: 'http', containerPort: 8080 }] },
    });
  const socket = (port: number, loopback = false) => new Map([['web', [{ protocol: 'TCP', port, loopback }]]]);
  it.for<[string, Parameters<typeof evaluateService>[1], number]>([
    ['none', { service: undefined, pods: [web('shop')], listening: socket(8080) }, 3],
    [
      'that selects nothing',
      { service: service({ app: 'shop' }, 'http'), pods: [web('web')], listening: socket(8080) },
      3,
    ],
    ['without a selector', { service: service({}, 'http'), pods: [web('web')], listening: socket(8080) }, 3],
    [
      'of a pod that is not Ready',
      { service: service({ app: 'shop' }, 'http'), pods: [web('shop', false)], listening: socket(8080) },
      1,
    ],
    [
      'of a pod that is being deleted',
      { service: service({ app: 'shop' }, 'http'), pods: [web('shop', true, true)], listening: socket(8080) },
      3,
    ],
    ['to another port', { service: service({ app: 'shop' }, 80), pods: [web('shop')], listening: socket(8080) }, 1],
    [
      'to a port of no name',
      { service: service({ app: 'shop' }, 'web'), pods: [web('shop')], listening: socket(8080) },
      1,
    ],
    [
      'to a port on loopback',
      { service: service({ app: 'shop' }, 'http'), pods: [web('shop')], listening: socket(8080, true) },
      1,
    ],
    ['by name', { service: service({ app: 'shop' }, 'http'), pods: [web('shop')], listening: socket(8080) }, 0],
    ['by number', { service: service({ app: 'shop' }, 8080), pods: [web('shop')], listening: socket(8080) }, 0],
  ])('%s', ([, facts, count]) => expect(missing(evaluateService('shop', facts))).toHaveLength(count));
});
