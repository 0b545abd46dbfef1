// Pulling from a private registry on real containerd: with the pod's secret, the service account's, a credential provider
// plugin; refused without; by digest; one after the other, or so many at a time.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exec } from '../../../lib/exec.ts';
import { apply, container, deletePods, eventWhen, FOREVER, gone, podWhen, ready, shellPod } from '../agent/harness.ts';
import { startLab, type TestLab } from '../support/lab.ts';
import { PASSWORD, startRegistry, type TestRegistry, USER } from './registry.ts';

const BUSYBOX = 'docker.io/library/busybox:stable';

let registry: TestRegistry;
let directory: string;

beforeAll(async () => {
  registry = await startRegistry();
  directory = await mkdtemp(join(tmpdir(), 'nodelet-providers-'));
});
afterAll(async () => {
  await registry?.stop();
  await rm(directory, { recursive: true, force: true });
});

const pod = (name: string, image: string, spec: object = {}): object =>
  shellPod(name, FOREVER, spec, { image: image.startsWith('sha') ? image : `${registry.host}/${image}` });

function pullSecret(name: string, password: string): object {
  const auths = { [registry.host]: { username: USER, password } };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'default' },
    type: 'kubernetes.io/dockerconfigjson',
    stringData: { '.dockerconfigjson': JSON.stringify({ auths }) },
  };
}

async function remove(lab: TestLab, ...names: string[]): Promise<void> {
  await deletePods(lab, [...names], { graceSeconds: 1, wait: false });
  await Promise.all(names.map((name) => gone(lab, name)));
}

/** A credential plugin for the registry that logs its requests. */
async function writeProviders(): Promise<{ config: string; binDir: string; requested(): Promise<string[]> }> {
  const log = join(directory, 'asked');
  await writeFile(log, '');
  const answer = JSON.stringify({
    kind: 'CredentialProviderResponse',
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    cacheKeyType: 'Registry',
    cacheDuration: '10m',
    auth: { [registry.host]: { username: USER, password: PASSWORD } },
  });
  await writeFile(
    join(directory, 'keys'),
    `#!/bin/sh\nread -r request\necho "$WHO $request" >>"${log}"\ncat <<'END'\n${answer}\nEND\n`,
    { mode: 0o755 },
  );
  await writeFile(
    join(directory, 'tokens'),
    `#!/bin/sh\nread -r request\necho "tokens $request" >>"${log}"\ncase $request in *serviceAccountToken*) ;; *) exit 1 ;; esac\ncat <<'END'\n${answer}\nEND\n`,
    { mode: 0o755 },
  );
  const common = { apiVersion: 'credentialprovider.kubelet.k8s.io/v1', defaultCacheDuration: '10m' };
  const config = join(directory, 'providers.yaml');
  await writeFile(
    config,
    JSON.stringify({
      apiVersion: 'kubelet.config.k8s.io/v1',
      kind: 'CredentialProviderConfig',
      providers: [
        { ...common, name: 'keys', matchImages: [`${registry.host}/plugin`], env: [{ name: 'WHO', value: 'keys' }] },
        {
          ...common,
          name: 'tokens',
          matchImages: [`${registry.host}/token`],
          tokenAttributes: {
            serviceAccountTokenAudience: 'the-registry',
            cacheType: 'ServiceAccount',
            requireServiceAccount: true,
            requiredServiceAccountAnnotationKeys: ['registry.example/role'],
          },
        },
      ],
    }),
  );
  const requested = async (): Promise<string[]> => (await readFile(log, 'utf8')).split('\n').filter(Boolean);
  return { config, binDir: directory, requested };
}

