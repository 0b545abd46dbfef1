// How long a token lives: with the account, the pod, the secret or the Node it is bound to, and not a request longer.

import { createPrivateKey, createPublicKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type BoundObject, ISSUER, ServiceAccountTokens, TokenError } from '../../../../apiserver/auth/tokens.ts';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import { generateKeyPair } from '../../../../apiserver/pki/keys.ts';
import { secretClaims } from '../../../../controlplane/controllers/serviceaccount-token/secret.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { keyIdOf, signToken } from '../../../../lib/jwt.ts';
import { lookupOf, thing, type World } from './support.ts';

const NOW = epochMs(Date.parse('2026-01-01T00:00:00Z'));
const tokens = new ServiceAccountTokens(generateKeyPair().privateKey);

function named(plural: string, name: string, uid = `${name}-uid`, deletionTimestamp?: string): KubeObject {
  const namespace = plural === 'nodes' ? {} : { namespace: 'ns' };
  return thing(plural, { name, uid, ...namespace, ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) });
}

const WORLD: World = {
  serviceaccounts: [named('serviceaccounts', 'account')],
  pods: [named('pods', 'pod')],
  secrets: [named('secrets', 'secret')],
  nodes: [named('nodes', 'node')],
};

function issue(bound?: BoundObject['kind']): string {
  const name = bound?.toLowerCase() ?? '';
  return tokens.issue(
    {
      namespace: 'ns',
      serviceAccount: { name: 'account', uid: 'account-uid' },
      audiences: [ISSUER],
      expirationSeconds: 3600,
      ...(bound === undefined ? {} : { bound: { kind: bound, name, uid: `${name}-uid` } }),
      ...(bound === 'Pod' ? { node: { name: 'node', uid: 'node-uid' } } : {}),
    },
    NOW,
  ).token;
}

const good = (token: string, world: World, now = NOW): boolean => {
  try {
    tokens.check(token, [ISSUER], lookupOf(world), epochMs(now));
    return true;
  } catch (error) {
    if (error instanceof TokenError) return false;
    throw error;
  }
};

describe('a token', () => {
  const bound: readonly [string, BoundObject['kind'] | undefined, string, string][] = [
    ['of an account', undefined, 'serviceaccounts', 'account'],
    ['bound to a pod', 'Pod', 'pods', 'pod'],
    ['bound to a secret', 'Secret', 'secrets', 'secret'],
    ['bound to a Node', 'Node', 'nodes', 'node'],
  ];
  for (const [what, kind, plural, name] of bound) {
    describe(what, () => {
      const token = issue(kind);
      it('is good while that is there', () => expect(good(token, WORLD)).toBe(true));
      it('is refused once it is gone', () => expect(good(token, { ...WORLD, [plural]: [] })).toBe(false));
      it('is refused when there is another one of that name', () => {
        expect(good(token, { ...WORLD, [plural]: [named(plural, name, 'another')] })).toBe(false);
      });
      it('is refused a minute after it was to be gone, though something holds it', () => {
        const going = { ...WORLD, [plural]: [named(plural, name, undefined, '2026-01-01T00:00:30Z')] };
        expect(good(token, going)).toBe(true);
        expect(good(token, going, plusMs(NOW, 90_000))).toBe(true);
        expect(good(token, going, plusMs(NOW, 90_001))).toBe(false);
      });
    });
  }

  describe('in a Secret', () => {
    const { privateKey } = generateKeyPair();
    const own = new ServiceAccountTokens(privateKey);
    const key = createPrivateKey(privateKey);
    const metadata = { name: 'secret', namespace: 'ns', uid: 'u', resourceVersion: '1' };
    const claims = secretClaims({ metadata }, { name: 'account', uid: 'account-uid' });
    const token = signToken(key, keyIdOf(createPublicKey(key)), claims);
    const withToken = (text: string): World => ({
      ...WORLD,
      secrets: [{ ...named('secrets', 'secret'), data: { token: Buffer.from(text).toString('base64') } }],
    });
    const check = (world: World, audiences = [ISSUER]) => own.check(token, audiences, lookupOf(world), NOW).caller;
    it('is good for the API server, without an end', () => {
      expect(check(withToken(token))).toEqual({
        name: 'system:serviceaccount:ns:account',
        uid: 'account-uid',
        groups: ['system:serviceaccounts', 'system:serviceaccounts:ns', 'system:authenticated'],
        extra: {},
      });
    });
    it.each<[string, World, string[]?]>([
      ['without the Secret', { ...WORLD, secrets: [] }],
      ['when the Secret has another one', withToken('other')],
      ['without the account', { ...withToken(token), serviceaccounts: [] }],
      [
        'when the account is another one',
        { ...withToken(token), serviceaccounts: [named('serviceaccounts', 'account', 'x')] },
      ],
      ['for another audience', withToken(token), ['vault']],
    ])('is refused %s', (_what, world, audiences) => {
      expect(() => check(world, audiences)).toThrow(TokenError);
    });
  });

  it('bound to a Node is refused when the account is gone', () => {
    expect(good(issue('Node'), { ...WORLD, serviceaccounts: [] })).toBe(false);
  });

  it('of a pod lives as long as the pod, whatever became of the Node', () => {
    expect(good(issue('Pod'), { ...WORLD, nodes: [] })).toBe(true);
    expect(good(issue('Pod'), { ...WORLD, nodes: [named('nodes', 'node', 'another')] })).toBe(true);
  });

  it('says in extra to which Node or pod it is bound', () => {
    const extra = (kind: BoundObject['kind']) => tokens.check(issue(kind), [ISSUER], lookupOf(WORLD), NOW).caller.extra;
    expect(extra('Node')).toMatchObject({
      'authentication.kubernetes.io/node-name': ['node'],
      'authentication.kubernetes.io/node-uid': ['node-uid'],
    });
    expect(extra('Pod')).toMatchObject({
      'authentication.kubernetes.io/pod-name': ['pod'],
      'authentication.kubernetes.io/node-name': ['node'],
    });
  });
});
