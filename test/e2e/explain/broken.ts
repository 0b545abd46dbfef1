// Pods of which each is broken in one way, for the test of `nodelet explain`: manifests only. All of them are made at once.

import type { PodSpec } from '../../../client/types.ts';
import { FOREVER, shellPod } from '../agent/harness.ts';

/** On the node's network and without a token: what a sandbox costs most is left out where it does not matter. */
export const bare = (name: string, script: string, spec: Partial<PodSpec> = {}, container: object = {}): object =>
  shellPod(name, script, { hostNetwork: true, automountServiceAccountToken: false, ...spec }, container);

const env = (source: object): object => ({ env: [{ name: 'WANTED', valueFrom: source }] });
const mounts = { volumeMounts: [{ name: 'data', mountPath: '/data' }] };
const volume = (source: object): object => ({ volumes: [{ name: 'data', ...source }] });

const scarcePort = { ports: [{ containerPort: 28_472, hostPort: 28_472 }] };
const hostPort = { ports: [{ containerPort: 80, hostPort: 28_471 }] };

/** Pods that no node takes, and one that has what another one wants. */
export const pending: readonly object[] = [
  shellPod('too-big', FOREVER, {}, { resources: { requests: { cpu: '1000', memory: '1Ki' } } }),
  shellPod('selective', FOREVER, { nodeSelector: { disk: 'ssd' } }),
  shellPod('lonely', FOREVER, {
    affinity: {
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'company' } } },
        ],
      },
    },
  }),
  shellPod('spread', FOREVER, {
    topologySpreadConstraints: [
      { topologyKey: 'explain/zone', maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule', labelSelector: {} },
    ],
  }),
  shellPod('gated', FOREVER, { schedulingGates: [{ name: 'example.com/approval' }] }),
  shellPod('unscheduled', FOREVER, { schedulerName: 'absent' }),
  shellPod('port-first', FOREVER, {}, hostPort),
  shellPod('port-second', FOREVER, {}, hostPort),
  shellPod('claimless', FOREVER, volume({ persistentVolumeClaim: { claimName: 'nowhere' } }), mounts),
  shellPod('unbound', FOREVER, volume({ persistentVolumeClaim: { claimName: 'classless' } }), mounts),
];

export const classless = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'classless' },
  spec: { storageClassName: '', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
};

export const settings = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'settings' },
  data: { colour: 'blue' },
};

/** Pods that stay in ContainerCreating. */
export const creating: readonly object[] = [
  bare('no-configmap', FOREVER, volume({ configMap: { name: 'setings' } }), mounts),
  bare('no-secret', FOREVER, volume({ secret: { secretName: 'password' } }), mounts),
  bare('no-key', FOREVER, volume({ configMap: { name: 'settings', items: [{ key: 'color', path: 'c' }] } }), mounts),
  bare('no-directory', FOREVER, volume({ hostPath: { path: '/nonexistent-directory', type: 'Directory' } }), mounts),
  bare('no-handler', FOREVER, { runtimeClassName: 'explain-odd' }),
  bare('no-driver', FOREVER, volume({ csi: { driver: 'none.example.com' } }), mounts),
];

/** A class of which the runtime does not have the handler. */
export const oddClass = {
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  metadata: { name: 'explain-odd' },
  handler: 'no-such-handler',
};