describe('a registry that requires authentication', () => {
  let lab: TestLab;
  let providers: Awaited<ReturnType<typeof writeProviders>>;
  let digest: string;

  beforeAll(async () => {
    providers = await writeProviders();
    lab = await startLab({
      kubeletConfiguration: { serializeImagePulls: true, maxParallelImagePulls: 1 },
      apiserverFlags: ['--node-audience', 'the-registry'],
      agentFlags: [
        ...['--image-credential-provider-config', providers.config],
        ...['--image-credential-provider-bin-dir', providers.binDir],
      ],
    });
    const socket = lab.paths.containerd.socket;
    const repositories = [
      'open/a',
      'secret/a',
      'wrong/a',
      'account/a',
      'plugin/a',
      'plugin/b',
      'token/a',
      'digest/a',
      'crictl/a',
    ];
    for (const repository of [...repositories, 'one/a', 'two/a', 'three/a']) {
      digest = await registry.push(socket, BUSYBOX, repository, 'v1');
    }
    await apply(lab, pullSecret('pull', PASSWORD), pullSecret('wrong', 'guessed'));
  });
  afterAll(() => lab?.stop());

  test('refuses a pod without credentials, which backs off with the registry’s words', async () => {
    await apply(lab, pod('nobody', 'open/a:v1'));
    const waits = await podWhen(
      lab,
      'nobody',
      'backing off',
      (each) => container(each).state?.waiting?.reason === 'ImagePullBackOff',
    );
    expect(container(waits).state?.waiting?.message).toMatch(
      /^Back-off pulling image "127\.0\.0\.1:\d+\/open\/a:v1": ErrImagePull: .*(no basic auth credentials|authorization failed|401 Unauthorized)/,
    );
    await eventWhen(lab, 'nobody', 'Failed', /^Failed to pull image "127/);
    await remove(lab, 'nobody');
  });

  test('accepts nodelet crictl with --creds or --auth, and refuses it without', async () => {
    const image = `${registry.host}/crictl/a:v1`;
    const crictl = (...words: string[]) =>
      exec('bin/nodelet', ['crictl', '--root', lab.root, '-t', '60s', ...words], { timeoutMs: 120_000 });
    const refused = await crictl('pull', image);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /^FATA\[\d+\] pulling image: rpc error: code = \w+ desc = failed to pull and unpack image/,
    );
    const wrong = await crictl('pull', '--creds', `${USER}:guessed`, image);
    expect(wrong.code).toBe(1);
    const pulled = await crictl('pull', '--creds', `${USER}:${PASSWORD}`, image);
    expect(pulled, pulled.stderr).toMatchObject({ code: 0 });
    expect(pulled.stdout).toMatch(/^Image is up to date for sha256:[0-9a-f]{64}\n$/);
    const auth = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
    expect(await crictl('pull', '--auth', auth, image)).toMatchObject({ code: 0, stdout: pulled.stdout });
    expect((await crictl('images', '-q', image)).stdout).toContain('sha256:');
  });

  test('lets in a pod with a pull secret', async () => {
    await apply(lab, pod('secret', 'secret/a:v1', { imagePullSecrets: [{ name: 'pull' }] }));
    const runs = await ready(lab, 'secret');
    // Of the names that an image has here, the runtime shows one: the digest is what runs.
    expect(container(runs).image.startsWith(`${registry.host}/`)).toBe(true);
    expect(container(runs).imageID).toMatch(new RegExp(`@${digest}$`));
    await eventWhen(
      lab,
      'secret',
      'Pulled',
      /^Successfully pulled image ".*secret\/a:v1" in .* \(.* including waiting\)/,
    );
    await remove(lab, 'secret');
  });

  test('refuses a wrong secret; the pod runs by itself once the secret is right', async () => {
    await apply(lab, pod('wrong', 'wrong/a:v1', { imagePullSecrets: [{ name: 'wrong' }] }));
    await podWhen(lab, 'wrong', 'refused', (each) =>
      /^(ErrImagePull|ImagePullBackOff)$/.test(container(each).state?.waiting?.reason ?? ''),
    );
    await apply(lab, pullSecret('wrong', PASSWORD));
    await ready(lab, 'wrong', 120_000);
    await remove(lab, 'wrong');
  });

  test('lets in a pod whose service account has a pull secret', async () => {
    const metadata = { name: 'puller', namespace: 'default' };
    await apply(lab, { apiVersion: 'v1', kind: 'ServiceAccount', metadata, imagePullSecrets: [{ name: 'pull' }] });
    await apply(lab, pod('account', 'account/a:v1', { serviceAccountName: 'puller' }));
    const runs = await ready(lab, 'account');
    expect(runs.spec.imagePullSecrets).toEqual([{ name: 'pull' }]);
    await remove(lab, 'account');
  });

  test('lets in a pod for which a plugin has credentials; the plugin is called once for the registry', async () => {
    await apply(lab, pod('plugin', 'plugin/a:v1'));
    await ready(lab, 'plugin');
    await apply(lab, pod('plugin-b', 'plugin/b:v1'));
    await ready(lab, 'plugin-b');
    const requested = (await providers.requested()).filter((line) => line.startsWith('keys '));
    expect(requested).toHaveLength(1);
    expect(JSON.parse(requested[0]?.slice('keys '.length) ?? '')).toEqual({
      kind: 'CredentialProviderRequest',
      apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
      image: `${registry.host}/plugin/a`,
    });
    await remove(lab, 'plugin', 'plugin-b');
  });

  test('lets in a pod for whose service account a plugin returns credentials', async () => {
    const metadata = { name: 'vouched', namespace: 'default', annotations: { 'registry.example/role': 'reader' } };
    await apply(lab, { apiVersion: 'v1', kind: 'ServiceAccount', metadata });
    await apply(lab, pod('token', 'token/a:v1', { serviceAccountName: 'vouched' }));
    await ready(lab, 'token');
    const [requested = ''] = (await providers.requested()).filter((line) => line.startsWith('tokens '));
    const request = JSON.parse(requested.slice('tokens '.length));
    expect(request.serviceAccountAnnotations).toEqual({ 'registry.example/role': 'reader' });
    const claims = JSON.parse(Buffer.from(request.serviceAccountToken.split('.')[1], 'base64url').toString());
    expect(claims.aud).toEqual(['the-registry']);
    expect(claims.sub).toBe('system:serviceaccount:default:vouched');
    await remove(lab, 'token');
  });

  test('serves an image by its digest', async () => {
    const spec = { imagePullSecrets: [{ name: 'pull' }] };
    await apply(lab, pod('digest', `digest/a@${digest}`, spec));
    const runs = await ready(lab, 'digest');
    expect(container(runs).image.startsWith(`${registry.host}/`)).toBe(true);
    expect(container(runs).imageID).toMatch(new RegExp(`@${digest}$`));
    await remove(lab, 'digest');
  });

  test('receives one request after the other where pulls are serialized', async () => {
    registry.delayMs = 200;
    registry.most = 0;
    const spec = { imagePullSecrets: [{ name: 'pull' }] };
    const names = ['one', 'two', 'three'];
    await apply(lab, ...names.map((name) => pod(name, `${name}/a:v1`, spec)));
    await Promise.all(names.map((name) => ready(lab, name)));
    registry.delayMs = 0;
    expect(registry.most).toBe(1);
    await remove(lab, ...names);
  });
});

