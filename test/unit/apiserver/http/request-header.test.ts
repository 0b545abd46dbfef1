// The authenticating proxy: the user that its headers name, who is a proxy, and that headers of others are ignored.

import { writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callerInHeaders, requestHeaderSettings } from '../../../../apiserver/auth/request-header.ts';
import type { Signer } from '../../../../apiserver/pki/keys.ts';
import { requestPassedOn } from '../../../../apiserver/proxy/proxy.ts';
import { at, type Call, type Credentials, TestApiServer } from '../../../support/api-server.ts';

const HEADERS = {
  usernameHeaders: ['X-Remote-User', 'X-Corp-User'],
  uidHeaders: ['X-Remote-Uid'],
  groupHeaders: ['X-Remote-Group', 'X-Corp-Group'],
  extraHeaderPrefixes: ['X-Remote-Extra-', 'x-note-'],
};

describe('the headers', () => {
  const settings = requestHeaderSettings({ clientCaFile: '/ca', ...HEADERS });
  const read = (...pairs: readonly [string, string][]) => callerInHeaders(pairs.flat(), settings);

  it('name a user, a uid, groups and extras', () => {
    const utf8 = Buffer.from('zoë').toString('latin1');
    expect(
      read(
        ['x-remote-user', utf8],
        ['X-Corp-Group', 'c'],
        ['X-Remote-Group', 'a'],
        ['X-Remote-Group', ''],
        ['x-remote-group', 'b,d'],
        ['X-Remote-Uid', '7'],
        ['X-Remote-Extra-Scopes%2fOne', 'x'],
        ['X-Remote-Extra-scopes%2Fone', 'y'],
        ['X-Note-100%', 'z'],
      ),
    ).toEqual({
      name: 'zoë',
      uid: '7',
      groups: ['a', 'b,d', 'c', 'system:authenticated'],
      extra: { 'scopes/one': ['x', 'y'], '100%': ['z'] },
    });
  });

  it('name the first user that there is, or none', () => {
    expect(read(['X-Corp-User', 'b'], ['X-Remote-User', 'a'])?.name).toBe('a');
    expect(read(['X-Corp-User', 'b'], ['X-Remote-User', ''])?.name).toBe('b');
    // The first value of a header alone counts, as upstream.
    expect(read(['X-Remote-User', ''], ['X-Remote-User', 'a'])).toBeUndefined();
    expect(read(['X-Remote-Group', 'system:masters'])).toBeUndefined();
  });

  it('need no group that says whether the user is known', () => {
    expect(read(['X-Remote-User', 'a'], ['X-Remote-Group', 'system:unauthenticated'])?.groups).toEqual([
      'system:unauthenticated',
    ]);
    expect(read(['X-Remote-User', 'system:anonymous'])?.groups).toEqual([]);
  });

  it.each([
    [{ usernameHeaders: [' '] }, 'empty value in "requestheader-username-headers"'],
    [{ allowedNames: [''] }, 'empty value in "requestheader-allowed-names"'],
    [
      { uidHeaders: ['X-Uid'] },
      '--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header',
    ],
    [{ clientCaFile: '' }, '--requestheader-… flags need --requestheader-client-ca-file'],
    [{ usernameHeaders: [] }, '--requestheader-client-ca-file needs --requestheader-username-headers'],
  ])('are refused with %j', (more, message) => {
    expect(() => requestHeaderSettings({ clientCaFile: '/ca', ...HEADERS, ...more })).toThrow(message);
  });

  it('are not passed on to what is behind this server', () => {
    const theirs = { 'x-remote-user': 'a', 'x-remote-extra-b': 'c', 'x-remote-group': 'd', 'x-remote-addr': 'e' };
    expect(requestPassedOn(theirs)).toEqual({ 'x-remote-addr': 'e' });
  });
});

describe('a proxy', () => {
  let directory: string;
  let caFile: string;
  let stand: TestApiServer;
  let proxyCa: Signer;
  let proxy: Credentials;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'nodelet-proxy-'));
    caFile = join(directory, 'proxy-ca.crt');
    const first = await TestApiServer.start();
    proxyCa = await first.otherCa();
    await first.stop();
    await writeFile(caFile, proxyCa.cert);
    stand = await TestApiServer.start({
      auth: { requestHeader: { clientCaFile: caFile, allowedNames: ['front', 'other'], ...HEADERS } },
    });
    proxy = await stand.certificate('front', 'system:masters', { ca: proxyCa });
  });
  afterAll(async () => {
    await stand.stop();
    await rm(directory, { recursive: true, force: true });
  });

  async function whoami(as: Credentials | undefined, headers: NonNullable<Call['headers']> = {}): Promise<unknown> {
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const answer = await stand.call({ method: 'POST', path, body: {}, headers, ...(as === undefined ? {} : { as }) });
    return answer.code === 201 ? at(answer.json, 'status', 'userInfo') : answer.code;
  }
  const jane = { 'X-Remote-User': 'jane', 'X-Remote-Group': ['devs', 'ops'] };

  it('names the user of a request, and is no user by itself', async () => {
    const user = { username: 'jane', groups: ['devs', 'ops', 'system:authenticated'] };
    expect(await whoami(proxy, jane)).toEqual(user);
    expect(await whoami(proxy, { 'X-Remote-User': 'joe' })).toMatchObject({ username: 'joe' });
    expect(await whoami(proxy)).toBe(401);
    expect(await whoami(proxy, { 'X-Remote-Group': 'system:masters' })).toBe(401);
    // Of what RBAC gives to the user, not to the proxy.
    const list = await stand.call({ path: '/api/v1/secrets', as: proxy, headers: jane });
    expect([list.code, list.text]).toEqual([403, expect.stringContaining('User \\"jane\\" cannot list')]);
    const impersonated = await whoami(proxy, { ...jane, 'X-Remote-Group': 'system:masters', 'Impersonate-User': 'x' });
    expect(impersonated).toMatchObject({ username: 'x' });
  });

  it('is one by its CA and its name alone', async () => {
    expect(await whoami(stand.admin, jane)).toMatchObject({ username: 'kubernetes-admin' });
    expect(await whoami(undefined, jane)).toBe(401);
    const third = await stand.certificate('third', undefined, { ca: proxyCa });
    expect(await whoami(third, jane)).toBe(401);
    const unknownCa = await stand.certificate('front', undefined, { ca: await stand.otherCa() });
    expect(await whoami(unknownCa, jane)).toBe(401);
    // The name that a proxy may have is no proxy's with a certificate of the clients' CA.
    expect(await whoami(await stand.certificate('front'), jane)).toMatchObject({ username: 'front' });
    const server = await stand.certificate('front', undefined, { ca: proxyCa, usage: 'server' });
    expect(await whoami(server, jane)).toBe(401);
  });

  it('is none any longer when its CA has gone, and another is when its CA comes', async () => {
    const next = await stand.otherCa();
    const changed = (): boolean =>
      stand.lines.some((line) => line.startsWith('request header CA file') && line.includes('from now on'));
    writeFileSync(caFile, next.cert);
    await expect.poll(changed).toBe(true);
    expect(await whoami(proxy, jane)).toBe(401);
    const theirs = await stand.certificate('other', undefined, { ca: next });
    expect(await whoami(theirs, jane)).toMatchObject({ username: 'jane' });
    expect(await whoami(stand.admin)).toMatchObject({ username: 'kubernetes-admin' });
  });
});