/** Pods whose container cannot be configured, created or started. */
export const starting: readonly object[] = [
  bare('env-configmap', FOREVER, {}, env({ configMapKeyRef: { name: 'setings', key: 'colour' } })),
  bare('env-key', FOREVER, {}, env({ configMapKeyRef: { name: 'settings', key: 'color' } })),
  bare('env-secret', FOREVER, {}, env({ secretKeyRef: { name: 'password', key: 'value' } })),
  bare('root-user', FOREVER, {}, { securityContext: { runAsNonRoot: true } }),
  bare('no-command', FOREVER, {}, { command: ['no-such-program', '--flag'] }),
  bare('no-permission', FOREVER, {}, { command: ['/etc/passwd'] }),
  bare('no-directory-to-work', FOREVER, {}, { workingDir: '/etc/passwd' }),
  bare('file-over-directory', FOREVER, volume({ hostPath: { path: '/etc/hosts', type: 'File' } }), {
    volumeMounts: [{ name: 'data', mountPath: '/etc' }],
  }),
  bare(
    'below-read-only',
    FOREVER,
    {
      volumes: [
        { name: 'data', emptyDir: {} },
        { name: 'more', emptyDir: {} },
      ],
    },
    {
      volumeMounts: [
        { name: 'data', mountPath: '/data', readOnly: true },
        { name: 'more', mountPath: '/data/more' },
      ],
    },
  ),
  bare('no-memory', FOREVER, {}, { resources: { limits: { memory: '8Ki' } } }),
  bare(
    'no-seccomp',
    FOREVER,
    {},
    {
      securityContext: { seccompProfile: { type: 'Localhost', localhostProfile: 'none.json' } },
    },
  ),
];

const labelled = (pod: object): object => ({ ...pod, metadata: { name: 'unready', labels: { app: 'unready' } } });
const liveness = {
  exec: { command: ['sh', '-c', 'echo the cache is cold; exit 1'] },
  periodSeconds: 1,
  // One that took longer would fail for another reason.
  timeoutSeconds: 60,
};

/** Pods whose container ends again and again. */
export const crashing: readonly object[] = [
  bare('exits', 'echo "cannot open the database"; exit 3'),
  bare('completes', 'echo done'),
  bare('segfaults', 'sleep 100 & kill -SEGV $!; wait $!'),
  bare('oom', 'x=a; while :; do x=$x$x$x$x; done', {}, { resources: { limits: { memory: '16Mi' } } }),
  bare('unhealthy', FOREVER, {}, { livenessProbe: { ...liveness, failureThreshold: 1 } }),
  bare('slow-start', FOREVER, {}, { startupProbe: { ...liveness, failureThreshold: 1 } }),
  bare('hook', FOREVER, {}, { lifecycle: { postStart: { exec: { command: ['sh', '-c', 'exit 7'] } } } }),
  bare(
    'hook-ends-late',
    'trap "" TERM; while :; do sleep 1000 & wait $!; done',
    { terminationGracePeriodSeconds: 3600 },
    { lifecycle: { postStart: { exec: { command: ['sh', '-c', 'exit 8'] } } } },
  ),
  bare('init-runs', FOREVER, {
    initContainers: [{ name: 'prepare', image: 'busybox:stable', command: ['sh', '-c', FOREVER] }],
  }),
  bare('init-fails', FOREVER, {
    initContainers: [{ name: 'prepare', image: 'busybox:stable', command: ['sh', '-c', 'echo no schema; exit 4'] }],
  }),
];

/** Pods that run, or have run, and are not Ready. */
export const unready: readonly object[] = [
  shellPod('refused', FOREVER, {}, { readinessProbe: { httpGet: { port: 8080, path: '/ready' }, periodSeconds: 1 } }),
  labelled(bare('unready', FOREVER, {}, { readinessProbe: { ...liveness, periodSeconds: 1 } })),
  bare('starts-long', FOREVER, {}, { startupProbe: { ...liveness, failureThreshold: 1000 } }),
  bare('readiness-gate', FOREVER, { readinessGates: [{ conditionType: 'example.com/balancer' }] }),
];

/** Pods that ended. `nodeName` puts them on the node without a scheduler. */
export const ended = (nodeName: string): readonly object[] => [
  bare('out-of-cpu', FOREVER, { nodeName }, { resources: { requests: { cpu: '1000' } } }),
  bare('wrong-node', FOREVER, { nodeName, nodeSelector: { disk: 'ssd' } }),
  bare('wrong-zone', FOREVER, {
    nodeName,
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: 'explain/zone', operator: 'In', values: ['moon', 'mars'] }] },
          ],
        },
      },
    },
  }),
  bare(
    'confined',
    FOREVER,
    { nodeName },
    {
      securityContext: { appArmorProfile: { type: 'Localhost', localhostProfile: 'explain-none' } },
    },
  ),
  bare('late', FOREVER, { activeDeadlineSeconds: 1 }),
  bare('gives-up', 'echo "no licence" >&2; exit 5', { restartPolicy: 'Never' }),
  bare('finished', 'echo all done', { restartPolicy: 'Never' }),
];

