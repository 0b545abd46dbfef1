// The ObjectReader port over the API server: ConfigMaps and Secrets shared and followed while pods use them, services
// from a watched copy, tokens by TokenRequest.

import type { ApiClient } from '../../client/api.ts';
import { resourcePath } from '../../client/paths.ts';
import { Reflector } from '../../client/reflector.ts';
import type { Pod, Service } from '../../client/types.ts';
import { resolvesWithin } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { FollowedObjects, ObjectReader } from '../ports/api.ts';
import { showsTrustBundles } from './object-references.ts';
import { type ChangeDetection, SharedObjects } from './shared-objects.ts';
import { TrustBundles } from './trust-bundles.ts';

export interface ApiObjectsOptions {
  readonly client: Pick<ApiClient, 'get' | 'create' | 'list' | 'watch'>;
  readonly clock: Clock;
  /** Watch by default, as the kubelet's. */
  readonly changeDetection?: ChangeDetection;
  /** With Cache: for how long (ms) an object that was read is used; a minute by default. */
  readonly ttlMs?: () => number;
  /** Called with what cannot be watched ("services", "secret demo/tls"), and the error; the watch is retried. */
  readonly onFailure?: (what: string, error: unknown) => void;
  /** 0 ≤ x < 1; Math.random by default. */
  readonly random?: () => number;
}

export interface ApiObjects extends ObjectReader {
  /** Begins to watch services. Idempotent; the first call of `services` does the same. */
  start(): void;
  stop(): void;
  readonly followed: FollowedObjects;
}

/** How long a pod waits for the first list of services before it fails and is tried again. */
const FIRST_LIST_MS = 10_000;
/** The kubelet's, where the node has no annotation. */
const DEFAULT_TTL_MS = 60_000;

interface TokenRequest {
  status?: { token?: string; expirationTimestamp?: string };
}

export function createApiObjects(options: ApiObjectsOptions): ApiObjects {
  const { client, clock, changeDetection = 'Watch', ttlMs = () => DEFAULT_TTL_MS, random } = options;
  const onFailure = options.onFailure ?? (() => undefined);
  const stopping = new AbortController();
  const shared = new SharedObjects({
    client,
    clock,
    strategy: changeDetection,
    ttlMs,
    onFailure,
    ...(random === undefined ? {} : { random }),
  });
  const trust = new TrustBundles({ client, clock, onFailure, ...(random === undefined ? {} : { random }) });
  const followed: FollowedObjects = {
    live: shared.live,
    follow(pod, onChange) {
      shared.follow(pod, onChange);
      if (showsTrustBundles(pod)) trust.follow(pod.metadata.uid, onChange);
    },
    release(uid) {
      shared.release(uid);
      trust.release(uid);
    },
  };
  let reflector: Reflector<Service> | undefined;

  function start(): Reflector<Service> {
    if (reflector === undefined) {
      reflector = new Reflector<Service>({
        client,
        path: resourcePath('v1', 'services'),
        clock,
        transform: slim,
        onFailure: (error) => onFailure('services', error),
      });
      void reflector.run(stopping.signal);
    }
    return reflector;
  }

  return {
    start: () => void start(),
    stop: () => {
      stopping.abort();
      shared.close();
      trust.close();
    },
    followed,
    configMap: (namespace, name) => shared.read('configMap', namespace, name),
    secret: (namespace, name) => shared.read('secret', namespace, name),
    version: (kind, namespace, name) => shared.version(kind, namespace, name),
    async services(namespace) {
      const { store } = start();
      if (!store.synced && !(await resolvesWithin(clock, FIRST_LIST_MS, store.whenSynced()))) {
        throw new Error('services have not yet been read at least once, cannot construct envvars');
      }
      return store.list().filter((service) => service.metadata.namespace === namespace);
    },
    trustAnchors: (request) => trust.anchors(request),
    serviceAccountToken: async (pod, request) => {
      const { path, body } = tokenRequest(pod, request);
      const { status } = await client.create<TokenRequest>(path, body);
      const expiresAt = parseRfc3339(status?.expirationTimestamp);
      if (status?.token === undefined || expiresAt === undefined) {
        throw new Error(`the API server's TokenRequest has no token (${path})`);
      }
      return { token: status.token, expiresAt };
    },
  };
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
