// The uid of a static pod is the one that a kubelet 1.34.2 gives it. The uids are recorded: the first from a kubelet that
// ran the pod, the others from the same code of it (pkg/kubelet/config, with the defaults of its API).

import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { staticPod } from '../../../../agent/sources/defaults.ts';

function uidOf(manifest: string, nodeName: string, location: string, source: 'file' | 'http' = 'file'): string {
  return staticPod(parse(manifest), { source, location, nodeName, seen: '2026-01-01T00:00:00Z' }).metadata.uid;
}

const SMALL = `
apiVersion: v1
kind: Pod
metadata:
  name: static
  labels: {app: static}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: busybox:stable
    command: [sleep, '10000']
    resources: {requests: {cpu: 10m, memory: 16Mi}}
`;

/** As kubeadm writes it. */
const API_SERVER = `
apiVersion: v1
kind: Pod
metadata:
  annotations:
    kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: 192.0.2.4:6443
  labels:
    component: kube-apiserver
    tier: control-plane
  name: kube-apiserver
  namespace: kube-system
spec:
  containers:
  - command:
    - kube-apiserver
    - --advertise-address=192.0.2.4
    - --allow-privileged=true
    image: registry.k8s.io/kube-apiserver:v1.34.2
    imagePullPolicy: IfNotPresent
    livenessProbe:
      failureThreshold: 8
      httpGet:
        host: 192.0.2.4
        path: /livez
        port: probe-port
        scheme: HTTPS
      initialDelaySeconds: 10
      periodSeconds: 10
      timeoutSeconds: 15
    name: kube-apiserver
    ports:
    - containerPort: 6443
      name: probe-port
      protocol: TCP
    readinessProbe:
      failureThreshold: 3
      httpGet:
        host: 192.0.2.4
        path: /readyz
        port: 6443
        scheme: HTTPS
      periodSeconds: 1
      timeoutSeconds: 15
    resources:
      requests:
        cpu: 250m
    volumeMounts:
    - mountPath: /etc/ssl/certs
      name: ca-certs
      readOnly: true
  hostNetwork: true
  priority: 2000001000
  priorityClassName: system-node-critical
  securityContext:
    seccompProfile:
      type: RuntimeDefault
  volumes:
  - hostPath:
      path: /etc/ssl/certs
      type: DirectoryOrCreate
    name: ca-certs
status: {}
`;

