// The control plane in one process: the scheduler and the controllers, ordinary API clients that share their
// list-watches. Reads no files.

import { setMaxListeners } from 'node:events';
import { ApiClient } from '../client/api.ts';
import type { ClusterAccess } from '../client/kubeconfig.ts';
import { type LeaderElectionOptions, LeaderElector } from '../client/leader-election.ts';
import { EVENT_DELAY_MS, Recorder } from '../client/recorder.ts';
import type { ListWatcher } from '../client/reflector.ts';
import { WorkQueueMetrics } from '../client/workqueue-metrics.ts';
import { abortable } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import type { Metric } from '../lib/metrics.ts';
import { RestClientMetrics } from '../lib/rest-client-metrics.ts';
import type { Tracer } from '../lib/trace.ts';
import type { SigningAuthority } from './controllers/certificates/request.ts';
import { type ControllerSettings, chooseControllers } from './controllers.ts';
import type { DriverEndpoint } from './csi/shared/drivers.ts';
import { Informers } from './informers.ts';
import { metricsPage, runningControllers } from './metrics-page.ts';
import { queueName } from './queue-names.ts';
import { type ControllerContext, type Log, runController } from './runtime.ts';
import { DEFAULT_SCHEDULER, type SchedulerSettings } from './scheduler/config/model.ts';
import { Scheduler } from './scheduler/scheduler.ts';
import { type SecureServing, serve } from './serving.ts';

/** A connection to the API server under one identity. */
export type ControlPlaneClient = ControllerContext['client'] & ListWatcher & { close(): void };

export interface ControlPlaneOptions {
  /** Identity of the scheduler (system:kube-scheduler); without it there is no scheduler. */
  readonly scheduler?: ClusterAccess;
  /** KubeSchedulerConfiguration; kube-scheduler's defaults without it. */
  readonly schedulerSettings?: SchedulerSettings;
  /** Identity of the controllers (system:kube-controller-manager). */
  readonly controllerManager: ClusterAccess;
  /** Without it this process works at once, and is the only one that may. */
  readonly leaderElection?: Pick<
    LeaderElectionOptions,
    'identity' | 'leaseDurationMs' | 'renewDeadlineMs' | 'retryPeriodMs'
  >;
  /** As kube-controller-manager's --controllers; default: all. */
  readonly controllers?: readonly string[];
  /** The CA that signs certificate requests; without it none is signed. */
  readonly signing?: SigningAuthority;
  /** CA to publish as kube-root-ca.crt, PEM; by default the one that controllerManager trusts. */
  readonly rootCa?: string;
  /** Those of single controllers. */
  readonly controllerSettings?: Omit<ControllerSettings, 'rootCa' | 'signing'>;
  /** CSI drivers whose volumes are made, attached, grown and deleted by this process, as by csi-provisioner and the other side-cars. */
  readonly csiDrivers?: readonly DriverEndpoint[];
  /** Health and metrics of the controllers and of the scheduler, each on a port of its own; absent: none. */
  readonly serving?: { readonly controllers?: SecureServing; readonly scheduler?: SecureServing };
  readonly tracer: Tracer;
  readonly clock: Clock;
  /** 0 ≤ x < 1; Math.random by default. */
  readonly random?: () => number;
  /** Makes the connections, one for each identity; by default ApiClient over HTTPS. */
  readonly connect?: (access: ClusterAccess, userAgent: string) => ControlPlaneClient;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Called once every cache has been filled and the controllers work. */
  readonly onReady?: () => void;
}

/**
 * Runs until the signal aborts. Never throws for an API server that is away: everything is retried. With leader election it
 * throws when a lease is lost: the process ends, as kube-controller-manager's does, and what starts it again is a new candidate.
 */
