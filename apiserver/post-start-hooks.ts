// What works beside the requests once the server listens, as kube-apiserver's PostStartHooks: the first objects, and the controllers that
// keep objects up to date which the server itself writes. Serves nothing.

import { randomUUID } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import { WebhookClient } from './admission/webhooks/client.ts';
import { AggregationController } from './aggregation/controller.ts';
import type { AggregationProxy } from './aggregation/proxy.ts';
import { startAggregation } from './auth/rbac/aggregate.ts';
import { type Advertised, bootstrap } from './bootstrap.ts';
import { DefinitionController } from './crd/controller.ts';
import type { FlowControl } from './flowcontrol/flow-control.ts';
import { followFlowConfig } from './flowcontrol/follow.ts';
import { IdentityLease } from './identity-lease.ts';
import type { Metrics } from './metrics.ts';
import type { Pki } from './pki/types.ts';
import { kindSource, PolicyStatusController } from './policy-status.ts';
import { startEventCleanup } from './registry/event-ttl.ts';
import type { Registry } from './registry/registry.ts';
import { ServiceCidrController } from './service-cidrs.ts';
import { ServiceEndpoints } from './service-endpoints.ts';
import type { ObjectStore } from './storage/object-store.ts';

/** How long a conversion webhook may take, as upstream. Seconds. */
const CONVERSION_S = 30;

/** Under kube-apiserver's names, which /livez and /readyz show, and in its order; those of parts that are not here are left out. */
export const POST_START_HOOKS = [
  'start-apiserver-admission-initializer',
  'generic-apiserver-start-informers',
  'priority-and-fairness-config-consumer',
  'start-apiextensions-informers',
  'start-apiextensions-controllers',
  'crd-informer-synced',
  'start-system-namespaces-controller',
  'start-cluster-authentication-info-controller',
  'start-kube-apiserver-identity-lease-controller',
  'start-kube-apiserver-identity-lease-garbage-collector',
  'start-service-ip-repair-controllers',
  'rbac/bootstrap-roles',
  'scheduling/bootstrap-system-priority-classes',
  'priority-and-fairness-config-producer',
  'bootstrap-controller',
  'start-kubernetes-service-cidr-controller',
  'start-kube-aggregator-informers',
  'apiservice-status-local-available-controller',
  'apiservice-status-remote-available-controller',
  'apiservice-registration-controller',
  'apiservice-discovery-controller',
  'kube-apiserver-autoregistration',
  'apiservice-openapi-controller',
  'apiservice-openapiv3-controller',
] as const;
export type PostStartHook = (typeof POST_START_HOOKS)[number];

export interface PostStartParts {
  readonly registry: Registry;
  readonly store: ObjectStore;
  readonly pki: Pki;
  /** PEM: those of client certificates. */
  readonly clientCas: string;
  readonly metrics: Metrics;
  /** Undefined without priority and fairness. */
  readonly flow: FlowControl | undefined;
  readonly aggregation: AggregationProxy;
  /** Where the cluster reaches this server. */
  readonly advertised: Advertised;
  readonly serviceCidrs: readonly string[];
  /** The machine's, which the server's identity is made of. */
  readonly hostname: string;
  readonly clock: Clock;
  readonly log: (message: string) => void;
  /** Called with each hook that has done its work. */
  readonly onFinished: (...hooks: readonly PostStartHook[]) => void;
}

/** Resolves with the function that stops them. */
export async function runPostStartHooks(parts: PostStartParts): Promise<() => Promise<void>> {
  const { registry, store, pki, clientCas, metrics, flow, aggregation, advertised, serviceCidrs, clock, log } = parts;
  const { hostname, onFinished } = parts;
  // Both are made before the server listens.
  onFinished('start-apiserver-admission-initializer', 'generic-apiserver-start-informers');
  await bootstrap(registry, { advertised, pki, clientCas, serviceCidrs, log });
  onFinished('start-system-namespaces-controller', 'start-cluster-authentication-info-controller');
  onFinished('rbac/bootstrap-roles', 'scheduling/bootstrap-system-priority-classes');
  onFinished('priority-and-fairness-config-producer');
  const endpoints = new ServiceEndpoints({ registry, advertised, leases: store.masterLeases, clock, log });
  await endpoints.start();
  onFinished('bootstrap-controller');
  const identity = new IdentityLease({ registry, hostname, instance: randomUUID(), clock, log });
  await identity.start();
  onFinished('start-kube-apiserver-identity-lease-controller');
  onFinished('start-kube-apiserver-identity-lease-garbage-collector');
  const addresses = new ServiceCidrController(registry, clock, log);
  await addresses.start();
  onFinished('start-service-ip-repair-controllers', 'start-kubernetes-service-cidr-controller');
  const stopFlow = flow === undefined ? () => undefined : followFlowConfig({ registry, flow, clock, log });
  onFinished('priority-and-fairness-config-consumer');
  const stopAggregation = await startAggregation(registry, log);
  const stopCleanup = store.expiresEvents ? () => undefined : startEventCleanup(registry, clock, log);
  const apiServices = new AggregationController(registry, aggregation, log);
  await apiServices.start();
  onFinished('start-kube-aggregator-informers', 'kube-apiserver-autoregistration');
  onFinished('apiservice-status-local-available-controller', 'apiservice-status-remote-available-controller');
  onFinished('apiservice-registration-controller', 'apiservice-discovery-controller');
  onFinished('apiservice-openapi-controller', 'apiservice-openapiv3-controller');
  const webhooks = new WebhookClient(clock);
  const definitions = new DefinitionController(registry, log, {
    clock,
    call: (clientConfig, review) =>
      webhooks.call({ clientConfig, timeoutSeconds: CONVERSION_S }, review, registry.lookup),
    observe: (figures) => metrics.conversion(figures),
  });
  definitions.start();
  onFinished('start-apiextensions-informers', 'start-apiextensions-controllers', 'crd-informer-synced');
  const policies = new PolicyStatusController(
    registry,
    kindSource(() => registry.rows.all),
    log,
  );
  policies.start();
  return async () => {
    await identity.stop();
    await endpoints.stop();
    stopCleanup();
    stopFlow();
    flow?.stop();
    stopAggregation();
    definitions.stop();
    policies.stop();
    addresses.stop();
    apiServices.stop();
  };
}
