// A small resource table and a registry on an in-memory store, for tests of what holds for every kind.

import { CachedLookup } from '../../../apiserver/admission/cached-lookup.ts';
import { AdmissionChain } from '../../../apiserver/admission/chain.ts';
import { namespaceLifecycle } from '../../../apiserver/admission/plugins/namespace-lifecycle.ts';
import { nodeRestriction } from '../../../apiserver/admission/plugins/node-restriction.ts';
import { NO_AUTHORIZER } from '../../../apiserver/auth/authorizer.ts';
import type { KubeObject, ResourceKind } from '../../../apiserver/kinds/resource.ts';
import { Registry, type View, type WriteOptions } from '../../../apiserver/registry/registry.ts';
import { createObject } from '../../../apiserver/registry/write.ts';
import type { HistoryLimits } from '../../../apiserver/storage/history.ts';
import { Store } from '../../../apiserver/storage/store.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

function spec(object: KubeObject): Record<string, unknown> {
  const value = object['spec'];
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

export const namespaces: ResourceKind = {
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  singular: 'namespace',
  namespaced: false,
  subresources: ['status', 'finalize'],
  schema: 'io.k8s.api.core.v1.Namespace',
  strategy: {
    prepareForCreate: (object) => {
      object['spec'] = { finalizers: ['kubernetes'] };
      object['status'] = { phase: 'Active' };
    },
  },
};

/** Deleted with grace once bound, as pods are; "bad" is no valid phase; selectable by node. */
export const pods: ResourceKind = {
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  singular: 'pod',
  namespaced: true,
  subresources: ['status', 'binding', 'ephemeralcontainers'],
  schema: 'io.k8s.api.core.v1.Pod',
  strategy: {
    validateCreate: (object) =>
      spec(object)['image'] === 'bad'
        ? [{ type: 'FieldValueInvalid', field: 'spec.image', detail: 'Invalid value: "bad": must be good' }]
        : [],
    gracePeriodSeconds: (object, requested) => (spec(object)['nodeName'] === undefined ? 0 : (requested ?? 30)),
    selectableFields: { 'spec.nodeName': (object) => String(spec(object)['nodeName'] ?? '') },
    indexedFields: ['spec.nodeName'],
  },
};

export const leases: ResourceKind = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  singular: 'lease',
  namespaced: true,
  subresources: [],
  schema: 'io.k8s.api.coordination.v1.Lease',
  strategy: {},
};

export const TABLE: readonly ResourceKind[] = [namespaces, pods, leases];

/** Pods of this table are not those of the plugins about pods. */
export const ADMISSION = (registry: Registry): AdmissionChain =>
  new AdmissionChain(
    [namespaceLifecycle, nodeRestriction({ nodeAudiences: [], authorizer: () => NO_AUTHORIZER })],
    new CachedLookup(registry),
  );

export const ADMIN: WriteOptions = {
  caller: { name: 'admin', groups: ['system:masters'] },
  dryRun: false,
  fieldValidation: 'Strict',
  warn: () => undefined,
};

export interface Fixture {
  readonly registry: Registry;
  readonly store: Store;
  readonly clock: VirtualClock;
}

/** A registry with the namespace "ns". */
export function fixture(path = ':memory:', history: Partial<HistoryLimits> = { count: 1000 }): Fixture {
  const clock = new VirtualClock();
  const store = new Store(path, { clock, history });
  const registry = new Registry({
    store,
    clock,
    kinds: TABLE,
    checkBody: () => ({ strict: [] }),
    admission: ADMISSION,
  });
  if (registry.find(namespaces, '', 'ns') === undefined) {
    createObject(registry, namespaces, '', body('Namespace', { name: 'ns' }), ADMIN);
  }
  return { registry, store, clock };
}

export function body(kind: string, metadata: KubeObject['metadata'], rest: Record<string, unknown> = {}): KubeObject {
  const apiVersion = kind === 'Lease' ? 'coordination.k8s.io/v1' : 'v1';
  return { apiVersion, kind, metadata, ...rest };
}

export function createPod(
  { registry }: Fixture,
  name: string,
  more: { labels?: Record<string, string>; finalizers?: string[]; spec?: Record<string, unknown> } = {},
): View {
  const { spec: podSpec = {}, ...metadata } = more;
  return createObject(registry, pods, 'ns', body('Pod', { name, ...metadata }, { spec: podSpec }), ADMIN);
}

/** Status and message of what `run` throws. */
export function failureOf(run: () => unknown): { code: number; reason: string | undefined; message: string } {
  try {
    run();
  } catch (error) {
    if (error instanceof Error && 'status' in error) {
      const { status } = error as Error & { status: { code: number; reason?: string } };
      return { code: status.code, reason: status.reason, message: error.message };
    }
    throw error;
  }
  throw new Error('nothing was thrown');
}
