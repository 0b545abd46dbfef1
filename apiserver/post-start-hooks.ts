// What works beside the requests once the server listens, as kube-apiserver's PostStartHooks: the first objects, and the controllers that
// keep objects up to date which the server itself writes. Serves nothing.

import type { Clock } from '../lib/clock.ts';
import { WebhookClient } from './admission/webhooks/client.ts';
import { AggregationController } from './aggregation/controller.ts';
import type { AggregationProxy } from './aggregation/proxy.ts';
import { startAggregation } from './auth/rbac/aggregate.ts';
import { type Advertised, bootstrap } from './bootstrap.ts';
import { DefinitionController } from './crd/controller.ts';
import type { FlowControl } from './flowcontrol/flow-control.ts';
import { followFlowConfig } from './flowcontrol/follow.ts';
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
  readonly clock: Clock;
  readonly log: (message: string) => void;
}

/** Resolves with the function that stops them. */
export async function runPostStartHooks(parts: PostStartParts): Promise<() => Promise<void>> {
  const { registry, store, pki, clientCas, metrics, flow, aggregation, advertised, serviceCidrs, clock, log } = parts;
  await bootstrap(registry, { advertised, pki, clientCas, serviceCidrs, log });
  const endpoints = new ServiceEndpoints({ registry, advertised, leases: store.masterLeases, clock, log });
  await endpoints.start();
  const addresses = new ServiceCidrController(registry, clock, log);
  await addresses.start();
  const stopFlow = flow === undefined ? () => undefined : followFlowConfig({ registry, flow, clock, log });
  const stopAggregation = await startAggregation(registry, log);
  const stopCleanup = store.expiresEvents ? () => undefined : startEventCleanup(registry, clock, log);
  const apiServices = new AggregationController(registry, aggregation, log);
  await apiServices.start();
  const webhooks = new WebhookClient(clock);
  const definitions = new DefinitionController(registry, log, {
    clock,
    call: (clientConfig, review) =>
      webhooks.call({ clientConfig, timeoutSeconds: CONVERSION_S }, review, registry.lookup),
    observe: (figures) => metrics.conversion(figures),
  });
  definitions.start();
  const policies = new PolicyStatusController(
    registry,
    kindSource(() => registry.rows.all),
    log,
  );
  policies.start();
  return async () => {
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
