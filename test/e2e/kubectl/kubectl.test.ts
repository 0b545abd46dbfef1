// Stock kubectl against the embedded API server alone: no agent, so pods stay Pending. Logs and exec, which need one,
// are shown elsewhere. What is `fully` is run with the oldest and the newest kubectl only.

import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubectls, onFullList } from '../support/kubectls.ts';
import { type Kubectl, kubectlFor, startTestServer, type TestServer } from './support.ts';

const versions = await kubectls();

let test: TestServer;
beforeAll(async () => {
  test = await startTestServer();
});
afterAll(async () => {
  await test.stop();
});

const pod = (image: string, extra = ''): string => `
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
spec:
  containers:
  - name: web
    image: ${image}
    ports: [{containerPort: 80}]
${extra}`;

const configMap = (value: string): string => `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {key: "${value}"}
`;

describe.each(versions)('kubectl $version', ({ command, version, full }) => {
  const fully = onFullList({ full });
  const namespace = `k${version.replace('.', '-')}`;
  let kubectl: Kubectl;
  const inNamespace = (...args: string[]): string[] => ['-n', namespace, ...args];
  const ok = (...args: string[]): Promise<string> => kubectl.ok(...inNamespace(...args));
  const feed = (manifest: string, ...args: string[]): Promise<string> =>
    kubectl.feed(manifest, ...inNamespace(...args));
  /** A script that kubectl edit runs in place of an editor. */
  const editor = async (expression: string): Promise<Record<string, string>> => {
    const path = join(test.root, `editor-${version}`);
    await writeFile(path, `#!/bin/sh\nexec sed -i '${expression}' "$1"\n`);
    await chmod(path, 0o755);
    return { KUBE_EDITOR: path };
  };

  beforeAll(async () => {
    const home = join(test.root, `home-${version}`);
    await mkdir(home, { recursive: true });
    kubectl = kubectlFor(command, test.kubeconfig, home);
  });

  it('version shows that of the server', async () => {
    expect(await kubectl.ok('version', '-o', 'json')).toContain('"gitVersion": "v1.34.0+nodelet"');
  });

  fully('cluster-info names the server', async () => {
    const text = await kubectl.ok('cluster-info');
    expect(stripVTControlCharacters(text)).toContain(`is running at ${test.server.url}`);
  });

  it('api-resources lists kinds with short names, groups and verbs', async () => {
    const list = await kubectl.ok('api-resources', '--no-headers', '-o', 'wide');
    expect(list).toMatch(/^pods\s+po\s+v1\s+true\s+Pod\s.*deletecollection/m);
    expect(list).toMatch(/^leases\s+coordination.k8s.io\/v1\s+true\s+Lease/m);
    expect(await kubectl.ok('api-resources', '--namespaced=false', '-o', 'name')).toContain(
      'priorityclasses.scheduling.k8s.io',
    );
    expect(await kubectl.ok('api-versions')).toContain('events.k8s.io/v1');
  });

  it('create makes namespaces, service accounts, config maps, secrets and services', async () => {
    expect(await kubectl.ok('create', 'namespace', namespace)).toBe(`namespace/${namespace} created\n`);
    expect(await ok('create', 'serviceaccount', 'default')).toBe('serviceaccount/default created\n');
    expect(await ok('create', 'configmap', 'literal', '--from-literal=a=b')).toBe('configmap/literal created\n');
    expect(await ok('create', 'secret', 'generic', 'hidden', '--from-literal=password=x y')).toBe(
      'secret/hidden created\n',
    );
    expect(await ok('create', 'service', 'clusterip', 'front', '--tcp=80:8080')).toBe('service/front created\n');
    expect(await ok('get', 'configmap', 'literal', '-o', 'jsonpath={.data.a}')).toBe('b');
    expect(await ok('get', 'secret', 'hidden', '-o', 'jsonpath={.type} {.data.password}')).toBe('Opaque eCB5');
    expect(await ok('get', 'service', 'front', '-o', 'jsonpath={.spec.clusterIP} {.spec.ports[0].targetPort}')).toMatch(
      /^10\.96\.\d+\.\d+ 8080$/,
    );
  });

  fully('create refuses what exists', async () => {
    const { code, stderr } = await kubectl.run(inNamespace('create', 'serviceaccount', 'default'));
    expect(code).toBe(1);
    expect(stderr).toContain('serviceaccounts "default" already exists');
  });

  it('apply creates, leaves alone, and changes', async () => {
    expect(await feed(pod('nginx:stable'), 'apply', '-f', '-')).toBe('pod/web created\n');
    expect(await feed(pod('nginx:stable'), 'apply', '-f', '-')).toBe('pod/web unchanged\n');
    expect(await feed(pod('nginx:1.27'), 'apply', '-f', '-')).toBe('pod/web configured\n');
    expect(await ok('get', 'pod', 'web', '-o', 'jsonpath={.spec.containers[0].image}')).toBe('nginx:1.27');
  });

  it('a dry run of apply on the server stores nothing', async () => {
    const shown = await feed(configMap('server'), 'apply', '--server-side', '--dry-run=server', '-f', '-');
    expect(shown).toBe('configmap/settings serverside-applied (server dry run)\n');
    expect((await kubectl.run(inNamespace('get', 'configmap', 'settings'))).stderr).toContain(
      'configmaps "settings" not found',
    );
  });

  it('get prints pods as a table, wide, by name, as JSON and YAML, and by JSON path', async () => {
    expect(await ok('get', 'pods')).toMatch(
      /^NAME\s+READY\s+STATUS\s+RESTARTS\s+AGE\nweb\s+0\/1\s+Pending\s+0\s+[\dms]+\n$/,
    );
    expect(await ok('get', 'pods', '-o', 'wide')).toMatch(
      /^NAME\s+READY\s+STATUS\s+RESTARTS\s+AGE\s+IP\s+NODE\s+NOMINATED NODE\s+READINESS GATES\nweb\s+0\/1\s+Pending\s+0\s+[\dms]+\s+<none>\s+<none>\s+<none>\s+<none>\n$/,
    );
    expect(await ok('get', 'pods', '-o', 'name')).toBe('pod/web\n');
    expect(JSON.parse(await ok('get', 'pod', 'web', '-o', 'json'))).toMatchObject({
      kind: 'Pod',
      status: { phase: 'Pending', qosClass: 'BestEffort' },
    });
    expect(await ok('get', 'pod', 'web', '-o', 'yaml')).toContain('serviceAccountName: default');
    expect(await ok('get', 'pods', '-o', 'jsonpath={.items[*].metadata.name}')).toBe('web');
    expect(await ok('get', 'pods', '-l', 'app=web', '--show-labels')).toContain('app=web');
    expect(await ok('get', 'pods', '--field-selector', 'status.phase=Pending,metadata.name=web', '-o', 'name')).toBe(
      'pod/web\n',
    );
    expect(await ok('get', 'pods', '-l', 'app!=web', '-o', 'name')).toBe('');
    expect(await ok('get', 'po,svc,cm', '-o', 'name')).toContain('service/front');
    expect(await ok('get', 'all')).toContain('pod/web');
  });

  fully('get -A and --sort-by go over all namespaces', async () => {
    expect(await kubectl.ok('get', 'services', '-A')).toMatch(
      /^default\s+kubernetes\s+ClusterIP\s+10\.96\.0\.1\s+<none>\s+443\/TCP/m,
    );
    expect(await kubectl.ok('get', 'namespaces', '--sort-by=.metadata.name')).toMatch(/default[\s\S]+kube-system/);
  });

  fully('get of what is not there fails with its name', async () => {
    const { code, stderr } = await kubectl.run(inNamespace('get', 'pod', 'gone'));
    expect([code, stderr]).toEqual([1, 'Error from server (NotFound): pods "gone" not found\n']);
    expect((await kubectl.run(['get', 'unicorns'])).stderr).toContain(
      'the server doesn\'t have a resource type "unicorns"',
    );
  });

  it('get -w shows changes as they happen', async () => {
    // kubectl writes a row in pieces: the whole of it is waited for.
    const row = /^watched\s+1\s+[\dms]+\n/m;
    const output = await kubectl.until(
      inNamespace('get', 'configmaps', '-w', '--no-headers'),
      (stdout) => row.test(stdout),
      () => ok('create', 'configmap', 'watched', '--from-literal=a=b'),
    );
    expect(output).toMatch(row);
  });

  fully('describe shows the pod and its events', async () => {
    const uid = await ok('get', 'pod', 'web', '-o', 'jsonpath={.metadata.uid}');
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'web.1', namespace },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', name: 'web', namespace, uid },
      reason: 'Tested',
      message: 'seen by describe',
      type: 'Normal',
      source: { component: 'test' },
      firstTimestamp: '2025-01-01T00:00:00Z',
      lastTimestamp: '2025-01-01T00:00:00Z',
      count: 3,
    };
    await feed(JSON.stringify(event), 'create', '-f', '-');
    const text = await ok('describe', 'pod', 'web');
    expect(text).toMatch(/Image:\s+nginx:1\.27$/m);
    expect(text).toMatch(/Tolerations:\s+node\.kubernetes\.io\/not-ready:NoExecute op=Exists for 300s/);
    expect(text).toMatch(/Normal\s+Tested\s+.*seen by describe/);
    expect(await ok('describe', 'service', 'front')).toMatch(/TargetPort:\s+8080\/TCP/);
    expect(await ok('describe', 'secret', 'hidden')).toMatch(/password:\s+3 bytes/);
    expect(await kubectl.ok('describe', 'namespace', namespace)).toMatch(/Status:\s+Active/);
  });

  fully('events and get events print them', async () => {
    expect(await ok('get', 'events')).toMatch(/Normal\s+Tested\s+pod\/web\s+seen by describe/);
    expect(await ok('events', '--for', 'pod/web')).toMatch(/Tested\s+Pod\/web\s+seen by describe/);
    expect(await ok('get', 'events.events.k8s.io', '-o', 'jsonpath={.items[0].note} {.items[0].regarding.name}')).toBe(
      'seen by describe web',
    );
  });

  fully('label and annotate add, change and remove', async () => {
    expect(await ok('label', 'pod', 'web', 'tier=front')).toBe('pod/web labeled\n');
    expect((await kubectl.run(inNamespace('label', 'pod', 'web', 'tier=back'))).stderr).toContain(
      "'tier' already has a value (front)",
    );
    expect(await ok('label', 'pod', 'web', 'tier=back', '--overwrite')).toBe('pod/web labeled\n');
    expect(await ok('label', 'pod', 'web', 'tier-')).toBe('pod/web unlabeled\n');
    // 1.27 prints "annotate".
    expect(await ok('annotate', 'pod', 'web', 'note=a b')).toMatch(/^pod\/web annotated?\n$/);
    expect(await ok('get', 'pod', 'web', '-o', 'jsonpath={.metadata.labels} {.metadata.annotations.note}')).toBe(
      '{"app":"web"} a b',
    );
  });

  fully('patch takes all three types', async () => {
    const image = (): Promise<string> => ok('get', 'pod', 'web', '-o', 'jsonpath={.spec.containers[*].image}');
    await ok('patch', 'pod', 'web', '-p', '{"spec":{"containers":[{"name":"web","image":"nginx:strategic"}]}}');
    expect(await image()).toBe('nginx:strategic');
    await ok(
      'patch',
      'pod',
      'web',
      '--type=json',
      '-p',
      '[{"op":"replace","path":"/spec/containers/0/image","value":"nginx:json"}]',
    );
    expect(await image()).toBe('nginx:json');
    await ok('patch', 'pod', 'web', '--type=merge', '-p', '{"metadata":{"labels":{"merged":"yes"}}}');
    expect(await ok('get', 'pod', 'web', '-o', 'jsonpath={.metadata.labels.merged}')).toBe('yes');
    expect(await ok('patch', 'pod', 'web', '--type=merge', '-p', '{"metadata":{"labels":{"merged":"yes"}}}')).toBe(
      'pod/web patched (no change)\n',
    );
  });

  fully('patch of a status goes to the subresource, and wait sees it', async () => {
    const condition = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}';
    const waiting = ok('wait', 'pod/web', '--for=condition=Ready', '--timeout=300s');
    await ok('patch', 'pod', 'web', '--subresource=status', '--type=merge', '-p', condition);
    expect(await waiting).toBe('pod/web condition met\n');
    expect(await ok('wait', 'pod/web', '--for=jsonpath={.status.phase}=Running', '--timeout=300s')).toBe(
      'pod/web condition met\n',
    );
    const { code, stderr } = await kubectl.run(
      inNamespace('wait', 'pod/web', '--for=condition=Nothing', '--timeout=5s'),
    );
    expect([code, stderr]).toEqual([1, 'error: timed out waiting for the condition on pods/web\n']);
  });

  fully('edit stores what the editor leaves, and cancels when that is nothing new', async () => {
    const edited = await kubectl.run(
      inNamespace('edit', 'configmap', 'literal'),
      '',
      await editor('s/a: b/a: edited/'),
    );
    expect([edited.code, edited.stdout]).toEqual([0, 'configmap/literal edited\n']);
    expect(await ok('get', 'configmap', 'literal', '-o', 'jsonpath={.data.a}')).toBe('edited');
    const same = await kubectl.run(inNamespace('edit', 'configmap', 'literal'), '', await editor('s/nothing/else/'));
    expect(`${same.stdout}${same.stderr}`).toContain('Edit cancelled, no changes made');
  });

  it('replace needs the object to be there', async () => {
    expect((await kubectl.run(inNamespace('replace', '-f', '-'), configMap('1'))).stderr).toContain(
      'configmaps "settings" not found',
    );
    await feed(configMap('1'), 'create', '-f', '-');
    expect(await feed(configMap('2'), 'replace', '-f', '-')).toBe('configmap/settings replaced\n');
    expect(await ok('get', 'configmap', 'settings', '-o', 'jsonpath={.data.key}')).toBe('2');
  });

  fully('diff and dry runs show what would be, and store nothing', async () => {
    const { code, stdout } = await kubectl.run(inNamespace('diff', '-f', '-'), configMap('3'));
    expect(code).toBe(1);
    expect(stdout).toMatch(/^-\s+key: "2"$/m);
    expect(stdout).toMatch(/^\+\s+key: "3"$/m);
    expect(await feed(configMap('4'), 'apply', '--dry-run=server', '-f', '-')).toContain('configured (server dry run)');
    expect(await ok('get', 'configmap', 'settings', '-o', 'jsonpath={.data.key}')).toBe('2');
  });

  fully('a stale resourceVersion is a conflict', async () => {
    const stale = JSON.parse(await ok('get', 'configmap', 'settings', '-o', 'json'));
    await ok('annotate', 'configmap', 'settings', 'touched=yes');
    const { code, stderr } = await kubectl.run(inNamespace('replace', '-f', '-'), JSON.stringify(stale));
    expect(code).toBe(1);
    expect(stderr).toContain(
      'the object has been modified; please apply your changes to the latest version and try again',
    );
  });

  it('explain describes fields, deep down and recursively', async () => {
    expect(await kubectl.ok('explain', 'pods')).toMatch(/KIND:\s+Pod\nVERSION:\s+v1\n/);
    const field = await kubectl.ok('explain', 'pod.spec.containers.livenessProbe.httpGet.port');
    expect(field).toMatch(/FIELD:\s+port <IntOrString>/);
    expect(field).toContain('Name or number of the port to access on the container');
    expect(await kubectl.ok('explain', 'lease', '--recursive')).toContain('leaseDurationSeconds');
    expect((await kubectl.run(['explain', 'pod.spec.nothing'])).stderr).toContain('field "nothing" does not exist');
  });

  it('auth can-i answers', async () => {
    expect(await kubectl.ok('auth', 'can-i', 'create', 'pods')).toBe('yes\n');
    // 1.27 knows whoami only in its alpha and beta versions, which are served nowhere any more.
    if (version !== '1.27') {
      expect(await kubectl.ok('auth', 'whoami', '-o', 'jsonpath={.status.userInfo.groups}')).toContain(
        'system:masters',
      );
    }
  });

  fully('--as reviews and acts as another user', async () => {
    const canI = async (...args: string[]): Promise<string> =>
      (await kubectl.run(['auth', 'can-i', ...args])).stdout.trim();
    expect(await canI('delete', 'secrets', '-A')).toBe('yes');
    expect(await canI('delete', 'secrets', '-A', '--as=nobody')).toBe('no');
    expect(await canI('delete', 'secrets', '-A', '--as=nobody', '--as-group=system:masters')).toBe('yes');
    const refused = await kubectl.run(['get', 'secrets', '-A', '--as=nobody']);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('User "nobody" cannot list resource "secrets"');
    if (version === '1.27') return;
    const account = 'system:serviceaccount:default:default';
    const whoami = await kubectl.ok('auth', 'whoami', `--as=${account}`, '-o', 'jsonpath={.status.userInfo}');
    expect(JSON.parse(whoami)).toEqual({
      username: account,
      groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
    });
  });

  const badManifests = (): void => {
    const refused = async (manifest: string, ...args: string[]): Promise<string> => {
      const { code, stderr } = await kubectl.run(inNamespace('apply', '-f', '-', ...args), manifest);
      expect(code).toBe(1);
      return stderr;
    };
    const bad = (spec: string): string => `apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: ${spec}\n`;

    it('a missing image is named by its path', async () => {
      expect(await refused(bad('{containers: [{name: web}]}'))).toBe(
        'The Pod "bad" is invalid: spec.containers[0].image: Required value\n',
      );
    });

    it('every fault is listed', async () => {
      const message = await refused(bad('{restartPolicy: Perhaps, containers: [{name: Web, image: a}]}'));
      expect(message).toContain('* spec.containers[0].name: Invalid value: "Web": a lowercase RFC 1123 label');
      expect(message).toContain(
        '* spec.restartPolicy: Unsupported value: "Perhaps": supported values: "Always", "OnFailure", "Never"',
      );
    });

    it('an unknown field is refused', async () => {
      expect(await refused(bad('{containers: [{name: web, image: a, imagee: b}]}'))).toContain(
        'strict decoding error: unknown field "spec.containers[0].imagee"',
      );
    });

    it('an unknown field is only a warning with --validate=warn', async () => {
      const manifest = pod('nginx:1.27', '  colour: blue\n');
      const outcome = await kubectl.run(
        inNamespace('apply', '--validate=warn', '--dry-run=server', '-f', '-'),
        manifest,
      );
      expect(outcome.code).toBe(0);
      expect(outcome.stderr).toContain('unknown field "spec.colour"');
    });

    it('a wrong type is named', async () => {
      expect(await refused(bad('{containers: web}'), '--validate=false')).toContain(
        'json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container',
      );
    });

    it('a missing service account is forbidden', async () => {
      expect(await refused(bad('{serviceAccountName: nobody, containers: [{name: web, image: a}]}'))).toContain(
        `pods "bad" is forbidden: error looking up service account ${namespace}/nobody: serviceaccount "nobody" not found`,
      );
    });

    it('a pod that is there is not moulded', async () => {
      const message = await refused(pod('nginx:1.27', '  hostname: other\n'));
      expect(message).toContain(
        'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`',
      );
    });

    it('a missing namespace is named', async () => {
      const { code, stderr } = await kubectl.run(['-n', 'nowhere', 'apply', '-f', '-'], configMap('1'));
      expect([code, stderr]).toEqual([
        1,
        'Error from server (NotFound): error when creating "STDIN": namespaces "nowhere" not found\n',
      ]);
    });

    it('an unknown kind is named', async () => {
      expect(await refused('apiVersion: example.com/v1\nkind: Unicorn\nmetadata: {name: a}\n')).toContain(
        'no matches for kind "Unicorn" in version "example.com/v1"',
      );
    });

    it('nothing of them was stored', async () => {
      expect((await kubectl.run(inNamespace('get', 'pod', 'bad'))).stderr).toContain('pods "bad" not found');
    });
  };
  if (full) describe('bad manifests', badManifests);

  it('delete removes by name, by label, and waits', async () => {
    expect(await ok('delete', 'configmap', 'literal', '--wait=false')).toMatch(/^configmap "literal" deleted/);
    await ok('label', 'configmap', 'settings', 'watched', 'app=gone', '--overwrite');
    await ok('delete', 'configmap', '-l', 'app=gone');
    expect(await ok('get', 'configmaps', '-o', 'name')).toBe('');
    const gone = ok('wait', '--for=delete', 'pod/web', '--timeout=300s');
    expect(await ok('delete', 'pod', 'web', '--wait')).toMatch(/^pod "web" deleted/);
    await gone;
    expect((await kubectl.run(inNamespace('delete', 'pod', 'web'))).stderr).toContain('pods "web" not found');
    expect(await ok('delete', 'pod', 'web', '--ignore-not-found')).toBe('');
  });
});
