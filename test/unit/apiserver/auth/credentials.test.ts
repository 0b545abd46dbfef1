// Static tokens, bootstrap tokens and several keys and issuers: whose a token is, and which are no good.

import { describe, expect, it } from 'vitest';
import { BearerTokens } from '../../../../apiserver/auth/bearer-tokens.ts';
import { bootstrapCaller } from '../../../../apiserver/auth/bootstrap-tokens.ts';
import { StaticTokens } from '../../../../apiserver/auth/static-tokens.ts';
import { ISSUER, ServiceAccountTokens, TokenError } from '../../../../apiserver/auth/tokens.ts';
import { generateKeyPair } from '../../../../apiserver/pki/keys.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { lookupOf, thing } from './support.ts';

const NOW = epochMs(Date.parse('2026-01-01T00:00:00Z'));

describe('a static token', () => {
  const parse = (text: string) => StaticTokens.parse(text, '/tokens.csv');

  it('is that of its line', () => {
    const tokens = parse('abc,alice,1\n\ndef,"bob ""b""",2,"devs,ops"\r\n,nobody,3\nghi,carol,4,devs\n');
    expect(tokens.find('abc')).toEqual({ name: 'alice', uid: '1', groups: ['system:authenticated'] });
    expect(tokens.find('def')).toEqual({ name: 'bob "b"', uid: '2', groups: ['devs', 'ops', 'system:authenticated'] });
    expect(tokens.find('ghi')?.groups).toEqual(['devs', 'system:authenticated']);
    for (const token of ['', 'ab', 'abcd']) expect(tokens.find(token)).toBeUndefined();
  });

  it('needs three columns and closed quotes', () => {
    expect(() => parse('abc,alice')).toThrow(
      "token file '/tokens.csv' must have at least 3 columns (token, user name, user uid), found 2 in line 1",
    );
    expect(() => parse('a,b,1\nabc,"alice,1')).toThrow('line 2: a quote is not closed');
  });
});

describe('a bootstrap token', () => {
  const base = {
    'token-id': 'abcdef',
    'token-secret': '0123456789abcdef',
    'usage-bootstrap-authentication': 'true',
  };
  const secret = (data: Record<string, string>, more: object = {}, metadata: object = {}) =>
    thing(
      'secrets',
      { name: 'bootstrap-token-abcdef', namespace: 'kube-system', ...metadata },
      {
        type: 'bootstrap.kubernetes.io/token',
        data: Object.fromEntries(Object.entries(data).map(([k, v]) => [k, Buffer.from(v).toString('base64')])),
        ...more,
      },
    );
  const callerOf = (stored: ReturnType<typeof secret>, token = 'abcdef.0123456789abcdef') =>
    bootstrapCaller(token, lookupOf({ secrets: [stored] }), NOW);

  it('is a bootstrapper, of the groups that its Secret names', () => {
    expect(callerOf(secret(base))).toEqual({
      name: 'system:bootstrap:abcdef',
      groups: ['system:bootstrappers', 'system:authenticated'],
    });
    const groups = { 'auth-extra-groups': 'system:bootstrappers:b,system:bootstrappers:a' };
    expect(callerOf(secret({ ...base, ...groups }))?.groups).toEqual([
      'system:bootstrappers',
      'system:bootstrappers:a',
      'system:bootstrappers:b',
      'system:authenticated',
    ]);
    expect(callerOf(secret({ ...base, expiration: '2026-01-01T00:00:01Z' }))).toBeDefined();
  });

  const refusals: readonly [string, ReturnType<typeof secret>, string?][] = [
    ['with another secret', secret({ ...base, 'token-secret': '0123456789abcdee' })],
    ['with another id', secret({ ...base, 'token-id': 'abcdeg' })],
    ['of another type', secret(base, { type: 'Opaque' })],
    ['that is being deleted', secret(base, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' })],
    ['that has ended', secret({ ...base, expiration: '2026-01-01T00:00:00Z' })],
    ['whose end cannot be read', secret({ ...base, expiration: 'tomorrow' })],
    ['that is for signing', secret({ ...base, 'usage-bootstrap-authentication': 'false' })],
    ['of other groups', secret({ ...base, 'auth-extra-groups': 'system:masters' })],
    ['that is longer', secret(base), 'abcdef.0123456789abcdef0'],
    ['in capitals', secret(base), 'ABCDEF.0123456789abcdef'],
    ['that there is not', secret(base), 'abcdeg.0123456789abcdef'],
  ];
  for (const [what, stored, token] of refusals) {
    it(`${what} is none`, () => expect(callerOf(stored, token)).toBeUndefined());
  }
});

describe('tokens of several kinds', () => {
  const old = generateKeyPair();
  const world = lookupOf({ serviceaccounts: [thing('serviceaccounts', { name: 'a', namespace: 'ns', uid: 'u' })] });
  const request = { namespace: 'ns', serviceAccount: { name: 'a', uid: 'u' }, expirationSeconds: 3600 };
  const issue = (from: ServiceAccountTokens) => from.issue({ ...request, audiences: from.audiences }, NOW).token;

  it('are accepted for the API server’s audiences alone', () => {
    const accounts = new ServiceAccountTokens(generateKeyPair().privateKey, { audiences: ['api', 'other'] });
    const statics = StaticTokens.parse('abc,alice,1', 'f');
    const bearers = new BearerTokens({ accounts, lookup: world, statics, bootstrap: false });
    expect(bearers.check('abc', [], NOW)).toMatchObject({ caller: { name: 'alice' }, audiences: ['api', 'other'] });
    expect(bearers.check('abc', ['vault', 'other'], NOW).audiences).toEqual(['other']);
    expect(() => bearers.check('abc', ['vault'], NOW)).toThrow(TokenError);
    expect(bearers.check(issue(accounts), [], NOW).caller.name).toBe('system:serviceaccount:ns:a');
    expect(() => bearers.check('abcdef.0123456789abcdef', [], NOW)).toThrow(TokenError);
  });

  it('of an earlier key and issuer are accepted while they are named', () => {
    const before = new ServiceAccountTokens(old.privateKey);
    const now = generateKeyPair();
    const token = issue(before);
    const check = (tokens: ServiceAccountTokens) => tokens.check(token, [ISSUER], world, NOW).caller.name;
    const issuers = ['https://new.example', ISSUER];
    const both = new ServiceAccountTokens(now.privateKey, { issuers, publicKeys: [old.publicKey] });
    expect(check(both)).toBe('system:serviceaccount:ns:a');
    expect(() => check(new ServiceAccountTokens(now.privateKey, { issuers }))).toThrow(TokenError);
    expect(() =>
      check(
        new ServiceAccountTokens(now.privateKey, { issuers: ['https://new.example'], publicKeys: [old.publicKey] }),
      ),
    ).toThrow(TokenError);
    expect(both.configuration()).toMatchObject({
      issuer: 'https://new.example',
      jwks_uri: 'https://new.example/openid/v1/jwks',
    });
    expect(both.keySet()['keys']).toHaveLength(2);
  });
});
