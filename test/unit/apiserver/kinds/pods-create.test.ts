import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import { podOf } from '../../../../apiserver/kinds/shapes.ts';
import { create, lookupOf, row } from './support.ts';

const pods = row('pods');
type Fields = Record<string, unknown>;

function specOf(spec: Fields, metadata: Fields = {}, lookup = lookupOf()) {
  const { object } = create(
    pods,
    { metadata, spec: { containers: [{ name: 'web', image: 'nginx' }], ...spec } },
    lookup,
  );
  return podOf(object).spec ?? {};
}

const stored = (group: string, plural: string, kind: string, name: string, fields: Fields) => ({
  group,
  plural,
  object: { apiVersion: 'v1', kind, metadata: { name }, ...fields } satisfies KubeObject,
});

describe('defaults', () => {
  it('a bare pod gets those of the real server', () => {
    expect(specOf({ automountServiceAccountToken: false })).toEqual({
      automountServiceAccountToken: false,
      containers: [
        {
          name: 'web',
          image: 'nginx',
          imagePullPolicy: 'Always',
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
          resources: {},
        },
      ],
      dnsPolicy: 'ClusterFirst',
      enableServiceLinks: true,
      preemptionPolicy: 'PreemptLowerPriority',
      priority: 0,
      restartPolicy: 'Always',
      schedulerName: 'default-scheduler',
      securityContext: {},
      serviceAccount: 'default',
      serviceAccountName: 'default',
      terminationGracePeriodSeconds: 30,
      tolerations: [
        { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
        { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
      ],
    });
  });

  it('a negative grace period is one second', () => {
    expect(specOf({ terminationGracePeriodSeconds: -1 })).toMatchObject({ terminationGracePeriodSeconds: 1 });
    expect(specOf({ terminationGracePeriodSeconds: 0 })).toMatchObject({ terminationGracePeriodSeconds: 0 });
  });

  it.each([
    ['nginx', 'Always'],
    ['nginx:latest', 'Always'],
    ['nginx:1.27', 'IfNotPresent'],
    ['registry:5000/nginx', 'Always'],
    ['registry:5000/nginx:1', 'IfNotPresent'],
    ['nginx@sha256:0123', 'IfNotPresent'],
  ])('the image %s is pulled %s', (image, policy) => {
    expect(specOf({ containers: [{ name: 'web', image }] }).containers?.[0]?.imagePullPolicy).toBe(policy);
  });

  it('probes, ports, references, volumes and requests are filled in', () => {
    const spec = specOf({
      hostNetwork: true,
      automountServiceAccountToken: false,
      volumes: [{ name: 'a' }, { name: 'b', secret: { secretName: 's' } }, { name: 'c', hostPath: { path: '/x' } }],
      containers: [
        {
          name: 'web',
          image: 'a:1',
          ports: [{ containerPort: 80 }],
          livenessProbe: { httpGet: { port: 80 } },
          env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
          resources: { limits: { cpu: 1, memory: '1024Mi' }, requests: { cpu: '100m' } },
        },
      ],
    });
    expect(spec.volumes).toEqual([
      { name: 'a', emptyDir: {} },
      { name: 'b', secret: { secretName: 's', defaultMode: 420 } },
      { name: 'c', hostPath: { path: '/x', type: '' } },
    ]);
    expect(spec.containers?.[0]).toMatchObject({
      ports: [{ containerPort: 80, hostPort: 80, protocol: 'TCP' }],
      livenessProbe: {
        httpGet: { port: 80, path: '/', scheme: 'HTTP' },
        timeoutSeconds: 1,
        periodSeconds: 10,
        successThreshold: 1,
        failureThreshold: 3,
      },
      env: [{ name: 'A', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } }],
      resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '100m', memory: '1Gi' } },
    });
  });

  it('given twice they change nothing', () => {
    const { object } = create(pods, { spec: { containers: [{ name: 'web', image: 'a' }] } });
    const again = structuredClone(object);
    pods.strategy.applyDefaults?.(again);
    expect(again).toEqual(object);
  });
});

describe('the class of service', () => {
  it.each<[string, Fields, string]>([
    ['BestEffort without requests', {}, 'BestEffort'],
    ['Burstable with a request', { requests: { cpu: '1' } }, 'Burstable'],
    ['Guaranteed when limits are requests', { limits: { cpu: '1', memory: '1Gi' } }, 'Guaranteed'],
    ['Burstable without a memory limit', { limits: { cpu: '1' } }, 'Burstable'],
    ['Burstable when requests are lower', { limits: { cpu: '2', memory: '1Gi' }, requests: { cpu: '1' } }, 'Burstable'],
  ])('is %s', (_name, resources, expected) => {
    const { object } = create(pods, { spec: { containers: [{ name: 'web', image: 'a', resources }] } });
    expect(podOf(object).status).toEqual({ phase: 'Pending', qosClass: expected });
  });
});