export async function runControlPlane(options: ControlPlaneOptions): Promise<void> {
  const { clock, log, random = Math.random } = options;
  const lost = new AbortController();
  const signal = AbortSignal.any([options.signal, lost.signal]);
  // Every list-watch and queue adds a listener.
  setMaxListeners(0, signal);
  const connections = new Connections(options);
  const client = connections.client(options.controllerManager, 'nodelet-controller-manager');
  const informers = new Informers(client, clock, log, random);
  const parts = [
    ...schedulerPart(options, connections, informers),
    ...(await controllersPart(options, connections, client, informers)),
  ];
  try {
    await servePart(parts, informers, options, signal);
    const running = informers.run(signal);
    // A controller with half the objects would decide wrongly: all wait for synced caches.
    await Promise.race([informers.whenSynced(), running]);
    if (!signal.aborted) options.onReady?.();
    const work = parts.map((part) => runPart(part, informers, options, signal));
    await Promise.all([running, ...work.map((each) => each.catch((error: unknown) => lost.abort(error)))]);
    if (lost.signal.aborted) throw lost.signal.reason;
  } finally {
    connections.close();
  }
}

/** The clients and event recorders of the process, to be closed together: recorders first, since they send what they have. */
class Connections {
  readonly #options: ControlPlaneOptions;
  readonly #closers: (() => void)[] = [];

  constructor(options: ControlPlaneOptions) {
    this.#options = options;
  }

  client(access: ClusterAccess, userAgent: string): ControlPlaneClient {
    const { tracer, clock, connect } = this.#options;
    const client = connect?.(access, userAgent) ?? new ApiClient(access, { tracer, clock, userAgent });
    this.#closers.push(() => client.close());
    return client;
  }

  /** `component`: the source of its events. */
  context(client: ControlPlaneClient, component: string): ControllerContext {
    const { tracer, clock, log, random = Math.random } = this.#options;
    const recorder = new Recorder({
      ...{ client, clock, tracer, component, random },
      delayMs: EVENT_DELAY_MS,
      onDropped: (what, error) => log(`event not recorded: ${what}: ${errorMessage(error)}`),
    });
    this.#closers.unshift(() => recorder.close());
    return { client, clock, recorder, log };
  }

  onClose(closer: () => void): void {
    this.#closers.push(closer);
  }

