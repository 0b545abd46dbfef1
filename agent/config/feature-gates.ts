// The kubelet's feature gates, and what nodelet does about each: a gate does not switch anything here, so it can only agree
// with the code or not. A gate that is set against the code ends the agent where pods would have less isolation, fewer
// limits or fewer checks than the gate requires, and is named in the warning where not. Never reads a configuration itself.

import type { Unmet } from './schema.ts';

/**
 * What the code does: `on` or `off`, and the effect of a gate with the other value. `elsewhere`: the gate belongs to the
 * API server, a controller, the scheduler, kube-proxy or Windows, or only chooses how a kubelet does what shows nowhere;
 * kubelets accept its name, so a node's file may contain it.
 */
export type GateEffect =
  | { readonly code: 'on' | 'off'; readonly against: 'ends' | 'warns' }
  | { readonly code: 'elsewhere' };

const names = (text: string): readonly string[] => text.trim().split(/\s+/);

/** On, for isolation, a limit or a check. */
const ON_CHECKED = names(`
  AppArmor AppArmorFields ExecProbeTimeout KubeletFineGrainedAuthz PodLevelResources PreventStaticPodAPIReferences ProcMountType
  RecursiveReadOnlyMounts SizeMemoryBackedVolumes SupplementalGroupsPolicy UserNamespacesSupport
`);

/** On, for comfort. */
const ON_COMFORT = names(`
  CSIVolumeHealth ClusterTrustBundle ClusterTrustBundleProjection ContainerRestartRules ContainerStopSignals
  CustomCPUCFSQuotaPeriod EventedPLEG GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HostnameOverride
  ImageMaximumGCAge ImageVolume InPlacePodVerticalScaling InPlacePodVerticalScalingAllocatedStatus
  KubeletCgroupDriverFromCRI KubeletCrashLoopBackOffMax KubeletSeparateDiskGC
  KubeletServiceAccountTokenForCredentialProviders NodeLogQuery NodeSwap PodLifecycleSleepAction PodLifecycleSleepActionAllowZero
  PodLogsQuerySplitStreams PodObservedGenerationTracking PodReadyToStartContainersCondition
  RelaxedEnvironmentVariableValidation RelaxedDNSSearchValidation ReloadKubeletServerCertificateFile SidecarContainers
  SystemdWatchdog
`);

/** Off: isolation, a limit or a check of the gate is missing. */
const OFF_CHECKED = names(`
  AllAlpha CPUManagerPolicyAlphaOptions InPlacePodVerticalScalingExclusiveCPUs
  InPlacePodVerticalScalingExclusiveMemory KubeletEnsureSecretPulledImages MemoryQoS
  PodLevelResourceManagers QOSReserved SELinuxMount TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport
`);

/** Off, and what is missing is comfort; a pod that needs it is refused by name. */
const OFF_COMFORT = names(`
  AllowDNSOnlyNodeCSR ChangeContainerStatusOnKubeletRestart ComponentFlagz ComponentStatusz ContainerCheckpoint
  DRAResourceClaimDeviceStatus DynamicResourceAllocation EnvFiles GitRepoVolumeDriver
  InPlacePodLevelResourcesVerticalScaling KubeletInUserNamespace KubeletPSI KubeletPodResourcesDynamicResources
  KubeletPodResourcesGet KubeletRegistrationGetOnExistsOnly LegacySidecarContainers
  LocalStorageCapacityIsolationFSQuotaMonitoring MutableCSINodeAllocatableCount NodeDeclaredFeatures
  PodAndContainerStatsFromCRI PodCertificateRequest ReduceDefaultCrashLoopBackOffDecay ResourceHealthStatus
  RestartAllContainersOnContainerExits RotateKubeletServerCertificate RuntimeClassInImageCriApi
  AllowOverwriteTerminationGracePeriodSeconds DRAExtendedResource CSIServiceAccountTokenSecrets
`);

