// Ports of the agent toward the API server: where pods come from, where status and events go, and the objects that
// containers and volumes refer to. Types only. client/ provides what implements them.

import type { ConfigMap, Pod, PodStatus, Secret, Service } from '../../client/types.ts';
import type { EpochMs } from '../../lib/clock.ts';

/** A source emits desired pods; the agent merges sources. */
export interface PodSource {
  readonly name: 'api' | 'file' | 'http';
  /** Starts the source; `listener` gets the complete desired set whenever it may have changed. */
  start(listener: (pods: ReadonlyMap<string, Pod>) => void): void;
  stop(): void;
}

/** What became of a write. `gone`: the object does not exist, or is another one of the same name. */
export type WriteOutcome<T> = { readonly kind: 'ok'; readonly value: T } | { readonly kind: 'gone' };

export interface PodApi {
  /**
   * Merges `patch` into the pod's status, with metadata.uid as a precondition. Rejects when the server cannot be
   * reached or refuses. `unwritten`: the server has no object for it now (a static pod without a mirror).
   */
  patchStatus(pod: Pod, patch: StatusPatch): Promise<WriteOutcome<Pod> | { readonly kind: 'unwritten' }>;
  /** Lets the object go: delete with grace period 0 and the uid as precondition. */
  finalizeDelete(pod: Pod): Promise<WriteOutcome<null>>;
  /** A pod straight from the server, past every cache; undefined when there is none. */
  get(namespace: string, name: string): Promise<Pod | undefined>;
}

/** A strategic merge patch of PodStatus: `null` removes a field, `$patch`/`$setElementOrder` as the API defines them. */
export type StatusPatch = { readonly [K in keyof PodStatus]?: unknown } & Readonly<Record<string, unknown>>;

export interface EventRecorder {
  /** Records an event about `object` without waiting for it; repeats are folded into one with a count. */
  event(
    object: {
      kind?: string;
      apiVersion?: string;
      metadata: { name: string; namespace?: string; uid: string; resourceVersion?: string };
      fieldPath?: string;
    },
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
  ): void;
}

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

/** The request of a projected clusterTrustBundle source; exactly one of `name` and `signerName` is set. */
export interface TrustRequest {
  readonly name: string | undefined;
  readonly signerName: string | undefined;
  /** Absent matches nothing, empty everything. */
  readonly labelSelector: LabelSelector | undefined;
  readonly optional: boolean;
}

/** Read access to what pods refer to. `undefined` is "not found"; anything else that goes wrong rejects. */
export interface ObjectReader {
  configMap(namespace: string, name: string): Promise<ConfigMap | undefined>;
  secret(namespace: string, name: string): Promise<Secret | undefined>;
  /**
   * Which state of which object `configMap` or `secret` would give now ("<uid>/<resourceVersion>", or "absent"), without
   * a request; undefined when only a request can say. Absent where nothing is followed.
   */
  version?(kind: 'configMap' | 'secret', namespace: string, name: string): string | undefined;
  /** Every service of the namespace, for service environment variables. Served from a cache. */
  services(namespace: string): Promise<readonly Service[]>;
  /**
   * The PEM text of a projected clusterTrustBundle source. Rejects with the kubelet's message when nothing is found that has
   * to be. Absent without an API server.
   */
  trustAnchors?(request: TrustRequest): Promise<string>;
  /** A ServiceAccount token bound to the pod (TokenRequest). `expirationSeconds` is the volume's. */
  serviceAccountToken(
    pod: Pod,
    request: { readonly audience?: string; readonly expirationSeconds: number },
  ): Promise<{ readonly token: string; readonly expiresAt: EpochMs }>;
}

/** Keeps what pods refer to current, for as long as a pod refers to it. */
export interface FollowedObjects {
  /** Whether changes are emitted at once (the Watch strategy); else readers of objects have to poll. */
  readonly live: boolean;
  /**
   * From now on the pod's ConfigMaps and Secrets are shared and followed; `onChange` is called after one that a volume
   * shows has changed. Called again with a newer version of the pod, it follows that.
   */
  follow(pod: Pod, onChange: () => void): void;
  release(uid: string): void;
}
