// Credential provider plugins: which images they are called for, their requests, the caching of their responses.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseResponse } from '../../../../agent/credentials/exec-protocol.ts';
import { imageMatches } from '../../../../agent/credentials/image-match.ts';
import { createNodeCredentials } from '../../../../agent/credentials/node-credentials.ts';
import { type Account, CredentialPlugin } from '../../../../agent/credentials/plugin.ts';
import {
  type CredentialProviderConfig,
  parseCredentialProviders,
} from '../../../../agent/credentials/provider-config.ts';
import type { ExecOptions, ExecResult } from '../../../../lib/exec.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { VirtualClock } from '../../../sim/clock.ts';
import { makePod } from '../../../sim/fakes.ts';

const V1 = 'credentialprovider.kubelet.k8s.io/v1';

describe('an image belongs to a pattern', () => {
  it.each<[string, string, boolean]>([
    ['registry.io', 'registry.io/team/app', true],
    ['registry.io', 'other.io/team/app', false],
    ['*.registry.io', 'eu.registry.io/app', true],
    ['*.registry.io', 'registry.io/app', false],
    ['*.registry.io', 'a.b.registry.io/app', false],
    ['*.dkr.ecr.*.amazonaws.com', '1234.dkr.ecr.eu-west-1.amazonaws.com/app', true],
    ['reg*.io', 'registry.io/app', true],
    ['registry.io:5000', 'registry.io:5000/app', true],
    ['registry.io:5000', 'registry.io/app', false],
    ['registry.io', 'registry.io:5000/app', false],
    ['registry.io/team', 'registry.io/team/app', true],
    ['registry.io/team', 'registry.io/other/app', false],
    ['https://registry.io/team', 'registry.io/team/app', true],
  ])('%s: %s → %s', (pattern, image, expected) => expect(imageMatches(pattern, image)).toBe(expected));
});

const GOOD = `
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: ecr
  apiVersion: ${V1}
  matchImages: ["*.ecr.io", "reg.io:5000/team"]
  defaultCacheDuration: 12h
  args: [get]
  env: [{name: REGION, value: eu}]
`;

describe('the configuration of providers', () => {
  it('is read whole', () => {
    expect(parseCredentialProviders(GOOD, 'f')).toEqual([
      {
        name: 'ecr',
        apiVersion: V1,
        matchImages: ['*.ecr.io', 'reg.io:5000/team'],
        defaultCacheMs: 12 * 3_600_000,
        args: ['get'],
        env: [{ name: 'REGION', value: 'eu' }],
      },
    ]);
  });

  const tokens = (more: string): string => `${GOOD}  tokenAttributes: {serviceAccountTokenAudience: a, ${more}}\n`;
  it.each<[string, string, RegExp]>([
    ['that is no YAML', '{', /is not YAML or JSON/],
    ['of another kind', GOOD.replace('CredentialProviderConfig', 'Pod'), /kind must be CredentialProviderConfig/],
    ['of another version', GOOD.replace('k8s.io/v1', 'k8s.io/v9'), /apiVersion must be one of/],
    ['without providers', GOOD.slice(0, GOOD.indexOf('providers:')), /at least 1 item in plugins is required/],
    ['with a path for a name', GOOD.replace('name: ecr', 'name: ../ecr'), /must be the name of a program/],
    ['with an unknown field', `${GOOD}  colour: red\n`, /providers\[0\]\.colour: unknown field/],
    [
      'without images',
      GOOD.replace(/matchImages: .*/, 'matchImages: []'),
      /matchImages: at least one item is required/,
    ],
    ['with a pattern that is none', GOOD.replace('*.ecr.io', 'a b'), /matchImages\[0\]: must be a host/],
    ['without a duration', GOOD.replace(/ {2}default.*\n/, ''), /defaultCacheDuration: is required/],
    ['with a negative duration', GOOD.replace('12h', '-1s'), /defaultCacheDuration: must not be negative/],
    ['with an unknown protocol', GOOD.replace(V1, 'x/v1'), /providers\[0\]\.apiVersion: must be one of/],
    ['with a name twice', `${GOOD}${GOOD.slice(GOOD.indexOf('- name'))}`, /providers\[1\]\.name: "ecr" is there twice/],
    ['with tokens and no word on accounts', tokens('cacheType: Token'), /requireServiceAccount: must be true or false/],
    [
      'with annotations required of an account that is not',
      tokens('requireServiceAccount: false, requiredServiceAccountAnnotationKeys: [a/b]'),
      /requireServiceAccount cannot be false/,
    ],
    [
      'with an annotation both required and optional',
      tokens(
        'requireServiceAccount: true, requiredServiceAccountAnnotationKeys: [a/b], optionalServiceAccountAnnotationKeys: [a/b]',
      ),
      /both required and optional/,
    ],
  ])('%s is refused', (_, text, expected) => expect(() => parseCredentialProviders(text, 'f')).toThrow(expected));
});

