// What kubectl explain shows of types and fields that are newer than the package kubernetes-types, or are no part of it. In words of
// our own: short, and what they do rather than how they came about. Those of resource.k8s.io are in device-descriptions.ts.

import { DEVICE_DESCRIPTIONS, type OwnDescription } from './device-descriptions.ts';

/** Of every type that has no other words for them. */
export const COMMON_FIELDS: Readonly<Record<string, string>> = {
  apiVersion: 'The group and version of the schema that this object follows, as "apps/v1".',
  kind: 'The name of the type, in CamelCase.',
  metadata: 'Name, labels, annotations and what else every object has.',
  spec: 'What is wanted.',
  status: 'What is there, as last observed. Written by the system.',
  conditions: 'Observations of the present state, one for each type.',
};

const CORE = 'io.k8s.api.core.v1';
const NETWORKING = 'io.k8s.api.networking.v1';
const STORAGE = 'io.k8s.api.storage.v1';
const EXTENSIONS = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1';
const REGISTRATION = 'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1';
const METRICS = 'io.k8s.metrics.pkg.apis.metrics.v1beta1';
const ADMISSION = 'io.k8s.api.admissionregistration.v1';

const RESTART_RULES =
  'Rules for when this container restarts by itself, checked in order before restartPolicy. The first one that fits decides.';
const RULE_RESOURCES =
  'Plural names, as "pods"; "pods/log" is a subresource, "pods/*" all of those of pods, "*" all resources, "*/*" everything.';
const RULE_SCOPE = '"Cluster", "Namespaced", or "*" for both, which is the default.';
const OBSERVED = 'The metadata.generation that this is about.';
const TERMINATING =
  'Pods that are being deleted and have not ended yet. Set where the feature DeploymentReplicaSetTerminatingReplicas is on.';