/** Only SIGKILL ends it. */
const deaf = (name: string, container: object = {}): object =>
  bare(
    name,
    'trap "" TERM; while :; do sleep 1000 & wait $!; done',
    { terminationGracePeriodSeconds: 3600 },
    container,
  );

/** Pods to delete: they take their time. */
export const stubborn: readonly object[] = [
  {
    ...bare('finalized', FOREVER),
    metadata: { name: 'finalized', finalizers: ['example.com/backup'] },
  },
  bare(
    'busy-volume',
    FOREVER,
    { volumes: [{ name: 'cache', emptyDir: { medium: 'Memory' } }] },
    { volumeMounts: [{ name: 'cache', mountPath: '/cache' }] },
  ),
  deaf('ignores-term'),
  deaf('outranked', scarcePort),
  bare(
    'pre-stop',
    FOREVER,
    { terminationGracePeriodSeconds: 3600 },
    {
      lifecycle: { preStop: { exec: { command: ['sleep', '3000'] } } },
    },
  ),
];

/** It takes the port of "outranked". */
export const highClass = {
  apiVersion: 'scheduling.k8s.io/v1',
  kind: 'PriorityClass',
  metadata: { name: 'explain-high' },
  value: 1000,
};
export const outranker = bare('outranker', FOREVER, { priorityClassName: highClass.metadata.name }, scarcePort);

export const healthy = bare('healthy', FOREVER);

/** Deleted while the runtime does not answer. */
export const hung = bare('hung', FOREVER);

/** Deleted by force: it would go on for an hour. */
export const forced = deaf('forced');

/** It wants to share its mounts with a private mount of the node. */
export const unshared = (path: string): object =>
  bare('private-mount', FOREVER, volume({ hostPath: { path } }), {
    securityContext: { privileged: true },
    volumeMounts: [{ name: 'data', mountPath: '/data', mountPropagation: 'Bidirectional' }],
  });

/** The one takes most of the node, and the other, which is critical, takes its place. */
export const victim = (nodeName: string, cpu: string): object =>
  bare('preempted', FOREVER, { nodeName }, { resources: { requests: { cpu } } });
export const critical = (nodeName: string, cpu: string): object =>
  bare(
    'critical',
    FOREVER,
    { nodeName, priorityClassName: 'system-node-critical' },
    { resources: { requests: { cpu } } },
  );

const service = (name: string, selector: object, targetPort: number | string, more = {}): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { selector, ports: [{ port: 80, targetPort }], ...more },
});

/** A pod that serves on port 8080, and on 8081 for itself alone. */
export const web = {
  ...shellPod(
    'web',
    'httpd -p 8080; httpd -p 127.0.0.1:8081; trap "exit 0" TERM; sleep 100000 & wait $!',
    {},
    {
      ports: [{ name: 'http', containerPort: 8080 }],
    },
  ),
  metadata: { name: 'web', labels: { app: 'web', tier: 'front' } },
};

export const services: readonly object[] = [
  // Without an address of its own, since the lab has no proxy for one.
  service('good', { app: 'web' }, 'http', { clusterIP: 'None' }),
  service('misspelt', { app: 'web', tier: 'font' }, 8080),
  service('wrong-name', { app: 'web' }, 'https'),
  service('wrong-port', { app: 'web' }, 9090),
  service('wrong-protocol', { app: 'web' }, 8080, { ports: [{ port: 80, protocol: 'UDP', targetPort: 8080 }] }),
  service('loopback', { app: 'web' }, 8081),
  service('unready', { app: 'unready' }, 8080),
  service('elsewhere', {}, 8080, { type: 'ExternalName', externalName: 'web.example.com', ports: undefined }),
];
