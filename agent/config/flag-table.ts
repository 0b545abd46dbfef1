// The agent's command line as a table: the kubelet's flags that stand for a KubeletConfiguration field, and those that
// only exist as flags. Only the table; flags.ts reads it.

export type FlagKind = 'text' | 'int' | 'bool' | 'list' | 'map' | 'boolMap' | 'taints' | 'headers';

export interface FlagRow {
  readonly flag: string;
  readonly kind: FlagKind;
  readonly about: string;
  /** Where the value goes in the KubeletConfiguration; absent for a flag that has no field. */
  readonly field?: readonly [string, ...string[]];
}

const field = (flag: string, kind: FlagKind, path: string, about: string): FlagRow => {
  const [first = '', ...rest] = path.split('.');
  return { flag, kind, about, field: [first, ...rest] };
};

/** Flags that lie over a field of the configuration file. */
export const FIELD_FLAGS: readonly FlagRow[] = [
  field('address', 'text', 'address', 'IP address to serve the kubelet API on (default 0.0.0.0)'),
  field('port', 'int', 'port', 'port of the kubelet API (default 10250)'),
  field('tls-cert-file', 'text', 'tlsCertFile', 'serving certificate (default: self-signed, kept in --cert-dir)'),
  field('tls-private-key-file', 'text', 'tlsPrivateKeyFile', 'key of --tls-cert-file'),
  field('tls-cipher-suites', 'list', 'tlsCipherSuites', 'TLS 1.2 cipher suites to offer'),
  field('tls-min-version', 'text', 'tlsMinVersion', 'VersionTLS12 or VersionTLS13'),
  field(
    'anonymous-auth',
    'bool',
    'authentication.anonymous.enabled',
    'serve callers without credentials as system:anonymous',
  ),
  field(
    'authentication-token-webhook',
    'bool',
    'authentication.webhook.enabled',
    'check bearer tokens by TokenReview (default true)',
  ),
  field(
    'authentication-token-webhook-cache-ttl',
    'text',
    'authentication.webhook.cacheTTL',
    'how long a TokenReview holds (default 2m)',
  ),
  field('client-ca-file', 'text', 'authentication.x509.clientCAFile', 'CA bundle for client certificates'),
  field('authorization-mode', 'text', 'authorization.mode', 'Webhook (default) or AlwaysAllow'),
  field(
    'authorization-webhook-cache-authorized-ttl',
    'text',
    'authorization.webhook.cacheAuthorizedTTL',
    'how long a yes holds (default 5m)',
  ),
  field(
    'authorization-webhook-cache-unauthorized-ttl',
    'text',
    'authorization.webhook.cacheUnauthorizedTTL',
    'how long a no holds (default 30s)',
  ),
  field(
    'container-runtime-endpoint',
    'text',
    'containerRuntimeEndpoint',
    'CRI socket (default unix:///run/containerd/containerd.sock)',
  ),
  field('image-service-endpoint', 'text', 'imageServiceEndpoint', 'CRI image socket (default: the runtime’s)'),
  field('runtime-request-timeout', 'text', 'runtimeRequestTimeout', 'deadline of ordinary CRI calls (default 2m)'),
  field('register-node', 'bool', 'registerNode', 'make the Node object (default true)'),
  field('register-with-taints', 'taints', 'registerWithTaints', 'taints of a new Node: key=value:effect,…'),
  field('provider-id', 'text', 'providerID', 'spec.providerID of the Node'),
  field('cgroup-driver', 'text', 'cgroupDriver', 'cgroupfs (default) or systemd'),
  field('cgroup-root', 'text', 'cgroupRoot', 'cgroup that contains kubepods'),
  field('cgroups-per-qos', 'bool', 'cgroupsPerQOS', 'a cgroup per QoS class (default true)'),
  field('pod-cidr', 'text', 'podCIDR', 'addresses of pods in standalone mode'),
  field('max-pods', 'int', 'maxPods', 'most pods on this node (default 110)'),
  field('pods-per-core', 'int', 'podsPerCore', 'most pods per core; 0 is no limit'),
  field('pod-max-pids', 'int', 'podPidsLimit', 'most processes per pod; -1 is no limit'),
  field('cluster-dns', 'list', 'clusterDNS', 'DNS servers of ClusterFirst pods'),
  field('cluster-domain', 'text', 'clusterDomain', 'DNS domain of the cluster'),
  field('resolv-conf', 'text', 'resolvConf', 'resolver file that pods inherit (default /etc/resolv.conf)'),
  field('pod-manifest-path', 'text', 'staticPodPath', 'file or directory of static pods'),
  field('manifest-url', 'text', 'staticPodURL', 'URL of static pods'),
  field('manifest-url-header', 'headers', 'staticPodURLHeader', 'headers for --manifest-url: a:hello,b:world'),
  field('http-check-frequency', 'text', 'httpCheckFrequency', 'time between reads of --manifest-url (default 20s)'),
  field(
    'file-check-frequency',
    'text',
    'fileCheckFrequency',
    'time between reads of --pod-manifest-path (default 20s)',
  ),
  field('sync-frequency', 'text', 'syncFrequency', 'longest time without a sync of a pod (default 1m)'),
  field(
    'node-status-update-frequency',
    'text',
    'nodeStatusUpdateFrequency',
    'time between computations of node status (default 10s)',
  ),
  field('node-status-max-images', 'int', 'nodeStatusMaxImages', 'most images in node status (default 50)'),
  field('system-reserved', 'map', 'systemReserved', 'resources kept for the system: cpu=200m,memory=1Gi'),
  field('kube-reserved', 'map', 'kubeReserved', 'resources kept for Kubernetes daemons'),
  field('enforce-node-allocatable', 'list', 'enforceNodeAllocatable', 'pods, system-reserved, kube-reserved, none'),
  field('eviction-hard', 'map', 'evictionHard', 'hard eviction thresholds: memory.available<100Mi,…'),
  field('cpu-cfs-quota', 'bool', 'cpuCFSQuota', 'enforce CPU limits (default true)'),
  field('cpu-cfs-quota-period', 'text', 'cpuCFSQuotaPeriod', 'CFS period (default 100ms)'),
  field('serialize-image-pulls', 'bool', 'serializeImagePulls', 'pull images one by one (default true)'),
  field('fail-swap-on', 'bool', 'failSwapOn', 'refuse to start when swap is on'),
  field('seccomp-default', 'bool', 'seccompDefault', 'RuntimeDefault seccomp for pods that name none'),
  field('allowed-unsafe-sysctls', 'list', 'allowedUnsafeSysctls', 'unsafe sysctls that pods may set'),
  field('hairpin-mode', 'text', 'hairpinMode', 'promiscuous-bridge, hairpin-veth or none'),
  field('feature-gates', 'boolMap', 'featureGates', 'Name=true,…'),
  field('healthz-port', 'int', 'healthzPort', 'port of the plain healthz endpoint; 0 is none'),
  field('enable-server', 'bool', 'enableServer', 'serve the kubelet API (default true)'),
  field(
    'enable-debugging-handlers',
    'bool',
    'enableDebuggingHandlers',
    'serve logs, exec, attach, port-forward (default true)',
  ),
];

