// What the lab's registry decides: what a path names, who may pull, how often, and which part of a blob.

import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  ACCOUNT,
  type AccessRequest,
  basicCredentials,
  decideAccess,
  issueToken,
  TOKEN_MS,
} from '../../../../labs/registry/access.ts';
import { repositoriesOf } from '../../../../labs/registry/catalog.ts';
import { errorBody, statusOf } from '../../../../labs/registry/errors.ts';
import { decidePull } from '../../../../labs/registry/limit.ts';
import { parseFullName, parseTarget, repositoryKind } from '../../../../labs/registry/names.ts';
import { epochMs, type MonotonicMs, monotonicMs, plusMs } from '../../../../lib/clock.ts';

const DIGEST = `sha256:${'ab'.repeat(32)}`;

describe('a path', () => {
  it.each([
    ['/v2', { kind: 'base' }],
    ['/v2/', { kind: 'base' }],
    ['/token', { kind: 'token' }],
    ['/v2/_catalog', { kind: 'catalog' }],
    ['/v2/library/busybox/manifests/latest', { kind: 'manifest', repository: 'library/busybox', reference: 'latest' }],
    [`/v2/pause/manifests/${DIGEST}`, { kind: 'manifest', repository: 'pause', reference: DIGEST }],
    [`/v2/a/b/c/blobs/${DIGEST}`, { kind: 'blob', repository: 'a/b/c', digest: DIGEST }],
    ['/v2/manifests/tags/tags/list', { kind: 'tags', repository: 'manifests/tags' }],
  ])('%s is understood', (path, target) => expect(parseTarget(path)).toEqual(target));

  it.each([
    ['/', 'UNSUPPORTED'],
    ['/v1/_ping', 'UNSUPPORTED'],
    ['/v2/library/busybox', 'UNSUPPORTED'],
    ['/v2/a/tags/all', 'UNSUPPORTED'],
    ['/v2/a/blobs/uploads/', 'UNSUPPORTED'],
    ['/v2/Library/manifests/latest', 'NAME_INVALID'],
    ['/v2/a//b/manifests/latest', 'NAME_INVALID'],
    ['/v2/../etc/manifests/passwd', 'NAME_INVALID'],
    [`/v2/${'a'.repeat(256)}/manifests/latest`, 'NAME_INVALID'],
    ['/v2/a/blobs/latest', 'DIGEST_INVALID'],
    ['/v2/a/manifests/-x', 'TAG_INVALID'],
    [`/v2/a/manifests/${'t'.repeat(129)}`, 'TAG_INVALID'],
  ])('%s is refused as %s', (path, code) => {
    expect(parseTarget(path)).toMatchObject({ kind: 'refused', error: { code } });
  });
});

it.each([
  ['NAME_UNKNOWN', 404],
  ['MANIFEST_UNKNOWN', 404],
  ['BLOB_UNKNOWN', 404],
  ['UNAUTHORIZED', 401],
  ['TOOMANYREQUESTS', 429],
  ['RANGE_INVALID', 416],
] as const)('the error %s has status %i', (code, status) => {
  expect(statusOf({ code })).toBe(status);
  expect(JSON.parse(errorBody({ code, detail: 'x' })).errors).toEqual([
    { code, message: expect.stringMatching(/./), detail: 'x' },
  ]);
});

it.each([
  ['private/busybox', 'private'],
  ['slow/nginx', 'slow'],
  ['limited/busybox', 'limited'],
  ['library/busybox', 'public'],
  ['private', 'public'],
  ['team/private/app', 'public'],
])('the repository %s is %s', (name, kind) => expect(repositoryKind(name)).toBe(kind));

describe('repositories', () => {
  const image = (...names: string[]) => ({ names, archive: async () => '' });
  const images = [
    image('docker.io/library/busybox:stable', 'docker.io/library/busybox:latest'),
    image('registry.k8s.io/pause:3.9'),
  ];
  const tagsOf = (host: string, ...reachable: string[]) =>
    Object.fromEntries(
      [...repositoriesOf(host, images, new Set(reachable))].map(([name, { tags }]) => [name, tags.join(' ')]),
    );
  const special = {
    'private/busybox': 'latest stable',
    'slow/busybox': 'latest stable',
    'limited/busybox': '1 2 3 4 5 6 7 8 9 latest stable',
  };

  it.each([
    ['docker.io', [], { 'library/busybox': 'latest stable', ...special }],
    ['registry.k8s.io', [], { pause: '3.9', ...special }],
    ['quay.io', [], special],
    ['docker.io', ['docker.io'], special],
    ['registry.k8s.io', ['docker.io'], { pause: '3.9', ...special }],
  ])('of %s where %j can be reached', (host, reachable, expected) => {
    expect(tagsOf(host, ...reachable)).toEqual(expected);
  });

  it('come from full names', () => {
    expect(parseFullName('localhost.example:5000/a/b:c')).toEqual({
      host: 'localhost.example:5000',
      repository: 'a/b',
      tag: 'c',
    });
  });
});

