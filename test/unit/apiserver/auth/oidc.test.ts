// OpenID Connect without an issuer: what the flags mean, whose a token is by its claims, and which signatures hold.

import { constants, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { maxAgeMsOf } from '../../../../apiserver/auth/oidc/get-json.ts';
import { checkClaims, identityOf } from '../../../../apiserver/auth/oidc/identity.ts';
import { type OidcOptions, oidcSettings } from '../../../../apiserver/auth/oidc/options.ts';
import { isSignedBy, keysOf, readToken, untrustedIssuer } from '../../../../apiserver/auth/oidc/signature.ts';
import { TokenError } from '../../../../apiserver/auth/tokens.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { at } from '../../../support/api-server.ts';
import { makeCa } from '../../../support/tls.ts';

const ISSUER = 'https://id.example/realm';
const BASE: OidcOptions = { issuerUrl: ISSUER, clientId: 'kubernetes' };
const NOW = epochMs(Date.parse('2026-01-01T00:00:00Z'));
const SECONDS = NOW / 1000;

function settings(more: OidcOptions = {}) {
  return oidcSettings({ ...BASE, ...more }, ['https://accounts.example'], () => '');
}

describe('the flags', () => {
  it('default as kube-apiserver’s', () => {
    expect(settings()).toEqual({
      issuer: ISSUER,
      audiences: ['kubernetes'],
      username: { claim: 'sub', prefix: `${ISSUER}#` },
      groups: undefined,
      uid: undefined,
      extra: [],
      requiredClaims: new Map(),
      claimRules: [],
      userRules: [],
      algorithms: ['RS256'],
      ca: undefined,
    });
    const prefix = (more: OidcOptions) => at(settings(more).username, 'prefix');
    expect(prefix({ usernameClaim: 'email' })).toBe('');
    expect(prefix({ usernameClaim: 'email', usernamePrefix: 'oidc:' })).toBe('oidc:');
    expect(prefix({ usernameClaim: 'name' })).toBe(`${ISSUER}#`);
    expect(prefix({ usernamePrefix: '-' })).toBe('');
  });

  const refusals: readonly [string, OidcOptions, string][] = [
    ['no client', { clientId: '' }, 'oidc-issuer-url and oidc-client-id must be specified together'],
    ['no issuer', { issuerUrl: '' }, 'oidc-issuer-url and oidc-client-id must be specified together'],
    [
      'http',
      { issuerUrl: 'http://id.example' },
      'issuer.url: Invalid value: "http://id.example": URL scheme must be https',
    ],
    ['a query', { issuerUrl: `${ISSUER}?a=b` }, 'URL must not contain a query'],
    ['a fragment', { issuerUrl: `${ISSUER}#a` }, 'URL must not contain a fragment'],
    ['a user', { issuerUrl: 'https://a:b@id.example' }, 'URL must not contain a username or password'],
    [
      'the issuer of service accounts',
      { issuerUrl: 'https://accounts.example' },
      'URL must not overlap with disallowed issuers: [https://accounts.example]',
    ],
    ['an algorithm with a shared key', { signingAlgs: ['RS256', 'HS256'] }, 'oidc: unsupported signing alg: "HS256"'],
    ['no algorithm', { signingAlgs: ['none'] }, 'oidc: unsupported signing alg: "none"'],
    ['no claim of the name', { usernameClaim: '' }, 'claimMappings.username: Required value'],
    ['a CA file without a certificate', { caFile: '/ca.crt' }, 'does not contain any valid RSA or ECDSA certificates'],
  ];
  it.each(refusals)('refuse %s', (_what, more, message) => {
    expect(() => settings(more)).toThrow(message);
  });

  it('read the CA file', async () => {
    const { cert } = await makeCa();
    expect(oidcSettings({ ...BASE, caFile: '/ca.crt' }, [], () => cert).ca).toBe(cert);
  });
});

describe('the claims', () => {
  const GROUPS = { groupsClaim: 'groups', groupsPrefix: 'oidc:' };
  const callers: readonly [string, OidcOptions, object, object][] = [
    [
      'a name with the prefix of its issuer',
      {},
      { sub: 'jane' },
      { name: `${ISSUER}#jane`, groups: ['system:authenticated'] },
    ],
    [
      'a list of groups',
      GROUPS,
      { sub: 'jane', groups: ['a', 'b'], jti: '7' },
      {
        name: `${ISSUER}#jane`,
        groups: ['oidc:a', 'oidc:b', 'system:authenticated'],
        extra: { 'authentication.kubernetes.io/credential-id': ['JTI=7'] },
      },
    ],
    [
      'one group',
      GROUPS,
      { sub: 'j', groups: 'a' },
      { name: `${ISSUER}#j`, groups: ['oidc:a', 'system:authenticated'] },
    ],
    ['no groups', GROUPS, { sub: 'j' }, { name: `${ISSUER}#j`, groups: ['system:authenticated'] }],
    ['null for groups', GROUPS, { sub: 'j', groups: null }, { name: `${ISSUER}#j`, groups: ['system:authenticated'] }],
    [
      'an address of mail that is verified',
      { usernameClaim: 'email' },
      { email: 'j@x', email_verified: true },
      { name: 'j@x', groups: ['system:authenticated'] },
    ],
    [
      'an address of mail that says nothing of it',
      { usernameClaim: 'email' },
      { email: 'j@x' },
      { name: 'j@x', groups: ['system:authenticated'] },
    ],
    [
      'what is required',
      { usernamePrefix: '-', requiredClaims: new Map([['hd', 'example.com']]) },
      { sub: 'j', hd: 'example.com' },
      { name: 'j', groups: ['system:authenticated'] },
    ],
    [
      'groups that come with the token (aggregated)',
      GROUPS,
      { sub: 'j', _claim_names: { groups: 's' }, _claim_sources: { s: { JWT: 'x' } } },
      { name: `${ISSUER}#j`, groups: ['system:authenticated'] },
    ],
  ];
  it.each(callers)('with %s are a caller’s', (_what, more, claims, caller) => {
    expect(identityOf({ ...claims }, settings(more))).toEqual(caller);
  });

  const refusals: readonly [string, OidcOptions, object, string][] = [
    ['no name', {}, {}, 'oidc: parse username claims "sub": claim not present'],
    ['a number for a name', {}, { sub: 7 }, 'oidc: parse username claims "sub"'],
    [
      'mail that is not verified',
      { usernameClaim: 'email' },
      { email: 'j@x', email_verified: false },
      'oidc: email not verified',
    ],
    [
      'an odd verification',
      { usernameClaim: 'email' },
      { email: 'j@x', email_verified: 'true' },
      "oidc: parse 'email_verified' claim",
    ],
    ['a number among groups', GROUPS, { sub: 'j', groups: ['a', 7] }, 'oidc: parse groups claim "groups"'],
    [
      'distributed groups',
      GROUPS,
      { sub: 'j', _claim_names: { groups: 's' }, _claim_sources: { s: { endpoint: 'https://x' } } },
      'oidc: could not expand distributed claims',
    ],
    [
      'nothing of what is required',
      { requiredClaims: new Map([['hd', 'x']]) },
      { sub: 'j' },
      'oidc: required claim hd not present in ID token',
    ],
    [
      'another value of it',
      { requiredClaims: new Map([['hd', 'x']]) },
      { sub: 'j', hd: 'y' },
      'oidc: required claim hd value does not match. Got = y, want = x',
    ],
    ['a list of it', { requiredClaims: new Map([['hd', 'x']]) }, { sub: 'j', hd: ['x'] }, 'oidc: parse claim hd'],
  ];
  it.each(refusals)('with %s are refused', (_what, more, claims, message) => {
    expect(() => identityOf({ ...claims }, settings(more))).toThrow(message);
  });

  it('hold for this audience and this time alone', () => {
    const good = { aud: ['other', 'kubernetes'], exp: SECONDS + 1 };
    const check = (more: object) => () => checkClaims({ ...good, ...more }, settings(), NOW);
    for (const more of [{}, { aud: 'kubernetes' }, { exp: SECONDS }, { nbf: SECONDS + 60 }, { exp: SECONDS + 0.5 }]) {
      expect(check(more)).not.toThrow();
    }
    expect(check({ aud: 'other' })).toThrow('oidc: verify token: oidc: expected audience "kubernetes" got ["other"]');
    expect(check({ aud: undefined })).toThrow('got []');
    expect(check({ exp: SECONDS - 1 })).toThrow('oidc: verify token: oidc: token is expired');
    expect(check({ exp: undefined })).toThrow('oidc: token is expired');
    expect(check({ exp: 'never' })).toThrow('oidc: failed to unmarshal claims');
    expect(check({ nbf: SECONDS + 61 })).toThrow('not valid before');
    expect(check({ nbf: 1e300 })).toThrow('not valid before 1e+300');
    expect(check({ exp: -1e300 })).toThrow('token is expired');
  });
});

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('a signature', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const curves = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' } as const;

  function tokenBy(alg: string, key: KeyObject, kid?: string, more: object = {}): string {
    const text = `${encode({ alg, ...(kid === undefined ? {} : { kid }), ...more })}.${encode({ iss: ISSUER })}`;
    const options = {
      key,
      dsaEncoding: 'ieee-p1363' as const,
      ...(alg.startsWith('PS')
        ? { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
        : {}),
    };
    return `${text}.${sign(`sha${alg.slice(2)}`, Buffer.from(text), options).toString('base64url')}`;
  }
  const jwk = (key: KeyObject, kid: string) => ({ ...key.export({ format: 'jwk' }), kid, use: 'sig' });

  it.each(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'] as const)(
    'by %s holds',
    (alg) => {
      const isCurve = alg === 'ES256' || alg === 'ES384' || alg === 'ES512';
      const pair = isCurve ? generateKeyPairSync('ec', { namedCurve: curves[alg] }) : rsa;
      const keys = keysOf({ keys: [jwk(pair.publicKey, 'a'), jwk(other.publicKey, 'b')] }) ?? [];
      const signed = (token: string): boolean => isSignedBy(keys, readToken(token));
      expect(signed(tokenBy(alg, pair.privateKey, 'a'))).toBe(true);
      expect(signed(tokenBy(alg, pair.privateKey))).toBe(true);
      // By a key of another id, and by an algorithm that the key is not for.
      expect(signed(tokenBy(alg, pair.privateKey, 'b'))).toBe(false);
      const [, body, signature] = tokenBy(alg, pair.privateKey, 'a').split('.');
      const twin = alg.startsWith('RS') ? alg.replace('RS', 'PS') : alg.replace(/^../, 'RS');
      for (const named of [twin, 'none', 'HS256', '']) {
        expect(signed(`${encode({ alg: named, kid: 'a' })}.${body}.${signature}`)).toBe(false);
      }
    },
  );

  it('is by a curve’s own algorithm', () => {
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-384' });
    const keys = keysOf({ keys: [jwk(pair.publicKey, 'a')] }) ?? [];
    expect(isSignedBy(keys, readToken(tokenBy('ES256', pair.privateKey, 'a')))).toBe(false);
  });

  it('is of a whole token, whose head asks for nothing unknown', () => {
    const good = tokenBy('RS256', rsa.privateKey, 'a');
    const [head, body, signature] = good.split('.');
    for (const token of [
      '',
      'a.b.c',
      `${head}.${body}`,
      `${head}.${body}.`,
      `${good}.x`,
      `${head}.${body}=.${signature}`,
      `${encode('x')}.${body}.${signature}`,
    ]) {
      expect(() => readToken(token)).toThrow(TokenError);
    }
    expect(() => readToken(tokenBy('RS256', rsa.privateKey, 'a', { crit: ['exp'] }))).toThrow('crit');
    expect(untrustedIssuer(good)).toBe(ISSUER);
    expect(untrustedIssuer(`${head}.${encode({ iss: 'accounts.google.com' })}.x`)).toBe('https://accounts.google.com');
    for (const token of ['abc', `${head}.${encode({})}.x`, `${head}.${encode([ISSUER])}.x`, `${good}.x`]) {
      expect(untrustedIssuer(token)).toBeUndefined();
    }
  });

  it('is by keys that can be read', () => {
    const odd = [
      { kty: 'oct', k: 'abc', kid: 'a' },
      { kty: 'RSA', kid: 'b' },
      { kty: 'EC', crv: 'P-0', x: 'a', y: 'b' },
      7,
      null,
    ];
    expect(keysOf({ keys: [...odd, jwk(rsa.publicKey, 'c')] })?.map(({ id }) => id)).toEqual(['c']);
    for (const document of [undefined, [], {}, { keys: {} }]) expect(keysOf(document)).toBeUndefined();
  });
});

it.each([
  ['', 0],
  ['max-age=600', 600_000],
  ['Public, Max-Age="60"', 60_000],
  ['max-age=600, s-maxage=10', 10_000],
  ['no-store, max-age=600', 0],
  ['private, max-age=600', 0],
  ['max-age=soon', 0],
])('"%s" keeps keys for %i ms', (header, ms) => {
  expect(maxAgeMsOf(header)).toBe(ms);
});
