// What the published types do not say, or not yet: fields newer than the package, which numbers are 64 bits wide, which
// strings are bytes, what a strategic merge patch does with each list, and which zeros are written. Facts only; they
// are folded into apiserver/gen/schema.json by scripts/gen-schema.ts.

import type { Definition, MergeFact, TypeText } from './definitions.ts';

const ADMISSION = 'io.k8s.api.admissionregistration.v1';
const CORE = 'io.k8s.api.core.v1';
const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const STORAGE = 'io.k8s.api.storage.v1';
const EXTENSIONS = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1';
const METRICS = 'io.k8s.metrics.pkg.apis.metrics.v1beta1';
const REGISTRATION = 'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1';

/** The kinds and request bodies whose types are generated: "<module> <interface>". */
export const ROOTS: readonly string[] = [
  ...[
    'Binding ComponentStatus ConfigMap Endpoints Event Namespace Node Pod PodTemplate Secret Service ServiceAccount',
    'PersistentVolume PersistentVolumeClaim ReplicationController ResourceQuota LimitRange',
  ].flatMap((line) => line.split(' ').map((name) => `core/v1 ${name}`)),
  'autoscaling/v1 Scale',
  'coordination/v1 Lease',
  'discovery/v1 EndpointSlice',
  'events/v1 Event',
  'node/v1 RuntimeClass',
  'scheduling/v1 PriorityClass',
  ...'CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment'
    .split(' ')
    .map((name) => `storage/v1 ${name}`),
  'certificates/v1alpha1 ClusterTrustBundle',
  'certificates/v1 CertificateSigningRequest',
  ...'ClusterRole ClusterRoleBinding Role RoleBinding'.split(' ').map((name) => `rbac/v1 ${name}`),
  'admissionregistration/v1 MutatingWebhookConfiguration',
  'admissionregistration/v1 ValidatingAdmissionPolicy',
  'admissionregistration/v1 ValidatingAdmissionPolicyBinding',
  'admissionregistration/v1 ValidatingWebhookConfiguration',
  'apiextensions/v1 CustomResourceDefinition',
  'apiextensions/v1 ValidationRule',
  'authentication/v1 TokenRequest',
  'authentication/v1 TokenReview',
  'authentication/v1 SelfSubjectReview',
  'authorization/v1 LocalSubjectAccessReview',
  'authorization/v1 SelfSubjectAccessReview',
  'authorization/v1 SelfSubjectRulesReview',
  'authorization/v1 SubjectAccessReview',
  ...'APIGroup APIGroupList APIResourceList APIVersions DeleteOptions Patch Status WatchEvent'
    .split(' ')
    .map((name) => `meta/v1 ${name}`),
];

/** Number fields that are int64 wherever they occur; all others are int32. */
export const INT64: ReadonlySet<string> = new Set([
  'activeDeadlineSeconds',
  'deletionGracePeriodSeconds',
  'expirationSeconds',
  'fsGroup',
  'generation',
  'gracePeriodSeconds',
  'observedGeneration',
  'remainingItemCount',
  'runAsGroup',
  'runAsUser',
  'seconds',
  'sizeBytes',
  'supplementalGroups',
  'terminationGracePeriodSeconds',
  'tolerationSeconds',
]);

/** Fields that are maps of bytes in Go and base64 on the wire. */
export const TYPES: Readonly<Record<string, TypeText>> = {
  [`${CORE}.Secret.data`]: 'map:bytes',
  [`${CORE}.ConfigMap.binaryData`]: 'map:bytes',
  'io.k8s.api.admissionregistration.v1.WebhookClientConfig.caBundle': 'bytes',
  // A schema or a boolean.
  [`${EXTENSIONS}.JSONSchemaProps.additionalItems`]: 'raw',
  [`${EXTENSIONS}.JSONSchemaProps.additionalProperties`]: 'raw',
  [`${EXTENSIONS}.JSONSchemaProps.items`]: `#${EXTENSIONS}.JSONSchemaProps`,
  [`${EXTENSIONS}.JSONSchemaProps.dependencies`]: 'map:raw',
  [`${EXTENSIONS}.JSONSchemaProps.default`]: 'raw',
  [`${EXTENSIONS}.JSONSchemaProps.example`]: 'raw',
  [`${EXTENSIONS}.JSONSchemaProps.enum`]: '[]raw',
  ...Object.fromEntries(
    ['maximum', 'minimum', 'multipleOf'].map((field) => [`${EXTENSIONS}.JSONSchemaProps.${field}`, 'double']),
  ),
  ...Object.fromEntries(
    ['maxItems', 'maxLength', 'maxProperties', 'minItems', 'minLength', 'minProperties'].map((field) => [
      `${EXTENSIONS}.JSONSchemaProps.${field}`,
      'int64',
    ]),
  ),
  [`${EXTENSIONS}.WebhookClientConfig.caBundle`]: 'bytes',
  'io.k8s.api.authorization.v1.SubjectAccessReviewSpec.extra': 'map:[]string',
  'io.k8s.api.authentication.v1.UserInfo.extra': 'map:[]string',
};

