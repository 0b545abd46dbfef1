// The API objects as this project types them: kubernetes-types, with what the server always fills made required,
// and the fields that are newer than that package added. Types only.

import type * as coordination from 'kubernetes-types/coordination/v1';
import type * as core from 'kubernetes-types/core/v1';
import type * as discovery from 'kubernetes-types/discovery/v1';
import type { ObjectMeta } from 'kubernetes-types/meta/v1';

/** Metadata of an object that has been stored: the server fills these. */
export type StoredMeta = ObjectMeta & {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
};

export interface ApiObject {
  apiVersion: string;
  kind: string;
  metadata: StoredMeta;
}

/** An object of kind T as read from the server. `namespace` is '' on cluster-scoped kinds. */
export type Stored<T> = Omit<T, 'metadata'> & { metadata: StoredMeta };

/** A pod from the API server: always with a namespace, and with a spec. */
export type Pod = Omit<core.Pod, 'metadata' | 'spec' | 'status'> & {
  metadata: StoredMeta & { readonly namespace: string };
  spec: PodSpec;
  status?: PodStatus;
};
export type PodSpec = core.PodSpec;
export type PodStatus = Omit<core.PodStatus, 'conditions'> & {
  conditions?: PodCondition[];
  /** metadata.generation of the pod that this status describes (PodObservedGenerationTracking). */
  observedGeneration?: number;
  hostIPs?: { ip?: string }[];
};
export type Container = core.Container;
export type EphemeralContainer = core.EphemeralContainer;
export type ContainerStatus = core.ContainerStatus;
export type PodCondition = core.PodCondition & {
  /** metadata.generation of the pod that this condition describes (PodObservedGenerationTracking). */
  observedGeneration?: number;
};
export type Node = Stored<core.Node>;
export type NodeStatus = core.NodeStatus;
export type Service = Stored<core.Service>;
export type Endpoints = Stored<core.Endpoints>;
export interface EndpointHints {
  forZones?: { name: string }[];
  /** KEP-3015. */
  forNodes?: { name: string }[];
}
export type Endpoint = Omit<discovery.Endpoint, 'hints'> & {
  hints?: EndpointHints;
};
export type EndpointSlice = Omit<discovery.EndpointSlice, 'metadata' | 'endpoints'> & {
  metadata: StoredMeta;
  endpoints?: Endpoint[];
};
export type ConfigMap = Stored<core.ConfigMap>;
export type Secret = Stored<core.Secret>;
export type Event = core.Event;
export type Lease = Stored<coordination.Lease>;

/** The body of the server's response to a failed request (meta/v1 Status). */
export interface Status {
  kind: 'Status';
  apiVersion: 'v1';
  metadata?: { resourceVersion?: string; continue?: string };
  status: 'Success' | 'Failure';
  message?: string;
  reason?: string;
  code?: number;
  details?: {
    name?: string;
    group?: string;
    kind?: string;
    uid?: string;
    causes?: { reason?: string; message?: string; field?: string }[];
    retryAfterSeconds?: number;
  };
}
