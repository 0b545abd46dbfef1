// Manifests: what becomes of a pod in a file, and what is wrong with those that cannot be run.

import { describe, expect, it, test } from 'vitest';
import { ManifestError, parsePod, parsePods } from '../../../../agent/sources/manifest.ts';

const ORIGIN = {
  source: 'file',
  location: '/etc/manifests/web.yaml',
  nodeName: 'Node-1',
  seen: '2026-01-01T00:00:00.000Z',
} as const;

const WEB = `
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
    - name: main
      image: nginx
`;

const pod = (source: string, origin: Partial<Parameters<typeof parsePod>[1]> = {}) =>
  parsePod(source, { ...ORIGIN, ...origin });
const withSpec = (lines: string): string => `${WEB}${lines.replace(/^/gm, '  ')}\n`;
const withContainer = (lines: string): string => `${WEB}${lines.replace(/^/gm, '      ')}\n`;

describe('a static pod', () => {
  it('has the node’s name after its own, a namespace, a node, and is pending', () => {
    expect(pod(WEB)).toMatchObject({
      metadata: { name: 'web-node-1', namespace: 'default' },
      spec: { nodeName: 'Node-1' },
      status: { phase: 'Pending' },
    });
  });

  it('has a uid made of its content, which is its hash as well', () => {
    const { metadata } = pod(WEB);
    expect(metadata.uid).toMatch(/^[0-9a-f]{32}$/);
    expect(metadata.annotations).toEqual({
      'kubernetes.io/config.hash': metadata.uid,
      'kubernetes.io/config.seen': '2026-01-01T00:00:00.000Z',
      'kubernetes.io/config.source': 'file',
    });
  });

  it('has the same uid however the fields are ordered, and another when anything is another', () => {
    const uid = (source: string, origin = {}) => pod(source, origin).metadata.uid;
    const reordered =
      'kind: Pod\nspec: {containers: [{image: nginx, name: main}]}\nmetadata: {name: web}\napiVersion: v1';
    expect(uid(reordered)).toBe(uid(WEB));
    expect(uid(WEB, { seen: '2027-01-01T00:00:00.000Z' })).toBe(uid(WEB));
    const others = [
      uid(WEB.replace('nginx', 'nginx:1.27')),
      uid(WEB, { nodeName: 'node-2' }),
      uid(WEB, { location: '/etc/manifests/other.yaml' }),
      uid(WEB, { source: 'http' }),
    ];
    expect(new Set([uid(WEB), ...others]).size).toBe(5);
  });

  it('keeps a uid and a namespace of its own', () => {
    const { metadata } = pod(WEB.replace('name: web', 'name: web\n  uid: my-own\n  namespace: kube-system'));
    expect(metadata).toMatchObject({ uid: 'my-own', namespace: 'kube-system' });
    expect(metadata.annotations?.['kubernetes.io/config.hash']).toBe('my-own');
  });

  it('from a file tolerates every NoExecute taint; one from a URL what it says', () => {
    const everything = { operator: 'Exists', effect: 'NoExecute' };
    expect(pod(WEB).spec.tolerations).toEqual([everything]);
    expect(pod(WEB, { source: 'http' }).spec.tolerations).toEqual([]);
    const own = withSpec('tolerations: [{key: a, operator: Exists}, {operator: Exists, effect: NoExecute}]');
    expect(pod(own).spec.tolerations).toEqual([{ key: 'a', operator: 'Exists' }, everything]);
  });

  it('has the API’s defaults', () => {
    const { spec } = pod(withContainer('ports: [{containerPort: 80}]\nlivenessProbe: {httpGet: {port: 80}}'));
    expect(spec).toMatchObject({
      restartPolicy: 'Always',
      dnsPolicy: 'ClusterFirst',
      terminationGracePeriodSeconds: 30,
    });
    expect(spec.containers[0]).toMatchObject({
      imagePullPolicy: 'Always',
      terminationMessagePath: '/dev/termination-log',
      terminationMessagePolicy: 'File',
      ports: [{ containerPort: 80, protocol: 'TCP' }],
      livenessProbe: {
        timeoutSeconds: 1,
        periodSeconds: 10,
        failureThreshold: 3,
        httpGet: { path: '/', scheme: 'HTTP' },
      },
    });
  });

  it('requests what it limits, where it says nothing else', () => {
    const { spec } = pod(withContainer('resources: {limits: {cpu: 1, memory: 64Mi}, requests: {memory: 32Mi}}'));
    expect(spec.containers[0]?.resources).toEqual({
      limits: { cpu: '1', memory: '64Mi' },
      requests: { cpu: '1', memory: '32Mi' },
    });
  });
});

