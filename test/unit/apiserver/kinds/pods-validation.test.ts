import { describe, expect, it } from 'vitest';
import { container, type Fields, validate, withContainer, withVolume } from './pod-support.ts';

describe('a sound pod has no errors', () => {
  it.each<[string, Fields]>([
    ['with one container', {}],
    [
      'with a sidecar that is probed',
      {
        initContainers: [
          container({ name: 'side', restartPolicy: 'Always', readinessProbe: { exec: { command: ['x'] } } }),
        ],
      },
    ],
    [
      'with every kind of probe handler',
      {
        containers: [
          container({
            livenessProbe: { httpGet: { port: 'http' } },
            readinessProbe: { tcpSocket: { port: 80 } },
            startupProbe: { grpc: { port: 9090 } },
            lifecycle: { preStop: { sleep: { seconds: 5 } }, postStart: { exec: { command: ['true'] } } },
          }),
        ],
      },
    ],
    ['with an image volume', withVolume({ image: { reference: 'data:1' } }, [{ name: 'data', mountPath: '/d' }])],
    [
      'with a projected volume of everything',
      withVolume({
        projected: {
          sources: [
            { secret: { name: 's', items: [{ key: 'a', path: 'a' }] } },
            { configMap: { name: 'c' } },
            { downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
            { serviceAccountToken: { path: 'token', audience: 'x' } },
          ],
        },
      }),
    ],
    [
      'with variables from everywhere',
      withContainer({
        env: [
          { name: 'PLAIN', value: 'x' },
          { name: 'dotted.name-1', value: '' },
          { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
          { name: 'L', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
          { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
          { name: 'S', valueFrom: { secretKeyRef: { name: 's', key: 'k', optional: true } } },
        ],
        envFrom: [{ configMapRef: { name: 'c' }, prefix: 'P_' }],
      }),
    ],
    [
      'with huge pages and a device',
      withContainer({
        resources: { limits: { memory: '1Gi', 'hugepages-2Mi': '4Mi', 'example.com/gpu': '2' } },
      }),
    ],
    [
      'with a security context',
      {
        securityContext: {
          runAsUser: 0,
          fsGroup: 2000,
          sysctls: [{ name: 'net.core.somaxconn', value: '1024' }],
          seccompProfile: { type: 'RuntimeDefault' },
        },
        containers: [container({ securityContext: { privileged: true, capabilities: { add: ['NET_ADMIN'] } } })],
      },
    ],
    [
      'with container restart rules',
      withContainer({
        restartPolicy: 'Never',
        restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }],
      }),
    ],
    ['with host networking', { hostNetwork: true, containers: [container({ ports: [{ containerPort: 80 }] })] }],
    [
      'with its own DNS',
      { dnsPolicy: 'None', dnsConfig: { nameservers: ['1.2.3.4', 'fd00::1'], searches: ['a.b', '.'] } },
    ],
  ])('%s', (_name, spec) => {
    expect(validate(spec)).toEqual([]);
  });
});

describe('the pod as a whole', () => {
  it.each<[string, Fields, RegExp]>([
    [
      'the restart policy is a known one',
      { restartPolicy: 'Sometimes' },
      /^spec\.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"$/,
    ],
    ['the DNS policy is a known one', { dnsPolicy: 'Guess' }, /^spec\.dnsPolicy: Unsupported value: "Guess"/],
    [
      'without a DNS policy there are nameservers',
      { dnsPolicy: 'None' },
      /^spec\.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None$/,
    ],
    [
      'there are three nameservers at most',
      { dnsConfig: { nameservers: ['1.1.1.1', '1.1.1.2', '1.1.1.3', '1.1.1.4'] } },
      /nameservers: Invalid value: .*: must not have more than 3 nameservers$/,
    ],
    [
      'a nameserver is an address',
      { dnsConfig: { nameservers: ['dns'] } },
      /nameservers\[0\]: Invalid value: "dns": must be a valid IP address/,
    ],
    ['a hostname is a DNS label', { hostname: 'a.b' }, /^spec\.hostname: Invalid value: "a.b"/],
    ['a subdomain is a DNS label', { subdomain: '-a' }, /^spec\.subdomain: Invalid value: "-a"/],
    [
      'a host alias has an address',
      { hostAliases: [{ ip: 'x', hostnames: ['a'] }] },
      /^spec\.hostAliases\[0\]\.ip: Invalid value: "x": must be a valid IP address/,
    ],
    [
      'a host alias has good names',
      { hostAliases: [{ ip: '1.2.3.4', hostnames: ['A_'] }] },
      /^spec\.hostAliases\[0\]\.hostnames\[0\]: Invalid value: "A_"/,
    ],
    [
      'a deadline is positive',
      { activeDeadlineSeconds: 0 },
      /^spec\.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive$/,
    ],
    [
      'a node selector is made of labels',
      { nodeSelector: { 'a b': 'c' } },
      /^spec\.nodeSelector: Invalid value: "a b": name part/,
    ],
    [
      'a toleration with a value has no Exists',
      { tolerations: [{ key: 'a', operator: 'Exists', value: 'b' }] },
      /tolerations\[0\]\.operator: Invalid value: "b": value must be empty when `operator` is 'Exists'$/,
    ],
    [
      'a toleration for all keys has Exists',
      { tolerations: [{ operator: 'Equal', value: 'b' }] },
      /operator must be Exists when `key` is empty/,
    ],
    [
      'a toleration effect is a known one',
      { tolerations: [{ key: 'a', operator: 'Exists', effect: 'Never' }] },
      /tolerations\[0\]\.effect: Unsupported value: "Never"/,
    ],
    [
      'toleration seconds are for NoExecute',
      { tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoSchedule', tolerationSeconds: 3 }] },
      /effect: Invalid value: "NoSchedule": effect must be 'NoExecute' when `tolerationSeconds` is set$/,
    ],
    [
      'a node term has values',
      {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'In' }] }],
            },
          },
        },
      },
      /matchExpressions\[0\]\.values: Required value: must be specified when `operator` is 'In' or 'NotIn'$/,
    ],
    [
      'node affinity has a term',
      { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } } },
      /nodeSelectorTerms: Required value: must have at least one node selector term$/,
    ],
    [
      'a weight is 1 to 100',
      {
        affinity: {
          nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 0, preference: {} }] },
        },
      },
      /weight: Invalid value: 0: must be in the range 1-100$/,
    ],
    [
      'pod affinity has a topology key',
      {
        affinity: {
          podAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: {}, topologyKey: 'a b' }],
          },
        },
      },
      /topologyKey: Invalid value: "a b": name part must consist/,
    ],
    [
      'a skew is positive',
      { topologySpreadConstraints: [{ maxSkew: 0, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }] },
      /maxSkew: Invalid value: 0: must be greater than zero$/,
    ],
    [
      'a scheduling gate has a good name',
      { schedulingGates: [{ name: 'a b' }] },
      /schedulingGates\[0\]: Invalid value: "a b"/,
    ],
    [
      'a gated pod has no node',
      { nodeName: 'n1', schedulingGates: [{ name: 'a' }] },
      /^spec\.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared$/,
    ],
    [
      'a readiness gate has a good name',
      { readinessGates: [{ conditionType: 'a b' }] },
      /readinessGates\[0\]\.conditionType: Invalid value: "a b": name part must consist of/,
    ],
    [
      'an operating system is a known one',
      { os: { name: 'beos' } },
      /^spec\.os: Unsupported value: "beos": supported values: "linux", "windows"$/,
    ],
    [
      'a user is in range',
      { securityContext: { runAsUser: -1 } },
      /^spec\.securityContext\.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive$/,
    ],
    [
      'a group change policy is a known one',
      { securityContext: { fsGroupChangePolicy: 'No' } },
      /fsGroupChangePolicy: Unsupported value: "No"/,
    ],
    [
      'a local profile has a path',
      { securityContext: { seccompProfile: { type: 'Localhost' } } },
      /seccompProfile\.localhostProfile: Required value: must be set when seccomp type is Localhost$/,
    ],
    [
      'a sysctl has a good name',
      { securityContext: { sysctls: [{ name: 'A', value: '1' }] } },
      /sysctls\[0\]\.name: Invalid value: "A": must have at most 253 characters and match regex/,
    ],
    [
      'a network sysctl needs a network of its own',
      { hostNetwork: true, securityContext: { sysctls: [{ name: 'net.core.somaxconn', value: '1' }] } },
      /sysctls\[0\]\.name: Invalid value: "net.core.somaxconn": may not be specified when 'hostNetwork' is true$/,
    ],
    [
      "a shared process namespace is not the host's",
      { hostPID: true, shareProcessNamespace: true },
      /ShareProcessNamespace and HostPID cannot both be enabled$/,
    ],
    [
      'no escalation means no privilege',
      withContainer({ securityContext: { privileged: true, allowPrivilegeEscalation: false } }),
      /securityContext: Invalid value: .*cannot set `allowPrivilegeEscalation` to false and `privileged` to true$/,
    ],
    [
      "user namespaces exclude the host's",
      { hostUsers: false, hostNetwork: true },
      /^spec\.hostNetwork: Forbidden: when `hostUsers` is false$/,
    ],
    [
      'a hostname override is not for host networks',
      { hostNetwork: true, hostnameOverride: 'a' },
      /^spec\.hostnameOverride: Forbidden: may not be specified when hostNetwork is true$/,
    ],
  ])('%s', (_rule, spec, expected) => {
    expect(validate(spec)).toEqual([expect.stringMatching(expected)]);
  });
});

