// What /healthz, /livez and /readyz of the API server check.

import type { HealthCheck } from '../lib/health-checks.ts';
import { POST_START_HOOKS, type PostStartHook } from './post-start-hooks.ts';
import type { ObjectStore } from './storage/object-store.ts';

export interface ServingState {
  readonly finished: ReadonlySet<PostStartHook>;
  readonly closing: boolean;
}

/** With kube-apiserver's names, in its order. */
export function healthChecks(store: ObjectStore, state: ServingState, hasFlowControl: boolean): readonly HealthCheck[] {
  const need = (good: boolean, why: string): void => {
    if (!good) throw new Error(why);
  };
  const finished = (hook: PostStartHook) => () => need(state.finished.has(hook), 'not finished');
  const hooks = POST_START_HOOKS.filter((hook) => hasFlowControl || !hook.startsWith('priority-and-fairness'));
  return [
    { name: 'ping', check: () => undefined },
    // Lines are written without a queue that could stand still.
    { name: 'log', check: () => undefined },
    { name: 'etcd', check: () => store.check() },
    { name: 'etcd-readiness', readinessOnly: true, check: () => store.check() },
    { name: 'informer-sync', readinessOnly: true, check: finished('generic-apiserver-start-informers') },
    ...hooks.map((hook) => ({ name: `poststarthook/${hook}`, check: finished(hook) })),
    { name: 'autoregister-completion', check: finished('kube-apiserver-autoregistration') },
    { name: 'shutdown', readinessOnly: true, check: () => need(!state.closing, 'process is shutting down') },
  ];
}
