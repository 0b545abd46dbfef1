// The Pod Security Standards: each check with the words of the standard, versions, labels, and the three modes.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { podSecurity } from '../../../../apiserver/admission/plugins/pod-security.ts';
import { WITHOUT_CONFIGURATION } from '../../../../apiserver/admission/podsecurity/configuration.ts';
import { LATEST, type Level, policyOf, shownLevel } from '../../../../apiserver/admission/podsecurity/levels.ts';
import { shownViolations, violations } from '../../../../apiserver/admission/podsecurity/standards.ts';
import { NO_AUTHORIZER } from '../../../../apiserver/auth/authorizer.ts';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import type { PodSpec } from '../../../../apiserver/kinds/shapes.ts';
import { TestApiServer } from '../../../support/api-server.ts';
import { lines, lookupOf, NOW } from '../kinds/support.ts';

/** A pod that satisfies every level. */
const SAFE = {
  allowPrivilegeEscalation: false,
  runAsNonRoot: true,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
};
const spec = (context: object = {}, more: object = {}): PodSpec => ({
  containers: [{ name: 'c', image: 'x', securityContext: { ...SAFE, ...context } }],
  ...more,
});
const broken = (level: Level, pod: PodSpec, version = LATEST, annotations: Record<string, string> = {}): string =>
  shownViolations(violations({ level, version }, { annotations }, pod));

describe('baseline', () => {
  it('lets a usual pod pass, and privileged anything', () => {
    expect(broken('baseline', { containers: [{ name: 'c' }] })).toBe('');
    expect(broken('privileged', spec({ privileged: true }, { hostPID: true }))).toBe('');
  });

  it.each<[string, PodSpec]>([
    [
      'host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)',
      spec({}, { hostNetwork: true, hostPID: true, hostIPC: true }),
    ],
    [
      'hostPath volumes (volumes "a", "b")',
      spec({}, { volumes: [{ name: 'a', hostPath: {} }, { name: 'b', hostPath: {} }, { name: 'c' }] }),
    ],
    [
      'hostPort (containers "a", "b" use hostPorts 80, 90)',
      {
        initContainers: [{ name: 'a', ports: [{ hostPort: 90 }] }],
        containers: [{ name: 'b', ports: [{ hostPort: 80 }, { hostPort: 0 }] }],
      },
    ],
    ['hostPort (container "a" uses hostPort 80)', { containers: [{ name: 'a', ports: [{ hostPort: 80 }] }] }],
    [
      'probe or lifecycle host (container "c" uses probe or lifecycle hosts "1.2.3.4", "example.org")',
      {
        containers: [
          {
            name: 'c',
            livenessProbe: { httpGet: { host: 'example.org' } },
            lifecycle: { preStop: { tcpSocket: { host: '1.2.3.4' } } },
          },
        ],
      },
    ],
    ['privileged (container "c" must not set securityContext.privileged=true)', spec({ privileged: true })],
    ['procMount (container "c" must not set securityContext.procMount to "Unmasked")', spec({ procMount: 'Unmasked' })],
    [
      'non-default capabilities (container "c" must not include "NET_ADMIN", "SYS_TIME" in securityContext.capabilities.add)',
      spec({ capabilities: { add: ['SYS_TIME', 'NET_ADMIN', 'CHOWN'] } }),
    ],
    [
      'forbidden AppArmor profile (pod and container "c" must not set AppArmor profile type to "Unconfined")',
      spec(
        { appArmorProfile: { type: 'Unconfined' } },
        { securityContext: { appArmorProfile: { type: 'Unconfined' } } },
      ),
    ],
    [
      'seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: types "bar_t", "foo_t"; user may not be set; role may not be set)',
      spec(
        { seLinuxOptions: { type: 'foo_t', role: 'r' } },
        { securityContext: { seLinuxOptions: { type: 'bar_t', user: 'u' } } },
      ),
    ],
    [
      'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
      spec({}, { securityContext: { seccompProfile: { type: 'Unconfined' } } }),
    ],
    [
      'forbidden sysctls (kernel.msgmax, a)',
      spec(
        {},
        { securityContext: { sysctls: [{ name: 'kernel.msgmax' }, { name: 'net.ipv4.tcp_rmem' }, { name: 'a' }] } },
      ),
    ],
    [
      'hostProcess (pod and container "c" must not set securityContext.windowsOptions.hostProcess=true)',
      spec({ windowsOptions: { hostProcess: true } }, { securityContext: { windowsOptions: { hostProcess: true } } }),
    ],
  ])('%s', (message, pod) => {
    expect(broken('baseline', pod)).toBe(message);
  });

  it('looks at annotations too', () => {
    const key = 'container.apparmor.security.beta.kubernetes.io/c';
    expect(broken('baseline', spec(), LATEST, { [key]: 'unconfined' })).toBe(
      `forbidden AppArmor profile (annotation must not set AppArmor profile type to "${key}="unconfined"")`,
    );
    expect(broken('baseline', spec(), LATEST, { [key]: 'localhost/x' })).toBe('');
    const seccomp = { 'seccomp.security.alpha.kubernetes.io/pod': 'unconfined' };
    expect(broken('baseline', spec(), 18, seccomp)).toBe(
      'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")',
    );
    expect(broken('baseline', spec(), 19, seccomp)).toBe('');
  });

  it('shows ephemeral containers, and several violations in the standard’s order', () => {
    const pod = spec(
      {},
      { hostPID: true, ephemeralContainers: [{ name: 'debug', securityContext: { privileged: true } }] },
    );
    expect(broken('baseline', pod)).toBe(
      'host namespaces (hostPID=true), privileged (container "debug" must not set securityContext.privileged=true)',
    );
  });
});

