// The cases of kube-apiserver's impersonation filter: who may act as whom, and who the request then comes from.

import { describe, expect, it } from 'vitest';
import { auditLine, impersonated, requiredPermissions } from '../../../../apiserver/auth/impersonate.ts';
import type { Caller } from '../../../../apiserver/registry/registry.ts';
import { failureOf } from '../support.ts';
import { authorizerOf, lookupOf, nodeUser, user } from './support.ts';

const ADMIN = user('kubernetes-admin', 'system:masters');
const authorizer = authorizerOf(lookupOf({}));
const as = (headers: readonly string[], caller: Caller = ADMIN): Caller | undefined =>
  impersonated(caller, headers, authorizer);

const USER = 'Impersonate-User';
const GROUP = 'Impersonate-Group';
const UID = 'Impersonate-Uid';
const AUTHENTICATED = 'system:authenticated';

describe('impersonation', () => {
  const cases: readonly [string, readonly string[], Caller | undefined][] = [
    ['nothing asked for', ['Accept', '*/*', 'Authorization', 'Bearer x'], undefined],
    ['empty headers', [USER, '', UID, ''], undefined],
    ['a user', [USER, 'tester'], { name: 'tester', groups: [AUTHENTICATED] }],
    ['headers in any case', ['iMPERSONATE-uSER', 'tester'], { name: 'tester', groups: [AUTHENTICATED] }],
    ['the first of two users', [USER, 'one', USER, 'two'], { name: 'one', groups: [AUTHENTICATED] }],
    [
      'a user with groups',
      [USER, 'tester', GROUP, 'a', GROUP, 'b, c'],
      { name: 'tester', groups: ['a', 'b, c', AUTHENTICATED] },
    ],
    [
      'given system:authenticated once',
      [USER, 'tester', GROUP, AUTHENTICATED],
      { name: 'tester', groups: [AUTHENTICATED] },
    ],
    [
      'given system:unauthenticated alone',
      [USER, 'tester', GROUP, 'system:unauthenticated'],
      { name: 'tester', groups: ['system:unauthenticated'] },
    ],
    ['nobody', [USER, 'system:anonymous'], { name: 'system:anonymous', groups: ['system:unauthenticated'] }],
    [
      'no user with a group',
      [USER, 'system:anonymous', GROUP, 'a'],
      { name: 'system:anonymous', groups: ['a', 'system:unauthenticated'] },
    ],
    ['a uid', [USER, 'tester', UID, '1234'], { name: 'tester', uid: '1234', groups: [AUTHENTICATED] }],
    [
      'extra values',
      [
        USER,
        'tester',
        'Impersonate-Extra-Scopes',
        'a',
        'Impersonate-Extra-scopes',
        'b',
        'Impersonate-Extra-example.com%2fHue',
        'red',
      ],
      { name: 'tester', groups: [AUTHENTICATED], extra: { scopes: ['a', 'b'], 'example.com/hue': ['red'] } },
    ],
    [
      'an extra key that is not encoded rightly',
      [USER, 'tester', 'Impersonate-Extra-a%zz', 'x'],
      { name: 'tester', groups: [AUTHENTICATED], extra: { 'a%zz': ['x'] } },
    ],
    [
      'extra keys that every object has',
      [USER, 'tester', 'Impersonate-Extra-constructor', 'x', 'Impersonate-Extra-__proto__', 'y'],
      {
        name: 'tester',
        groups: [AUTHENTICATED],
        extra: Object.fromEntries([
          ['constructor', ['x']],
          ['__proto__', ['y']],
        ]),
      },
    ],
    [
      'a service account, whose groups are known',
      [USER, 'system:serviceaccount:foo:default'],
      {
        name: 'system:serviceaccount:foo:default',
        groups: ['system:serviceaccounts', 'system:serviceaccounts:foo', AUTHENTICATED],
      },
    ],
    [
      'a service account with other groups',
      [USER, 'system:serviceaccount:foo:default', GROUP, 'a'],
      { name: 'system:serviceaccount:foo:default', groups: ['a', AUTHENTICATED] },
    ],
    [
      'a user that is nearly one',
      [USER, 'system:serviceaccount:foo'],
      { name: 'system:serviceaccount:foo', groups: [AUTHENTICATED] },
    ],
    [
      'a name beyond ASCII, as it is on the wire',
      [USER, Buffer.from('jürgen').toString('latin1')],
      { name: 'jürgen', groups: [AUTHENTICATED] },
    ],
  ];
  for (const [what, headers, expected] of cases) it(what, () => expect(as(headers)).toEqual(expected));

  it('needs the permission for each user, group, uid and extra value', () => {
    const headers = [
      USER,
      'tester',
      GROUP,
      'a',
      GROUP,
      'b',
      UID,
      '1',
      'Impersonate-Extra-Scopes',
      'x',
      'Impersonate-Extra-scopes',
      'y',
    ];
    const shown = requiredPermissions(headers).map(
      ({ verb, group, resource, subresource, name }) => `${verb} ${resource}/${subresource}.${group} ${name}`,
    );
    expect(shown).toEqual([
      'impersonate users/. tester',
      'impersonate groups/. a',
      'impersonate groups/. b',
      'impersonate userextras/scopes.authentication.k8s.io x',
      'impersonate userextras/scopes.authentication.k8s.io y',
      'impersonate uids/.authentication.k8s.io 1',
    ]);
    expect(requiredPermissions([USER, 'system:serviceaccount:foo:bar'])).toEqual([
      { verb: 'impersonate', group: '', resource: 'serviceaccounts', subresource: '', namespace: 'foo', name: 'bar' },
    ]);
  });

  const without: readonly [string, readonly string[], string][] = [
    ['groups', [GROUP, 'developers'], '[{Group  developers    }]'],
    ['a uid', [UID, '1234'], '[{UID  1234  authentication.k8s.io/v1  }]'],
    ['an extra value', ['Impersonate-Extra-scopes', 'a'], '[{UserExtra  a  authentication.k8s.io/v1  scopes}]'],
  ];
  for (const [what, headers, printed] of without) {
    it(`${what} without a user is an error`, () => {
      expect(failureOf(() => as(headers))).toMatchObject({
        code: 500,
        message: `Internal error occurred: requested ${printed} without impersonating a user`,
      });
    });
  }

  const BOB = user('bob');
  const forbidden: readonly [string, readonly string[], string][] = [
    [
      'a user',
      [USER, 'tester'],
      'users "tester" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope',
    ],
    ['themselves', [USER, 'bob'], 'cannot impersonate resource "users"'],
    [
      'a service account',
      [USER, 'system:serviceaccount:foo:default'],
      'serviceaccounts "default" is forbidden: User "bob" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "foo"',
    ],
  ];
  for (const [what, headers, message] of forbidden) {
    it(`a caller who may not act as ${what} is refused`, () => {
      const failure = failureOf(() => as(headers, BOB));
      expect(failure.code).toBe(403);
      expect(failure.message).toContain(message);
    });
  }

  for (const caller of [
    nodeUser('n1'),
    user('system:kube-controller-manager'),
    user('system:kube-scheduler'),
    user('system:serviceaccount:ns:default', 'system:serviceaccounts'),
    { name: 'system:anonymous', groups: ['system:unauthenticated'] },
  ]) {
    it(`${caller.name} may not impersonate`, () => {
      expect(failureOf(() => as([USER, 'kubernetes-admin', GROUP, 'system:masters'], caller)).code).toBe(403);
    });
  }
});

describe('the log line of such a request', () => {
  const request = { method: 'GET', path: '/api/v1/secrets' };
  it('has both identities', () => {
    const line = auditLine(ADMIN, { name: 'nobody', groups: [AUTHENTICATED], extra: { a: ['b'] } }, request);
    expect(line).toBe(
      'impersonation: GET by {"name":"kubernetes-admin","groups":["system:masters","system:authenticated"]} as {"name":"nobody","groups":["system:authenticated"],"extra":{"a":["b"]}}: /api/v1/secrets',
    );
  });
  it('is one line of bounded length whatever is asked for', () => {
    const line = auditLine(ADMIN, { name: `a\nb${'x'.repeat(100_000)}`, groups: [] }, request);
    expect(line).not.toContain('\n');
    expect(line.length).toBeLessThanOrEqual(2048);
  });
});