/** Definitions and fields of Kubernetes 1.31 to 1.34 that the package (1.30) lacks. */
export const ADDED: Readonly<Record<string, Definition>> = {
  ...Object.fromEntries(
    Object.entries({
      NodeMetrics: { usage: 'map:quantity' },
      PodMetrics: { containers: `[]#${METRICS}.ContainerMetrics` },
    }).map(([kind, own]) => [
      `${METRICS}.${kind}`,
      {
        fields: {
          apiVersion: 'string',
          kind: 'string',
          metadata: `#${META}.ObjectMeta`,
          timestamp: 'time',
          window: 'string',
          ...own,
        },
        required: ['timestamp', 'window', ...Object.keys(own)],
      },
    ]),
  ),
  [`${METRICS}.ContainerMetrics`]: {
    fields: { name: 'string', usage: 'map:quantity' },
    required: ['name', 'usage'],
  },
  [`${CORE}.Container`]: { fields: { restartPolicyRules: `[]#${CORE}.ContainerRestartRule` } },
  [`${CORE}.EphemeralContainer`]: { fields: { restartPolicyRules: `[]#${CORE}.ContainerRestartRule` } },
  [`${CORE}.ContainerRestartRule`]: {
    fields: { action: 'string', exitCodes: `#${CORE}.ContainerRestartRuleOnExitCodes` },
    required: ['action'],
  },
  [`${CORE}.ContainerRestartRuleOnExitCodes`]: {
    fields: { operator: 'string', values: '[]int32' },
    required: ['operator'],
  },
  [`${CORE}.ContainerStatus`]: {
    fields: {
      allocatedResourcesStatus: `[]#${CORE}.ResourceStatus`,
      stopSignal: 'string',
      user: `#${CORE}.ContainerUser`,
    },
  },
  [`${CORE}.ResourceStatus`]: {
    fields: { name: 'string', resources: `[]#${CORE}.ResourceHealth` },
    required: ['name'],
  },
  [`${CORE}.ResourceHealth`]: { fields: { health: 'string', resourceID: 'string' }, required: ['resourceID'] },
  [`${CORE}.ContainerUser`]: { fields: { linux: `#${CORE}.LinuxContainerUser` } },
  [`${CORE}.LinuxContainerUser`]: {
    fields: { gid: 'int64', supplementalGroups: '[]int64', uid: 'int64' },
    required: ['uid', 'gid'],
  },
  [`${CORE}.Lifecycle`]: { fields: { stopSignal: 'string' } },
  [`${CORE}.PodSpec`]: { fields: { hostnameOverride: 'string', resources: `#${CORE}.ResourceRequirements` } },
  [`${CORE}.PodStatus`]: {
    fields: {
      allocatedResources: 'map:quantity',
      extendedResourceClaimStatus: `#${CORE}.PodExtendedResourceClaimStatus`,
      observedGeneration: 'int64',
      resources: `#${CORE}.ResourceRequirements`,
    },
  },
  [`${CORE}.PodExtendedResourceClaimStatus`]: {
    fields: { requestMappings: `[]#${CORE}.ContainerExtendedResourceRequest`, resourceClaimName: 'string' },
    required: ['requestMappings', 'resourceClaimName'],
  },
  [`${CORE}.ContainerExtendedResourceRequest`]: {
    fields: { containerName: 'string', requestName: 'string', resourceName: 'string' },
    required: ['containerName', 'requestName', 'resourceName'],
  },
  [`${CORE}.PodCondition`]: { fields: { observedGeneration: 'int64' } },
  [`${CORE}.PodSecurityContext`]: { fields: { seLinuxChangePolicy: 'string', supplementalGroupsPolicy: 'string' } },
  [`${CORE}.PodResourceClaim`]: { fields: { resourceClaimName: 'string', resourceClaimTemplateName: 'string' } },
  [`${CORE}.ResourceClaim`]: { fields: { request: 'string' } },
  [`${CORE}.Volume`]: { fields: { image: `#${CORE}.ImageVolumeSource` } },
  [`${CORE}.ImageVolumeSource`]: { fields: { pullPolicy: 'string', reference: 'string' } },
  [`${CORE}.VolumeProjection`]: { fields: { podCertificate: `#${CORE}.PodCertificateProjection` } },
  [`${CORE}.PodCertificateProjection`]: {
    fields: {
      certificateChainPath: 'string',
      credentialBundlePath: 'string',
      keyPath: 'string',
      keyType: 'string',
      maxExpirationSeconds: 'int32',
      signerName: 'string',
    },
    required: ['signerName', 'keyType'],
  },
  [`${CORE}.EnvVarSource`]: { fields: { fileKeyRef: `#${CORE}.FileKeySelector` } },
  [`${CORE}.FileKeySelector`]: {
    fields: { key: 'string', optional: 'bool', path: 'string', volumeName: 'string' },
    required: ['volumeName', 'path', 'key'],
    atomic: true,
  },
  [`${CORE}.NodeStatus`]: { fields: { features: `#${CORE}.NodeFeatures` } },
  [`${CORE}.NodeFeatures`]: { fields: { supplementalGroupsPolicy: 'bool' } },
  [`${CORE}.NodeRuntimeHandlerFeatures`]: { fields: { userNamespaces: 'bool' } },
  [`${CORE}.NodeSystemInfo`]: { fields: { swap: `#${CORE}.NodeSwapStatus` } },
  [`${CORE}.NodeSwapStatus`]: { fields: { capacity: 'int64' } },
  'io.k8s.api.admissionregistration.v1.NamedRuleWithOperations': {
    fields: { resources: '[]string', scope: 'string' },
  },
  'io.k8s.api.admissionregistration.v1.RuleWithOperations': { fields: { resources: '[]string', scope: 'string' } },
  'io.k8s.api.coordination.v1.LeaseSpec': { fields: { preferredHolder: 'string', strategy: 'string' } },
  'io.k8s.api.discovery.v1.EndpointHints': { fields: { forNodes: '[]#io.k8s.api.discovery.v1.ForNode' } },
  'io.k8s.api.discovery.v1.ForNode': { fields: { name: 'string' }, required: ['name'] },
  [`${STORAGE}.CSIDriverSpec`]: {
    fields: { nodeAllocatableUpdatePeriodSeconds: 'int64', serviceAccountTokenInSecrets: 'bool' },
  },
  [`${STORAGE}.VolumeError`]: { fields: { errorCode: 'int32' } },
  [`${EXTENSIONS}.JSONSchemaProps`]: {
    fields: {
      'x-kubernetes-embedded-resource': 'bool',
      'x-kubernetes-int-or-string': 'bool',
      'x-kubernetes-list-map-keys': '[]string',
      'x-kubernetes-list-type': 'string',
      'x-kubernetes-map-type': 'string',
      'x-kubernetes-preserve-unknown-fields': 'bool',
      'x-kubernetes-validations': `[]#${EXTENSIONS}.ValidationRule`,
    },
  },
  [`${EXTENSIONS}.CustomResourceDefinitionCondition`]: { fields: { observedGeneration: 'int64' } },
  [`${EXTENSIONS}.CustomResourceDefinitionStatus`]: { fields: { observedGeneration: 'int64' } },
  // Not a part of kubernetes-types.
  [`${REGISTRATION}.APIService`]: {
    fields: {
      apiVersion: 'string',
      kind: 'string',
      metadata: `#${META}.ObjectMeta`,
      spec: `#${REGISTRATION}.APIServiceSpec`,
      status: `#${REGISTRATION}.APIServiceStatus`,
    },
  },
  [`${REGISTRATION}.APIServiceSpec`]: {
    fields: {
      caBundle: 'bytes',
      group: 'string',
      groupPriorityMinimum: 'int32',
      insecureSkipTLSVerify: 'bool',
      service: `#${REGISTRATION}.ServiceReference`,
      version: 'string',
      versionPriority: 'int32',
    },
    required: ['groupPriorityMinimum', 'versionPriority'],
    omitZero: ['insecureSkipTLSVerify'],
  },
  [`${REGISTRATION}.ServiceReference`]: { fields: { name: 'string', namespace: 'string', port: 'int32' } },
  [`${REGISTRATION}.APIServiceStatus`]: {
    fields: { conditions: `[]#${REGISTRATION}.APIServiceCondition` },
    merge: { conditions: { strategy: ['merge'], key: 'type' } },
  },
  [`${REGISTRATION}.APIServiceCondition`]: {
    fields: { lastTransitionTime: 'time', message: 'string', reason: 'string', status: 'string', type: 'string' },
    required: ['type', 'status'],
  },
  [`${META}.DeleteOptions`]: { fields: { ignoreStoreReadErrorWithClusterBreakingPotential: 'bool' } },
};

