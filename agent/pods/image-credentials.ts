// Which credentials of the pod's imagePullSecrets fit an image. Pure: secrets in, credentials out.

import type { Secret } from '../../client/types.ts';
import type { ImageAuth } from '../ports/runtime.ts';
import type { ImageName } from './image-name.ts';

export interface RegistryCredential {
  /** Host, optional port and path: "registry.example:5000/team", "*.example.com". */
  readonly location: string;
  readonly auth: ImageAuth;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function authOf(entry: Record<string, unknown>): ImageAuth | undefined {
  const packed = text(entry['auth']);
  const unpacked = packed === undefined ? '' : Buffer.from(packed, 'base64').toString('utf8').replace(/\0+$/, '');
  const colon = unpacked.indexOf(':');
  const username = colon > 0 ? unpacked.slice(0, colon) : text(entry['username']);
  const password = colon > 0 ? unpacked.slice(colon + 1) : text(entry['password']);
  const identityToken = text(entry['identitytoken']);
  if (username === undefined && identityToken === undefined) return undefined;
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(identityToken === undefined ? {} : { identityToken }),
  };
}

/** "https://index.docker.io/v1/" becomes "index.docker.io". */
function locationOf(url: string): string {
  const bare = url.replace(/^https?:\/\//, '');
  const slash = bare.indexOf('/');
  if (slash < 0) return bare;
  const path = bare
    .slice(slash)
    .replace(/^\/v[12](?=\/|$)/, '')
    .replace(/\/$/, '');
  return `${bare.slice(0, slash)}${path}`;
}

/** The credentials in one secret; throws with a message that names the secret when it is not what it says it is. */
export function parsePullSecret(secret: Secret): RegistryCredential[] {
  const name = `${secret.metadata.namespace ?? ''}/${secret.metadata.name}`;
  const key = secret.type === 'kubernetes.io/dockercfg' ? '.dockercfg' : '.dockerconfigjson';
  const encoded = secret.data?.[key];
  if (encoded === undefined) return [];
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(encoded, 'base64').toString('utf8'));
  } catch (error) {
    throw new Error(`secret ${name}: ${key} is not JSON`, { cause: error });
  }
  const entries = key === '.dockercfg' ? parsed : isRecord(parsed) ? parsed['auths'] : undefined;
  if (!isRecord(entries)) throw new Error(`secret ${name}: ${key} holds no registries`);
  return Object.entries(entries).flatMap(([url, entry]) => {
    const auth = isRecord(entry) ? authOf(entry) : undefined;
    return auth === undefined ? [] : [{ location: locationOf(url), auth }];
  });
}

function hostMatches(pattern: string, host: string): boolean {
  const [patternHost = '', patternPort] = pattern.split(':');
  const [plainHost = '', port] = host.split(':');
  if (patternPort !== port) return false;
  const wanted = patternHost.split('.');
  const parts = plainHost.split('.');
  if (wanted.length !== parts.length) return false;
  return wanted.every((piece, index) => {
    const expression = piece.replace(/[\\^$+?.()|[\]{}]/g, '\\$&').replaceAll('*', '[^.]*');
    return new RegExp(`^${expression}$`).test(parts[index] ?? '');
  });
}

function matches(location: string, image: ImageName): boolean {
  const slash = location.indexOf('/');
  const host = slash < 0 ? location : location.slice(0, slash);
  const path = slash < 0 ? '' : location.slice(slash + 1);
  const hosts = image.registry === 'docker.io' ? ['docker.io', 'index.docker.io', 'registry-1.docker.io'] : [];
  return (hosts.includes(host) || hostMatches(host, image.registry)) && image.repository.startsWith(path);
}

/** The credentials to try for an image, the most specific location first. */
export function credentialsFor(image: ImageName, credentials: readonly RegistryCredential[]): readonly ImageAuth[] {
  const fitting = credentials.filter(({ location }) => matches(location, image));
  return fitting.sort((a, b) => (a.location < b.location ? 1 : a.location > b.location ? -1 : 0)).map((c) => c.auth);
}