const MANY_FIELDS = `
apiVersion: v1
kind: Pod
metadata: {name: many, annotations: {b: '2', a: '1', Z: z}, finalizers: [example.com/f]}
spec:
  restartPolicy: OnFailure
  activeDeadlineSeconds: 600
  hostPID: true
  shareProcessNamespace: true
  nodeSelector: {disk: ssd}
  tolerations: [{key: a, operator: Equal, value: b, effect: NoSchedule, tolerationSeconds: 5}]
  hostAliases: [{ip: 192.0.2.7, hostnames: [a.example, b.example]}]
  dnsPolicy: None
  dnsConfig: {nameservers: [192.0.2.53], options: [{name: ndots, value: '2'}, {name: edns0}]}
  securityContext: {runAsUser: 1000, fsGroup: 2000, supplementalGroups: [3000, 4000], sysctls: [{name: a.b, value: '1'}], fsGroupChangePolicy: OnRootMismatch}
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: x, operator: In, values: [ssd]}]}]}}}
  overhead: {cpu: 250m, memory: 120Mi}
  initContainers:
  - {name: side, image: busybox, restartPolicy: Always, command: [sleep, '1'], startupProbe: {tcpSocket: {port: 80}}}
  containers:
  - name: a
    image: 'busybox:latest'
    env: [{name: A, value: b}, {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}, {name: C, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}, {name: D, valueFrom: {resourceFieldRef: {containerName: a, resource: limits.cpu, divisor: 1m}}}]
    ports: [{containerPort: 80, hostPort: 8080, hostIP: 127.0.0.1}, {containerPort: 53, protocol: UDP}]
    resources: {limits: {cpu: '0.5', memory: 10Mi, hugepages-2Mi: 4Mi}, requests: {memory: '1000000', ephemeral-storage: 2G}}
    resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]
    lifecycle: {preStop: {sleep: {seconds: 3}}, postStart: {httpGet: {port: 80}}, stopSignal: SIGUSR1}
    livenessProbe: {exec: {command: ['true']}, terminationGracePeriodSeconds: 7}
    readinessProbe: {grpc: {port: 9000}, initialDelaySeconds: 3}
    securityContext: {privileged: true, capabilities: {add: [NET_ADMIN]}, procMount: Default, seLinuxOptions: {level: s0}, appArmorProfile: {type: Unconfined}}
    volumeMounts: [{name: e, mountPath: /e, subPathExpr: $(A)}, {name: m, mountPath: /m, mountPropagation: Bidirectional, recursiveReadOnly: Disabled}]
    stdin: true
    tty: true
  - {name: b, image: 'docker.io/library/nginx:stable', resources: {limits: {cpu: 1500m}}, terminationMessagePolicy: FallbackToLogsOnError}
  volumes:
  - {name: e, emptyDir: {}}
  - {name: m, emptyDir: {medium: Memory, sizeLimit: 64Mi}}
  - {name: h, hostPath: {path: /x}}
  - {name: none}
  - {name: d, downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}, {path: c, resourceFieldRef: {containerName: a, resource: requests.cpu}}]}}
  - {name: p, projected: {sources: [{downwardAPI: {items: [{path: l, mode: 256, fieldRef: {fieldPath: metadata.name}}]}}]}}
  - {name: nf, nfs: {server: s, path: /p}}
  - {name: i, image: {reference: 'x:1'}}
  - {name: c, csi: {driver: d, readOnly: true, volumeAttributes: {k: v}}}
`;

test.each([
  ['a small pod', SMALL, 'node-1', '/run/kubelet-manifests/static.yaml', 'e48e3cd26521644029e3f5379cb117ee'],
  ['an API server', API_SERVER, 'node-1', '/etc/kubernetes/manifests/2.yaml', '273f51a7598a00c05bb4322c766b77c5'],
  ['many fields', MANY_FIELDS, 'node-1', '/etc/kubernetes/manifests/3.yaml', 'f5b1696be9ea569f196994c1552ea917'],
])('%s', (_title, manifest, nodeName, path, uid) => {
  expect(uidOf(manifest, nodeName, path)).toBe(uid);
});

test('differs with the node, the place, and every field that is known', () => {
  const path = '/etc/kubernetes/manifests/a.yaml';
  const uids = [
    uidOf(SMALL, 'node-1', path),
    uidOf(SMALL, 'node-2', path),
    uidOf(SMALL, 'node-1', '/etc/kubernetes/manifests/b.yaml'),
    uidOf(SMALL, 'node-1', path, 'http'),
    uidOf(SMALL.replace('16Mi', '17Mi'), 'node-1', path),
  ];
  expect(new Set(uids).size).toBe(uids.length);
});

test.each([
  ['a creationTimestamp', SMALL.replace('name: static', 'name: static\n  creationTimestamp: "2026-01-01T00:00:00Z"')],
  ['a figure beyond 64 bits', SMALL.replace('16Mi', '1000000000000000000000')],
  ['a broken figure of bytes', SMALL.replace('16Mi', '1.5Gi')],
  ['resources of the pod as a whole', SMALL.replace('spec:', 'spec:\n  resources: {limits: {cpu: "1"}}')],
])('%s: no kubelet’s uid, but one that stays', (_title, manifest) => {
  const uid = uidOf(manifest, 'node-1', '/m/a.yaml');
  expect(uid).toMatch(/^[0-9a-f]{32}$/);
  expect(uidOf(manifest, 'node-1', '/m/a.yaml')).toBe(uid);
  expect(uidOf(manifest, 'node-1', '/m/b.yaml')).not.toBe(uid);
});
