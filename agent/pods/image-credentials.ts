// Which credentials of the pod's imagePullSecrets fit an image. Pure: secrets in, credentials out.

import type { Secret } from '../../client/types.ts';
import { parseDockerConfig } from '../model/docker-config.ts';
import type { ImageName } from '../model/image-name.ts';
import type { RegistryCredential } from '../ports/pull-credentials.ts';
import type { ImageAuth } from '../ports/runtime.ts';

/** The credentials in one secret; throws with a message that names the secret when its data does not match its type. */
export function parsePullSecret(secret: Secret): RegistryCredential[] {
  const legacy = secret.type === 'kubernetes.io/dockercfg';
  const key = legacy ? '.dockercfg' : '.dockerconfigjson';
  const encoded = secret.data?.[key];
  if (encoded === undefined) return [];
  const what = `secret ${secret.metadata.namespace ?? ''}/${secret.metadata.name}: ${key}`;
  return parseDockerConfig(Buffer.from(encoded, 'base64').toString('utf8'), legacy, what);
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
