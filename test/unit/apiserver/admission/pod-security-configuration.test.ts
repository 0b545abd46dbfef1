// --admission-control-config-file: what a file may have, and what the configuration of PodSecurity does to a server. kube-apiserver
// 1.34.2 answered the same requests with the same codes, messages and warnings.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readConfigurations } from '../../../../apiserver/admission/configuration.ts';
import { shownLevel } from '../../../../apiserver/admission/podsecurity/levels.ts';
import { at, TestApiServer } from '../../../support/api-server.ts';

const directory = mkdtempSync(join(tmpdir(), 'nodelet-admission-'));
afterAll(() => rmSync(directory, { recursive: true }));

const LABEL = 'pod-security.kubernetes.io';
const POD_SECURITY = { apiVersion: 'pod-security.admission.config.k8s.io/v1', kind: 'PodSecurityConfiguration' };

function write(name: string, value: unknown): string {
  const file = join(directory, name);
  writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value));
  return file;
}

function fileWith(...plugins: readonly object[]): string {
  return write('admission.yaml', {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AdmissionConfiguration',
    plugins,
  });
}

const inPlace = (more: object): string =>
  fileWith({ name: 'PodSecurity', configuration: { ...POD_SECURITY, ...more } });

describe('the file', () => {
  const defaultsOf = (file: string | undefined): string[] => {
    const { enforce, audit, warn } = readConfigurations(file).podSecurity.defaults;
    return [enforce, audit, warn].map(shownLevel);
  };
  const privileged = 'privileged:latest';

  it.each<[string, () => string | undefined, string[]]>([
    ['none', () => undefined, [privileged, privileged, privileged]],
    ['one without plugins', () => fileWith(), [privileged, privileged, privileged]],
    ['an empty configuration', () => inPlace({}), [privileged, privileged, privileged]],
    [
      'levels and versions',
      () => inPlace({ defaults: { enforce: 'baseline', 'enforce-version': 'v1.30', warn: 'restricted' } }),
      ['baseline:v1.30', privileged, 'restricted:latest'],
    ],
    [
      'a file beside it',
      () => {
        write('pod-security.yaml', { ...POD_SECURITY, defaults: { audit: 'baseline' } });
        return fileWith({ name: 'PodSecurity', path: 'pod-security.yaml' });
      },
      [privileged, 'baseline:latest', privileged],
    ],
  ])('with %s', (_name, file, defaults) => expect(defaultsOf(file())).toEqual(defaults));

  it.each<[string, () => string, string]>([
    ['that is not there', () => join(directory, 'none'), 'unable to read admission control configuration from'],
    ['of another kind', () => write('other', { kind: 'Pod', apiVersion: 'v1' }), 'no kind "Pod" is registered'],
    ['that is no YAML', () => write('broken', 'a: ['), 'Flow sequence'],
    ['with an unknown field', () => fileWith({ name: 'PodSecurity', config: {} }), 'unknown field "config"'],
    [
      'for a plugin that is not configured here',
      () => fileWith({ name: 'EventRateLimit' }),
      'EventRateLimit cannot be configured here',
    ],
    ['for no plugin', () => fileWith({ name: 'None' }), 'there is no plugin "None" that has a configuration'],
    [
      'with another configuration',
      () => fileWith({ name: 'PodSecurity', configuration: { kind: 'A' } }),
      'no kind "A" is registered',
    ],
    ['with an unknown default', () => inPlace({ defaults: { deny: 'x' } }), 'unknown field "defaults.deny"'],
    [
      'with levels and exemptions that there are not',
      () =>
        inPlace({
          defaults: { enforce: 'x', 'warn-version': '1.2' },
          exemptions: { namespaces: ['A', 'b', 'b'], runtimeClasses: ['_'], usernames: [''] },
        }),
      'defaults.enforce: Invalid value: "x": must be one of privileged, baseline, restricted, ' +
        'defaults.warn-version: Invalid value: "1.2": must be "latest" or "v1.x", exemptions.namespaces[0]: Invalid value: "A"',
    ],
  ])('%s is refused', (_name, file, why) => expect(() => readConfigurations(file())).toThrow(why));
});

describe('a server with defaults and exemptions', () => {
  let stand: TestApiServer;
  beforeAll(async () => {
    const configFile = inPlace({
      defaults: { enforce: 'baseline', 'enforce-version': 'v1.30', warn: 'restricted' },
      exemptions: { usernames: ['exempted'], runtimeClasses: ['sandboxed'], namespaces: ['free'] },
    });
    stand = await TestApiServer.start({ admission: { configFile } });
    await stand.admit('POST', '/apis/node.k8s.io/v1/runtimeclasses', {
      ...{ apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'sandboxed' }, handler: 'x' },
    });
    for (const [name, labels] of [
      ['plain', {}],
      ['open', { [`${LABEL}/enforce`]: 'privileged', [`${LABEL}/warn`]: 'privileged' }],
    ] as const) {
      await stand.admit('POST', '/api/v1/namespaces', { metadata: { name, labels } });
    }
  });
  afterAll(() => stand.stop());

  const create = (namespace: string, spec: object = {}, user?: string) =>
    stand.call({
      method: 'POST',
      path: `/api/v1/namespaces/${namespace}/pods?dryRun=All`,
      as: stand.admin,
      headers: user === undefined ? {} : { 'impersonate-user': user, 'impersonate-group': 'system:masters' },
      body: {
        metadata: { name: 'p' },
        spec: {
          hostPID: true,
          serviceAccountName: 'a',
          automountServiceAccountToken: false,
          containers: [{ name: 'c', image: 'x' }],
          ...spec,
        },
      },
    });

  it('has an exempt namespace, and warns about labels that have no effect', async () => {
    const labels = { [`${LABEL}/enforce`]: 'restricted', [`${LABEL}/audit-version`]: 'v1.2' };
    const made = await stand.call({
      method: 'POST',
      path: '/api/v1/namespaces',
      as: stand.admin,
      body: { metadata: { name: 'free', labels } },
    });
    expect(made.warnings).toEqual([
      '299 - "namespace \\"free\\" is exempt from Pod Security, and the policy (enforce=restricted:v1.30) will be ignored"',
    ]);
    await stand.admit('POST', '/api/v1/namespaces/free/serviceaccounts', { metadata: { name: 'a' } });
    const pod = await create('free');
    expect([pod.code, pod.warnings]).toEqual([201, []]);
  });

  it('has a policy for namespaces without labels', async () => {
    await stand.admit('POST', '/api/v1/namespaces/plain/serviceaccounts', { metadata: { name: 'a' } });
    const refused = await create('plain');
    expect([refused.code, at(refused.json, 'message')]).toEqual([
      403,
      'pods "p" is forbidden: violates PodSecurity "baseline:v1.30": host namespaces (hostPID=true)',
    ]);
    const warned = await create('plain', { hostPID: false });
    expect([warned.code, warned.warnings.length]).toEqual([201, 1]);
    expect(warned.warnings[0]).toContain('would violate PodSecurity \\"restricted:latest\\": allowPrivilegeEscalation');
  });

  it('passes over exempt users and runtime classes', async () => {
    expect((await create('plain', {}, 'exempted')).code).toBe(201);
    expect((await create('plain', {}, 'another')).code).toBe(403);
    expect((await create('plain', { runtimeClassName: 'sandboxed' })).code).toBe(201);
  });

  it('follows labels where there are some', async () => {
    await stand.admit('POST', '/api/v1/namespaces/open/serviceaccounts', { metadata: { name: 'a' } });
    const pod = await create('open');
    expect([pod.code, pod.warnings]).toEqual([201, []]);
  });
});
