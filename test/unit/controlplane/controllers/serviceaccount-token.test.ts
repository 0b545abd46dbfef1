// Token Secrets of service accounts: what is put into them, and when they go.

import { describe, expect, it } from 'vitest';
import { generateKeyPair } from '../../../../apiserver/pki/keys.ts';
import type { Secret } from '../../../../client/types.ts';
import {
  accountOf,
  belongsTo,
  filled,
  secretClaims,
} from '../../../../controlplane/controllers/serviceaccount-token/secret.ts';
import { ServiceAccountTokenController } from '../../../../controlplane/controllers/serviceaccount-token/serviceaccount-token.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, meta } from '../environment.ts';

const NAME = 'kubernetes.io/service-account.name';
const UID = 'kubernetes.io/service-account.uid';
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const ACCOUNT = { name: 'robot', uid: 'uid-robot' };
const DONE = { 'ca.crt': base64('PEM'), namespace: base64('demo'), token: base64('signed') };

const secretOf = (annotations: Record<string, string>, data?: Record<string, string>): Secret => ({
  metadata: { ...meta('token', 'demo'), annotations },
  type: 'kubernetes.io/service-account-token',
  ...(data === undefined ? {} : { data }),
});
const named = (data?: Record<string, string>): Secret => secretOf({ [NAME]: 'robot', [UID]: 'uid-robot' }, data);

describe('a Secret', () => {
  it.each<[string, Secret, boolean]>([
    ['of the account’s name', secretOf({ [NAME]: 'robot' }), true],
    ['of its name and uid', named(), true],
    ['of one before it that had the name', secretOf({ [NAME]: 'robot', [UID]: 'old' }), false],
    ['of another account', secretOf({ [NAME]: 'other' }), false],
    ['of no account', secretOf({}), false],
    ['of another type', { ...named(), type: 'Opaque' }, false],
  ])('%s', (_what, secret, expected) => {
    expect(belongsTo(secret, ACCOUNT)).toBe(expected);
    if (expected) expect(accountOf(secret)?.name).toBe('robot');
  });

  it.each<[string, Record<string, string> | undefined, Record<string, string> | undefined]>([
    ['that is empty gets everything', undefined, DONE],
    ['that has everything is left alone', DONE, undefined],
    [
      'keeps its token',
      { ...DONE, token: base64('mine'), 'ca.crt': base64('old') },
      { ...DONE, token: base64('mine') },
    ],
    ['keeps what else is in it', { more: 'x' }, { ...DONE, more: 'x' }],
  ])('%s', (_what, data, expected) => {
    const result = filled(secretOf({ [NAME]: 'robot' }, data), ACCOUNT, 'PEM', () => 'signed');
    expect(result?.data).toEqual(expected);
    if (expected !== undefined) expect(result?.metadata.annotations).toEqual({ [NAME]: 'robot', [UID]: 'uid-robot' });
  });

  it('has a token with upstream’s claims', () => {
    expect(secretClaims(named(), ACCOUNT)).toEqual({
      iss: 'kubernetes/serviceaccount',
      'kubernetes.io/serviceaccount/namespace': 'demo',
      'kubernetes.io/serviceaccount/secret.name': 'token',
      'kubernetes.io/serviceaccount/service-account.name': 'robot',
      'kubernetes.io/serviceaccount/service-account.uid': 'uid-robot',
      sub: 'system:serviceaccount:demo:robot',
    });
  });
});

describe('the controller', () => {
  const PATH = '/api/v1/namespaces/demo/secrets/token';
  const start = () => {
    const world = environment();
    const { context, informers, run } = world;
    run(new ServiceAccountTokenController(context, informers, generateKeyPair().privateKey, 'PEM'));
    return world;
  };
  const account = { metadata: meta('robot', 'demo') };

  it('fills a Secret of an account that is there', async () => {
    const { client, informers } = start();
    informers.serviceAccounts.replace([account]);
    informers.tokenSecrets.replace([secretOf({ [NAME]: 'robot' })]);
    await settle();
    expect(client.writes).toMatchObject([{ verb: 'replace', path: PATH, body: { kind: 'Secret' } }]);
  });

  it('looks for an account that it has not seen yet, and deletes the Secret where there is none', async () => {
    const { client, informers } = start();
    informers.serviceAccounts.replace([]);
    client.objects.set('/api/v1/namespaces/demo/serviceaccounts/robot', account);
    informers.tokenSecrets.replace([secretOf({ [NAME]: 'robot' })]);
    await settle();
    expect(client.writes).toMatchObject([{ verb: 'replace', path: PATH }]);
    client.objects.clear();
    informers.tokenSecrets.upsert(secretOf({ [NAME]: 'robot' }));
    await settle();
    expect(client.writes.at(-1)).toMatchObject({
      verb: 'delete',
      path: PATH,
      body: { preconditions: { uid: 'uid-token' } },
    });
  });

  it('deletes the Secrets of an account that goes', async () => {
    const { client, informers } = start();
    informers.serviceAccounts.replace([account]);
    informers.tokenSecrets.replace([named(DONE)]);
    await settle();
    expect(client.writes).toEqual([]);
    informers.serviceAccounts.remove(account);
    await settle();
    expect(client.writes).toMatchObject([{ verb: 'delete', path: PATH }]);
  });
});
