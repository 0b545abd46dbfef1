import { expect, test } from 'vitest';
import { CriError, toCriError } from '../../../dockershim/errors.ts';
import { dockerReference, normalizedName, wholeNames } from '../../../dockershim/image-names.ts';
import { dockerAuth, imageUser, pullError, pullFailure } from '../../../dockershim/images.ts';

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
  ['{"status":"x"}\n{"errorDetail":{"message":"m"},"error":"unauthorized: no"}\n', 'unauthorized: no'],
  ['{"error":"no space left on device"}', 'no space left on device'],
])('a pull that printed %j', (progress, message) => {
  expect(pullFailure(progress)?.message).toBe(message);
});

/** As Docker answers it: with a status of HTTP, or within the progress. */
function answered(status: number | undefined, message: string): CriError {
  if (status === undefined) return new CriError('UNKNOWN', message);
  return toCriError(
    Object.assign(new Error(`(HTTP code ${status}) - ${message}`), { statusCode: status, json: { message } }),
  );
}

test.each([
  ['NOT_FOUND', 404, 'manifest for h:5000/a:2 not found: manifest unknown: manifest unknown'],
  ['NOT_FOUND', undefined, 'manifest for h:5000/a:2 not found'],
  ['NOT_FOUND', 404, 'name unknown: repository name not known to registry'],
  ['UNKNOWN', 404, "pull access denied for a, repository does not exist or may require 'docker login': denied"],
  ['UNKNOWN', 500, 'Head "http://h:5000/v2/a/manifests/1": no basic auth credentials'],
  ['UNKNOWN', 500, 'Head "http://h:5000/v2/a/manifests/1": unauthorized: authentication required'],
  ['UNKNOWN', 401, 'unauthorized: authentication required'],
  ['UNKNOWN', 500, 'Get "http://h:5000/v2/": dial tcp 127.0.0.1:5000: connect: connection refused'],
  ['UNKNOWN', 503, 'received unexpected HTTP status: 503 Service Unavailable'],
  ['INVALID_ARGUMENT', 400, 'invalid reference format'],
])('a pull that fails is %s: %s %s', (code, status, message) => {
  expect(pullError(answered(status, message))).toMatchObject({ code, message });
});

test('a daemon that is away is not a registry that is', () => {
  const away = toCriError(Object.assign(new Error('connect ENOENT'), { code: 'ENOENT', syscall: 'connect' }));
  expect(pullError(away)).toMatchObject({ code: 'UNAVAILABLE' });
});
