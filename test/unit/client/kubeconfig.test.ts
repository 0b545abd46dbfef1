import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { loadKubeconfig } from '../../../client/kubeconfig.ts';
import { UserError } from '../../../lib/errors.ts';

const PEM = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
const KEY = '-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n';
const base64 = (text: string): string => Buffer.from(text).toString('base64');

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-kubeconfig-'));
  await writeFile(join(directory, 'ca.pem'), PEM);
  await writeFile(join(directory, 'not.pem'), 'hello');
});
afterAll(() => rm(directory, { recursive: true }));

type Overrides = {
  cluster?: object;
  user?: object;
  top?: object;
};

async function file(overrides: Overrides = {}): Promise<string> {
  const path = join(directory, 'config');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'lab',
    contexts: [
      { name: 'lab', context: { cluster: 'lab', user: 'admin', namespace: 'demo' } },
      { name: 'bare', context: { cluster: 'lab' } },
      { name: 'lost', context: { cluster: 'nowhere' } },
    ],
    clusters: [{ name: 'lab', cluster: { server: 'https://127.0.0.1:6443', ...overrides.cluster } }],
    users: [{ name: 'admin', user: overrides.user ?? {} }],
    ...overrides.top,
  };
  await writeFile(path, stringify(config));
  return path;
}

describe('loadKubeconfig', () => {
  it('reads embedded certificates', async () => {
    const path = await file({
      cluster: { 'certificate-authority-data': base64(PEM), 'tls-server-name': 'kubernetes' },
      user: { 'client-certificate-data': base64(PEM), 'client-key-data': base64(KEY) },
    });
    expect(await loadKubeconfig(path)).toEqual({
      server: 'https://127.0.0.1:6443',
      ca: PEM,
      tlsServerName: 'kubernetes',
      clientCert: PEM,
      clientKey: KEY,
      namespace: 'demo',
    });
  });

  it('resolves file references relative to the file itself', async () => {
    const path = await file({ cluster: { 'certificate-authority': 'ca.pem' }, user: { tokenFile: 'token' } });
    expect(await loadKubeconfig(path)).toMatchObject({ ca: PEM, tokenFile: join(directory, 'token') });
  });

  it('takes the named context, with no user and no namespace', async () => {
    const path = await file({ user: { token: 't' } });
    expect(await loadKubeconfig(path, 'bare')).toEqual({ server: 'https://127.0.0.1:6443' });
    expect(await loadKubeconfig(path)).toMatchObject({ token: 't' });
  });

  it('strips a trailing slash and honours insecure-skip-tls-verify', async () => {
    const path = await file({ cluster: { server: 'https://a.example/k8s/', 'insecure-skip-tls-verify': true } });
    expect(await loadKubeconfig(path)).toMatchObject({ server: 'https://a.example/k8s', insecureSkipTlsVerify: true });
  });

  it.each<[string, Overrides, string | undefined, RegExp]>([
    ['an unknown context', {}, 'prod', /no context named "prod" \(it has: lab, bare, lost\)$/],
    ['a context whose cluster is missing', {}, 'lost', /no cluster named "nowhere" \(it has: lab\)$/],
    ['no current-context', { top: { 'current-context': '' } }, undefined, /no current-context is set$/],
    [
      'a missing CA file',
      { cluster: { 'certificate-authority': 'gone.pem' } },
      undefined,
      /certificate-authority .*gone\.pem: no such file$/,
    ],
    [
      'a CA file that is no PEM',
      { cluster: { 'certificate-authority': 'not.pem' } },
      undefined,
      /not\.pem: not a PEM file$/,
    ],
    [
      'data that is no PEM',
      { cluster: { 'certificate-authority-data': 'AAAA' } },
      undefined,
      /certificate-authority-data is not base64-encoded PEM$/,
    ],
    [
      'a certificate without its key',
      { user: { 'client-certificate': 'ca.pem' } },
      undefined,
      /user "admin" has a client certificate but no client key$/,
    ],
    [
      'a server that is no URL',
      { cluster: { server: 'localhost' } },
      undefined,
      /server "localhost" is not an http or https URL$/,
    ],
    ['an exec plugin', { user: { exec: { command: 'aws' } } }, undefined, /user "admin": exec is not supported$/],
    ['another kind of file', { top: { kind: 'Pod' } }, undefined, /kind is "Pod", not "Config"$/],
  ])('says in one line what is wrong with %s', async (_what, overrides, context, message) => {
    const path = await file(overrides);
    const error = await loadKubeconfig(path, context).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(UserError);
    expect(String(error)).toMatch(message);
    expect(String(error)).toContain(`kubeconfig ${path}: `);
    expect(String(error)).not.toContain('\n');
  });

  it.each([
    ['that does not parse', 'a: [1\nb: }', /does not parse: /],
    ['that is plain text', 'hello', /does not parse: not a kubeconfig/],
    ['that is empty', '', /does not parse: not a kubeconfig/],
  ])('says in one line what is wrong with a file %s', async (_what, content, message) => {
    const path = join(directory, 'broken');
    await writeFile(path, content);
    await expect(loadKubeconfig(path)).rejects.toThrow(message);
    await expect(loadKubeconfig(path)).rejects.not.toThrow(/\n/);
  });

  it('names a file that does not exist', async () => {
    await expect(loadKubeconfig('/nowhere/config')).rejects.toThrow('kubeconfig /nowhere/config: no such file');
  });
});
