// The control plane in one process: the scheduler and the controllers, ordinary API clients that share their
// list-watches. Reads no files.

import { setMaxListeners } from 'node:events';
import { ApiClient } from '../client/api.ts';
import type { ClusterAccess } from '../client/kubeconfig.ts';
import { EVENT_DELAY_MS, Recorder } from '../client/recorder.ts';
import type { Clock } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import type { Tracer } from '../lib/trace.ts';
import { AttachDetachController } from './attacher/attach-detach.ts';
import { DeploymentController } from './controllers/deployment/deployment.ts';
import { EndpointsController } from './controllers/endpoints/endpoints.ts';
import { EndpointSliceController } from './controllers/endpointslice/endpointslice.ts';
import { EndpointSliceMirroringController } from './controllers/endpointslice-mirroring/endpointslice-mirroring.ts';
import { GarbageCollector } from './controllers/garbage-collector/garbage-collector.ts';
import { ReplicaSetController } from './controllers/replicaset/replicaset.ts';
import { EphemeralVolumeController } from './ephemeral-volume/ephemeral.ts';
import { NamespaceController } from './namespace/namespace.ts';
import { NodeLifecycleController } from './node/lifecycle.ts';
import { TaintEvictionController } from './node/taint-eviction.ts';
import { PodGarbageCollector } from './podgc/podgc.ts';
import { type Controller, type ControllerContext, Informers, type Log, runController } from './runtime.ts';
import { SCHEDULER_NAME, Scheduler } from './scheduler/scheduler.ts';
import { ServiceAccountController } from './serviceaccount/serviceaccount.ts';
import type { DriverEndpoint } from './storage/drivers.ts';
import { VolumeBinder } from './volume-binder/binder.ts';
import { VolumeProtection } from './volume-protection/protection.ts';

export interface ControlPlaneOptions {
  /** Identity of the scheduler (system:kube-scheduler); without it there is no scheduler. */
  readonly scheduler?: ClusterAccess;
  /** Identity of the controllers (system:kube-controller-manager). */
  readonly controllerManager: ClusterAccess;
  /** CA to publish as kube-root-ca.crt, PEM; by default the one that controllerManager trusts. */
  readonly rootCa?: string;
  /** CSI drivers whose volumes are made, attached, grown and deleted by this process, as by csi-provisioner and the other side-cars. */
  readonly csiDrivers?: readonly DriverEndpoint[];
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
  // Every list-watch and queue adds a listener.
  setMaxListeners(0, signal);
  const closers: (() => void)[] = [];
  const clientOf = (access: ClusterAccess, userAgent: string): ApiClient => {
    const client = new ApiClient(access, { tracer, clock, userAgent });
    closers.push(() => client.close());
    return client;
  };
  const contextOf = (client: ApiClient, component: string): ControllerContext => {
    const recorder = new Recorder({
      client,
      clock,
      tracer,
      component,
      delayMs: EVENT_DELAY_MS,
      onDropped: (what, error) => log(`event not recorded: ${what}: ${errorMessage(error)}`),
    });
    closers.unshift(() => recorder.close());
    return { client, clock, recorder, log };
  };

  const managerClient = clientOf(options.controllerManager, 'nodelet-controller-manager');
  const manager = contextOf(managerClient, 'node-controller');
  const informers = new Informers(managerClient, clock, log);
  const controllers: Controller[] = [];
  if (options.scheduler !== undefined) {
    const client = clientOf(options.scheduler, 'nodelet-scheduler');
    controllers.push(new Scheduler(contextOf(client, SCHEDULER_NAME), informers));
  }
  controllers.push(
    new NamespaceController(manager, informers),
    new ServiceAccountController(manager, informers, options.rootCa ?? options.controllerManager.ca),
    new NodeLifecycleController(manager, informers),
    new TaintEvictionController(contextOf(managerClient, 'taint-eviction-controller'), informers),
    new PodGarbageCollector(manager, informers),
    new GarbageCollector(contextOf(managerClient, 'garbage-collector-controller'), informers),
    new DeploymentController(contextOf(managerClient, 'deployment-controller'), informers),
    new ReplicaSetController(contextOf(managerClient, 'replicaset-controller'), informers),
    new EndpointSliceController(contextOf(managerClient, 'endpoint-slice-controller'), informers),
    new EndpointsController(contextOf(managerClient, 'endpoint-controller'), informers),
    new EndpointSliceMirroringController(contextOf(managerClient, 'endpoint-slice-mirroring-controller'), informers),
    new VolumeBinder(contextOf(managerClient, 'persistentvolume-controller'), informers),
    new AttachDetachController(contextOf(managerClient, 'attachdetach-controller'), informers),
    new VolumeProtection(manager, informers),
    new EphemeralVolumeController(contextOf(managerClient, 'ephemeral_volume'), informers),
  );
  if (options.csiDrivers !== undefined && options.csiDrivers.length > 0) {
    const { csiControllers } = await import('./csi-controllers.ts');
    const csi = csiControllers(options.csiDrivers, tracer, (name) => contextOf(managerClient, name), informers);
    closers.push(csi.close);
    controllers.push(...csi.controllers);
  }
  try {
    const running = informers.run(signal);
    // A controller with half the objects would decide wrongly: all wait for synced caches.
    await Promise.race([informers.whenSynced(), running]);
    if (!signal.aborted) options.onReady?.();
    await Promise.all([running, ...controllers.map((controller) => runController(controller, log, signal))]);
  } finally {
    for (const close of closers) close();
  }
}