describe('restricted', () => {
  it('lets a safe pod pass', () => {
    expect(broken('restricted', spec())).toBe('');
  });

  it('tells a usual pod all that it lacks', () => {
    expect(broken('restricted', { containers: [{ name: 'nginx', image: 'nginx' }] })).toBe(
      [
        'allowPrivilegeEscalation != false (container "nginx" must set securityContext.allowPrivilegeEscalation=false)',
        'unrestricted capabilities (container "nginx" must set securityContext.capabilities.drop=["ALL"])',
        'runAsNonRoot != true (pod or container "nginx" must set securityContext.runAsNonRoot=true)',
        'seccompProfile (pod or container "nginx" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
      ].join(', '),
    );
  });

  it.each<[string, PodSpec]>([
    [
      'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]; container "c" must not include "CHOWN" in securityContext.capabilities.add)',
      spec({ capabilities: { add: ['CHOWN', 'NET_BIND_SERVICE'] } }),
    ],
    [
      'restricted volume types (volumes "a", "b", "d" use restricted volume types "hostPath", "nfs", "unknown")',
      spec(
        {},
        { volumes: [{ name: 'a', nfs: {} }, { name: 'b', hostPath: {} }, { name: 'c', emptyDir: {} }, { name: 'd' }] },
      ),
    ],
    [
      'runAsNonRoot != true (pod and container "c" must not set securityContext.runAsNonRoot=false)',
      spec({ runAsNonRoot: false }, { securityContext: { runAsNonRoot: false } }),
    ],
    [
      'runAsUser=0 (pod and container "c" must not set runAsUser=0)',
      spec({ runAsUser: 0 }, { securityContext: { runAsUser: 0 } }),
    ],
    [
      'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
      spec(
        { seccompProfile: { type: 'Unconfined' } },
        { securityContext: { seccompProfile: { type: 'RuntimeDefault' } } },
      ),
    ],
  ])('%s', (message, pod) => {
    expect(broken('restricted', pod)).toBe(message);
  });

  it('takes what the pod sets for its containers', () => {
    const { runAsNonRoot: _run, seccompProfile: _seccomp, ...rest } = SAFE;
    const pod: PodSpec = {
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'Localhost' } },
      containers: [{ name: 'c', securityContext: rest }],
    };
    expect(broken('restricted', pod)).toBe('');
  });

  it.each<[number, string]>([
    [7, 'runAsNonRoot'],
    [8, 'allowPrivilegeEscalation runAsNonRoot'],
    [19, 'allowPrivilegeEscalation runAsNonRoot seccompProfile'],
    [22, 'allowPrivilegeEscalation unrestricted runAsNonRoot seccompProfile'],
    [23, 'allowPrivilegeEscalation unrestricted runAsNonRoot runAsUser=0 seccompProfile'],
  ])('v1.%i has the checks of its time', (version, reasons) => {
    const pod: PodSpec = { containers: [{ name: 'c', securityContext: { runAsUser: 0 } }] };
    const found = violations({ level: 'restricted', version }, {}, pod).map(({ reason }) => reason.split(' ')[0]);
    expect(found.join(' ')).toBe(reasons);
  });

  it('spares Windows pods from v1.25 on what Windows lacks', () => {
    const pod: PodSpec = {
      os: { name: 'windows' },
      containers: [{ name: 'c', securityContext: { runAsNonRoot: true } }],
    };
    expect(violations({ level: 'restricted', version: 24 }, {}, pod)).toHaveLength(3);
    expect(broken('restricted', pod, 25)).toBe('');
  });
});

