// The table of KubeletConfiguration (kubelet.config.k8s.io/v1beta1): every field of the API type with its type, its
// default as the kubelet sets it, and whether nodelet acts on it. Only the table; reading and checking are elsewhere.

import {
  accepted,
  bool,
  type Described,
  duration,
  float,
  int32,
  int64,
  listOf,
  mapOf,
  object,
  oneOf,
  optional,
  quantity,
  text,
  used,
} from './schema.ts';

const MINUTE = 60_000;

const taint = object({
  key: used(text),
  value: used(text),
  effect: used(oneOf('NoSchedule', 'PreferNoSchedule', 'NoExecute')),
  timeAdded: used(optional(text)),
});

const authentication = object({
  x509: used(object({ clientCAFile: used(text) })),
  webhook: used(object({ enabled: used(bool, true), cacheTTL: used(duration, 2 * MINUTE) })),
  anonymous: used(object({ enabled: used(bool, false) })),
});

const authorization = object({
  mode: used(oneOf('Webhook', 'AlwaysAllow')),
  webhook: used(
    object({ cacheAuthorizedTTL: used(duration, 5 * MINUTE), cacheUnauthorizedTTL: used(duration, 30_000) }),
  ),
});

const logFormat = object({ splitStream: accepted(bool), infoBufferSize: accepted(quantity, '0') });
const logging = object({
  format: accepted(oneOf('text', 'json')),
  flushFrequency: accepted(duration, 5000),
  verbosity: used(int32, 0),
  vmodule: accepted(listOf(object({ filePattern: accepted(text), verbosity: accepted(int32) }))),
  options: accepted(object({ text: accepted(logFormat), json: accepted(logFormat) })),
});

/** Hard eviction thresholds when none is configured. */
export const DEFAULT_EVICTION_HARD: Readonly<Record<string, string>> = {
  'memory.available': '100Mi',
  'nodefs.available': '10%',
  'nodefs.inodesFree': '5%',
  'imagefs.available': '15%',
  'imagefs.inodesFree': '5%',
};

