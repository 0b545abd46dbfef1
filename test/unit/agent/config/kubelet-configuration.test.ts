import { describe, expect, test } from 'vitest';
import { checkFeatureGates } from '../../../../agent/config/feature-gates.ts';
import {
  completeConfiguration,
  readConfigurationText,
  settingsWithoutEffect,
} from '../../../../agent/config/kubelet-configuration.ts';
import { DEFAULT_EVICTION_HARD } from '../../../../agent/config/kubelet-fields.ts';
import { UserError } from '../../../../lib/errors.ts';

const HEAD = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const read = (body: string) =>
  completeConfiguration(readConfigurationText(`${HEAD}${body}`, '/etc/k/config.yaml'), 'f');

function failure(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    if (error instanceof Error) return error.message;
  }
  throw new Error('nothing was refused');
}

describe('a KubeletConfiguration file', () => {
  test('gives the kubelet’s defaults where it says nothing', () => {
    const config = read('');
    expect(config).toMatchObject({
      port: 10250,
      address: '0.0.0.0',
      maxPods: 110,
      syncFrequency: 60_000,
      nodeStatusUpdateFrequency: 10_000,
      nodeStatusReportFrequency: 300_000,
      nodeLeaseDurationSeconds: 40,
      cgroupDriver: 'cgroupfs',
      resolvConf: '/etc/resolv.conf',
      serializeImagePulls: true,
      evictionHard: DEFAULT_EVICTION_HARD,
    });
    expect(config.authentication).toEqual({
      x509: { clientCAFile: '' },
      webhook: { enabled: true, cacheTTL: 120_000 },
      anonymous: { enabled: false },
    });
    expect(config.authorization).toEqual({
      mode: 'Webhook',
      webhook: { cacheAuthorizedTTL: 300_000, cacheUnauthorizedTTL: 30_000 },
    });
  });

  test('is read as JSON too', () => {
    const json = '{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration","port":1234}';
    expect(completeConfiguration(readConfigurationText(json, 'f.json'), 'f').port).toBe(1234);
  });

  test('keeps the defaults of the parts of an object that are not set', () => {
    const { authentication } = read('authentication: {x509: {clientCAFile: /ca.crt}}');
    expect(authentication.x509.clientCAFile).toBe('/ca.crt');
    expect(authentication.webhook.enabled).toBe(true);
  });

  test('takes null for a field as not set', () => {
    expect(read('port: null').port).toBe(10250);
  });

  test('means paths relative to the file itself', () => {
    const config = read('staticPodPath: manifests\nauthentication: {x509: {clientCAFile: pki/ca.crt}}');
    expect(config.staticPodPath).toBe('/etc/k/manifests');
    expect(config.authentication.x509.clientCAFile).toBe('/etc/k/pki/ca.crt');
  });

  test('sets nodeStatusReportFrequency to an explicit nodeStatusUpdateFrequency', () => {
    expect(read('nodeStatusUpdateFrequency: 20s').nodeStatusReportFrequency).toBe(20_000);
  });

  test('replaces the eviction thresholds unless mergeDefaultEvictionSettings is set', () => {
    expect(read('evictionHard: {memory.available: 1Gi}').evictionHard).toEqual({ 'memory.available': '1Gi' });
    const merged = read('evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true').evictionHard;
    expect(merged).toEqual({ ...DEFAULT_EVICTION_HARD, 'memory.available': '1Gi' });
  });

  test.each([
    ['fooBar: 1', 'unknown field "fooBar"'],
    ['authentication: {webhook: {cachettl: 1m}}', 'unknown field "authentication.webhook.cachettl"'],
    ['registerWithTaints: [{key: a, effect: NoSchedule, efect: b}]', 'unknown field "registerWithTaints[0].efect"'],
    ['port: abc', 'port: must be an integer (int32), not string "abc"'],
    ['port: 1.5', 'port: must be an integer (int32), not number 1.5'],
    ['port: -1', 'port: must be between 1 and 65535, not -1'],
    ['syncFrequency: 60', 'syncFrequency: must be a duration such as "1m30s", not number 60'],
    ['syncFrequency: 1x', 'syncFrequency: must be a duration such as "1m30s", not string "1x"'],
    ['clusterDNS: 10.0.0.10', 'clusterDNS: must be a list, not string "10.0.0.10"'],
    ['clusterDNS: [dns]', 'clusterDNS[0]: must be an IP address, not "dns"'],
    ['enableServer: "yes"', 'enableServer: must be a boolean, not string "yes"'],
    ['containerLogMaxSize: big', 'containerLogMaxSize: must be a quantity such as "100Mi", not string "big"'],
    ['cgroupDriver: cgroup', 'cgroupDriver: must be one of "cgroupfs", "systemd", not string "cgroup"'],
    ['featureGates: {A: 1}', 'featureGates[A]: must be a boolean, not number 1'],
    ['authentication: []', 'authentication: must be an object, not list'],
    ['tlsCertFile: /a.crt', 'tlsCertFile: and tlsPrivateKeyFile must be set together'],
    ['systemReserved: {memory: lots}', 'systemReserved[memory]: must be a quantity of 0 or more, not "lots"'],
    ['kubeReserved: {gpu: "1"}', 'kubeReserved[gpu]: is not a resource that can be reserved'],
    ['evictionHard: {memory.available: 200%}', 'must be a quantity or a percentage, not "200%"'],
    ['evictionHard: {memory.free: 1Gi}', 'evictionHard[memory.free]: is not an eviction signal'],
    ['evictionSoft: {memory.available: 1Gi}', 'evictionSoftGracePeriod[memory.available]: must be set'],
    ['imageGCLowThresholdPercent: 90', 'imageGCLowThresholdPercent: must be less than'],
    ['cpuCFSQuotaPeriod: 2s', 'cpuCFSQuotaPeriod (ms): must be between 1 and 1000, not 2000'],
    ['crashLoopBackOff: {maxContainerRestartPeriod: 10m}', 'must be between 1 and 300, not 600'],
    ['maxParallelImagePulls: 5', 'cannot be more than 1 while serializeImagePulls is true'],
    ['enforceNodeAllocatable: [none, pods]', '"none" must stand alone'],
    ['enforceNodeAllocatable: [kube-reserved]', 'kubeReservedCgroup: must be set'],
    ['shutdownGracePeriod: 10s\nshutdownGracePeriodCriticalPods: 20s', 'must not be longer than shutdownGracePeriod'],
    ['tracing: {samplingRatePerMillion: -1}', 'tracing.samplingRatePerMillion: must not be negative: -1'],
    ['tracing: {samplingRatePerMillion: 1000001}', 'must be at most one million, not 1000001'],
    ['tracing: {endpoint: "http://localhost:4317"}', 'tracing.endpoint: unsupported scheme: http'],
    ['port: 1\nport: 2', 'is not YAML or JSON'],
  ])('%s is refused', (body, message) => {
    expect(failure(() => read(body))).toContain(message);
  });

  test('lists everything wrong at once', () => {
    expect(failure(() => read('fooBar: 1\nport: x\nbarFoo: 2'))).toMatch(/"fooBar".*"barFoo".*port/s);
  });

  test.each([
    ['kind: KubeletConfiguration', 'apiVersion must be kubelet.config.k8s.io/v1beta1, not undefined'],
    ['apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration', 'not "kubelet.config.k8s.io/v1"'],
    ['apiVersion: kubelet.config.k8s.io/v1beta1\nkind: Kubelet', 'kind must be KubeletConfiguration, not "Kubelet"'],
    ['- 1', 'must be one object'],
    ['', 'must be one object'],
    ['a: [', 'is not YAML or JSON'],
  ])('a file that is not one is refused: %j', (source, message) => {
    expect(failure(() => readConfigurationText(source, '/x.yaml'))).toContain(message);
  });
});

