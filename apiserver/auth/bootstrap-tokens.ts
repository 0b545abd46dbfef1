// Bootstrap tokens ("abcdef.0123456789abcdef"): Secrets of their own type in kube-system, with which a new node gets
// its first certificate. Pure but for the look-up; rules of plugin/pkg/auth/authenticator/token/bootstrap.

import { timingSafeEqual } from 'node:crypto';
import type { EpochMs } from '../../lib/clock.ts';
import { getOwn } from '../../lib/own-property.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { KubeObject, ObjectLookup } from '../kinds/resource.ts';
import { isObject } from '../patch/json-value.ts';
import type { Caller } from './attributes.ts';

const TOKEN = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;
const TYPE = 'bootstrap.kubernetes.io/token';
const EXTRA_GROUP = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/;

function value(secret: KubeObject, key: string): string {
  const text = isObject(secret['data']) ? getOwn(secret['data'], key) : undefined;
  return typeof text === 'string' ? Buffer.from(text, 'base64').toString('utf8') : '';
}

function sameSecret(a: string, b: string): boolean {
  const [one, other] = [new Uint8Array(Buffer.from(a)), new Uint8Array(Buffer.from(b))];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** The groups that the Secret adds; undefined when one of them is none that it may. */
function groupsOf(secret: KubeObject): string[] | undefined {
  const extra = value(secret, 'auth-extra-groups');
  const named = extra === '' ? [] : [...new Set(extra.split(','))].sort();
  return named.every((group) => EXTRA_GROUP.test(group)) ? ['system:bootstrappers', ...named] : undefined;
}

/** The identity of a bootstrap token, or undefined for one that is none, is unknown, has ended, or is not for this. */
export function bootstrapCaller(token: string, lookup: ObjectLookup, now: EpochMs): Caller | undefined {
  const [, id, secretPart] = TOKEN.exec(token) ?? [];
  if (id === undefined || secretPart === undefined) return undefined;
  const secret = lookup.get('', 'secrets', 'kube-system', `bootstrap-token-${id}`);
  if (secret === undefined || secret.metadata.deletionTimestamp !== undefined || secret['type'] !== TYPE)
    return undefined;
  if (!sameSecret(value(secret, 'token-secret'), secretPart) || value(secret, 'token-id') !== id) return undefined;
  const expiration = value(secret, 'expiration');
  if (expiration !== '') {
    const until = parseRfc3339(expiration);
    // A time that cannot be read has passed.
    if (until === undefined || now >= until) return undefined;
  }
  if (value(secret, 'usage-bootstrap-authentication') !== 'true') return undefined;
  const groups = groupsOf(secret);
  return groups && { name: `system:bootstrap:${id}`, groups: [...groups, 'system:authenticated'] };
}