  close(): void {
    for (const close of this.#closers) close();
  }
}

/** None without an identity for it. */
function schedulerPart(
  { scheduler: access, schedulerSettings, serving, random = Math.random }: ControlPlaneOptions,
  connections: Connections,
  informers: Informers,
): readonly Part[] {
  if (access === undefined) return [];
  const client = connections.client(access, 'nodelet-scheduler');
  // Each profile's events are its own scheduler's.
  const contexts = new Map<string, ControllerContext>();
  const contextFor = (profile: string): ControllerContext => {
    const context = contexts.get(profile) ?? connections.context(client, profile);
    contexts.set(profile, context);
    return context;
  };
  const context = contextFor(DEFAULT_SCHEDULER);
  const scheduler = new Scheduler(context, informers, {
    ...(schedulerSettings === undefined ? {} : { settings: schedulerSettings }),
    random,
    recorderOf: (profile) => contextFor(profile).recorder,
  });
  return [
    {
      ...{ lease: 'kube-scheduler', context, client, run: (until) => scheduler.run(until) },
      ...{ metrics: [scheduler.metrics], serving: serving?.scheduler, leads: false },
    },
  ];
}

/** The chosen controllers and those of CSI drivers; none where there are neither. */
async function controllersPart(
  options: ControlPlaneOptions,
  connections: Connections,
  client: ControlPlaneClient,
  informers: Informers,
): Promise<readonly Part[]> {
  const { controllerSettings, rootCa, controllerManager, signing, csiDrivers = [], tracer, clock, log } = options;
  const settings = {
    ...controllerSettings,
    rootCa: rootCa ?? controllerManager.ca,
    ...(signing === undefined ? {} : { signing }),
  };
  const queues = new WorkQueueMetrics(clock);
  const names: string[] = [];
  const controllers = chooseControllers(options.controllers ?? ['*']).flatMap(({ name, component, make }) => {
    const controller = make(connections.context(client, component), informers, settings);
    if (controller === undefined) return [];
    names.push(name);
    queues.follow(queueName(name), controller.queue);
    return [controller];
  });
  // Where another controller manager has the controllers, it has their lease too.
  const lease = controllers.length > 0 ? 'kube-controller-manager' : 'nodelet-csi-sidecars';
  if (csiDrivers.length > 0) {
    const { csiControllers } = await import('./csi/csi-controllers.ts');
    const csi = csiControllers(csiDrivers, tracer, (name) => connections.context(client, name), informers);
    connections.onClose(csi.close);
    for (const controller of csi.controllers) queues.follow(controller.name, controller.queue);
    controllers.push(...csi.controllers);
  }
  if (controllers.length === 0) return [];
  const context = connections.context(client, 'kube-controller-manager');
  const run = (until: AbortSignal): Promise<unknown> =>
    Promise.all(controllers.map((controller) => runController(controller, log, until)));
  const metrics = [
    ...[runningControllers(names, 'kube-controller-manager'), queues],
    ...controllers.flatMap((controller) => controller.metrics ?? []),
  ];
  return [{ lease, context, client, run, metrics, serving: options.serving?.controllers, leads: false }];
}

/** What one lease is for. */
interface Part {
  readonly lease: string;
  readonly context: ControllerContext;
  readonly client: ControlPlaneClient;
  readonly metrics: readonly Metric[];
  readonly serving: SecureServing | undefined;
  /** Whether it holds the lease. */
  leads: boolean;
  /** Works until the signal aborts. */
  run(signal: AbortSignal): Promise<unknown>;
}

/** Before there is anything to show: a part that waits is healthy, and not ready. */
async function servePart(
  parts: readonly Part[],
  informers: Informers,
  { controllerManager, leaderElection, tracer, clock, log }: ControlPlaneOptions,
  signal: AbortSignal,
): Promise<void> {
  if (parts.every(({ serving }) => serving === undefined)) return;
  const requests = new RestClientMetrics(new URL(controllerManager.server).host);
  tracer.subscribe(requests.take);
  const startedAt = clock.now();
  let synced = false;
  void informers.whenSynced().then(() => {
    synced = true;
  });
  const checks = [
    { name: 'ping', check: () => undefined },
    {
      name: 'informer-sync',
      readinessOnly: true,
      check: () => {
        if (!synced) throw new Error('not all caches are filled');
      },
    },
  ];
  for (const part of parts) {
    const { serving, lease, client } = part;
    if (serving === undefined) continue;
    const metrics = (): Promise<string> => {
      const leads = leaderElection === undefined ? undefined : part.leads;
      return metricsPage([...part.metrics, requests], { lease, leads, startedAt });
    };
    await serve({ ...serving, part: { checks, metrics }, client, clock, log, signal });
  }
}

/** A part without the lease follows the API server, its queues fill, and it does nothing. */
async function runPart(
  part: Part,
  informers: Informers,
  options: ControlPlaneOptions,
  signal: AbortSignal,
): Promise<void> {
  const { leaderElection, clock, log, random = Math.random } = options;
  if (leaderElection === undefined) {
    await part.run(signal);
    return;
  }
  const elector = new LeaderElector({
    ...leaderElection,
    client: part.client,
    clock,
    random,
    namespace: 'kube-system',
    name: part.lease,
    log,
    onLeading: (lease) => {
      part.leads = true;
      const message = `${leaderElection.identity} became leader`;
      part.context.recorder.event(lease, 'Normal', 'LeaderElection', message);
    },
  });
  await elector.acquire(signal);
  // The lease is kept until everything that is under way has ended: the next leader would do it too.
  const ended = new AbortController();
  const work = async (): Promise<void> => {
    try {
      // What the leader before did last may not have arrived: a controller would do it again, and count it again.
      await abortable(informers.relist(), signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
      if (!signal.aborted) await part.run(signal);
    } finally {
      ended.abort();
    }
  };
  const renewal = elector.renew(ended.signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  await Promise.all([work(), renewal]);
}
