// The form of a Pod in a manifest: every field that the agent reads. Only the table.

import { bool, int, intOrText, listOf, mapOf, object, quantity, type Shape, text } from './shape.ts';

const texts = listOf(text);
const labels = mapOf(text);
const quantities = mapOf(quantity);

const fieldRef = object({ apiVersion: text, fieldPath: text });
const resourceFieldRef = object({ containerName: text, resource: text, divisor: quantity });
const keyRef = object({ name: text, key: text, optional: bool });
const nameRef = object({ name: text, optional: bool });
const resources = object({ limits: quantities, requests: quantities });

const httpGet = object({
  path: text,
  port: intOrText,
  host: text,
  scheme: text,
  httpHeaders: listOf(object({ name: text, value: text })),
});
const handlers = {
  exec: object({ command: texts }),
  httpGet,
  tcpSocket: object({ port: intOrText, host: text }),
} as const;
const probe = object({
  ...handlers,
  grpc: object({ port: int, service: text }),
  initialDelaySeconds: int,
  timeoutSeconds: int,
  periodSeconds: int,
  successThreshold: int,
  failureThreshold: int,
  terminationGracePeriodSeconds: int,
});
const hook = object({ ...handlers, sleep: object({ seconds: int }) });

const seccompProfile = object({ type: text, localhostProfile: text });
const appArmorProfile = seccompProfile;
const seLinuxOptions = object({ user: text, role: text, type: text, level: text });

const container = object({
  name: text,
  image: text,
  imagePullPolicy: text,
  command: texts,
  args: texts,
  workingDir: text,
  restartPolicy: text,
  restartPolicyRules: listOf(object({ action: text, exitCodes: object({ operator: text, values: listOf(int) }) })),
  ports: listOf(object({ name: text, containerPort: int, hostPort: int, hostIP: text, protocol: text })),
  env: listOf(
    object({
      name: text,
      value: text,
      valueFrom: object({ fieldRef, resourceFieldRef, configMapKeyRef: keyRef, secretKeyRef: keyRef }),
    }),
  ),
  envFrom: listOf(object({ prefix: text, configMapRef: nameRef, secretRef: nameRef })),
  resources,
  resizePolicy: listOf(object({ resourceName: text, restartPolicy: text })),
  volumeMounts: listOf(
    object({
      name: text,
      mountPath: text,
      subPath: text,
      subPathExpr: text,
      readOnly: bool,
      recursiveReadOnly: text,
      mountPropagation: text,
    }),
  ),
  volumeDevices: listOf(object({ name: text, devicePath: text })),
  livenessProbe: probe,
  readinessProbe: probe,
  startupProbe: probe,
  lifecycle: object({ postStart: hook, preStop: hook, stopSignal: text }),
  terminationMessagePath: text,
  terminationMessagePolicy: text,
  securityContext: object({
    capabilities: object({ add: texts, drop: texts }),
    privileged: bool,
    seLinuxOptions,
    runAsUser: int,
    runAsGroup: int,
    runAsNonRoot: bool,
    readOnlyRootFilesystem: bool,
    allowPrivilegeEscalation: bool,
    procMount: text,
    seccompProfile,
    appArmorProfile,
  }),
  stdin: bool,
  stdinOnce: bool,
  tty: bool,
});

const items = listOf(object({ key: text, path: text, mode: int }));
const downwardItems = listOf(object({ path: text, mode: int, fieldRef, resourceFieldRef }));
const volume = object({
  name: text,
  emptyDir: object({ medium: text, sizeLimit: quantity }),
  hostPath: object({ path: text, type: text }),
  configMap: object({ name: text, items, defaultMode: int, optional: bool }),
  secret: object({ secretName: text, items, defaultMode: int, optional: bool }),
  downwardAPI: object({ items: downwardItems, defaultMode: int }),
  projected: object({
    defaultMode: int,
    sources: listOf(
      object({
        configMap: object({ name: text, items, optional: bool }),
        secret: object({ name: text, items, optional: bool }),
        downwardAPI: object({ items: downwardItems }),
        serviceAccountToken: object({ audience: text, expirationSeconds: int, path: text }),
      }),
    ),
  }),
  persistentVolumeClaim: object({ claimName: text, readOnly: bool }),
  csi: object({ driver: text, readOnly: bool, fsType: text, volumeAttributes: labels }),
});

const selectorTerm = object({
  matchExpressions: listOf(object({ key: text, operator: text, values: texts })),
  matchFields: listOf(object({ key: text, operator: text, values: texts })),
});

export const podShape: Shape = object({
  apiVersion: text,
  kind: text,
  metadata: object({
    name: text,
    namespace: text,
    uid: text,
    labels,
    annotations: labels,
    creationTimestamp: text,
  }),
  spec: object({
    containers: listOf(container),
    initContainers: listOf(container),
    volumes: listOf(volume),
    restartPolicy: text,
    terminationGracePeriodSeconds: int,
    activeDeadlineSeconds: int,
    dnsPolicy: text,
    dnsConfig: object({
      nameservers: texts,
      searches: texts,
      options: listOf(object({ name: text, value: text })),
    }),
    hostAliases: listOf(object({ ip: text, hostnames: texts })),
    nodeName: text,
    nodeSelector: labels,
    affinity: object({
      nodeAffinity: object({
        requiredDuringSchedulingIgnoredDuringExecution: object({ nodeSelectorTerms: listOf(selectorTerm) }),
      }),
    }),
    tolerations: listOf(object({ key: text, operator: text, value: text, effect: text, tolerationSeconds: int })),
    hostNetwork: bool,
    hostPID: bool,
    hostIPC: bool,
    hostUsers: bool,
    shareProcessNamespace: bool,
    hostname: text,
    hostnameOverride: text,
    subdomain: text,
    setHostnameAsFQDN: bool,
    enableServiceLinks: bool,
    serviceAccountName: text,
    serviceAccount: text,
    automountServiceAccountToken: bool,
    imagePullSecrets: listOf(object({ name: text })),
    priority: int,
    priorityClassName: text,
    preemptionPolicy: text,
    runtimeClassName: text,
    overhead: quantities,
    readinessGates: listOf(object({ conditionType: text })),
    os: object({ name: text }),
    resources,
    securityContext: object({
      seLinuxOptions,
      runAsUser: int,
      runAsGroup: int,
      runAsNonRoot: bool,
      supplementalGroups: listOf(int),
      supplementalGroupsPolicy: text,
      fsGroup: int,
      fsGroupChangePolicy: text,
      seccompProfile,
      appArmorProfile,
      sysctls: listOf(object({ name: text, value: text })),
    }),
  }),
});