export const KUBELET_FIELDS = {
  // ---- server
  enableServer: used(bool, true),
  address: used(text, '0.0.0.0'),
  port: used(int32, 10250),
  readOnlyPort: accepted(int32, 0),
  healthzPort: accepted(int32, 10248),
  healthzBindAddress: accepted(text, '127.0.0.1'),
  tlsCertFile: used(text),
  tlsPrivateKeyFile: used(text),
  tlsCipherSuites: used(listOf(text)),
  tlsCurvePreferences: accepted(listOf(int32)),
  tlsMinVersion: used(oneOf('', 'VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13')),
  rotateCertificates: accepted(bool),
  serverTLSBootstrap: accepted(bool),
  authentication: used(authentication),
  authorization: used(authorization),
  enableDebuggingHandlers: used(bool, true),
  enableContentionProfiling: accepted(bool),
  enableProfilingHandler: accepted(bool, true),
  enableDebugFlagsHandler: accepted(bool, true),
  enableSystemLogHandler: accepted(bool, true),
  enableSystemLogQuery: accepted(bool),
  streamingConnectionIdleTimeout: accepted(duration, 240 * MINUTE),

  // ---- where pods come from
  staticPodPath: used(text),
  staticPodURL: used(text),
  staticPodURLHeader: used(mapOf(listOf(text))),
  fileCheckFrequency: used(duration, 20_000),
  httpCheckFrequency: used(duration, 20_000),
  syncFrequency: used(duration, MINUTE),
  runOnce: accepted(bool),

  // ---- node
  registerNode: used(bool, true),
  registerWithTaints: used(listOf(taint)),
  providerID: used(text),
  nodeStatusUpdateFrequency: used(duration, 10_000),
  /** 5 min, or nodeStatusUpdateFrequency when that is set: filled in after reading. */
  nodeStatusReportFrequency: used(optional(duration)),
  nodeLeaseDurationSeconds: used(int32, 40),
  nodeStatusMaxImages: used(int32, 50),
  maxPods: used(int32, 110),
  podsPerCore: used(int32, 0),
  podCIDR: accepted(text),
  systemReserved: used(mapOf(text)),
  kubeReserved: used(mapOf(text)),
  systemReservedCgroup: used(text),
  kubeReservedCgroup: used(text),
  reservedSystemCPUs: accepted(text),
  enforceNodeAllocatable: used(listOf(text), ['pods']),
  enableControllerAttachDetach: accepted(bool, true),

  // ---- API client
  contentType: accepted(text, 'application/vnd.kubernetes.protobuf'),
  kubeAPIQPS: accepted(int32, 50),
  kubeAPIBurst: accepted(int32, 100),
  eventRecordQPS: accepted(int32, 50),
  eventBurst: accepted(int32, 100),
  configMapAndSecretChangeDetectionStrategy: used(oneOf('Watch', 'Cache', 'Get')),

  // ---- runtime and images
  containerRuntimeEndpoint: used(text),
  imageServiceEndpoint: used(text),
  runtimeRequestTimeout: used(duration, 2 * MINUTE),
  serializeImagePulls: used(bool, true),
  maxParallelImagePulls: used(optional(int32)),
  registryPullQPS: accepted(int32, 5),
  registryBurst: accepted(int32, 10),
  imagePullCredentialsVerificationPolicy: accepted(
    oneOf('NeverVerifyPreloadedImages', 'NeverVerify', 'NeverVerifyAllowlistedImages', 'AlwaysVerify'),
  ),
  preloadedImagesVerificationAllowlist: accepted(listOf(text)),
  imageMinimumGCAge: used(duration, 2 * MINUTE),
  imageMaximumGCAge: used(duration, 0),
  imageGCHighThresholdPercent: used(int32, 85),
  imageGCLowThresholdPercent: used(int32, 80),
  crashLoopBackOff: used(object({ maxContainerRestartPeriod: used(optional(duration)) })),
  seccompDefault: used(bool),

  // ---- container logs
  podLogsDir: used(text, '/var/log/pods'),
  containerLogMaxSize: used(quantity, '10Mi'),
  containerLogMaxFiles: used(int32, 5),
  containerLogMaxWorkers: accepted(int32, 1),
  containerLogMonitorInterval: used(duration, 10_000),

  // ---- cgroups and resources
  cgroupRoot: used(text),
  cgroupDriver: used(oneOf('cgroupfs', 'systemd')),
  cgroupsPerQOS: accepted(bool, true),
  kubeletCgroups: accepted(text),
  systemCgroups: accepted(text),
  cpuCFSQuota: used(bool, true),
  cpuCFSQuotaPeriod: used(duration, 100),
  podPidsLimit: used(int64, -1),
  oomScoreAdj: accepted(int32, -999),
  maxOpenFiles: accepted(int64, 1_000_000),
  singleProcessOOMKill: accepted(optional(bool)),
  cpuManagerPolicy: accepted(oneOf('none', 'static')),
  cpuManagerPolicyOptions: accepted(mapOf(text)),
  cpuManagerReconcilePeriod: accepted(duration, 10_000),
  draManagerReconcilePeriod: accepted(duration, MINUTE),
  memoryManagerPolicy: accepted(oneOf('None', 'Static')),
  topologyManagerPolicy: accepted(oneOf('none', 'restricted', 'best-effort', 'single-numa-node')),
  topologyManagerScope: accepted(oneOf('container', 'pod')),
  topologyManagerPolicyOptions: accepted(mapOf(text)),
  qosReserved: accepted(mapOf(text)),
  memorySwap: accepted(object({ swapBehavior: accepted(oneOf('', 'NoSwap', 'LimitedSwap')) })),
  failSwapOn: accepted(bool, true),
  /** The kubelet of 1.35 refuses cgroup v1 by default; nodelet runs on both, so the default stays false. */
  failCgroupV1: accepted(bool, false),
  memoryThrottlingFactor: accepted(float, 0.9),
  memoryReservationPolicy: accepted(oneOf('None', 'TieredReservation')),
  reservedMemory: accepted(listOf(object({ numaNode: accepted(int32), limits: accepted(mapOf(quantity)) }))),
  localStorageCapacityIsolation: used(bool, true),
  userNamespaces: accepted(object({ idsPerPod: accepted(int64, 65_536) })),
  allowedUnsafeSysctls: used(listOf(text)),
  protectKernelDefaults: accepted(bool),

  // ---- eviction and shutdown
  evictionHard: used(optional(mapOf(text))),
  evictionSoft: used(mapOf(text)),
  evictionSoftGracePeriod: used(mapOf(duration)),
  evictionMinimumReclaim: used(mapOf(text)),
  evictionPressureTransitionPeriod: used(duration, 5 * MINUTE),
  evictionMaxPodGracePeriod: used(int32, 0),
  mergeDefaultEvictionSettings: used(bool),
  kernelMemcgNotification: accepted(bool),
  shutdownGracePeriod: used(duration, 0),
  shutdownGracePeriodCriticalPods: used(duration, 0),
  shutdownGracePeriodByPodPriority: used(
    listOf(object({ priority: used(int32), shutdownGracePeriodSeconds: used(int64) })),
  ),

  // ---- pods' network and DNS
  clusterDNS: used(listOf(text)),
  clusterDomain: used(text),
  resolvConf: used(text, '/etc/resolv.conf'),
  hairpinMode: accepted(oneOf('promiscuous-bridge', 'hairpin-veth', 'none')),
  makeIPTablesUtilChains: accepted(bool, true),
  iptablesMasqueradeBit: accepted(int32, 14),
  iptablesDropBit: accepted(int32, 15),

  // ---- the rest
  volumeStatsAggPeriod: accepted(duration, MINUTE),
  volumePluginDir: accepted(text, '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/'),
  featureGates: accepted(mapOf(bool)),
  showHiddenMetricsForVersion: accepted(text),
  logging: used(logging),
  tracing: accepted(optional(object({ endpoint: accepted(text), samplingRatePerMillion: accepted(int32) }))),
} as const;

type Read = Described<typeof KUBELET_FIELDS>;

/** The configuration as read, defaults filled in. Durations are milliseconds; quantities stay text. */
export type KubeletConfiguration = Omit<Read, 'nodeStatusReportFrequency' | 'evictionHard'> & {
  readonly nodeStatusReportFrequency: number;
  readonly evictionHard: Readonly<Record<string, string>>;
};
