// Stock kubectl and the admission plugins, against the embedded API server alone: quotas and limits, Pod Security, policies
// and webhooks, with refusals and warnings as a user sees them. The oldest and the newest.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubectls } from '../support/kubectls.ts';
import { type Kubectl, kubectlFor, startTestServer, type TestServer } from './support.ts';

const versions = (await kubectls()).filter(({ full }) => full);

let test: TestServer;
beforeAll(async () => {
  test = await startTestServer();
});
afterAll(async () => {
  await test.stop();
});

describe.each(versions)('kubectl $version', ({ command, version }) => {
  const id = `k${version.replace('.', '-')}`;
  const ns = `-n=${id}`;
  let kubectl: Kubectl;

  beforeAll(async () => {
    const home = join(test.root, `home-${version}`);
    await mkdir(home, { recursive: true });
    kubectl = kubectlFor(command, test.kubeconfig, home);
    await kubectl.ok('create', 'namespace', id);
    await kubectl.ok('create', 'serviceaccount', 'default', ns);
  });

  it('create quota bounds a namespace, describe quota shows what is used', async () => {
    await kubectl.feed(
      'apiVersion: v1\nkind: LimitRange\nmetadata: {name: sizes}\nspec: {limits: [{type: Container, default: {cpu: 200m}}]}\n',
      'apply',
      ns,
      '-f',
      '-',
    );
    await kubectl.ok('create', 'quota', 'small', ns, '--hard=pods=1,limits.cpu=1,count/configmaps=5');
    await kubectl.ok('run', 'web', ns, '--image=x');
    const { code, stderr } = await kubectl.run(['run', 'more', ns, '--image=x']);
    expect([code, stderr]).toEqual([
      1,
      'Error from server (Forbidden): pods "more" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1\n',
    ]);
    expect(await kubectl.ok('describe', 'quota', 'small', ns)).toMatch(/^limits\.cpu +200m +1$/m);
    await kubectl.ok('delete', 'pod', 'web', ns, '--force', '--grace-period=0');
    expect(await kubectl.ok('get', 'quota', 'small', ns, '-o', 'jsonpath={.status.used.pods}')).toBe('0');
  });

  it('label ns raises the Pod Security level: workloads are warned about, pods refused', async () => {
    await kubectl.ok('label', 'namespace', id, 'pod-security.kubernetes.io/enforce=restricted');
    const deployment = await kubectl.run(['create', 'deployment', 'web', ns, '--image=nginx']);
    expect(deployment.code).toBe(0);
    expect(deployment.stderr).toMatch(
      /^Warning: would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false \(container "nginx" must set/,
    );
    const pod = await kubectl.run(['run', 'web', ns, '--image=x', '--dry-run=server']);
    expect(pod.code).toBe(1);
    expect(pod.stderr).toContain('pods "web" is forbidden: violates PodSecurity "restricted:latest": ');
  });

  it('apply of a policy and its binding refuses what breaks it', async () => {
    await kubectl.feed(
      `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ${id}}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ${id}}}
    resourceRules: [{operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
  validations: [{expression: "object.metadata.name.startsWith('ok-')", messageExpression: "object.metadata.name + ' is not ok'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: ${id}}
spec: {policyName: ${id}, validationActions: [Deny]}
`,
      'apply',
      '-f',
      '-',
    );
    await kubectl.ok('create', 'configmap', 'ok-1', ns);
    const { code, stderr } = await kubectl.run(['create', 'configmap', 'bad', ns]);
    expect(code).toBe(1);
    expect(stderr).toContain(`ValidatingAdmissionPolicy '${id}' with binding '${id}' denied request: bad is not ok`);
    expect(await kubectl.ok('get', 'validatingadmissionpolicies', id)).toMatch(new RegExp(`^${id} +1 +<unset> `, 'm'));
    await kubectl.ok('delete', 'validatingadmissionpolicybinding,validatingadmissionpolicy', id);
  });
});