describe('the service account', () => {
  it('brings a token volume, mounted in every container that has none there', () => {
    const path = '/var/run/secrets/kubernetes.io/serviceaccount';
    const spec = specOf({
      volumes: [{ name: 'own', emptyDir: {} }],
      containers: [
        { name: 'web', image: 'a' },
        { name: 'b', image: 'a', volumeMounts: [{ name: 'own', mountPath: path }] },
      ],
    });
    const volume = spec.volumes?.at(-1);
    expect(volume?.name).toMatch(/^kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
    expect(volume?.projected?.sources?.[0]).toEqual({
      serviceAccountToken: { expirationSeconds: 3607, path: 'token' },
    });
    expect(spec.containers?.map((one) => one.volumeMounts)).toEqual([
      [{ name: volume?.name, mountPath: path, readOnly: true }],
      [{ name: 'own', mountPath: path }],
    ]);
  });

  it('brings its pull secrets to a pod without any', () => {
    const lookup = lookupOf(
      stored('', 'serviceaccounts', 'ServiceAccount', 'builder', {
        imagePullSecrets: [{ name: 'registry' }],
        automountServiceAccountToken: false,
      }),
    );
    const spec = specOf({ serviceAccountName: 'builder' }, {}, lookup);
    expect(spec.imagePullSecrets).toEqual([{ name: 'registry' }]);
    expect(spec.volumes).toBeUndefined();
    expect(
      specOf({ serviceAccountName: 'builder', imagePullSecrets: [{ name: 'own' }] }, {}, lookup).imagePullSecrets,
    ).toEqual([{ name: 'own' }]);
  });

  it('must exist', () => {
    expect(() => specOf({ serviceAccountName: 'nobody' })).toThrow(
      'pods "web" is forbidden: error looking up service account demo/nobody: serviceaccount "nobody" not found',
    );
  });

  it('is not for mirror pods', () => {
    const metadata = { annotations: { 'kubernetes.io/config.mirror': 'x' } };
    expect(specOf({ nodeName: 'n1' }, metadata).volumes).toBeUndefined();
    expect(() => specOf({ nodeName: 'n1', serviceAccountName: 'default' }, metadata)).toThrow(
      'a mirror pod may not reference service accounts',
    );
  });
});

describe('classes', () => {
  const priorities = lookupOf(
    stored('scheduling.k8s.io', 'priorityclasses', 'PriorityClass', 'high', { value: 1000, preemptionPolicy: 'Never' }),
  );
  it('a priority class gives its value and policy', () => {
    expect(specOf({ priorityClassName: 'high' }, {}, priorities)).toMatchObject({
      priority: 1000,
      preemptionPolicy: 'Never',
    });
    expect(specOf({ priorityClassName: 'system-node-critical' })).toMatchObject({ priority: 2_000_001_000 });
    expect(() => specOf({ priorityClassName: 'none' })).toThrow('no PriorityClass with name none was found');
    expect(() => specOf({ priorityClassName: 'high', priority: 5 }, {}, priorities)).toThrow(
      /must not be provided in pod spec/,
    );
  });

  it('a global default holds for pods without a class', () => {
    const lookup = lookupOf(
      stored('scheduling.k8s.io', 'priorityclasses', 'PriorityClass', 'usual', { value: 7, globalDefault: true }),
    );
    expect(specOf({}, {}, lookup)).toMatchObject({ priorityClassName: 'usual', priority: 7 });
  });

  it('a runtime class brings overhead and where it runs', () => {
    const lookup = lookupOf(
      stored('node.k8s.io', 'runtimeclasses', 'RuntimeClass', 'vm', {
        handler: 'kata',
        overhead: { podFixed: { memory: '100Mi' } },
        scheduling: { nodeSelector: { vm: 'yes' }, tolerations: [{ key: 'vm', operator: 'Exists' }] },
      }),
    );
    const spec = specOf({ runtimeClassName: 'vm', nodeSelector: { a: 'b' } }, {}, lookup);
    expect(spec).toMatchObject({ overhead: { memory: '100Mi' }, nodeSelector: { a: 'b', vm: 'yes' } });
    expect(spec.tolerations?.[2], 'after those that every pod gets').toEqual({ key: 'vm', operator: 'Exists' });
    expect(() => specOf({ runtimeClassName: 'gone' })).toThrow('pod rejected: RuntimeClass "gone" not found');
    expect(() => specOf({ overhead: { cpu: '1' } })).toThrow(/Pod Overhead set without corresponding RuntimeClass/);
    expect(() => specOf({ runtimeClassName: 'vm', nodeSelector: { vm: 'no' } }, {}, lookup)).toThrow(
      /is forbidden: conflict: /,
    );
  });
});

describe('grace', () => {
  const grace = (fields: Fields, requested?: number): number | undefined =>
    pods.strategy.gracePeriodSeconds?.(
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, ...fields },
      requested,
    );
  it.each<[string, Fields, number | undefined, number]>([
    ['a pod on a node gets its own', { spec: { nodeName: 'n', terminationGracePeriodSeconds: 7 } }, undefined, 7],
    ['the caller may choose', { spec: { nodeName: 'n', terminationGracePeriodSeconds: 7 } }, 3, 3],
    ['the caller may ask for none', { spec: { nodeName: 'n' } }, 0, 0],
    ['a pod without a node needs none', { spec: {} }, 30, 0],
    ['a pod that has ended needs none', { spec: { nodeName: 'n' }, status: { phase: 'Failed' } }, 30, 0],
    ['a negative one means one second', { spec: { nodeName: 'n' } }, -1, 1],
  ])('%s', (_name, fields, requested, expected) => {
    expect(grace(fields, requested)).toBe(expected);
  });
});