describe('access', () => {
  const key = randomBytes(32);
  const now = epochMs(1_700_000_000_000);
  const realm = 'http://r/token';
  const basic = (user: string, password: string): string =>
    `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  const student = basic(ACCOUNT.user, ACCOUNT.password);
  const bearer = (user: string | undefined, name: string): string =>
    `Bearer ${issueToken(user, [`repository:${name}:pull`], key, now)}`;
  const decide = (repository: string, authorization?: string, more: Partial<AccessRequest> = {}) =>
    decideAccess({ repository, authorization, exists: true, realm, ...more }, key, now);
  const challenge = (name: string, error?: string) => ({
    kind: 'challenge',
    header: `Bearer realm="${realm}",service="registry.nodelet",scope="repository:${name}:pull"${error === undefined ? '' : `,error="${error}"`}`,
  });

  it.each([
    ['library/busybox', undefined, undefined],
    ['slow/busybox', undefined, undefined],
    ['limited/a', bearer(undefined, 'limited/a'), undefined],
    ['limited/a', bearer('student', 'limited/a'), 'student'],
    ['private/a', bearer('student', 'private/a'), 'student'],
    ['private/a', student, 'student'],
    ['library/a', student, 'student'],
  ])('to %s with %s is granted', (name, authorization, user) => {
    expect(decide(name, authorization)).toEqual({ kind: 'granted', user });
  });

  it.each([
    ['private/a', undefined, undefined],
    ['limited/a', undefined, undefined],
    ['private/a', basic('student', 'guessed'), undefined],
    ['private/a', basic('teacher', ACCOUNT.password), undefined],
    ['private/a', bearer(undefined, 'private/a'), 'insufficient_scope'],
    ['private/a', bearer('student', 'private/b'), 'insufficient_scope'],
    ['private/a', 'Bearer not.a.token', 'invalid_token'],
    ['private/a', `${bearer('student', 'private/a')}x`, 'invalid_token'],
    [
      'private/a',
      `Bearer ${issueToken('student', ['repository:private/a:pull'], randomBytes(32), now)}`,
      'invalid_token',
    ],
  ])('to %s with %s is refused', (name, authorization, error) => {
    expect(decide(name, authorization)).toEqual(challenge(name, error));
  });

  it('ends with the token', () => {
    const authorization = bearer('student', 'private/a');
    const request = { repository: 'private/a', authorization, exists: true, realm };
    expect(decideAccess(request, key, plusMs(now, TOKEN_MS - 1000)).kind).toBe('granted');
    expect(decideAccess(request, key, plusMs(now, TOKEN_MS + 1000))).toEqual(challenge('private/a', 'invalid_token'));
  });

  it.each([
    [undefined, undefined],
    [bearer(undefined, 'library/none'), 'insufficient_scope'],
    [bearer('student', 'library/none'), 'insufficient_scope'],
    [student, undefined],
  ])('does not show that a repository does not exist, to %s', (authorization, error) => {
    expect(decide('library/none', authorization, { exists: false })).toEqual(challenge('library/none', error));
  });

  it.each([
    ['Basic c3R1ZGVudDpvcGVuOnNlc2FtZQ==', { user: 'student', password: 'open:sesame' }],
    ['basic YTpi', { user: 'a', password: 'b' }],
    ['Basic YQ==', undefined],
    ['Bearer YTpi', undefined],
    [undefined, undefined],
  ])('credentials of %s', (header, expected) => expect(basicCredentials(header)).toEqual(expected));
});

describe('a limit of 2 pulls a minute', () => {
  const limit = { pulls: 2, windowMs: 60_000 };
  const at = (seconds: number): MonotonicMs => monotonicMs(seconds * 1000);
  const pull = (earlier: number[], seconds: number, counts = true, user?: string) =>
    decidePull(earlier.map(at), { user, address: '10.0.0.1', counts, now: at(seconds) }, limit);

  it.each([
    ['the first', [], 0, true, 1],
    ['the second', [0], 1, true, 0],
    ['the third', [0, 1], 2, false, 0],
    ['the third, when the first is a minute ago', [0, 30], 60, true, 0],
    ['one after a long time', [0, 1], 300, true, 1],
  ])('%s pull', (_name, earlier, seconds, allowed, remaining) => {
    expect(pull(earlier, seconds)).toMatchObject({
      allowed,
      headers: { 'ratelimit-limit': '2;w=60', 'ratelimit-remaining': `${remaining};w=60` },
    });
  });

  it('does not count what is refused, and no look at a manifest', () => {
    expect(pull([0, 1], 2).pulls).toEqual([at(0), at(1)]);
    expect(pull([0, 1], 2, false)).toMatchObject({ allowed: true, pulls: [at(0), at(1)] });
  });

  it('is twice as much for an account', () => {
    const headers = {
      'ratelimit-limit': '4;w=60',
      'ratelimit-remaining': '1;w=60',
      'docker-ratelimit-source': 'student',
    };
    expect(pull([0, 1], 2, true, 'student')).toMatchObject({ allowed: true, headers });
    expect(pull([0, 1, 2, 3], 4, true, 'student')).toMatchObject({
      allowed: false,
      message: expect.stringContaining("as 'student'"),
    });
  });
});