const OWN: Readonly<Record<string, OwnDescription>> = {
  [`${ADMISSION}.NamedRuleWithOperations`]: { fields: { resources: RULE_RESOURCES, scope: RULE_SCOPE } },
  [`${ADMISSION}.RuleWithOperations`]: { fields: { resources: RULE_RESOURCES, scope: RULE_SCOPE } },
  'io.k8s.api.apps.v1.DeploymentStatus': { fields: { terminatingReplicas: TERMINATING } },
  'io.k8s.api.apps.v1.ReplicaSetStatus': { fields: { terminatingReplicas: TERMINATING } },
  'io.k8s.api.autoscaling.v2.HPAScalingRules': {
    fields: {
      tolerance:
        'How far a metric may be from its target, as a fraction, before the number of replicas changes in this direction.',
    },
  },
  'io.k8s.api.coordination.v1.LeaseSpec': {
    fields: {
      preferredHolder: 'Who should hold the lease next: its present holder gives it up. Needs a strategy.',
      strategy: 'How the holder is chosen among several candidates.',
    },
  },
  'io.k8s.api.discovery.v1.EndpointHints': {
    fields: { forNodes: 'The nodes whose traffic should go to this endpoint. At most eight.' },
  },
  'io.k8s.api.discovery.v1.ForNode': {
    type: 'A node that an endpoint is meant for.',
    fields: { name: 'The name of the node.' },
  },
  [`${CORE}.Container`]: { fields: { restartPolicyRules: RESTART_RULES } },
  [`${CORE}.EphemeralContainer`]: { fields: { restartPolicyRules: 'Not allowed for ephemeral containers.' } },
  [`${CORE}.ContainerExtendedResourceRequest`]: {
    type: 'Which request of a claim stands for an extended resource of a container.',
    fields: {
      containerName: 'The container that asks for the resource.',
      requestName: 'The request in the claim.',
      resourceName: 'The extended resource, as "example.com/gpu".',
    },
  },
  [`${CORE}.ContainerRestartRule`]: {
    type: 'What happens to a container that has ended in a certain way.',
    fields: {
      action: 'What is done where the rule fits: "Restart" starts the container again.',
      exitCodes: 'The exit codes that the rule is for.',
    },
  },
  [`${CORE}.ContainerRestartRuleOnExitCodes`]: {
    type: 'A set of exit codes, or everything outside of one.',
    fields: {
      operator: '"In": the code is one of the values; "NotIn": it is none of them.',
      values: 'Exit codes, at most 255 of them.',
    },
  },
  [`${CORE}.ContainerStatus`]: {
    fields: {
      allocatedResourcesStatus: 'The health of each device that the container has, by resource.',
      stopSignal: 'The signal that the runtime sends to stop the container.',
      user: 'The identity with which the first process of the container runs.',
    },
  },
  [`${CORE}.ContainerUser`]: {
    type: 'The identity of the first process of a container.',
    fields: { linux: 'User and groups, where the container runs on Linux.' },
  },
  [`${CORE}.LinuxContainerUser`]: {
    type: 'User and groups of a process on Linux.',
    fields: {
      gid: 'The primary group.',
      supplementalGroups: 'All further groups, those of the image included.',
      uid: 'The user.',
    },
  },
  [`${CORE}.EnvVarSource`]: {
    fields: { fileKeyRef: 'A variable in a file of environment variables on an emptyDir volume.' },
  },
  [`${CORE}.FileKeySelector`]: {
    type: 'One variable of a file on a volume of the pod.',
    fields: {
      key: 'The name of the variable in the file.',
      optional:
        'Whether the container starts though the file or the variable is not there; it has no such variable then.',
      path: 'The file on the volume: relative, and without "..".',
      volumeName: 'The volume, which must be an emptyDir.',
    },
  },
  [`${CORE}.GRPCAction`]: { type: 'A call of the gRPC health checking service.' },
  [`${CORE}.ImageVolumeSource`]: {
    type: 'The files of an image or artifact as a volume that can be read only.',
    fields: {
      pullPolicy:
        '"Always", "Never" or "IfNotPresent". Default: Always for the tag latest and for none, else IfNotPresent.',
      reference: 'The image, as in a container. May be empty in a template whose pods get it from elsewhere.',
    },
  },
  [`${CORE}.Lifecycle`]: {
    fields: {
      stopSignal:
        'The signal that stops the container, as SIGUSR1. Needs spec.os.name. Default: the image’s, else SIGTERM.',
    },
  },
  [`${CORE}.NamespaceCondition`]: {
    fields: {
      lastTransitionTime: 'When the status of the condition changed last.',
      message: 'The reason in words for people.',
      reason: 'The reason in one word.',
    },
  },
  [`${CORE}.NodeFeatures`]: {
    type: 'What the runtime of a node can do, whatever the runtime handler.',
    fields: { supplementalGroupsPolicy: 'Whether pods may use securityContext.supplementalGroupsPolicy.' },
  },
  [`${CORE}.NodeRuntimeHandlerFeatures`]: {
    fields: { userNamespaces: 'Whether pods of this handler may have user namespaces.' },
  },
  [`${CORE}.NodeStatus`]: { fields: { features: 'What the runtime of the node can do.' } },
  [`${CORE}.NodeSwapStatus`]: {
    type: 'The swap space of a node.',
    fields: { capacity: 'All of it, in bytes.' },
  },
  [`${CORE}.NodeSystemInfo`]: { fields: { swap: 'The swap space of the node.' } },
  [`${CORE}.PersistentVolumeClaimCondition`]: {
    fields: { status: '"True", "False" or "Unknown".', type: 'What the condition is about.' },
  },
  [`${CORE}.PodCertificateProjection`]: {
    type: 'A private key and a certificate for it, which the kubelet requests for the pod and renews.',
    fields: {
      certificateChainPath: 'Where the certificates go, below the volume.',
      credentialBundlePath: 'Where one file with the key and the certificates goes, below the volume.',
      keyPath: 'Where the key goes, below the volume.',
      keyType: 'The kind of key: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521" or "ED25519".',
      maxExpirationSeconds: 'The longest life of a certificate; the signer may make it shorter. Default: a day.',
      signerName: 'Who signs.',
    },
  },
  [`${CORE}.PodCondition`]: { fields: { observedGeneration: OBSERVED } },
  [`${CORE}.PodDNSConfigOption`]: { fields: { value: 'The value of the option; none for an option without one.' } },
  [`${CORE}.PodExtendedResourceClaimStatus`]: {
    type: 'The claim that the scheduler has made for the extended resources of a pod.',
    fields: {
      requestMappings: 'Which request of the claim stands for which resource of which container.',
      resourceClaimName: 'The claim, in the namespace of the pod.',
    },
  },
  [`${CORE}.PodResourceClaim`]: {
    fields: {
      resourceClaimName: 'A claim that is there, in the namespace of the pod. Either this or a template.',
      resourceClaimTemplateName: 'A template from which a claim for this pod alone is made; it goes with the pod.',
    },
  },
  [`${CORE}.PodSecurityContext`]: {
    fields: {
      seLinuxChangePolicy:
        'How the SELinux label gets onto volumes: "MountOption", where that can be, or "Recursive", file by file.',
      supplementalGroupsPolicy:
        '"Merge": the groups of the image count as well; "Strict": those of the pod alone. Default: Merge.',
    },
  },
  [`${CORE}.PodSpec`]: {
    fields: {
      hostnameOverride:
        'The host name that the pod has in any case, whatever hostname, subdomain and setHostnameAsFQDN are.',
      resources: 'Requests and limits for all containers of the pod together: cpu, memory and huge pages.',
    },
  },
  [`${CORE}.PodStatus`]: {
    fields: {
      allocatedResources: 'What the node has set aside for the pod as a whole.',
      extendedResourceClaimStatus: 'The claim behind the extended resources of the pod.',
      observedGeneration: OBSERVED,
      resources: 'Requests and limits of the pod as a whole that are in effect.',
    },
  },
  [`${CORE}.PortStatus`]: { type: 'The state of one port of a load balancer.' },
  [`${CORE}.ResourceClaim`]: { fields: { request: 'One request of the claim; default: all of them.' } },
  [`${CORE}.ResourceHealth`]: {
    type: 'The health of one device.',
    fields: {
      health: '"Healthy", "Unhealthy" or "Unknown".',
      resourceID: 'The device, by the name that its plugin or driver has for it.',
    },
  },
  [`${CORE}.ResourceStatus`]: {
    type: 'The health of the devices of one resource that a container has.',
    fields: {
      name: 'The resource; for a claim "claim:<name>/<request>".',
      resources: 'Each device, once.',
    },
  },
  [`${CORE}.TypedObjectReference`]: { type: 'An object by group, kind, namespace and name.' },
  [`${CORE}.Volume`]: { fields: { image: 'The files of an image, which the kubelet pulls.' } },
  [`${CORE}.VolumeProjection`]: { fields: { podCertificate: 'A key and a certificate for the pod.' } },
  [`${NETWORKING}.IngressRule`]: { fields: { http: 'Where requests go, by their path.' } },
  [`${NETWORKING}.IPAddress`]: {
    type: 'An address of a range of the cluster that is in use. Its name is the address in canonical form.',
  },
  [`${NETWORKING}.IPAddressSpec`]: {
    type: 'Who has the address.',
    fields: { parentRef: 'The object that has it, usually a Service.' },
  },
  [`${NETWORKING}.ParentReference`]: {
    type: 'The object that an address belongs to.',
    fields: {
      group: 'Its group; empty for the core group.',
      name: 'Its name.',
      namespace: 'Its namespace, if it has one.',
      resource: 'Its resource, as "services".',
    },
  },
  [`${NETWORKING}.ServiceCIDR`]: { type: 'A range from which Services get their cluster IPs.' },
  [`${NETWORKING}.ServiceCIDRSpec`]: {
    type: 'The ranges.',
    fields: { cidrs: 'One range, or one of IPv4 and one of IPv6. Cannot be changed.' },
  },
  [`${NETWORKING}.ServiceCIDRStatus`]: {
    type: 'Whether the ranges are in use.',
    fields: { conditions: '"Ready": addresses are given out from the ranges.' },
  },
  [`${STORAGE}.CSIDriverSpec`]: {
    fields: {
      nodeAllocatableUpdatePeriodSeconds:
        'How often the number of volumes that a node can have is asked for anew, at least 10 seconds. Default: never.',
      serviceAccountTokenInSecrets: 'Whether tokens go to the driver as a secret instead of in the volume context.',
    },
  },
  [`${STORAGE}.VolumeError`]: { fields: { errorCode: 'The gRPC code of the failure, as the driver returned it.' } },
  [`${STORAGE}.VolumeAttributesClass`]: {
    type: 'Properties of volumes that can be changed while they are in use, by a driver.',
    fields: {
      driverName: 'The CSI driver. Cannot be changed.',
      parameters: 'What the driver is passed. Cannot be changed.',
    },
  },
  [`${EXTENSIONS}.CustomResourceDefinitionCondition`]: { fields: { observedGeneration: OBSERVED } },
  [`${EXTENSIONS}.CustomResourceDefinitionStatus`]: { fields: { observedGeneration: OBSERVED } },
  [`${EXTENSIONS}.ExternalDocumentation`]: { fields: { description: 'What is to be found there.', url: 'Where.' } },
  [`${EXTENSIONS}.JSONSchemaProps`]: {
    fields: {
      'x-kubernetes-embedded-resource':
        'Whether the value is an object of the API, with apiVersion, kind and metadata.',
      'x-kubernetes-int-or-string': 'Whether the value is an integer or a string.',
      'x-kubernetes-list-map-keys': 'Fields that identify an element of a list of type map.',
      'x-kubernetes-list-type':
        '"atomic": a list is replaced as a whole; "set": its elements are unique; "map": they are found by keys.',
      'x-kubernetes-map-type': '"granular": each field has its own owner; "atomic": an object is replaced as a whole.',
      'x-kubernetes-preserve-unknown-fields': 'Whether fields that the schema does not have are kept.',
      'x-kubernetes-validations': 'Rules in CEL that a value must fulfil.',
    },
  },
  [`${REGISTRATION}.APIService`]: { type: 'One version of a group of the API, and the server that serves it.' },
  [`${REGISTRATION}.APIServiceSpec`]: {
    type: 'Where a group and version are served, and how they are listed.',
    fields: {
      caBundle: 'CAs in PEM for the certificate of the server. Default: those that the system trusts.',
      group: 'The group.',
      groupPriorityMinimum: 'The place of the group in discovery: those with larger numbers come first.',
      insecureSkipTLSVerify: 'Whether any certificate of the server is accepted.',
      service: 'The Service of the server. None: this server itself.',
      version: 'The version, as "v1".',
      versionPriority: 'The place of the version in its group: those with larger numbers come first.',
    },
  },
  [`${REGISTRATION}.APIServiceStatus`]: { type: 'Whether the server can be reached.' },
  [`${REGISTRATION}.APIServiceCondition`]: {
    type: 'One observation of a server.',
    fields: {
      lastTransitionTime: 'When the status of the condition changed last.',
      message: 'The reason in words for people.',
      reason: 'The reason in one word.',
      status: '"True", "False" or "Unknown".',
      type: '"Available".',
    },
  },
  [`${REGISTRATION}.ServiceReference`]: {
    type: 'A port of a Service.',
    fields: { name: 'The name of the Service.', namespace: 'Its namespace.', port: 'Its port. Default: 443.' },
  },
  [`${METRICS}.ContainerMetrics`]: {
    type: 'What a container uses.',
    fields: { name: 'The container.', usage: 'Processor time, as cores, and memory.' },
  },
  [`${METRICS}.NodeMetrics`]: {
    type: 'What a node uses.',
    fields: {
      timestamp: 'The end of the time in which it was measured.',
      usage: 'Processor time, as cores, and memory.',
      window: 'The length of that time.',
    },
  },
  [`${METRICS}.PodMetrics`]: {
    type: 'What the containers of a pod use.',
    fields: {
      containers: 'Each container that runs.',
      timestamp: 'The end of the time in which it was measured.',
      window: 'The length of that time.',
    },
  },
};

/** By the full name of the definition. */
export const OWN_DESCRIPTIONS: Readonly<Record<string, OwnDescription>> = { ...OWN, ...DEVICE_DESCRIPTIONS };