/** Flags without a field. */
export const OWN_FLAGS = [
  { flag: 'kubeconfig', kind: 'text', about: 'how to reach the API server; without it only static pods run' },
  { flag: 'config', kind: 'text', about: 'KubeletConfiguration file (YAML or JSON); flags override it' },
  { flag: 'hostname-override', kind: 'text', about: 'name of the Node (default: the hostname)' },
  { flag: 'node-ip', kind: 'list', about: 'address(es) of the node, primary first (default: detected)' },
  { flag: 'node-labels', kind: 'map', about: 'labels of a new Node: a=b,c=d' },
  { flag: 'root-dir', kind: 'text', about: 'state of the agent (default /var/lib/nodelet/kubelet)' },
  { flag: 'socket-dir', kind: 'text', about: 'where trace.sock and cni.sock are made (default <root-dir>)' },
  { flag: 'cert-dir', kind: 'text', about: 'where the self-signed certificate is kept (default <root-dir>/pki)' },
  { flag: 'network', kind: 'text', about: 'who runs CNI: agent (default) or runtime' },
  { flag: 'cni-conf-dir', kind: 'text', about: 'directory of the conflist (default /etc/cni/net.d)' },
  { flag: 'cni-bin-dir', kind: 'list', about: 'directories of CNI plugins (default /opt/cni/bin,/usr/lib/cni)' },
  { flag: 'cni-cache-dir', kind: 'text', about: 'results of CNI calls (default /var/lib/cni)' },
  { flag: 'cni-shim-dir', kind: 'text', about: 'where the runtime finds our shim (default <root-dir>/cni-shim)' },
  {
    flag: 'image-credential-provider-config',
    kind: 'text',
    about: 'CredentialProviderConfig file, or a directory of them',
  },
  {
    flag: 'image-credential-provider-bin-dir',
    kind: 'text',
    about: 'where the programs of credential providers are',
  },
  { flag: 'v', kind: 'int', about: 'log verbosity' },
] as const satisfies readonly FlagRow[];

export type OwnFlag = (typeof OWN_FLAGS)[number]['flag'];
