// What every PodWorker of an agent shares: the ports and the helpers built on them. Types and one constructor.

import type { PodProbes } from '../ports/probes.ts';
import type { ContainerRuntime, PodUID } from '../ports/runtime.ts';
import { ContainerStarter } from './container-starter.ts';
import { createHookRunner, type RunHook } from './hooks.ts';
import { ImageManager } from './image-manager.ts';
import { noProbes } from './no-probes.ts';
import { DEFAULT_PODS_CONFIG, type PodsAgentOptions, type PodsConfig, type PodsLog } from './options.ts';
import { PodResizes, type ResizeHost } from './resize/pod-resizes.ts';
import { StatusManager } from './status-manager.ts';
import { SyncLoop, syncLoopLimits } from './sync-loop.ts';

export interface WorkerContext extends Omit<PodsAgentOptions, 'config' | 'log' | 'probes' | 'sources' | 'allocations'> {
  readonly runtime: ContainerRuntime;
  readonly config: PodsConfig;
  readonly log: PodsLog;
  readonly probes: PodProbes;
  readonly images: ImageManager;
  readonly starter: ContainerStarter;
  readonly statuses: StatusManager;
  readonly resizes: PodResizes;
  readonly runHook: RunHook;
  readonly syncLoop: SyncLoop;
}

export function createWorkerContext(
  options: PodsAgentOptions,
  onGone: (uid: PodUID) => void,
  host: ResizeHost,
): WorkerContext {
  const { runtime, objects, recorder, clock, tracer, volumes, node, api, onStatus } = options;
  const config: PodsConfig = { ...DEFAULT_PODS_CONFIG, ...options.config };
  const log: PodsLog = options.log ?? (() => undefined);
  const runHook = createHookRunner({ runtime, recorder, clock, tracer });
  const images = new ImageManager({ runtime, objects, credentials: options.credentials, recorder, clock, config });
  const starter = new ContainerStarter({
    runtime,
    volumes,
    objects,
    recorder,
    images,
    node,
    masterServiceNamespace: config.masterServiceNamespace,
    runHook,
  });
  const statuses = new StatusManager({
    api,
    clock,
    tracer,
    config,
    log,
    onGone,
    ...(onStatus === undefined ? {} : { onStatus }),
  });
  const resizes = new PodResizes({ host, store: options.allocations, node, recorder, clock, log });
  const syncLoop = new SyncLoop(clock, syncLoopLimits(config.resyncMs, config.runtimeRequestTimeoutMs));
  const probes = options.probes ?? noProbes;
  return { ...options, config, log, probes, images, starter, statuses, resizes, runHook, syncLoop };
}