describe('metadata', () => {
  it.each<[string, Fields, RegExp]>([
    ['a name is required', { name: '' }, /^metadata\.name: Required value: name or generateName is required$/],
    [
      'a name is a DNS subdomain',
      { name: 'Web' },
      /^metadata\.name: Invalid value: "Web": a lowercase RFC 1123 subdomain must consist of/,
    ],
    ['a name has 253 bytes at most', { name: 'a'.repeat(254) }, /must be no more than 253 bytes$/],
    [
      'a label key is a qualified name',
      { labels: { 'a/b/c': '' } },
      /^metadata\.labels: Invalid value: "a\/b\/c": a qualified name must consist of/,
    ],
    [
      'a label value is short',
      { labels: { a: 'x'.repeat(64) } },
      /^metadata\.labels: Invalid value: "x+": must be no more than 63 bytes$/,
    ],
    [
      'a label value has no blanks',
      { labels: { a: 'x y' } },
      /^metadata\.labels: Invalid value: "x y": a valid label must be an empty string or consist of/,
    ],
    [
      'an annotation key is a qualified name',
      { annotations: { ' ': '' } },
      /^metadata\.annotations: Invalid value: " "/,
    ],
    [
      'annotations have 256 KiB together at most',
      { annotations: { a: 'x'.repeat(262_144) } },
      /^metadata\.annotations: Too long: may not be more than 262144 bytes$/,
    ],
    [
      'a finalizer has a domain',
      { finalizers: ['mine'] },
      /^metadata\.finalizers\[0\]: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified$/,
    ],
    [
      'an owner has a uid',
      { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'a' }] },
      /^metadata\.ownerReferences\.uid: Invalid value: "": must not be empty$/,
    ],
    ['a generated name has a good base', { generateName: 'AB-' }, /^metadata\.generateName: Invalid value: "AB-"/],
  ])('%s', (_rule, metadata, expected) => {
    expect(validate({}, metadata)).toEqual([expect.stringMatching(expected)]);
  });
});