describe('an answer', () => {
  const answer = (fields: object) =>
    JSON.stringify({ kind: 'CredentialProviderResponse', apiVersion: V1, cacheKeyType: 'Image', ...fields });
  it('gives a user and a password per registry', () => {
    const auth = { 'reg.io': { username: 'u', password: 'p' } };
    expect(parseResponse(answer({ auth, cacheDuration: '5m' }), V1)).toEqual({
      credentials: [{ location: 'reg.io', auth: { username: 'u', password: 'p' } }],
      cacheKeyType: 'Image',
      cacheMs: 300_000,
    });
  });
  it.each<[string, string, RegExp]>([
    ['that is no JSON', 'login ok', /not JSON/],
    ['of another kind', answer({ kind: 'Pod' }), /unexpected kind: "Pod"/],
    ['of another version', answer({ apiVersion: 'x' }), /did not match expected apiVersion/],
    ['without a cache key', answer({ cacheKeyType: 'Never' }), /valid cacheKeyType: "Never"/],
    ['with a duration that is none', answer({ cacheDuration: '5' }), /cacheDuration is no duration/],
    [
      'with half a credential',
      answer({ auth: { r: { username: 'u' } } }),
      /auth\["r"\] is not a username and a password/,
    ],
  ])('%s is refused', (_, text, expected) => expect(() => parseResponse(text, V1)).toThrow(expected));
});

