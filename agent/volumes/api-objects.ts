// The ObjectReader port over the API server: ConfigMaps and Secrets read fresh when asked for, services from a watched
// copy, tokens by TokenRequest.

import type { ApiClient } from '../../client/api.ts';
import { isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import { Reflector } from '../../client/reflector.ts';
import type { ConfigMap, Pod, Secret, Service } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ObjectReader } from '../ports/api.ts';

export interface ApiObjectsOptions {
  readonly client: Pick<ApiClient, 'get' | 'create' | 'list' | 'watch'>;
  readonly clock: Clock;
  /** Told when the services cannot be read; they are tried again after `retryInMs`. */
  readonly onFailure?: (error: unknown, retryInMs: number) => void;
}

export interface ApiObjects extends ObjectReader {
  /** Begins to watch services. Idempotent; the first call of `services` does the same. */
  start(): void;
  stop(): void;
}

/** How long a pod waits for the first list of services before it fails and is tried again. */
const FIRST_LIST_MS = 10_000;

interface TokenRequest {
  status?: { token?: string; expirationTimestamp?: string };
}

export function createApiObjects(options: ApiObjectsOptions): ApiObjects {
  const { client, clock, onFailure } = options;
  const stopping = new AbortController();
  /** Objects being read: containers and volumes of one pod that ask for the same object at once share one request. */
  const underWay = new Map<string, Promise<unknown>>();
  let reflector: Reflector<Service> | undefined;

  function read<T>(plural: string, namespace: string, name: string): Promise<T | undefined> {
    const path = resourcePath('v1', plural, { namespace, name });
    const same = underWay.get(path);
    // What is under one path has one type.
    if (same !== undefined) return same as Promise<T | undefined>;
    const reading = client
      .get<T>(path)
      .catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      })
      .finally(() => underWay.delete(path));
    underWay.set(path, reading);
    return reading;
  }

  function start(): Reflector<Service> {
    if (reflector === undefined) {
      reflector = new Reflector<Service>({
        client,
        path: resourcePath('v1', 'services'),
        clock,
        transform: slim,
        ...(onFailure === undefined ? {} : { onFailure }),
      });
      void reflector.run(stopping.signal);
    }
    return reflector;
  }

  return {
    start: () => void start(),
    stop: () => stopping.abort(),
    configMap: (namespace, name) => read<ConfigMap>('configmaps', namespace, name),
    secret: (namespace, name) => read<Secret>('secrets', namespace, name),
    async services(namespace) {
      const { store } = start();
      if (!store.synced && !(await inTime(store.whenSynced(), clock))) {
        throw new Error('services have not yet been read at least once, cannot construct envvars');
      }
      return store.list().filter((service) => service.metadata.namespace === namespace);
    },
    serviceAccountToken: async (pod, request) => {
      const { path, body } = tokenRequest(pod, request);
      const { status } = await client.create<TokenRequest>(path, body);
      const expiresAt = Date.parse(status?.expirationTimestamp ?? '');
      if (status?.token === undefined || Number.isNaN(expiresAt)) {
        throw new Error(`failed to fetch token: the API server's TokenRequest has no token (${path})`);
      }
      return { token: status.token, expiresAt };
    },
  };
}

/** True when `done` resolves before the time is over. */
async function inTime(done: Promise<void>, clock: Clock): Promise<boolean> {
  const over = new AbortController();
  const late = clock.sleep(FIRST_LIST_MS, over.signal).then(
    () => false,
    () => false,
  );
  const first = await Promise.race([done.then(() => true), late]);
  over.abort();
  return first;
}

/** What service environment variables need; the rest would only cost memory. */
function slim(service: Service): Service {
  const { metadata, spec } = service;
  const { name, namespace, uid, resourceVersion } = metadata;
  return {
    ...service,
    metadata: { name, uid, resourceVersion, ...(namespace === undefined ? {} : { namespace }) },
    ...(spec === undefined
      ? {}
      : {
          spec: {
            ...(spec.clusterIP === undefined ? {} : { clusterIP: spec.clusterIP }),
            ...(spec.ports === undefined ? {} : { ports: spec.ports }),
            ...(spec.type === undefined ? {} : { type: spec.type }),
          },
        }),
  };
}

/** The TokenRequest of a pod's service account, bound to the pod: it dies with it. Pure. */
export function tokenRequest(
  pod: Pod,
  request: { readonly audience?: string; readonly expirationSeconds: number },
): { readonly path: string; readonly body: unknown } {
  const { namespace, name, uid } = pod.metadata;
  const account = pod.spec.serviceAccountName ?? '';
  return {
    path: resourcePath('v1', 'serviceaccounts', {
      namespace,
      name: account === '' ? 'default' : account,
      subresource: 'token',
    }),
    body: {
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      spec: {
        audiences: request.audience === undefined ? [] : [request.audience],
        expirationSeconds: request.expirationSeconds,
        boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name, uid },
      },
    },
  };
}
