// The table of KubeletConfiguration (kubelet.config.k8s.io/v1beta1): every field of the API type with its type, its
// default as the kubelet sets it, and what nodelet does about it. Only the table; reading and checking are elsewhere.

import {
  bool,
  type Described,
  duration,
  durationOrNumber,
  ends,
  float,
  int32,
  int64,
  listOf,
  mapOf,
  object,
  oneOf,
  optional,
  pointer,
  quantity,
  text,
  used,
  warns,
} from './schema.ts';

const MINUTE = 60_000;

// Why a setting cannot be had.
const NO_CPU_MANAGER = 'there is no CPU manager: no container has CPUs of its own';
const NO_MEMORY_MANAGER = 'there is no memory manager';
const NO_TOPOLOGY_MANAGER = 'there is no topology manager';
const NO_MEMORY_QOS = 'there is no MemoryQoS';
const NO_VERIFICATION = 'images on the machine are used by any pod, with or without credentials';
const NO_RATE = 'requests are limited by how many run at once, not by rate';
const NO_PROFILES = 'there are no profiles at /debug/pprof';
const NO_IPTABLES = 'the agent makes no iptables rules';

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

const LOG = 'the agent writes one log, as JSON lines';
const logFormat = object({ splitStream: warns(bool, LOG), infoBufferSize: warns(quantity, LOG, '0') });
const logging = object({
  format: warns(oneOf('text', 'json'), LOG, 'text', ['json']),
  flushFrequency: warns(durationOrNumber, LOG, 5000),
  verbosity: used(int32, 0),
  vmodule: warns(listOf(object({ filePattern: used(text), verbosity: used(int32) })), LOG),
  options: used(object({ text: used(logFormat), json: used(logFormat) })),
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
  readOnlyPort: warns(int32, 'there is no port without authentication'),
  healthzPort: pointer(warns(int32, 'health is served on `port` alone', 10248, [0])),
  healthzBindAddress: warns(text, 'health is served on `port` alone', '127.0.0.1'),
  tlsCertFile: used(text),
  tlsPrivateKeyFile: used(text),
  tlsCipherSuites: used(listOf(text)),
  tlsCurvePreferences: ends(listOf(int32), 'the curves of TLS cannot be chosen'),
  tlsMinVersion: used(oneOf('', 'VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13')),
  rotateCertificates: warns(bool, 'the client certificate of the kubeconfig is not renewed by the agent'),
  serverTLSBootstrap: warns(bool, 'the serving certificate is self-signed, or the one of tlsCertFile'),
  authentication: used(authentication),
  authorization: used(authorization),
  enableDebuggingHandlers: used(bool, true),
  enableContentionProfiling: warns(bool, NO_PROFILES),
  enableProfilingHandler: warns(bool, NO_PROFILES, true, [false]),
  enableDebugFlagsHandler: warns(bool, 'there is no /debug/flags', true, [false]),
  enableSystemLogHandler: used(bool, true),
  enableSystemLogQuery: used(bool, false),
  streamingConnectionIdleTimeout: used(duration, 240 * MINUTE),

  // ---- where pods come from
  staticPodPath: used(text),
  staticPodURL: used(text),
  staticPodURLHeader: used(mapOf(listOf(text))),
  fileCheckFrequency: used(duration, 20_000),
  httpCheckFrequency: used(duration, 20_000),
  syncFrequency: used(duration, MINUTE),
  runOnce: ends(bool, 'the kubelet has no such mode any more'),

  // ---- node
  registerNode: used(bool, true),
  registerWithTaints: used(listOf(taint)),
  providerID: used(text),
  nodeStatusUpdateFrequency: used(duration, 10_000),
  /** 5 min, or nodeStatusUpdateFrequency when that is set: filled in after reading. */
  nodeStatusReportFrequency: used(optional(duration)),
  nodeLeaseDurationSeconds: used(int32, 40),
  nodeStatusMaxImages: pointer(used(int32, 50)),
  maxPods: used(int32, 110),
  podsPerCore: used(int32, 0),
  podCIDR: warns(text, 'addresses of pods come from the CNI configuration'),
  systemReserved: used(mapOf(text)),
  kubeReserved: used(mapOf(text)),
  systemReservedCgroup: used(text),
  kubeReservedCgroup: used(text),
  reservedSystemCPUs: ends(text, NO_CPU_MANAGER),
  enforceNodeAllocatable: used(listOf(text), ['pods']),
  enableControllerAttachDetach: ends(bool, 'only the controller attaches volumes', true),

  // ---- API client
  contentType: warns(text, 'the agent uses JSON with the API server', 'application/vnd.kubernetes.protobuf', [
    'application/json',
  ]),
  kubeAPIQPS: pointer(warns(int32, NO_RATE, 50)),
  kubeAPIBurst: warns(int32, NO_RATE, 100),
  eventRecordQPS: pointer(warns(int32, NO_RATE, 50)),
  eventBurst: warns(int32, NO_RATE, 100),
  configMapAndSecretChangeDetectionStrategy: used(oneOf('Watch', 'Cache', 'Get')),

  // ---- runtime and images
  containerRuntimeEndpoint: used(text),
  imageServiceEndpoint: used(text),
  runtimeRequestTimeout: used(duration, 2 * MINUTE),
  serializeImagePulls: used(bool, true),
  maxParallelImagePulls: used(optional(int32)),
  registryPullQPS: pointer(warns(int32, NO_RATE, 5)),
  registryBurst: warns(int32, NO_RATE, 10),
  imagePullCredentialsVerificationPolicy: ends(
    oneOf('', 'NeverVerify', 'NeverVerifyPreloadedImages', 'NeverVerifyAllowlistedImages', 'AlwaysVerify'),
    NO_VERIFICATION,
    '',
    ['NeverVerify'],
  ),
  preloadedImagesVerificationAllowlist: ends(listOf(text), NO_VERIFICATION),
  imageMinimumGCAge: used(duration, 2 * MINUTE),
  imageMaximumGCAge: used(duration, 0),
  imageGCHighThresholdPercent: pointer(used(int32, 85)),
  imageGCLowThresholdPercent: pointer(used(int32, 80)),
  crashLoopBackOff: used(object({ maxContainerRestartPeriod: used(optional(duration)) })),
  seccompDefault: used(bool),

  // ---- container logs
  podLogsDir: used(text, '/var/log/pods'),
  containerLogMaxSize: used(quantity, '10Mi'),
  containerLogMaxFiles: pointer(used(int32, 5)),
  containerLogMaxWorkers: pointer(warns(int32, 'logs are rotated one after the other', 1)),
  containerLogMonitorInterval: pointer(used(duration, 10_000)),

  // ---- cgroups and resources
  cgroupRoot: used(text),
  cgroupDriver: used(oneOf('cgroupfs', 'systemd')),
  cgroupsPerQOS: ends(bool, 'pods always have the cgroups of their QoS class', true),
  kubeletCgroups: warns(text, 'processes outside of pods are left in their cgroups'),
  systemCgroups: warns(text, 'processes outside of pods are left in their cgroups'),
  cpuCFSQuota: used(bool, true),
  cpuCFSQuotaPeriod: pointer(used(duration, 100)),
  podPidsLimit: pointer(used(int64, -1)),
  oomScoreAdj: pointer(warns(int32, 'the agent keeps the OOM score it is started with', -999)),
  maxOpenFiles: warns(int64, 'the agent keeps the limit it is started with', 1_000_000),
  singleProcessOOMKill: warns(
    optional(bool),
    'without memory the kernel ends a container as a whole where it can (cgroup v2)',
    undefined,
    [false],
  ),
  cpuManagerPolicy: ends(oneOf('none', 'static'), NO_CPU_MANAGER),
  cpuManagerPolicyOptions: ends(mapOf(text), NO_CPU_MANAGER),
  cpuManagerReconcilePeriod: warns(duration, NO_CPU_MANAGER, 10_000),
  draManagerReconcilePeriod: warns(duration, 'pods with resource claims are refused', MINUTE),
  memoryManagerPolicy: ends(oneOf('None', 'Static'), NO_MEMORY_MANAGER),
  topologyManagerPolicy: ends(oneOf('none', 'restricted', 'best-effort', 'single-numa-node'), NO_TOPOLOGY_MANAGER),
  topologyManagerScope: warns(oneOf('container', 'pod'), NO_TOPOLOGY_MANAGER),
  topologyManagerPolicyOptions: ends(mapOf(text), NO_TOPOLOGY_MANAGER),
  qosReserved: ends(mapOf(text), 'no memory is reserved by QoS class'),
  memorySwap: used(
    object({
      swapBehavior: ends(oneOf('', 'NoSwap', 'LimitedSwap'), 'pods get no swap', '', ['NoSwap']),
    }),
  ),
  failSwapOn: used(bool, true),
  /** The kubelet of 1.35 refuses cgroup v1 by default; nodelet runs on both, so the default stays false. */
  failCgroupV1: used(bool, false),
  memoryThrottlingFactor: pointer(warns(float, NO_MEMORY_QOS, 0.9)),
  memoryReservationPolicy: ends(oneOf('None', 'TieredReservation'), NO_MEMORY_QOS),
  reservedMemory: ends(listOf(object({ numaNode: used(int32), limits: used(mapOf(quantity)) })), NO_MEMORY_MANAGER),
  localStorageCapacityIsolation: used(bool, true),
  userNamespaces: used(object({ idsPerPod: ends(int64, 'each pod with a user namespace has 65536 ids', 65_536) })),
  allowedUnsafeSysctls: used(listOf(text)),
  protectKernelDefaults: ends(bool, 'kernel settings are neither checked nor changed'),

  // ---- eviction and shutdown
  evictionHard: used(optional(mapOf(text))),
  evictionSoft: used(mapOf(text)),
  evictionSoftGracePeriod: used(mapOf(duration)),
  evictionMinimumReclaim: used(mapOf(text)),
  evictionPressureTransitionPeriod: used(duration, 5 * MINUTE),
  evictionMaxPodGracePeriod: used(int32, 0),
  mergeDefaultEvictionSettings: used(bool),
  kernelMemcgNotification: warns(bool, 'memory is measured every ten seconds'),
  shutdownGracePeriod: used(duration, 0),
  shutdownGracePeriodCriticalPods: used(duration, 0),
  shutdownGracePeriodByPodPriority: used(
    listOf(object({ priority: used(int32), shutdownGracePeriodSeconds: used(int64) })),
  ),

  // ---- pods' network and DNS
  clusterDNS: used(listOf(text)),
  clusterDomain: used(text),
  resolvConf: pointer(used(text, '/etc/resolv.conf')),
  hairpinMode: warns(oneOf('promiscuous-bridge', 'hairpin-veth', 'none'), 'bridges are configured by CNI plugins'),
  makeIPTablesUtilChains: warns(bool, NO_IPTABLES, true, [false]),
  iptablesMasqueradeBit: pointer(warns(int32, NO_IPTABLES, 14)),
  iptablesDropBit: pointer(warns(int32, NO_IPTABLES, 15)),

  // ---- the rest
  volumeStatsAggPeriod: warns(duration, 'figures of volumes are read on request', MINUTE),
  volumePluginDir: warns(text, 'there are no FlexVolumes', '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/'),
  featureGates: used(mapOf(bool)),
  showHiddenMetricsForVersion: warns(text, 'there are no hidden metrics'),
  logging: used(logging),
  tracing: used(optional(object({ endpoint: used(text), samplingRatePerMillion: used(int32) }))),
} as const;

type Read = Described<typeof KUBELET_FIELDS>;

/** The configuration as read, defaults filled in. Durations are milliseconds; quantities stay text. */
export type KubeletConfiguration = Omit<Read, 'nodeStatusReportFrequency' | 'evictionHard'> & {
  readonly nodeStatusReportFrequency: number;
  readonly evictionHard: Readonly<Record<string, string>>;
};
