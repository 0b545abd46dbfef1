import { expect, test } from 'vitest';
import { dockerReference, normalizedName, wholeNames } from '../../../dockershim/image-names.ts';
import { dockerAuth, imageUser, pullFailure } from '../../../dockershim/images.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

test.each([
  ['busybox', 'docker.io/library/busybox:latest', 'docker.io/library/busybox:latest'],
  ['busybox:1', 'docker.io/library/busybox:1', 'docker.io/library/busybox:1'],
  ['team/app', 'docker.io/team/app:latest', 'docker.io/team/app:latest'],
  ['docker.io/busybox', 'docker.io/library/busybox:latest', 'docker.io/library/busybox:latest'],
  ['index.docker.io/a/b:1', 'docker.io/a/b:1', 'docker.io/a/b:1'],
  ['registry.k8s.io/pause:3.9', 'registry.k8s.io/pause:3.9', 'registry.k8s.io/pause:3.9'],
  ['localhost/a', 'localhost/a:latest', 'localhost/a:latest'],
  ['host:5000/a', 'host:5000/a:latest', 'host:5000/a:latest'],
  [`a@${DIGEST}`, `docker.io/library/a@${DIGEST}`, `docker.io/library/a@${DIGEST}`],
  // With a digest the tag says nothing.
  [`a:1@${DIGEST}`, `docker.io/library/a:1@${DIGEST}`, `docker.io/library/a@${DIGEST}`],
  [DIGEST, DIGEST, DIGEST],
  ['b'.repeat(64), 'b'.repeat(64), 'b'.repeat(64)],
])('%s', (name, whole, docker) => {
  expect([normalizedName(name), dockerReference(name)]).toEqual([whole, docker]);
});

test('names of Docker’s lists', () => {
  expect(wholeNames(['<none>:<none>', 'a:1'])).toEqual(['docker.io/library/a:1']);
  expect(wholeNames(null)).toEqual([]);
});

test.each([
  ['', {}],
  ['1000:1', { uid: { value: '1000' } }],
  ['nginx', { username: 'nginx' }],
])('user %j', (user, expected) => {
  expect(imageUser(user)).toEqual(expected);
});

const NO_AUTH = { username: '', password: '', auth: '', server_address: '', identity_token: '', registry_token: '' };
test.each([
  [{}, undefined],
  [
    { username: 'u', password: 'p', server_address: 's' },
    { username: 'u', password: 'p', serveraddress: 's' },
  ],
  [{ auth: Buffer.from('u:p:q').toString('base64') }, { username: 'u', password: 'p:q' }],
  [{ identity_token: 't' }, { identitytoken: 't' }],
  [{ registry_token: 't' }, { registrytoken: 't' }],
])('credentials %j', (auth, expected) => {
  expect(dockerAuth({ ...NO_AUTH, ...auth })).toEqual(expected);
});

test('credentials that are none', () => {
  expect(dockerAuth(null)).toBeUndefined();
  expect(() => dockerAuth({ ...NO_AUTH, auth: Buffer.from('u').toString('base64') })).toThrow('auth.auth');
});

test.each([
  ['{"status":"Pulling"}\n', undefined],
  [
    '{"status":"x"}\n{"errorDetail":{"message":"m"},"error":"manifest for a not found: manifest unknown"}\n',
    'NOT_FOUND',
  ],
  ['{"error":"unauthorized: no"}', 'UNKNOWN'],
])('a pull that printed %j', (progress, code) => {
  expect(pullFailure(progress)?.code).toBe(code);
});
