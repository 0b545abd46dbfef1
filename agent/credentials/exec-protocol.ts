// CredentialProviderRequest and CredentialProviderResponse (credentialprovider.kubelet.k8s.io): one JSON object
// each way. Pure.

import { parseGoDuration } from '../../lib/go-duration.ts';
import type { RegistryCredential } from '../ports/pull-credentials.ts';

export interface ProviderRequest {
  readonly apiVersion: string;
  readonly image: string;
  readonly serviceAccountToken?: string;
  readonly serviceAccountAnnotations?: Readonly<Record<string, string>>;
}

export interface ProviderResponse {
  readonly credentials: readonly RegistryCredential[];
  readonly cacheKeyType: 'Image' | 'Registry' | 'Global';
  /** ms; undefined leaves it to the configuration. 0 is "do not keep". */
  readonly cacheMs: number | undefined;
}

export function printRequest({ apiVersion, ...fields }: ProviderRequest): string {
  return JSON.stringify({ kind: 'CredentialProviderRequest', apiVersion, ...fields });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const KEY_TYPES = ['Image', 'Registry', 'Global'] as const;

/** Throws with what is wrong with the answer. */
export function parseResponse(text: string, apiVersion: string): ProviderResponse {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error('its answer is not JSON', { cause: error });
  }
  if (!isRecord(value)) throw new Error('its answer is not an object');
  if (value['kind'] !== 'CredentialProviderResponse') {
    throw new Error(`failed to decode CredentialProviderResponse, unexpected kind: ${JSON.stringify(value['kind'])}`);
  }
  if (value['apiVersion'] !== apiVersion) {
    throw new Error(
      `apiVersion from credential plugin response did not match expected apiVersion:${apiVersion}, actual apiVersion:` +
        String(value['apiVersion']),
    );
  }
  const cacheKeyType = KEY_TYPES.find((type) => type === value['cacheKeyType']);
  if (cacheKeyType === undefined) {
    throw new Error(
      `credential provider plugin did not return a valid cacheKeyType: ${JSON.stringify(value['cacheKeyType'])}`,
    );
  }
  const duration = value['cacheDuration'];
  const cacheMs = duration === undefined || duration === null ? undefined : parseGoDuration(String(duration));
  if (duration !== undefined && duration !== null && cacheMs === undefined) {
    throw new Error(`cacheDuration is no duration: ${JSON.stringify(duration)}`);
  }
  return { credentials: readAuth(value['auth']), cacheKeyType, cacheMs };
}

function readAuth(value: unknown): RegistryCredential[] {
  if (value === undefined || value === null) return [];
  if (!isRecord(value)) throw new Error('auth is not an object');
  return Object.entries(value).map(([location, entry]) => {
    const { username, password } = isRecord(entry) ? entry : {};
    if (typeof username !== 'string' || typeof password !== 'string') {
      throw new Error(`auth["${location}"] is not a username and a password`);
    }
    return { location: location.replace(/^https?:\/\//, ''), auth: { username, password } };
  });
}
