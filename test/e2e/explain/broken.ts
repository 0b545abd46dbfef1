// Pods of which each is broken in one way, for the test of `nodelet explain`: manifests only. All of them are made at once.

import { FOREVER, shellPod } from '../agent/harness.ts';

const env = (source: object): object => ({ env: [{ name: 'WANTED', valueFrom: source }] });
const mounts = { volumeMounts: [{ name: 'data', mountPath: '/data' }] };
const volume = (source: object): object => ({ volumes: [{ name: 'data', ...source }] });

/** Port 1 of the loopback address: no program listens there: connections are refused at once. */
export const CLOSED_REGISTRY = '127.0.0.1:1';

const hostPort = { ports: [{ containerPort: 80, hostPort: 28_471 }] };

/** Pods that no node takes, and one that has what another one wants. */
export const pending: readonly object[] = [
  shellPod('too-big', FOREVER, {}, { resources: { requests: { cpu: '1000', memory: '1Ki' } } }),
  shellPod('selective', FOREVER, { nodeSelector: { disk: 'ssd' } }),
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
  shellPod('no-configmap', FOREVER, volume({ configMap: { name: 'setings' } }), mounts),
  shellPod('no-secret', FOREVER, volume({ secret: { secretName: 'password' } }), mounts),
  shellPod(
    'no-key',
    FOREVER,
    volume({ configMap: { name: 'settings', items: [{ key: 'color', path: 'c' }] } }),
    mounts,
  ),
  shellPod(
    'no-directory',
    FOREVER,
    volume({ hostPath: { path: '/nonexistent-directory', type: 'Directory' } }),
    mounts,
  ),
  shellPod('no-handler', FOREVER, { runtimeClassName: 'explain-odd' }),
  shellPod('no-driver', FOREVER, volume({ csi: { driver: 'none.example.com' } }), mounts),
];

/** A class of which the runtime does not have the handler. */
export const oddClass = {
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  metadata: { name: 'explain-odd' },
  handler: 'no-such-handler',
};

/** Pods whose image cannot be had. `registry`: answers by HTTP, on loopback. `plain`: the same on another address. */
export const images = (registry: string, plain: string): readonly object[] => [
  shellPod('forbidden', FOREVER, {}, { image: `${registry}/private/app:1` }),
  shellPod('no-tag', FOREVER, {}, { image: `${registry}/team/app:none` }),
  shellPod('plain-http', FOREVER, {}, { image: `${plain}/team/app:1` }),
  shellPod('bad-name', FOREVER, {}, { image: 'Busybox:Stable!' }),
  shellPod('never', FOREVER, {}, { image: 'example.com/none:1', imagePullPolicy: 'Never' }),
  shellPod('no-dns', FOREVER, {}, { image: 'registry.invalid/team/app:1' }),
  shellPod('no-tcp', FOREVER, {}, { image: `${CLOSED_REGISTRY}/team/app:1` }),
];

/** Pods whose container cannot be configured, created or started. */
export const starting: readonly object[] = [
  shellPod('env-configmap', FOREVER, {}, env({ configMapKeyRef: { name: 'setings', key: 'colour' } })),
  shellPod('env-key', FOREVER, {}, env({ configMapKeyRef: { name: 'settings', key: 'color' } })),
  shellPod('env-secret', FOREVER, {}, env({ secretKeyRef: { name: 'password', key: 'value' } })),
  shellPod('root-user', FOREVER, {}, { securityContext: { runAsNonRoot: true } }),
  shellPod('no-command', FOREVER, {}, { command: ['no-such-program', '--flag'] }),
  shellPod('no-permission', FOREVER, {}, { command: ['/etc/passwd'] }),
  shellPod(
    'no-seccomp',
    FOREVER,
    {},
    {
      securityContext: { seccompProfile: { type: 'Localhost', localhostProfile: 'none.json' } },
    },
  ),
];

const labelled = (pod: object): object => ({ ...pod, metadata: { name: 'unready', labels: { app: 'unready' } } });
const liveness = { exec: { command: ['sh', '-c', 'echo the cache is cold; exit 1'] }, periodSeconds: 1 };

/** Pods whose container ends again and again. */
export const crashing: readonly object[] = [
  shellPod('exits', 'echo "cannot open the database"; exit 3'),
  shellPod('completes', 'echo done'),
  shellPod('segfaults', 'sleep 100 & kill -SEGV $!; wait $!'),
  shellPod('oom', 'x=a; while :; do x=$x$x$x$x; done', {}, { resources: { limits: { memory: '16Mi' } } }),
  shellPod('unhealthy', FOREVER, {}, { livenessProbe: { ...liveness, failureThreshold: 1 } }),
  shellPod('hook', FOREVER, {}, { lifecycle: { postStart: { exec: { command: ['sh', '-c', 'exit 7'] } } } }),
  shellPod('init-fails', FOREVER, {
    initContainers: [{ name: 'prepare', image: 'busybox:stable', command: ['sh', '-c', 'echo no schema; exit 4'] }],
  }),
];

/** Pods that run, or have run, and are not Ready. */
export const unready: readonly object[] = [
  shellPod('refused', FOREVER, {}, { readinessProbe: { httpGet: { port: 8080, path: '/ready' }, periodSeconds: 1 } }),
  labelled(shellPod('unready', FOREVER, {}, { readinessProbe: { ...liveness, periodSeconds: 1 } })),
  shellPod('starts-long', FOREVER, {}, { startupProbe: { ...liveness, failureThreshold: 1000 } }),
  shellPod('readiness-gate', FOREVER, { readinessGates: [{ conditionType: 'example.com/balancer' }] }),
];

/** Pods that ended. `nodeName` puts them on the node without a scheduler. */
export const ended = (nodeName: string): readonly object[] => [
  shellPod('out-of-cpu', FOREVER, { nodeName }, { resources: { requests: { cpu: '1000' } } }),
  shellPod('wrong-node', FOREVER, { nodeName, nodeSelector: { disk: 'ssd' } }),
  shellPod('late', FOREVER, { activeDeadlineSeconds: 1 }),
  shellPod('gives-up', 'echo "no licence" >&2; exit 5', { restartPolicy: 'Never' }),
  shellPod('finished', 'echo all done', { restartPolicy: 'Never' }),
];

/** Pods to delete: they take their time. */
export const stubborn: readonly object[] = [
  {
    ...shellPod('finalized', FOREVER),
    metadata: { name: 'finalized', finalizers: ['example.com/backup'] },
  },
  shellPod(
    'busy-volume',
    FOREVER,
    { volumes: [{ name: 'cache', emptyDir: { medium: 'Memory' } }] },
    { volumeMounts: [{ name: 'cache', mountPath: '/cache' }] },
  ),
  shellPod('ignores-term', 'trap "" TERM; while :; do sleep 1000 & wait $!; done', {
    terminationGracePeriodSeconds: 3600,
  }),
  shellPod(
    'pre-stop',
    FOREVER,
    { terminationGracePeriodSeconds: 3600 },
    {
      lifecycle: { preStop: { exec: { command: ['sleep', '3000'] } } },
    },
  ),
];

export const healthy = shellPod('healthy', FOREVER);

const service = (name: string, selector: object, targetPort: number | string): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { selector, ports: [{ port: 80, targetPort }] },
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
  service('good', { app: 'web' }, 'http'),
  service('misspelt', { app: 'web', tier: 'font' }, 8080),
  service('wrong-name', { app: 'web' }, 'https'),
  service('wrong-port', { app: 'web' }, 9090),
  service('loopback', { app: 'web' }, 8081),
  service('unready', { app: 'unready' }, 8080),
];
