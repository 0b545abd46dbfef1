// The ContainerRuntime port over CRI, put together from its parts: sandboxes, containers, images, streaming, the cache
// of the runtime's truth, and the lifecycle events that feed it. Only composition.

import { singleFlight } from '../../lib/single-flight.ts';
import { RuntimeCache } from './cache/runtime-cache.ts';
import { readCgroupDriver } from './cgroup-driver.ts';
import { Containers } from './containers.ts';
import { runtimeContext } from './context.ts';
import { runtimeStatus } from './convert.ts';
import { type CriClient, isRuntimeError, SHORT_DEADLINE_MS } from './cri-client.ts';
import { ExitTracker } from './events/exit-tracker.ts';
import { LifecycleEvents } from './events/lifecycle-events.ts';
import { LifecycleListeners, longestRelistMs } from './events/pleg.ts';
import { PodFiles } from './files.ts';
import { createCriClient } from './grpc-cri-client.ts';
import { Images } from './images.ts';
import { Observer } from './observe.ts';
import type { CriRuntimeOptions } from './options.ts';
import { preparing } from './prepare.ts';
import { PodSandboxes } from './sandboxes.ts';
import { StatusReader } from './status-reader.ts';
import { Streaming } from './streaming.ts';
import type { CriRuntime, RuntimeCapabilities } from './types.ts';
import { createRuntimeUsage } from './usage.ts';

const DEFAULT_DEADLINE_MS = 120_000;
const DEFAULT_RELIST_MS = 10_000;
/** A complete read of a pod is relied on for this many of the longest pauses between relists, which renew it. */
const FRESH_RELISTS = 3;

async function capabilities(client: CriClient, events: LifecycleEvents): Promise<RuntimeCapabilities | undefined> {
  const source = await events.settled();
  if (source === undefined) return undefined;
  try {
    return { events: source, cgroupDriver: await readCgroupDriver(client) };
  } catch (error) {
    if (isRuntimeError(error, 'UNAVAILABLE')) return undefined;
    throw error;
  }
}

async function version({ call }: CriClient) {
  const response = await call('Version', { version: '0.1.0' }, { deadlineMs: SHORT_DEADLINE_MS });
  const { runtime_name: name, runtime_version, runtime_api_version: apiVersion } = response;
  return { name, version: runtime_version, apiVersion };
}

/** Everything that has a state, in the order in which one needs the other. */
function createParts(options: CriRuntimeOptions) {
  const { node, tracer, clock } = options;
  const deadlineMs = options.requestTimeoutMs ?? DEFAULT_DEADLINE_MS;
  const relistPeriodMs = options.relistPeriodMs ?? DEFAULT_RELIST_MS;
  const client = options.client ?? createCriClient(options.endpoint, options.imageEndpoint ?? options.endpoint, tracer);
  const stop = new AbortController();
  const listeners = new LifecycleListeners();
  const cache = new RuntimeCache(clock, longestRelistMs(relistPeriodMs) * FRESH_RELISTS, (change) =>
    listeners.report(change),
  );
  const statuses = new StatusReader(client, cache, deadlineMs);
  const observer = new Observer(client, cache, statuses, clock, deadlineMs);
  const exits = new ExitTracker(cache, statuses, clock, stop.signal);
  const files = new PodFiles(node);
  const context = runtimeContext({ client, cache, statuses, exits, files, node, clock, deadlineMs });
  const shared = { client, cache, statuses, observer, exits, listeners, clock, signal: stop.signal, relistPeriodMs };
  const { eventSource, onTrouble, onRelist } = options;
  const events = new LifecycleEvents({
    ...shared,
    ...(eventSource === undefined ? {} : { eventSource }),
    ...(onTrouble === undefined ? {} : { onTrouble }),
    ...(onRelist === undefined ? {} : { onRelist }),
  });
  return { client, stop, listeners, cache, observer, exits, files, context, events, deadlineMs };
}

/** The runtime need not be up: calls fail with UNAVAILABLE until it is. */
export function createCriRuntime(options: CriRuntimeOptions): CriRuntime {
  const { client, stop, listeners, cache, observer, exits, files, context, events, deadlineMs } = createParts(options);
  const sandboxes = new PodSandboxes(context, options);
  const containers = new Containers(context, sandboxes);
  const images = new Images(context, sandboxes);
  const streaming = new Streaming(context);
  return {
    version: () => version(client),
    // The node's health and a network that the runtime makes are checked at the same moment.
    status: singleFlight(async () => runtimeStatus(await client.call('Status', {}, { deadlineMs: SHORT_DEADLINE_MS }))),
    capabilities: () => capabilities(client, events),

    listPods: () => observer.list(),
    listSandboxIds: () => sandboxes.listIds(),
    observePod: (pod) => observer.observe(pod),
    provenance: (id) => cache.provenance(id),

    runPodSandbox: (spec) => sandboxes.run(spec),
    stopPodSandbox: (id) => sandboxes.stop(id),
    removePodSandbox: (id) => sandboxes.remove(id),
    updatePodSandboxResources: (id, pod) => sandboxes.updateResources(id, pod),

    createContainer: (spec) => containers.create(spec),
    startContainer: (id) => containers.start(id),
    stopContainer: (id, graceSeconds) => containers.stop(id, graceSeconds),
    removeContainer: (id) => containers.remove(id),
    updateContainerResources: (id, resources) => containers.updateResources(id, resources),

    imageStatus: (image) => images.status(image),
    pullImage: (image, auth, pod, signal) => images.pull(image, auth, pod, signal),
    listImages: () => images.list(),
    removeImage: (id) => images.remove(id),
    imageFsInfo: () => images.fsInfo(),
    ...createRuntimeUsage(client, deadlineMs),

    execSync: (id, command, timeoutMs) => streaming.execSync(id, command, timeoutMs),
    execUrl: (id, streams) => streaming.execUrl(id, streams),
    attachUrl: (id, streams) => streaming.attachUrl(id, streams),
    portForwardUrl: (id, ports) => streaming.portForwardUrl(id, ports),
    reopenContainerLog: (id) => streaming.reopenLog(id),
    logWritten: (id) => exits.settled(id),

    watch: (listener) => events.watch(listener),
    plegProblem: () => events.problem(),

    writeHostsFile: async (pod, podIPs) => {
      preparing('WriteHostsFile', () => files.writeHosts(pod, podIPs));
    },
    containerLogPath: (pod, container, restartCount) => files.logPath(pod, container, restartCount),
    removePodFiles: (pod) => files.removePod(pod),
    close() {
      stop.abort(new Error('closed'));
      listeners.clear();
      events.close();
      client.close();
    },
  };
}