describe('a manifest', () => {
  it('may be JSON', () => {
    const json = JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web' },
      spec: { containers: [{ name: 'main', image: 'nginx' }] },
    });
    expect(pod(json)).toEqual(pod(WEB));
    expect(pod(json.replace(/,/g, ',\n\t'))).toEqual(pod(WEB));
  });

  it('is read as Go reads YAML: a file mode is octal, yes is true, null is absence', () => {
    const { spec } = pod(
      withSpec(
        'hostNetwork: yes\nhostPID: off\nnodeSelector: null\nvolumes: [{name: v, projected: {defaultMode: 0400}}]',
      ),
    );
    expect(spec).toMatchObject({ hostNetwork: true, hostPID: false });
    expect(spec.volumes?.[0]?.projected?.defaultMode).toBe(0o400);
    expect(spec).not.toHaveProperty('nodeSelector');
  });

  it('counts as its first document', () => {
    expect(pod(`---${WEB}---\nkind: ConfigMap\n`)).toEqual(pod(WEB));
  });

  it('from a URL may be a list', () => {
    const item = JSON.parse(
      JSON.stringify({ metadata: { name: 'a' }, spec: { containers: [{ name: 'm', image: 'i' }] } }),
    );
    const list = { apiVersion: 'v1', kind: 'PodList', items: [item, { ...item, metadata: { name: 'b' } }] };
    const names = parsePods(JSON.stringify(list), { ...ORIGIN, source: 'http' }).map(({ metadata }) => metadata.name);
    expect(names).toEqual(['a-node-1', 'b-node-1']);
    const broken = { ...list, items: [item, { metadata: { name: 'b' }, spec: {} }] };
    expect(() => parsePods(JSON.stringify(broken), ORIGIN)).toThrow('items[1]: invalid pod: spec.containers: Required');
  });

  it('is cut in the message about it', () => {
    const many = `volumes: [${'{name: UPPER}, '.repeat(10_000)}]`;
    const output = [withSpec(many), WEB.replace('name: web', `name: ${'X'.repeat(1_000_000)}`)].map((source) => {
      try {
        return String(pod(source));
      } catch (error) {
        return String(error);
      }
    });
    expect(output[0]).toMatch(/invalid pod: spec\.volumes\[0\]\.name: .* …$/);
    expect(output[1]).toMatch(/invalid pod: metadata\.name: /);
    for (const words of output) expect(words.length).toBeLessThan(5_000);
  });

  const wrong: readonly [string, string, string][] = [
    ['text that is no YAML', 'a: [', 'is neither YAML nor JSON'],
    ['nothing', '', 'has no pod in it'],
    ['another kind', 'apiVersion: v1\nkind: ConfigMap\n', 'kind "ConfigMap", not v1 Pod'],
    ['a list in a file', 'apiVersion: v1\nkind: PodList\nitems: []\n', 'a file holds one Pod'],
    ['no containers', 'apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n', 'spec.containers: Required value'],
    [
      'containers that are no list',
      WEB.replace(/containers:[\s\S]*/, 'containers: 5'),
      'spec.containers: must be a list, not 5',
    ],
    [
      'an empty container',
      WEB.replace(/containers:[\s\S]*/, 'containers: [null]'),
      'spec.containers[0]: must not be empty',
    ],
    [
      'a name that is no DNS name',
      WEB.replace('name: web', 'name: Web_1'),
      'metadata.name: Invalid value: "Web_1-node-1"',
    ],
    [
      'a name with control characters',
      WEB.replace('name: web', 'name: "a\\u0007b"'),
      'metadata.name: Invalid value: "a\\u0007b',
    ],
    [
      'more annotations than an object may have',
      WEB.replace('name: web', `name: web\n  annotations: {long: "${'x'.repeat(256 * 1024)}"}`),
      'metadata.annotations: Too long: may not be more than 262144 bytes',
    ],
    ['no image', WEB.replace('image: nginx', 'image: ""'), 'spec.containers[0].image: Required value'],
    ['two containers of one name', withSpec('initContainers: [{name: main, image: x}]'), 'Duplicate value: "main"'],
    [
      'a number as an environment value',
      withContainer('env: [{name: A, value: 1}]'),
      'spec.containers[0].env[0].value: must be text, not 1',
    ],
    ['a quantity that is none', withContainer('resources: {limits: {cpu: fast}}'), 'limits[cpu]: must be a quantity'],
    [
      'a request above its limit',
      withContainer('resources: {limits: {cpu: 1}, requests: {cpu: 2}}'),
      'must be less than or equal to cpu limit of 1',
    ],
    [
      'a mount of no volume',
      withContainer('volumeMounts: [{name: v, mountPath: /v}]'),
      'volumeMounts[0].name: Not found: "v"',
    ],
    ['a port that is none', withContainer('ports: [{containerPort: 99999}]'), 'must be between 1 and 65535'],
    [
      'another restart policy',
      withSpec('restartPolicy: Sometimes'),
      'spec.restartPolicy: Unsupported value: "Sometimes"',
    ],
    [
      'a probe without a way to probe',
      withContainer('livenessProbe: {periodSeconds: 1}'),
      'livenessProbe: Required value',
    ],
    [
      'a uid that leads out of its directory',
      WEB.replace('name: web', 'name: web\n  uid: ../../etc'),
      'metadata.uid: Invalid value',
    ],
    ['a host path that climbs', withSpec('volumes: [{name: v, hostPath: {path: /a/../b}}]'), "must not contain '..'"],
    ['aliases that unfold without end', bomb(), 'cannot be unfolded'],
  ];
  test.each(wrong)('with %s is refused', (_name, source, message) => {
    expect(() => pod(source)).toThrow(ManifestError);
    expect(() => pod(source)).toThrow(message);
  });

  const references: readonly [string, string, string][] = [
    ['a service account', withSpec('serviceAccountName: default'), 'serviceaccounts'],
    ['a pull secret', withSpec('imagePullSecrets: [{name: a}]'), 'secrets'],
    [
      'a Secret in the environment',
      withContainer('env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b}}}]'),
      'secrets',
    ],
    ['a ConfigMap in the environment', withContainer('envFrom: [{configMapRef: {name: a}}]'), 'configmaps'],
    ['a ConfigMap volume', withSpec('volumes: [{name: v, configMap: {name: a}}]'), 'configmaps'],
    [
      'a projected token',
      withSpec('volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]'),
      'serviceaccounts',
    ],
    ['a CSI volume', withSpec('volumes: [{name: v, csi: {driver: d}}]'), 'csidrivers'],
    [
      'a pod certificate',
      withSpec('volumes: [{name: v, projected: {sources: [{podCertificate: {signerName: s}}]}}]'),
      'podcertificates',
    ],
    ['a claim', withSpec('volumes: [{name: v, persistentVolumeClaim: {claimName: a}}]'), 'persistentvolumeclaims'],
  ];
  test.each(references)('that refers to %s is refused', (_name, source, plural) => {
    expect(() => pod(source)).toThrow(`static pods may not reference ${plural}`);
  });
});

function bomb(): string {
  const levels = ['a: &a [x,x,x,x,x,x,x,x,x,x]'];
  for (const [from, to] of ['ab', 'bc', 'cd', 'de', 'ef'].map((pair) => [pair[0], pair[1]])) {
    levels.push(`${to}: &${to} [*${from},*${from},*${from},*${from},*${from},*${from},*${from},*${from},*${from}]`);
  }
  return `apiVersion: v1\nkind: Pod\n${levels.join('\n')}\n`;
}