describe('a plugin', () => {
  let clock: VirtualClock;
  let runs: { file: string; args: readonly string[]; request: Record<string, unknown>; env: ExecOptions['env'] }[];
  let answer: Record<string, unknown>;
  let outcome: Partial<ExecResult>;
  let account: Account | undefined;
  let tokens: number;

  beforeEach(() => {
    clock = new VirtualClock();
    runs = [];
    answer = { cacheKeyType: 'Image', auth: { 'reg.io': { username: 'u', password: 'p' } } };
    outcome = {};
    account = { uid: 'sa-uid', annotations: { 'a/role': 'puller', other: 'x' } };
    tokens = 0;
  });

  const config: CredentialProviderConfig = {
    name: 'ecr',
    apiVersion: V1,
    matchImages: ['reg.io'],
    defaultCacheMs: 60_000,
    args: ['get'],
    env: [{ name: 'REGION', value: 'eu' }],
  };
  const plugin = (more: Partial<CredentialProviderConfig> = {}) =>
    new CredentialPlugin(
      { ...config, ...more },
      {
        program: '/bin/ecr',
        clock,
        tracer: new Tracer(),
        exec: (file, args, options = {}) => {
          runs.push({ file, args, request: JSON.parse(String(options.stdin)), env: options.env });
          const stdout = JSON.stringify({ kind: 'CredentialProviderResponse', apiVersion: V1, ...answer });
          return Promise.resolve({ code: 0, signal: null, timedOut: false, stdout, stderr: '', ...outcome });
        },
        accounts: {
          account: () => Promise.resolve(account),
          token: () => Promise.resolve(`token-${++tokens}`),
        },
      },
    );
  const pod = makePod('p', { serviceAccountName: 'builder' });

  it('is run with its arguments, its environment and the image in the request', async () => {
    expect(await plugin().provide(pod, 'reg.io/app')).toEqual([
      { location: 'reg.io', auth: { username: 'u', password: 'p' } },
    ]);
    expect(runs[0]).toMatchObject({
      file: '/bin/ecr',
      args: ['get'],
      request: { kind: 'CredentialProviderRequest', apiVersion: V1, image: 'reg.io/app' },
      env: { REGION: 'eu', PATH: process.env['PATH'] },
    });
  });

  it('is not run for images that are not its own', async () => {
    expect(await plugin().provide(pod, 'docker.io/library/nginx')).toEqual([]);
    expect(runs).toEqual([]);
  });

  const images = ['reg.io/app', 'reg.io/app', 'reg.io/other', 'reg.io/other'];
  it.each([
    ['Image', 2],
    ['Registry', 1],
    ['Global', 1],
  ])('whose answers hold per %s is run %i times for two images asked twice', async (cacheKeyType, times) => {
    answer = { ...answer, cacheKeyType };
    const one = plugin();
    for (const image of images) await one.provide(pod, image);
    expect(runs).toHaveLength(times);
  });

  it.each<[string, object, number, number]>([
    ['is asked again when the configured time is over', {}, 59_000, 1],
    ['is asked again when the configured time is over', {}, 61_000, 2],
    ['is asked again when its answer says so', { cacheDuration: '10s' }, 11_000, 2],
    ['is asked every time when its answer is not to be kept', { cacheDuration: '0s' }, 0, 2],
  ])('%s (%j after %i ms: %i runs)', async (_, more, after, times) => {
    answer = { ...answer, ...more };
    const one = plugin();
    await one.provide(pod, 'reg.io/app');
    await clock.advance(after);
    await one.provide(pod, 'reg.io/app');
    expect(runs).toHaveLength(times);
  });

  it('is run once for all who ask at the same time', async () => {
    const one = plugin();
    await Promise.all([one.provide(pod, 'reg.io/app'), one.provide(pod, 'reg.io/app')]);
    expect(runs).toHaveLength(1);
  });

  it.each<[string, Partial<ExecResult>, string]>([
    [
      'fails',
      { code: 3, stderr: 'no role\nmore' },
      'error execing credential provider plugin ecr: exit status 3: no role',
    ],
    ['hangs', { code: null, timedOut: true }, 'error execing credential provider plugin ecr: it took over a minute'],
  ])('that %s says so, and nothing of it is kept', async (_, result, message) => {
    outcome = result;
    const one = plugin();
    await expect(one.provide(pod, 'reg.io/app')).rejects.toThrow(message);
    outcome = {};
    expect(await one.provide(pod, 'reg.io/app')).toHaveLength(1);
  });

  describe('that wants a service account token', () => {
    const tokenAttributes = {
      serviceAccountTokenAudience: 'reg',
      cacheType: 'ServiceAccount' as const,
      requireServiceAccount: true,
      requiredServiceAccountAnnotationKeys: ['a/role'],
      optionalServiceAccountAnnotationKeys: ['a/team'],
    };
    it('is given one, and the annotations it asked for and no others', async () => {
      await plugin({ tokenAttributes }).provide(pod, 'reg.io/app');
      expect(runs[0]?.request).toMatchObject({
        serviceAccountToken: 'token-1',
        serviceAccountAnnotations: { 'a/role': 'puller' },
      });
      expect(Object.keys(Object(runs[0]?.request['serviceAccountAnnotations']))).toEqual(['a/role']);
    });
    it('is not run for a pod without an account, or whose account lacks a required annotation', async () => {
      expect(await plugin({ tokenAttributes }).provide(makePod('q'), 'reg.io/app')).toEqual([]);
      account = { uid: 'sa-uid', annotations: {} };
      expect(await plugin({ tokenAttributes }).provide(pod, 'reg.io/app')).toEqual([]);
      expect(runs).toEqual([]);
    });
    it('is run without a token where it does not insist', async () => {
      const relaxed = { ...tokenAttributes, requireServiceAccount: false, requiredServiceAccountAnnotationKeys: [] };
      await plugin({ tokenAttributes: relaxed }).provide(makePod('q'), 'reg.io/app');
      expect(runs[0]?.request['serviceAccountToken']).toBeUndefined();
    });
    it('has its answers kept per account, or per token', async () => {
      const perAccount = plugin({ tokenAttributes });
      await perAccount.provide(pod, 'reg.io/app');
      await perAccount.provide(pod, 'reg.io/app');
      expect(runs).toHaveLength(1);
      account = { uid: 'another', annotations: { 'a/role': 'puller' } };
      await perAccount.provide(pod, 'reg.io/app');
      expect(runs).toHaveLength(2);
      const perToken = plugin({ tokenAttributes: { ...tokenAttributes, cacheType: 'Token' } });
      await perToken.provide(pod, 'reg.io/app');
      await perToken.provide(pod, 'reg.io/app');
      expect(runs).toHaveLength(4);
    });
  });
});