describe('pulls side by side', () => {
  let lab: TestLab;
  const names = ['one', 'two', 'three', 'four', 'five'];

  beforeAll(async () => {
    lab = await startLab({
      kubeletConfiguration: { serializeImagePulls: false, maxParallelImagePulls: 2 },
      registryMirror: `http://${registry.host}/`,
    });
    await registry.push(lab.paths.containerd.socket, BUSYBOX, 'library/busybox', 'mirrored');
    for (const name of names) await registry.push(lab.paths.containerd.socket, BUSYBOX, `${name}/b`, 'v1');
    await apply(lab, pullSecret('pull', PASSWORD));
  });
  afterAll(() => lab?.stop());

  test('are at most maxParallelImagePulls', async () => {
    // However far apart the pods are begun, two pulls meet; the delay leaves a third one the time to join them.
    registry.together = 2;
    registry.delayMs = 1_000;
    registry.most = 0;
    await apply(lab, ...names.map((name) => pod(name, `${name}/b:v1`, { imagePullSecrets: [{ name: 'pull' }] })));
    await Promise.all(names.map((name) => ready(lab, name)));
    registry.together = 0;
    registry.delayMs = 0;
    expect(registry.most).toBe(2);
    await remove(lab, ...names);
  });

  test('of the usual registries come from --registry-mirror, and the lab has no registry of its own', async () => {
    await apply(
      lab,
      shellPod('mirrored', FOREVER, {}, { image: 'busybox:mirrored' }),
      shellPod('not-mirrored', FOREVER, {}, { image: 'busybox:not-mirrored' }),
    );
    await ready(lab, 'mirrored');
    await eventWhen(lab, 'mirrored', 'Pulled', /^Successfully pulled image "busybox:mirrored" in /);
    const path = '/v2/library/busybox/manifests/mirrored?ns=docker.io';
    expect(registry.requests).toContainEqual({ what: `HEAD ${path}`, user: undefined, status: 200 });
    await eventWhen(lab, 'not-mirrored', 'Failed', /docker\.io\/library\/busybox:not-mirrored: not found$/);
    expect(lab.lab.state.registry).toEqual({ url: `http://${registry.host}` });
    await expect(readFile(lab.paths.logFile('registry'))).rejects.toMatchObject({ code: 'ENOENT' });
    await remove(lab, 'mirrored', 'not-mirrored');
  });
});
