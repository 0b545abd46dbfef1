// Docker's configuration files as far as they hold registries' credentials: .dockerconfigjson and config.json, and the
// older .dockercfg. Shared by pull secrets and the node's own files. Pure.

import type { RegistryCredential } from '../ports/pull-credentials.ts';
import type { ImageAuth } from '../ports/runtime.ts';

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

/** `legacy`: .dockercfg, which has no "auths" around the registries. Throws with `what` in the message. */
export function parseDockerConfig(source: string, legacy: boolean, what: string): RegistryCredential[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(source);
  } catch (error) {
    throw new Error(`${what} is not JSON`, { cause: error });
  }
  const entries = legacy ? parsed : isRecord(parsed) ? parsed['auths'] : undefined;
  if (!isRecord(entries)) throw new Error(`${what} holds no registries`);
  return Object.entries(entries).flatMap(([url, entry]) => {
    const auth = isRecord(entry) ? authOf(entry) : undefined;
    return auth === undefined ? [] : [{ location: locationOf(url), auth }];
  });
}
