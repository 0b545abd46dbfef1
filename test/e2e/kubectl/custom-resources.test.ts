// Stock kubectl with custom resources, oldest and newest: a definition is applied, its objects at once after it, and everything
// kubectl does with built-in kinds is done with them.

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

const definition = (group: string): string => `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.${group}}
spec:
  group: ${group}
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab, shortNames: [ct], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Spec, type: string, jsonPath: .spec.cronSpec, description: When it runs.}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Image, type: string, jsonPath: .spec.image, priority: 1}
    selectableFields: [{jsonPath: .spec.image}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [cronSpec]
            x-kubernetes-validations:
            - {rule: self.replicas <= self.maxReplicas, message: no more than maxReplicas}
            properties:
              cronSpec: {type: string, pattern: '^(\\S+ ?){5}$', description: When it runs.}
              image: {type: string, default: busybox}
              replicas: {type: integer, minimum: 1, default: 1}
              maxReplicas: {type: integer, default: 5}
          status:
            type: object
            properties: {replicas: {type: integer}}
`;

const cronTab = (group: string, name: string, spec: string): string => `
apiVersion: ${group}/v1
kind: CronTab
metadata: {name: ${name}}
spec: ${spec}
`;

describe.each(versions)('kubectl $version', ({ command, version }) => {
  const group = `k${version.replace('.', '-')}.example.com`;
  const crd = `crontabs.${group}`;
  let kubectl: Kubectl;
  beforeAll(async () => {
    const home = join(test.root, `custom-${version}`);
    await mkdir(home, { recursive: true });
    kubectl = kubectlFor(command, test.kubeconfig, home);
  });

  it('applies a definition and its objects, and shows them', async () => {
    await kubectl.feed(definition(group), 'apply', '-f', '-');
    await kubectl.ok('wait', '--for=condition=Established', `crd/${crd}`, '--timeout=60s');
    await kubectl.feed(cronTab(group, 'one', '{cronSpec: "* * * * 5", replicas: 2}'), 'apply', '-f', '-');
    expect(await kubectl.ok('get', crd)).toMatch(/^NAME +SPEC +REPLICAS\none +\* \* \* \* 5 +2\n$/);
    expect(await kubectl.ok('get', crd, '-o', 'wide')).toContain('busybox');
    expect(await kubectl.ok('get', 'all')).toContain(`crontab.${group}/one`);
    expect(await kubectl.ok('describe', crd, 'one')).toContain('Cron Spec:     * * * * 5');
    expect(await kubectl.ok('api-resources', '--api-group', group)).toMatch(/crontabs +ct +\S+ +true +CronTab/);
    expect(await kubectl.ok('explain', `${crd}.spec.cronSpec`)).toContain('When it runs.');
    expect(await kubectl.ok('get', crd, '--field-selector', 'spec.image=busybox', '-o', 'name')).toBe(
      `crontab.${group}/one\n`,
    );
  });

  it('scales, patches and edits the status alone', async () => {
    await kubectl.ok('scale', crd, 'one', '--replicas=3');
    await kubectl.ok('patch', crd, 'one', '--subresource=status', '--type=merge', '-p', '{"status":{"replicas":3}}');
    const shown = await kubectl.ok(
      'get',
      crd,
      'one',
      '-o',
      'jsonpath={.spec.replicas} {.status.replicas} {.metadata.generation}',
    );
    expect(shown).toBe('3 3 2');
  });

  it('refuses what the schema and its rules refuse', async () => {
    const refused = async (spec: string, ...args: string[]): Promise<string> => {
      const { code, stderr } = await kubectl.run(['apply', '-f', '-', ...args], cronTab(group, 'bad', spec));
      expect(code).toBe(1);
      return stderr;
    };
    expect(await refused('{}')).toContain('spec.cronSpec: Required value');
    expect(await refused('{cronSpec: "now"}')).toContain("spec.cronSpec in body should match '^(\\S+ ?){5}$'");
    expect(await refused('{cronSpec: "* * * * 5", replicas: 9}')).toContain(
      'spec: Invalid value: "object": no more than maxReplicas',
    );
    expect(await refused('{cronSpec: "* * * * 5", colour: red}')).toContain('unknown field "spec.colour"');
    const { stderr } = await kubectl.run(['patch', crd, 'one', '-p', '{}']);
    expect(stderr).toContain('application/strategic-merge-patch+json is not supported');
  });

  it('applies on the server, and refuses what another manager owns', async () => {
    const manifest = cronTab(group, 'ssa', '{cronSpec: "* * * * 5", replicas: 2}');
    await kubectl.feed(manifest, 'apply', '--server-side', '--field-manager=a', '-f', '-');
    const changed = cronTab(group, 'ssa', '{cronSpec: "* * * * 6"}');
    const { code, stderr } = await kubectl.run(['apply', '--server-side', '--field-manager=b', '-f', '-'], changed);
    expect([code, stderr]).toEqual([1, expect.stringContaining('conflict with "a": .spec.cronSpec')]);
    await kubectl.feed(changed, 'apply', '--server-side', '--field-manager=b', '--force-conflicts', '-f', '-');
    const shown = await kubectl.ok('get', crd, 'ssa', '-o', 'jsonpath={.spec.cronSpec} {.spec.replicas}');
    expect(shown).toBe('* * * * 6 2');
  });

  it('deletes the objects with their definition', async () => {
    await kubectl.ok('delete', 'crd', crd, '--timeout=60s');
    const { code, stderr } = await kubectl.run(['get', crd]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("the server doesn't have a resource type")]);
    await kubectl.feed(definition(group), 'apply', '-f', '-');
    await kubectl.ok('wait', '--for=condition=Established', `crd/${crd}`, '--timeout=60s');
    expect(await kubectl.ok('get', crd)).toBe('');
  });
});