describe('the credentials of the node', () => {
  let root: string;
  const logs: string[] = [];
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'nodelet-credentials-'));
    logs.length = 0;
  });
  afterEach(() => rmSync(root, { recursive: true }));

  const clock = new VirtualClock();
  const create = (providers?: { config: string; binDir: string }) =>
    createNodeCredentials({
      rootDir: join(root, 'kubelet'),
      home: join(root, 'home'),
      ...(providers === undefined ? {} : { providers }),
      clock,
      tracer: new Tracer(),
      exec: () => Promise.reject(new Error('exec format error')),
      log: (_, message, fields) => logs.push(`${message}: ${String(fields?.['error'])}`),
    });
  const file = (path: string, text: string): void => {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text, { mode: 0o755 });
  };
  const auths = (user: string): string =>
    JSON.stringify({ auths: { 'https://reg.io/v1/': { username: user, password: 'p' } } });

  it('are what docker’s files say, the agent’s own root first', async () => {
    file('home/.docker/config.json', auths('home'));
    expect((await create().find(makePod('p'), 'reg.io/app'))[0]?.auth.username).toBe('home');
    file('kubelet/config.json', auths('root'));
    expect(await create().find(makePod('p'), 'reg.io/app')).toEqual([
      { location: 'reg.io', auth: { username: 'root', password: 'p' } },
    ]);
  });

  it('are none where there is no file, and one that is broken is logged and passed over', async () => {
    expect(await create().find(makePod('p'), 'reg.io/app')).toEqual([]);
    file('kubelet/config.json', '{');
    file('home/.docker/config.json', auths('home'));
    expect(await create().find(makePod('p'), 'reg.io/app')).toHaveLength(1);
    expect(logs).toEqual([expect.stringMatching(/Unable to read Docker config file: .*config\.json is not JSON/)]);
  });

  it('leave the pull to go on when a plugin cannot be run', async () => {
    file('c.yaml', GOOD);
    file('bin/ecr', '#!/bin/sh\n');
    const node = create({ config: join(root, 'c.yaml'), binDir: join(root, 'bin') });
    expect(await node.find(makePod('p'), 'x.ecr.io/app')).toEqual([]);
    expect(logs).toEqual(['Failed getting credential from external registry credential provider: exec format error']);
  });

  it('are refused at start when a program is missing, or the directory of configurations is empty or says one twice', () => {
    file('c.yaml', GOOD);
    const binDir = join(root, 'bin');
    expect(() => create({ config: join(root, 'c.yaml'), binDir })).toThrow(
      /credential provider ecr: no program .*bin\/ecr/,
    );
    mkdirSync(join(root, 'd'));
    expect(() => create({ config: join(root, 'd'), binDir })).toThrow(/no configuration files found in directory/);
    file('d/1.yaml', GOOD);
    file('d/2.yaml', GOOD);
    expect(() => create({ config: join(root, 'd'), binDir })).toThrow(/provider "ecr" is in more than one file/);
    expect(() => create({ config: join(root, 'none'), binDir })).toThrow(/cannot be read/);
  });
});