function merge(key: string, ...mapKeys: string[]): MergeFact {
  return { strategy: ['merge'], key, ...(mapKeys.length > 0 ? { mapKeys } : {}) };
}
const MERGE: MergeFact = { strategy: ['merge'] };
const CONDITIONS = merge('type');

const CONTAINER: Readonly<Record<string, MergeFact>> = {
  env: merge('name'),
  ports: merge('containerPort', 'containerPort', 'protocol'),
  volumeDevices: merge('devicePath'),
  volumeMounts: merge('mountPath'),
};

/** Strategic merge facts by definition and field (patchStrategy and patchMergeKey of the Go types). */
export const MERGES: Readonly<Record<string, Readonly<Record<string, MergeFact>>>> = {
  [`${ADMISSION}.MutatingWebhook`]: { matchConditions: merge('name') },
  [`${ADMISSION}.ValidatingWebhook`]: { matchConditions: merge('name') },
  [`${ADMISSION}.ValidatingAdmissionPolicySpec`]: { matchConditions: merge('name'), variables: merge('name') },
  [`${EXTENSIONS}.JSONSchemaProps`]: { 'x-kubernetes-validations': merge('rule') },
  [`${META}.ObjectMeta`]: { finalizers: MERGE, ownerReferences: merge('uid') },
  [`${CORE}.PodSpec`]: {
    containers: merge('name'),
    ephemeralContainers: merge('name'),
    hostAliases: merge('ip'),
    imagePullSecrets: merge('name'),
    initContainers: merge('name'),
    resourceClaims: { strategy: ['merge', 'retainKeys'], key: 'name' },
    schedulingGates: merge('name'),
    topologySpreadConstraints: merge('topologyKey', 'topologyKey', 'whenUnsatisfiable'),
    volumes: { strategy: ['merge', 'retainKeys'], key: 'name' },
  },
  [`${CORE}.PodStatus`]: {
    conditions: CONDITIONS,
    hostIPs: merge('ip'),
    podIPs: merge('ip'),
    resourceClaimStatuses: { strategy: ['merge', 'retainKeys'], key: 'name' },
  },
  [`${CORE}.Container`]: CONTAINER,
  [`${CORE}.EphemeralContainer`]: CONTAINER,
  [`${CORE}.ContainerStatus`]: { volumeMounts: merge('mountPath'), allocatedResourcesStatus: merge('name') },
  [`${CORE}.ServiceAccount`]: { secrets: merge('name') },
  [`${CORE}.ServiceSpec`]: { ports: merge('port', 'port', 'protocol') },
  [`${CORE}.ServiceStatus`]: { conditions: CONDITIONS },
  [`${CORE}.NodeSpec`]: { podCIDRs: MERGE },
  [`${CORE}.NodeStatus`]: { addresses: merge('type'), conditions: CONDITIONS },
  [`${CORE}.NamespaceStatus`]: { conditions: CONDITIONS },
  [`${CORE}.PersistentVolumeClaimStatus`]: { conditions: CONDITIONS },
  [`${CORE}.ReplicationControllerStatus`]: { conditions: CONDITIONS },
  [`${CORE}.ComponentStatus`]: { conditions: CONDITIONS },
  [`${STORAGE}.CSINodeSpec`]: { drivers: merge('name') },
  'io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration': { webhooks: merge('name') },
  'io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration': { webhooks: merge('name') },
};