/** The file that kubeadm 1.33 leaves on a node, as /var/lib/kubelet/config.yaml. */
const KUBEADM = `authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 0s, enabled: true}
  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
authorization:
  mode: Webhook
  webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {}
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
logging:
  flushFrequency: 0
  options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}
  verbosity: 0
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
resolvConf: /run/systemd/resolve/resolv.conf
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
`;

describe('the file of a node that kubeadm made', () => {
  test('is taken, and only the renewal of certificates is missed', () => {
    const config = read(KUBEADM);
    expect(settingsWithoutEffect(config)).toEqual([
      'rotateCertificates (the client certificate of the kubeconfig is not renewed by the agent)',
    ]);
  });

  test('means the defaults where it has zeros', () => {
    const { rotateCertificates: _, ...config } = read(KUBEADM);
    expect(config).toMatchObject({
      syncFrequency: 60_000,
      fileCheckFrequency: 20_000,
      httpCheckFrequency: 20_000,
      nodeStatusUpdateFrequency: 10_000,
      nodeStatusReportFrequency: 300_000,
      runtimeRequestTimeout: 120_000,
      imageMinimumGCAge: 120_000,
      imageMaximumGCAge: 0,
      evictionPressureTransitionPeriod: 300_000,
      authentication: { webhook: { cacheTTL: 120_000 } },
      authorization: { webhook: { cacheAuthorizedTTL: 300_000, cacheUnauthorizedTTL: 30_000 } },
    });
  });

  test('keeps the zeros that a kubelet keeps', () => {
    expect(read('healthzPort: 0\nnodeStatusMaxImages: 0\nimageGCLowThresholdPercent: 0\nresolvConf: ""')).toMatchObject(
      {
        healthzPort: 0,
        nodeStatusMaxImages: 0,
        imageGCLowThresholdPercent: 0,
        resolvConf: '',
      },
    );
  });
});

