// The control plane in one process: the scheduler and the controllers, ordinary API clients that share their
// list-watches. Reads no files and knows no API server but the one it is given.

import { setMaxListeners } from 'node:events';
import { ApiClient } from '../client/api.ts';
import type { ClusterAccess } from '../client/kubeconfig.ts';
import { EVENT_DELAY_MS, Recorder } from '../client/recorder.ts';
import type { Clock } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import type { Tracer } from '../lib/trace.ts';
import { EphemeralVolumeController } from './ephemeral-volume/ephemeral.ts';
import { NamespaceController } from './namespace/namespace.ts';
import { NodeLifecycleController } from './node/lifecycle.ts';
import { PodGarbageCollector } from './podgc/podgc.ts';
import { type Controller, Informers, type Log, runController } from './runtime.ts';
import { SCHEDULER_NAME, Scheduler } from './scheduler/scheduler.ts';
import { ServiceAccountController } from './serviceaccount/serviceaccount.ts';
import { VolumeBinder } from './volume-binder/binder.ts';
import { VolumeProtection } from './volume-protection/protection.ts';

export interface ControlPlaneOptions {
  /** Identity of the scheduler (system:kube-scheduler); without it there is no scheduler. */
  readonly scheduler?: ClusterAccess;
  /** Identity of the controllers (system:kube-controller-manager). */
  readonly controllerManager: ClusterAccess;
  /** CA to publish as kube-root-ca.crt, PEM; by default the one that controllerManager trusts. */
  readonly rootCa?: string;
  readonly tracer: Tracer;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Called once every cache has been filled and the controllers work. */
  readonly onReady?: () => void;
}

/** Runs until the signal aborts. Never throws for an API server that is away: everything is retried. */
export async function runControlPlane(options: ControlPlaneOptions): Promise<void> {
  const { clock, tracer, log, signal } = options;
  // Every list-watch and queue listens to it.
  setMaxListeners(0, signal);
  const closers: (() => void)[] = [];
  const context = (access: ClusterAccess, userAgent: string, component: string) => {
    const client = new ApiClient(access, { tracer, clock, userAgent });
    const recorder = new Recorder({
      client,
      clock,
      tracer,
      component,
      delayMs: EVENT_DELAY_MS,
      onDropped: (what, error) => log(`event not recorded: ${what}: ${errorMessage(error)}`),
    });
    closers.push(() => {
      recorder.close();
      client.close();
    });
    return { client, clock, recorder, log };
  };

  const manager = context(options.controllerManager, 'nodelet-controller-manager', 'node-controller');
  const informers = new Informers(manager.client, clock, log);
  const controllers: Controller[] = [];
  if (options.scheduler !== undefined) {
    controllers.push(new Scheduler(context(options.scheduler, 'nodelet-scheduler', SCHEDULER_NAME), informers));
  }
  controllers.push(
    new NamespaceController(manager, informers),
    new ServiceAccountController(manager, informers, options.rootCa ?? options.controllerManager.ca),
    new NodeLifecycleController(manager, informers),
    new PodGarbageCollector(manager, informers),
    new VolumeBinder(manager, informers),
    new VolumeProtection(manager, informers),
    new EphemeralVolumeController(manager, informers),
  );
  try {
    const running = informers.run(signal);
    // A controller that sees half the objects would judge wrongly: all wait for complete caches.
    await Promise.race([informers.whenSynced(), running]);
    if (!signal.aborted) options.onReady?.();
    await Promise.all([running, ...controllers.map((controller) => runController(controller, log, signal))]);
  } finally {
    for (const close of closers) close();
  }
}