describe('labels', () => {
  const labels = (entries: Record<string, string>) =>
    policyOf(Object.fromEntries(Object.entries(entries).map(([k, v]) => [`pod-security.kubernetes.io/${k}`, v])));
  const shown = (entries: Record<string, string>): string => {
    const { enforce, audit, warn } = labels(entries).policy;
    return [enforce, audit, warn].map(shownLevel).join(' ');
  };

  it.each<[Record<string, string>, string]>([
    [{}, 'privileged:latest privileged:latest privileged:latest'],
    [{ enforce: 'baseline', 'enforce-version': 'v1.30' }, 'baseline:v1.30 privileged:latest baseline:v1.30'],
    [
      { enforce: 'baseline', warn: 'restricted', audit: 'restricted' },
      'baseline:latest restricted:latest restricted:latest',
    ],
    [{ enforce: 'restricted', warn: 'privileged' }, 'restricted:latest privileged:latest privileged:latest'],
    [
      { enforce: 'nonsense', warn: 'nonsense', audit: 'nonsense' },
      'restricted:latest privileged:latest privileged:latest',
    ],
  ])('%j', (entries, policy) => {
    expect(shown(entries)).toBe(policy);
  });

  it('that cannot be read are field errors', () => {
    expect(lines(labels({ enforce: 'x', 'warn-version': '1.2' }).errors)).toEqual([
      'metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "x": must be one of privileged, baseline, restricted',
      'metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "1.2": must be "latest" or "v1.x"',
    ]);
  });
});

describe('a workload', () => {
  it('is warned about, never refused', () => {
    const namespace: KubeObject = {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: {
        name: 'demo',
        labels: { 'pod-security.kubernetes.io/enforce': 'baseline', 'pod-security.kubernetes.io/audit': 'baseline' },
      },
    };
    const template = { metadata: {}, spec: { hostPID: true, containers: [{ name: 'c' }] } };
    const reported: string[] = [];
    podSecurity(WITHOUT_CONFIGURATION).validate?.(
      {
        operation: 'CREATE',
        resource: { group: 'batch', version: 'v1', plural: 'cronjobs', subresource: '' },
        kind: { group: 'batch', version: 'v1', kind: 'CronJob' },
        namespace: 'demo',
        name: 'job',
        object: {
          apiVersion: 'batch/v1',
          kind: 'CronJob',
          metadata: {},
          spec: { jobTemplate: { spec: { template } } },
        },
        old: undefined,
        options: {},
        user: { name: 'a', groups: [] },
        authorizer: NO_AUTHORIZER,
        dryRun: false,
        now: NOW,
        requestId: '',
        warn: (text) => void reported.push(text),
        annotate: (key, value) => void reported.push(`${key}=${value}`),
        internal: false,
      },
      lookupOf({ group: '', plural: 'namespaces', object: namespace }),
    );
    const message = 'would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)';
    expect(reported).toEqual([`pod-security.kubernetes.io/audit-violations=${message}`, message]);
  });
});

describe('a server', () => {
  let stand: TestApiServer;
  beforeAll(async () => {
    stand = await TestApiServer.start();
  });
  afterAll(() => stand.stop());
  const as = () => stand.admin;
  const label = (entries: Record<string, string>) => ({
    metadata: {
      labels: Object.fromEntries(Object.entries(entries).map(([k, v]) => [`pod-security.kubernetes.io/${k}`, v])),
    },
  });
  const patch = { 'content-type': 'application/merge-patch+json' };

  it('refuses, warns, and holds existing pods against a new level', async () => {
    const ns = '/api/v1/namespaces/default';
    await stand.admit('POST', `${ns}/serviceaccounts`, {
      kind: 'ServiceAccount',
      apiVersion: 'v1',
      metadata: { name: 'default' },
    });
    const pod = (name: string) => ({
      kind: 'Pod',
      apiVersion: 'v1',
      metadata: { name },
      spec: { hostPID: true, containers: [{ name: 'c', image: 'x' }] },
    });
    await stand.admit('POST', `${ns}/pods`, pod('old'));
    const bad = await stand.call({
      method: 'PATCH',
      path: ns,
      as: as(),
      body: label({ enforce: 'x' }),
      headers: patch,
    });
    expect(bad.code).toBe(422);
    const changed = await stand.call({
      method: 'PATCH',
      path: ns,
      as: as(),
      body: label({ enforce: 'baseline' }),
      headers: patch,
    });
    expect(changed.code).toBe(200);
    expect(changed.warnings).toEqual([
      '299 - "existing pods in namespace \\"default\\" violate the new PodSecurity enforce level \\"baseline:latest\\""',
      '299 - "old: host namespaces"',
    ]);
    const refused = await stand.call({ method: 'POST', path: `${ns}/pods?dryRun=All`, as: as(), body: pod('new') });
    expect([refused.code, refused.text]).toEqual([
      403,
      expect.stringContaining(
        'pods \\"new\\" is forbidden: violates PodSecurity \\"baseline:latest\\": host namespaces (hostPID=true)',
      ),
    ]);
    await stand.admit('PATCH', ns, label({ enforce: 'privileged', warn: 'baseline' }), patch);
    const warned = await stand.call({ method: 'POST', path: `${ns}/pods`, as: as(), body: pod('new') });
    expect([warned.code, warned.warnings]).toEqual([
      201,
      ['299 - "would violate PodSecurity \\"baseline:latest\\": host namespaces (hostPID=true)"'],
    ]);
  });
});
