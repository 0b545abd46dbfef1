// Stock kubectl with custom resources, oldest and newest: a definition is applied, its objects at once after it, and everything
// kubectl does with built-in kinds is done with them.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestServer as HttpsServer } from '../../support/https-server.ts';
import { makeCa } from '../../support/tls.ts';
import { kubectls } from '../support/kubectls.ts';
import { type Kubectl, kubectlFor, startTestServer, type TestServer } from './support.ts';

const versions = (await kubectls()).filter(({ full }) => full);

let test: TestServer;
/** Converts between v1beta1, with spec.hostPort, and v1, with spec.host and spec.port. */
let hook: HttpsServer;
let caBundle: string;
beforeAll(async () => {
  test = await startTestServer();
  const ca = await makeCa();
  caBundle = Buffer.from(ca.cert).toString('base64');
  hook = await HttpsServer.start(await ca.server(['127.0.0.1']), ca.cert, ({ body }, response) => {
    const { uid, objects, desiredAPIVersion: apiVersion } = JSON.parse(body).request;
    const convertedObjects = objects.map(({ spec, ...rest }: { spec: Record<string, string> }) => {
      const [host = '', port = ''] = (spec['hostPort'] ?? '').split(':');
      const isNew = apiVersion.endsWith('/v1');
      return { ...rest, apiVersion, spec: isNew ? { host, port } : { hostPort: `${spec['host']}:${spec['port']}` } };
    });
    const reply = { uid, result: { status: 'Success' }, convertedObjects };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ kind: 'ConversionReview', apiVersion: 'apiextensions.k8s.io/v1', response: reply }));
  });
});
afterAll(async () => {
  await test.stop();
  await hook[Symbol.asyncDispose]();
});

const endpoints = (group: string): string => `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: endpointers.${group}}
spec:
  group: ${group}
  scope: Namespaced
  names: {plural: endpointers, kind: Endpointer}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {url: "${hook.url}/convert", caBundle: ${caBundle}}}
  versions:
  - name: v1beta1
    served: true
    storage: true
    additionalPrinterColumns: [{name: HostPort, type: string, jsonPath: .spec.hostPort}]
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {hostPort: {type: string}}}}}}
  - name: v1
    served: true
    storage: false
    additionalPrinterColumns: [{name: Host, type: string, jsonPath: .spec.host}, {name: Port, type: string, jsonPath: .spec.port}]
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {host: {type: string}, port: {type: string}}}}}}
`;

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
    await kubectl.ok('wait', '--for=condition=Established', `crd/${crd}`, '--timeout=300s');
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

  it('works in each of two versions, which a webhook converts', async () => {
    const crd = `endpointers.${group}`;
    await kubectl.feed(endpoints(group), 'apply', '-f', '-');
    await kubectl.ok('wait', '--for=condition=Established', `crd/${crd}`, '--timeout=300s');
    const manifest = (name: string, spec: string, version: string): string =>
      `apiVersion: ${group}/${version}\nkind: Endpointer\nmetadata: {name: ${name}}\nspec: ${spec}\n`;
    await kubectl.feed(manifest('one', '{hostPort: "a:80"}', 'v1beta1'), 'apply', '-f', '-');
    await kubectl.feed(manifest('two', '{host: b, port: "81"}', 'v1'), 'apply', '-f', '-');
    const [old, now] = [`endpointers.v1beta1.${group}`, `endpointers.v1.${group}`];
    expect(await kubectl.ok('get', now)).toMatch(/^NAME +HOST +PORT\none +a +80\ntwo +b +81\n$/);
    expect(await kubectl.ok('get', old)).toMatch(/^NAME +HOSTPORT\none +a:80\ntwo +b:81\n$/);
    // An object of the other version than before, from the client's side and from the server's.
    await kubectl.feed(manifest('one', '{host: c, port: "82"}', 'v1'), 'apply', '-f', '-');
    await kubectl.feed(
      manifest('two', '{host: b, port: "83"}', 'v1'),
      'apply',
      '--server-side',
      '--force-conflicts',
      '-f',
      '-',
    );
    expect(await kubectl.ok('get', old, '-o', 'jsonpath={.items[*].spec.hostPort}')).toBe('c:82 b:83');
    const watched = await kubectl.until(
      ['get', now, '-w'],
      (shown) => /^two +d +84$/m.test(shown),
      () => kubectl.ok('patch', old, 'two', '--type=merge', '-p', '{"spec":{"hostPort":"d:84"}}'),
    );
    expect(watched).toMatch(/^NAME +HOST +PORT\none +c +82\ntwo +b +83\n/);
    await kubectl.ok('delete', 'crd', crd, '--timeout=300s');
  });

  it('deletes the objects with their definition', async () => {
    await kubectl.ok('delete', 'crd', crd, '--timeout=300s');
    const { code, stderr } = await kubectl.run(['get', crd]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("the server doesn't have a resource type")]);
    await kubectl.feed(definition(group), 'apply', '-f', '-');
    await kubectl.ok('wait', '--for=condition=Established', `crd/${crd}`, '--timeout=300s');
    expect(await kubectl.ok('get', crd)).toBe('');
  });
});
