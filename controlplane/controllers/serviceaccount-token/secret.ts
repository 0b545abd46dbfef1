// What a Secret of type kubernetes.io/service-account-token is to have in it. Pure.

import type { Secret, Stored } from '../../../client/types.ts';
import { getOwn } from '../../../lib/own-property.ts';

export const TOKEN_TYPE = 'kubernetes.io/service-account-token';
const ACCOUNT_NAME = 'kubernetes.io/service-account.name';
const ACCOUNT_UID = 'kubernetes.io/service-account.uid';

export interface Account {
  readonly name: string;
  readonly uid: string;
}

/** The account that a Secret names; its uid only where the Secret has been filled before. Undefined for another Secret. */
export function accountOf({ type, metadata }: Secret): { readonly name: string; readonly uid?: string } | undefined {
  const name = getOwn(metadata.annotations, ACCOUNT_NAME) ?? '';
  if (type !== TOKEN_TYPE || name === '') return undefined;
  const uid = getOwn(metadata.annotations, ACCOUNT_UID) ?? '';
  return uid === '' ? { name } : { name, uid };
}

/** Whether the Secret is this account's: of the one of that name which is there now. */
export function belongsTo(secret: Secret, account: Account): boolean {
  const named = accountOf(secret);
  return named?.name === account.name && (named.uid === undefined || named.uid === account.uid);
}

/** The claims of a token that lives as long as its Secret: it is for the API server and never expires. */
export function secretClaims({ metadata }: Stored<object>, { name, uid }: Account): object {
  const { namespace = '' } = metadata;
  return {
    iss: 'kubernetes/serviceaccount',
    'kubernetes.io/serviceaccount/namespace': namespace,
    'kubernetes.io/serviceaccount/secret.name': metadata.name,
    'kubernetes.io/serviceaccount/service-account.name': name,
    'kubernetes.io/serviceaccount/service-account.uid': uid,
    sub: `system:serviceaccount:${namespace}:${name}`,
  };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** The Secret with what it lacks; undefined when that is nothing. `rootCa`: PEM; undefined: it gets none. */
export function filled(
  secret: Secret,
  account: Account,
  rootCa: string | undefined,
  token: () => string,
): Secret | undefined {
  const { data = {}, metadata } = secret;
  const missing: Record<string, string> = {};
  if (rootCa !== undefined && getOwn(data, 'ca.crt') !== base64(rootCa)) missing['ca.crt'] = base64(rootCa);
  if ((getOwn(data, 'namespace') ?? '') === '') missing['namespace'] = base64(metadata.namespace ?? '');
  if ((getOwn(data, 'token') ?? '') === '') missing['token'] = base64(token());
  if (Object.keys(missing).length === 0) return undefined;
  const annotations = { ...metadata.annotations, [ACCOUNT_NAME]: account.name, [ACCOUNT_UID]: account.uid };
  return { ...secret, metadata: { ...metadata, annotations }, data: { ...data, ...missing } };
}
