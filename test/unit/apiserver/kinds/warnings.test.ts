import { describe, expect, it } from 'vitest';
import { create, row, update } from './support.ts';

type Fields = Record<string, unknown>;
const container = { name: 'web', image: 'web:1' };
const template = (spec: Fields = {}, metadata: Fields = {}): Fields => ({
  metadata: { labels: { app: 'web' }, ...metadata },
  spec: { containers: [container], ...spec },
});
const deployments = row('deployments', 'apps');
const deployment = (spec: Fields = {}, metadata: Fields = {}, name = 'web') =>
  create(deployments, {
    metadata: { name, generation: 1 },
    spec: { selector: { matchLabels: { app: 'web' } }, template: template(spec, metadata) },
  }).object;
const warnings = (spec: Fields, metadata: Fields = {}): readonly string[] =>
  deployments.strategy.warnings?.(deployment(spec, metadata)) ?? [];
const containers = (more: Fields): Fields => ({ containers: [{ ...container, ...more }] });
const port = (...list: Fields[]): Fields => containers({ ports: list });
const item = (path: string): Fields => ({ key: 'k', path });
const at = 'spec.template.spec';

describe('a template', () => {
  it.each<[Fields, string[]]>([
    [{}, []],
    [
      { nodeSelector: { 'beta.kubernetes.io/os': 'linux' } },
      [`${at}.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`],
    ],
    [
      { topologySpreadConstraints: [{ topologyKey: 'failure-domain.beta.kubernetes.io/zone', maxSkew: 1 }] },
      [
        `${at}.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
        `${at}.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod`,
      ],
    ],
    [
      { volumes: [{ name: 'a', gitRepo: { repository: 'r' } }] },
      [`${at}.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+`],
    ],
    [
      {
        dnsConfig: { nameservers: ['010.1.1.1', 'FE80::1', '10.1.1.1'] },
        hostAliases: [{ ip: '1.2.3.04', hostnames: ['a'] }],
      },
      [
        `${at}.dnsConfig.nameservers[0]: non-standard IP address "010.1.1.1" will be considered invalid in a future Kubernetes release: use "10.1.1.1"`,
        `${at}.dnsConfig.nameservers[1]: IPv6 address "FE80::1" should be in RFC 5952 canonical format ("fe80::1")`,
        `${at}.hostAliases[0].ip: non-standard IP address "1.2.3.04" will be considered invalid in a future Kubernetes release: use "1.2.3.4"`,
      ],
    ],
    [
      { volumes: [{ name: 'v', configMap: { name: 'c', items: [item('x'), item('x/y'), item('z'), item('xy')] } }] },
      ['volume "v" (ConfigMap "c"): overlapping paths: "x/y" with "x"'],
    ],
    [
      { volumes: [{ name: 'v', secret: { secretName: 's', items: [item('x/y'), item('x'), item('x/')] } }] },
      [
        'volume "v" (Secret "s"): overlapping paths: "x" with "x/y"',
        'volume "v" (Secret "s"): overlapping paths: "x" with "x/y"',
        'volume "v" (Secret "s"): overlapping paths: "x" with "x"',
      ],
    ],
    [
      {
        volumes: [
          {
            name: 'v',
            projected: {
              sources: [
                { configMap: { name: 'c', items: [item('x')] } },
                { secret: { name: 's', items: [item('x/y')] } },
                { serviceAccountToken: { path: 'x/y/token' } },
              ],
            },
          },
        ],
      },
      [
        'volume "v" (Projected): overlapping paths: "x/y" (Secret "s") with "x" (ConfigMap "c")',
        'volume "v" (Projected): overlapping paths: "x/y/token" (ServiceAccountToken) with "x" (ConfigMap "c")',
        'volume "v" (Projected): overlapping paths: "x/y/token" (ServiceAccountToken) with "x/y" (Secret "s")',
      ],
    ],
    [{ imagePullSecrets: [{ name: 'a' }, { name: 'a' }] }, [`${at}.imagePullSecrets[1].name: duplicate name "a"`]],
    [
      containers({ resources: { limits: { memory: '100m' } } }),
      [`${at}.containers[0].resources.limits[memory]: fractional byte value "100m" is invalid, must be an integer`],
    ],
    [
      containers({
        env: [
          { name: 'A', value: '1' },
          { name: 'A', value: '2' },
          { name: 'A', value: '$(A)3' },
        ],
      }),
      [`${at}.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply`],
    ],
    [
      port({ containerPort: 80 }, { containerPort: 80 }),
      [`${at}.containers[0].ports[1]: duplicate port definition with ${at}.containers[0].ports[0]`],
    ],
    [
      port({ containerPort: 80 }, { containerPort: 80, hostPort: 8080 }),
      [`${at}.containers[0].ports[1]: overlapping port definition with ${at}.containers[0].ports[0]`],
    ],
    [
      port({ containerPort: 80, hostPort: 80 }, { containerPort: 80, hostPort: 80, hostIP: '10.0.0.1' }),
      [`${at}.containers[0].ports[1]: dangerously ambiguous port definition with ${at}.containers[0].ports[0]`],
    ],
    [
      { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'a' }] } } },
      [
        `${at}.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: a null labelSelector results in matching no pod`,
      ],
    ],
  ])('%j', (spec, expected) => expect(warnings(spec)).toEqual(expected));

  it('has annotations that do nothing', () => {
    const annotations = {
      'scheduler.alpha.kubernetes.io/critical-pod': '',
      'seccomp.security.alpha.kubernetes.io/pod': 'runtime/default',
      'container.apparmor.security.beta.kubernetes.io/web': 'unconfined',
    };
    const field = 'spec.template.metadata.annotations';
    expect(warnings({}, { annotations })).toEqual([
      `${field}[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead`,
      `${field}[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "seccompProfile" field instead`,
      `${field}[container.apparmor.security.beta.kubernetes.io/web]: deprecated since v1.30; use the "appArmorProfile" field instead`,
    ]);
  });

  it('warns again when the spec has changed', () => {
    const old = deployment({ terminationGracePeriodSeconds: 1, nodeSelector: { 'beta.kubernetes.io/os': 'linux' } });
    const same = update(deployments, old, () => undefined).object;
    expect(deployments.strategy.warnings?.(same, old)).toEqual([]);
    const next = { ...same, metadata: { ...same.metadata, generation: 2 } };
    expect(deployments.strategy.warnings?.(next, old)).toHaveLength(1);
  });
});

describe('a name', () => {
  it('that is no label makes odd pods', () => {
    expect(deployments.strategy.warnings?.(deployment({}, {}, 'a.b'))).toEqual([
      'metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]',
    ]);
  });

  it('of a class in an annotation is deprecated', () => {
    const ingresses = row('ingresses', 'networking.k8s.io');
    const annotations = { 'kubernetes.io/ingress.class': 'a' };
    const made = create(ingresses, { metadata: { annotations }, spec: {} }).object;
    expect(ingresses.strategy.warnings?.(made)).toEqual([
      'annotation "kubernetes.io/ingress.class" is deprecated, please use \'spec.ingressClassName\' instead',
    ]);
  });
});