const ELSEWHERE = names(`
  APIResponseCompression APIServerIdentity APIServerTracing APIServingWithRoutine AggregatedDiscoveryRemoveBetaType
  AllowInsecureKubeletCertificateSigningRequests AllowParsingUserUIDFromCertAuth AllowServiceLBStatusOnNonLB
  AllowUnsafeMalformedObjectDeletion AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors
  AuthorizeWithSelectors BtreeWatchCache CBORServingAndStorage CPUManagerPolicyBetaOptions CPUManagerPolicyOptions
  CRDValidationRatcheting CSIMigrationPortworx ClearingNominatedNodeNameAfterBinding CloudControllerManagerWebhook
  ComponentSLIs ConcurrentWatchObjectDecode ConsistentListFromCache ContextualLogging CoordinatedLeaderElection
  CronJobsScheduledAnnotation CrossNamespaceVolumeDataSource CustomResourceFieldSelectors DRAAdminAccess
  DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaintRules DRADeviceTaints DRAPartitionableDevices
  DRAPrioritizedList DRASchedulerFilterTimeout DeclarativeValidation DeclarativeValidationTakeover
  DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency DevicePluginCDIDevices DisableAllocatorDualWrite
  DisableCPUQuotaWithExclusiveCPUs DisableCloudProviders DisableKubeletCloudCredentialProviders
  DisableNodeKubeProxyVersion ElasticIndexedJob ExternalServiceAccountTokenSigner GangScheduling GenericWorkload
  HPAConfigurableTolerance HPAContainerMetrics HPAScaleToZero HonorPVReclaimPolicy InOrderInformers
  InTreePluginPortworxUnregister JobBackoffLimitPerIndex JobManagedBy JobPodFailurePolicy JobPodReplacementPolicy
  JobSuccessPolicy KMSv1 KubeProxyDrainingTerminatingNodes KubeletPodResourcesListUseActivePods KubeletTracing
  ListFromCacheSnapshot LoadBalancerIPMode LogarithmicScaleDown LoggingAlphaOptions LoggingBetaOptions
  MatchLabelKeysInPodAffinity MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
  MaxUnavailableStatefulSet MemoryManager MultiCIDRServiceAllocator MutableScheduledPodResources
  MutatingAdmissionPolicy NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NominatedNodeNameForExpectation
  OpenAPIEnums OpportunisticBatching OrderedNamespaceDeletion PDBUnhealthyPodEvictionPolicy
  PersistentVolumeClaimUnusedSinceTime PersistentVolumeLastPhaseTransitionTime PodDeletionCost PodDisruptionConditions
  PodIndexLabel PodSchedulingReadiness PodTopologyLabelsAdmission PortForwardWebsockets PreferSameTrafficDistribution
  RecoverVolumeExpansionFailure RelaxedServiceNameValidation RemoteRequestHeaderUID ResilientWatchCacheInitialization
  RetryGenerateName SELinuxChangePolicy SELinuxMountReadWriteOncePod SchedulerAsyncAPICalls SchedulerAsyncPreemption
  SchedulerPopFromBackoffQ SchedulerQueueingHints SeparateCacheWatchRPC SeparateTaintEvictionController
  ServiceAccountNodeAudienceRestriction ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
  ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo ServiceTrafficDistribution
  SizeBasedListCostEstimate StatefulSetAutoDeletePVC StatefulSetStartOrdinal StorageCapacityScoring
  StorageNamespaceIndex StorageVersionAPI StorageVersionHash StorageVersionMigrator StreamingCollectionEncodingToJSON
  StreamingCollectionEncodingToProtobuf StrictCostEnforcementForVAP StrictCostEnforcementForWebhooks
  StrictIPCIDRValidation StructuredAuthenticationConfiguration StructuredAuthenticationConfigurationEgressSelector
  StructuredAuthorizationConfiguration TokenRequestServiceAccountUIDValidation TopologyAwareHints
  TopologyManagerPolicyBetaOptions TopologyManagerPolicyOptions TranslateStreamCloseWebsocketRequests
  UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy UserNamespacesPodSecurityStandards
  VolumeAttributesClass WatchCacheInitializationPostStartHook WatchFromStorageWithoutResourceVersion WatchList
  WinDSR WinOverlay WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown WindowsHostNetwork WorkloadAwarePreemption
`);

/** Every gate of a kubelet of Kubernetes 1.30 to 1.36, by name. */
export const FEATURE_GATES: ReadonlyMap<string, GateEffect> = new Map<string, GateEffect>([
  ...ON_CHECKED.map((name) => [name, { code: 'on', against: 'ends' }] as const),
  ...ON_COMFORT.map((name) => [name, { code: 'on', against: 'warns' }] as const),
  ...OFF_CHECKED.map((name) => [name, { code: 'off', against: 'ends' }] as const),
  ...OFF_COMFORT.map((name) => [name, { code: 'off', against: 'warns' }] as const),
  ...ELSEWHERE.map((name) => [name, { code: 'elsewhere' }] as const),
]);

/** What is wrong with the gates that are set; an unknown one ends the agent, as it does a kubelet. Pure. */
export function checkFeatureGates(set: Readonly<Record<string, boolean>>): readonly Unmet[] {
  return Object.entries(set).flatMap(([name, enabled]): readonly Unmet[] => {
    const path = `featureGates.${name}`;
    // Of all beta gates together some are on here and some are off.
    if (name === 'AllBeta') return [{ kind: 'ends', path, message: 'set the gates one by one' }];
    const gate = FEATURE_GATES.get(name);
    if (gate === undefined) return [{ kind: 'ends', path, message: `unrecognized feature gate: ${name}` }];
    if (gate.code === 'elsewhere' || (gate.code === 'on') === enabled) return [];
    const message =
      gate.code === 'on' ? 'is always on and cannot be set to false' : 'is not there: cannot be set to true';
    return [{ kind: gate.against, path, message }];
  });
}