/** Values that a field may take, where kubectl explain shows them. */
export const ENUMS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  [`${CORE}.PodSpec`]: {
    dnsPolicy: ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'],
    preemptionPolicy: ['Never', 'PreemptLowerPriority'],
    restartPolicy: ['Always', 'Never', 'OnFailure'],
  },
  [`${CORE}.Container`]: {
    imagePullPolicy: ['Always', 'IfNotPresent', 'Never'],
    terminationMessagePolicy: ['FallbackToLogsOnError', 'File'],
  },
  [`${CORE}.EphemeralContainer`]: {
    imagePullPolicy: ['Always', 'IfNotPresent', 'Never'],
    terminationMessagePolicy: ['FallbackToLogsOnError', 'File'],
  },
  [`${CORE}.ContainerPort`]: { protocol: ['SCTP', 'TCP', 'UDP'] },
  [`${CORE}.ServicePort`]: { protocol: ['SCTP', 'TCP', 'UDP'] },
  [`${CORE}.ServiceSpec`]: {
    externalTrafficPolicy: ['Cluster', 'Local'],
    internalTrafficPolicy: ['Cluster', 'Local'],
    ipFamilyPolicy: ['PreferDualStack', 'RequireDualStack', 'SingleStack'],
    sessionAffinity: ['ClientIP', 'None'],
    type: ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'],
  },
  [`${CORE}.PodStatus`]: {
    phase: ['Failed', 'Pending', 'Running', 'Succeeded', 'Unknown'],
    qosClass: ['BestEffort', 'Burstable', 'Guaranteed'],
  },
  [`${CORE}.NamespaceStatus`]: { phase: ['Active', 'Terminating'] },
  [`${CORE}.Taint`]: { effect: ['NoExecute', 'NoSchedule', 'PreferNoSchedule'] },
  [`${CORE}.Toleration`]: {
    effect: ['NoExecute', 'NoSchedule', 'PreferNoSchedule'],
    operator: ['Equal', 'Exists'],
  },
  [`${CORE}.HTTPGetAction`]: { scheme: ['HTTP', 'HTTPS'] },
  [`${CORE}.HostPathVolumeSource`]: {
    type: ['', 'BlockDevice', 'CharDevice', 'Directory', 'DirectoryOrCreate', 'File', 'FileOrCreate', 'Socket'],
  },
  [`${CORE}.SeccompProfile`]: { type: ['Localhost', 'RuntimeDefault', 'Unconfined'] },
  [`${CORE}.AppArmorProfile`]: { type: ['Localhost', 'RuntimeDefault', 'Unconfined'] },
  [`${CORE}.PersistentVolumeClaimSpec`]: { volumeMode: ['Block', 'Filesystem'] },
  [`${CORE}.PersistentVolumeClaimStatus`]: { phase: ['Bound', 'Lost', 'Pending'] },
  [`${CORE}.PersistentVolumeSpec`]: {
    persistentVolumeReclaimPolicy: ['Delete', 'Recycle', 'Retain'],
    volumeMode: ['Block', 'Filesystem'],
  },
  [`${CORE}.PersistentVolumeStatus`]: { phase: ['Available', 'Bound', 'Failed', 'Pending', 'Released'] },
  [`${STORAGE}.StorageClass`]: {
    reclaimPolicy: ['Delete', 'Recycle', 'Retain'],
    volumeBindingMode: ['Immediate', 'WaitForFirstConsumer'],
  },
  [`${CORE}.VolumeMount`]: { mountPropagation: ['Bidirectional', 'HostToContainer', 'None'] },
};