describe('a setting that nodelet cannot follow ends the agent', () => {
  test.each([
    ['cpuManagerPolicy: static', 'cpuManagerPolicy: there is no CPU manager'],
    ['cpuManagerPolicyOptions: {full-pcpus-only: "true"}', 'cpuManagerPolicyOptions: there is no CPU manager'],
    ['reservedSystemCPUs: 0-1', 'reservedSystemCPUs: there is no CPU manager'],
    ['memoryManagerPolicy: Static', 'memoryManagerPolicy: there is no memory manager'],
    ['reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]', 'reservedMemory: there is no memory manager'],
    ['topologyManagerPolicy: restricted', 'topologyManagerPolicy: there is no topology manager'],
    ['topologyManagerPolicy: best-effort', 'topologyManagerPolicy: there is no topology manager'],
    ['memorySwap: {swapBehavior: LimitedSwap}', 'memorySwap.swapBehavior: pods get no swap'],
    ['imagePullCredentialsVerificationPolicy: AlwaysVerify', 'imagePullCredentialsVerificationPolicy: images on the'],
    ['imagePullCredentialsVerificationPolicy: NeverVerifyPreloadedImages', 'VerificationPolicy: images on the machine'],
    ['preloadedImagesVerificationAllowlist: [a]', 'preloadedImagesVerificationAllowlist: images on the machine'],
    ['protectKernelDefaults: true', 'protectKernelDefaults: kernel settings are neither checked nor changed'],
    ['qosReserved: {memory: 50%}', 'qosReserved: no memory is reserved'],
    ['memoryReservationPolicy: TieredReservation', 'memoryReservationPolicy: there is no MemoryQoS'],
    ['userNamespaces: {idsPerPod: 131072}', 'userNamespaces.idsPerPod: each pod with a user namespace has 65536 ids'],
    ['cgroupsPerQOS: false', 'cgroupsPerQOS: pods always have'],
    ['tlsCurvePreferences: [29]', 'tlsCurvePreferences: the curves of TLS cannot be chosen'],
    ['runOnce: true', 'runOnce: the kubelet has no such mode'],
    ['featureGates: {MemoryQoS: true}', 'featureGates.MemoryQoS: is not there'],
    ['featureGates: {AppArmor: false}', 'featureGates.AppArmor: is always on'],
    ['featureGates: {AllAlpha: true}', 'featureGates.AllAlpha: is not there'],
    ['featureGates: {AllBeta: false}', 'featureGates.AllBeta: set the gates one by one'],
    ['featureGates: {KubeletEnsureSecretPulledImages: true}', 'KubeletEnsureSecretPulledImages: is not there'],
    ['featureGates: {NoSuchGate: true}', 'f: unrecognized feature gate: NoSuchGate'],
    ['featureGates: {constructor: true}', 'f: unrecognized feature gate: constructor'],
  ])('%s', (body, message) => {
    expect(failure(() => read(body))).toContain(message);
  });

  test.each([
    'cpuManagerPolicy: none',
    'cpuManagerPolicy: ""',
    'memoryManagerPolicy: None',
    'topologyManagerPolicy: none',
    'memorySwap: {swapBehavior: NoSwap}',
    'imagePullCredentialsVerificationPolicy: NeverVerify',
    'protectKernelDefaults: false',
    'reservedSystemCPUs: ""',
    'cgroupsPerQOS: true',
    'qosReserved: {}',
    'hairpinMode: promiscuous-bridge',
    'contentType: application/json',
    'enableProfilingHandler: false',
    'featureGates: {AppArmor: true, MemoryQoS: false, NodeSwap: true, WatchList: true, WinDSR: false, AllAlpha: false}',
  ])('and not where it is what nodelet does: %s', (body) => {
    expect(settingsWithoutEffect(read(body))).toEqual([]);
  });
});

describe('a setting that only costs comfort', () => {
  test('is in the warning, with its path and reason', () => {
    const body = 'hairpinMode: none\nlogging: {vmodule: [{filePattern: a, verbosity: 3}], verbosity: 3}\nkubeAPIQPS: 5';
    expect(settingsWithoutEffect(read(body)).map((text) => text.split(' ')[0])).toEqual([
      'kubeAPIQPS',
      'hairpinMode',
      'logging.vmodule',
    ]);
  });

  test('may be a feature gate', () => {
    expect(checkFeatureGates({ ImageVolume: false, KubeletPSI: true, SidecarContainers: true })).toEqual([
      { kind: 'warns', path: 'featureGates.ImageVolume', message: 'is always on and cannot be set to false' },
      { kind: 'warns', path: 'featureGates.KubeletPSI', message: 'is not there: cannot be set to true' },
    ]);
  });
});
