import { describe, expect, test } from 'vitest';
import { completeConfiguration, readConfigurationText } from '../../../../agent/config/kubelet-configuration.ts';
import { DEFAULT_EVICTION_HARD, KUBELET_FIELDS } from '../../../../agent/config/kubelet-fields.ts';
import { notActedOn } from '../../../../agent/config/schema.ts';
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

  test('replaces the eviction thresholds unless told to merge them', () => {
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
    ['port: 0', 'port: must be between 1 and 65535, not 0'],
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

describe('fields that nodelet does not act on', () => {
  test('are told when they are set, with their paths', () => {
    const raw = { port: 1, hairpinMode: 'none', logging: { format: 'json', verbosity: 3 }, featureGates: null };
    expect(notActedOn(KUBELET_FIELDS, raw)).toEqual(['hairpinMode', 'logging.format']);
  });
});