/** Numbers and booleans whose zero Go does not write; without this an explicit `false` would differ from none. */
export const OMIT_ZERO: Readonly<Record<string, readonly string[]>> = {
  [`${CORE}.PodSpec`]: ['hostIPC', 'hostNetwork', 'hostPID'],
  [`${CORE}.Container`]: ['stdin', 'stdinOnce', 'tty'],
  [`${CORE}.EphemeralContainer`]: ['stdin', 'stdinOnce', 'tty'],
  [`${CORE}.ContainerPort`]: ['hostPort'],
  [`${CORE}.VolumeMount`]: ['readOnly'],
  [`${CORE}.Probe`]: ['failureThreshold', 'initialDelaySeconds', 'periodSeconds', 'successThreshold', 'timeoutSeconds'],
  [`${CORE}.ServicePort`]: ['nodePort'],
  [`${CORE}.ServiceSpec`]: ['healthCheckNodePort', 'publishNotReadyAddresses'],
  [`${CORE}.NodeSpec`]: ['unschedulable'],
  [`${CORE}.ReplicationControllerSpec`]: ['minReadySeconds'],
  [`${CORE}.ReplicationControllerStatus`]: [
    'availableReplicas',
    'fullyLabeledReplicas',
    'observedGeneration',
    'readyReplicas',
  ],
  [`${CORE}.Event`]: ['count'],
  [`${CORE}.ContainerStateTerminated`]: ['signal'],
  [`${CORE}.CSIPersistentVolumeSource`]: ['readOnly'],
  [`${META}.ObjectMeta`]: ['generation'],
  [`${EXTENSIONS}.JSONSchemaProps`]: ['exclusiveMaximum', 'exclusiveMinimum', 'nullable', 'uniqueItems'],
  [`${EXTENSIONS}.CustomResourceDefinitionSpec`]: ['preserveUnknownFields'],
  [`${EXTENSIONS}.CustomResourceDefinitionVersion`]: ['deprecated'],
  'io.k8s.api.scheduling.v1.PriorityClass': ['globalDefault'],
};
