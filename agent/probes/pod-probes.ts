// The PodProbes port: which probes of which containers run, and their results. A container's startup probe delays
// its others. It kills and reports nothing itself: workers read the results.

import type { Container, Pod } from '../../client/types.ts';
import { type Clock, type EpochMs, epochMs, plusMs } from '../../lib/clock.ts';
import { isSidecar } from '../../lib/sidecar.ts';
import { TimerWheel } from '../../lib/timer-wheel.ts';
import { containerReference } from '../model/event-reference.ts';
import { sortPodIPs } from '../model/pod-ips.ts';
import { uidOf } from '../model/pod-uid.ts';
import type { ProbeCause, ProbeResults, ProbeVerdict } from '../ports/probes.ts';
import {
  type ContainerId,
  type ContainerSnapshot,
  type PodRef,
  type PodSnapshot,
  type PodUID,
  RuntimeError,
} from '../ports/runtime.ts';
import { PROBE_TYPES, type ProbeSpec, type ProbeType, probeSettings } from './automaton.ts';
import { createExecRunner } from './exec-runner.ts';
import { createGrpcRunner } from './grpc-runner.ts';
import { createHttpRunner } from './http-runner.ts';
import type { PodProbesOptions, RunningPodProbes } from './options.ts';
import { probeEvent } from './outcome.ts';
import { ProbeWorker } from './probe-worker.ts';
import { type ProbeRunners, runTarget } from './runners.ts';
import { firstRunDelay } from './schedule.ts';
import { probeTarget } from './target.ts';
import { createTcpRunner } from './tcp-runner.ts';

/** The probes of one instance of a container. */
type Instance = ReadonlyMap<ProbeType, ProbeWorker>;

interface PodState {
  pod: Pod;
  podIP: string | undefined;
  terminating: boolean;
  readonly instances: Map<ContainerId, Instance>;
}

function specOf(container: Container, type: ProbeType): ProbeSpec | undefined {
  switch (type) {
    case 'startup':
      return container.startupProbe;
    case 'liveness':
      return container.livenessProbe;
    default:
      return container.readinessProbe;
  }
}

/** Containers that may have probes: regular ones and native sidecars. */
function probedContainers({ spec }: Pod): readonly Container[] {
  const sidecars = (spec.initContainers ?? []).filter(isSidecar);
  return [...spec.containers, ...sidecars].filter((container) =>
    PROBE_TYPES.some((type) => specOf(container, type) !== undefined),
  );
}

/** Whether the pod's status, as an earlier agent wrote it, has this field set for this very instance. */
function reported(pod: Pod, id: ContainerId, field: 'started' | 'ready'): boolean {
  const all = [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? [])];
  const status = all.find(({ containerID }) => containerID?.replace(/^[^:]*:\/\//, '') === id);
  return status?.state?.running !== undefined && status[field] === true;
}

export class ProbeManager implements RunningPodProbes {
  readonly results: ProbeResults;
  readonly #options: PodProbesOptions;
  readonly #runners: ProbeRunners;
  readonly #timers: Pick<Clock, 'after'>;
  readonly #random: () => number;
  /** Epoch ms. */
  readonly #agentStartedAt: EpochMs;
  readonly #pods = new Map<PodUID, PodState>();
  readonly #instances = new Map<ContainerId, Instance>();
  readonly #listeners = new Set<(uid: PodUID, cause: ProbeCause) => void>();

  constructor(options: PodProbesOptions) {
    const { clock, runtime } = options;
    this.#options = options;
    this.#timers = new TimerWheel(clock);
    this.#random = options.random ?? Math.random;
    this.#agentStartedAt = clock.now();
    this.#runners = {
      exec: createExecRunner(runtime),
      httpGet: createHttpRunner(clock),
      tcpSocket: createTcpRunner(clock),
      grpc: createGrpcRunner(clock),
      ...options.runners,
    };
    const verdict = (type: ProbeType) => (id: ContainerId) => this.#instances.get(id)?.get(type)?.verdict;
    this.results = { liveness: verdict('liveness'), readiness: verdict('readiness'), startup: verdict('startup') };
  }

  subscribe(listener: (uid: PodUID, cause: ProbeCause) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  podObserved(pod: Pod, snapshot: PodSnapshot): void {
    const { uid } = snapshot.pod;
    const state = this.#state(uid, pod);
    const [sandbox] = snapshot.sandboxes;
    const hostIPs = this.#options.hostIPs();
    const ips = pod.spec.hostNetwork === true ? hostIPs : sortPodIPs(sandbox?.ips ?? [], hostIPs);
    state.podIP = ips[0] ?? state.podIP;
    const running = new Map<ContainerId, Container>();
    for (const container of probedContainers(pod)) {
      const newest = snapshot.containers.find(({ name }) => name === container.name);
      if (newest?.state !== 'running') continue;
      running.set(newest.id, container);
      if (!state.instances.has(newest.id)) this.#begin(uid, state, container, newest);
    }
    for (const id of state.instances.keys()) if (!running.has(id)) this.#drop(state, id);
  }

  podTerminating(pod: Pod): void {
    const state = this.#state(uidOf(pod), pod);
    if (state.terminating) return;
    state.terminating = true;
    for (const instance of state.instances.values()) {
      const startup = instance.get('startup');
      const startupPending = startup !== undefined && startup.verdict !== 'success';
      for (const worker of instance.values()) worker.podEnds();
      // A startup probe that will not run again holds nothing back.
      if (startupPending) instance.get('readiness')?.startNow();
    }
  }

  podRemoved(uid: PodUID): void {
    const state = this.#pods.get(uid);
    if (state === undefined) return;
    for (const id of state.instances.keys()) this.#drop(state, id);
    this.#pods.delete(uid);
  }

  close(): void {
    for (const uid of this.#pods.keys()) this.podRemoved(uid);
    this.#listeners.clear();
  }

  #state(uid: PodUID, pod: Pod): PodState {
    let state = this.#pods.get(uid);
    if (state === undefined) {
      state = { pod, podIP: undefined, terminating: false, instances: new Map() };
      this.#pods.set(uid, state);
    }
    state.pod = pod;
    return state;
  }

  #drop(state: PodState, id: ContainerId): void {
    for (const worker of this.#instances.get(id)?.values() ?? []) worker.stop();
    this.#instances.delete(id);
    state.instances.delete(id);
  }

  /** A container runs: its probes begin, those behind a startup probe when that has succeeded. */
  #begin(uid: PodUID, state: PodState, container: Container, snapshot: ContainerSnapshot): void {
    const workers = new Map<ProbeType, ProbeWorker>();
    for (const type of PROBE_TYPES) {
      const spec = specOf(container, type);
      if (spec !== undefined) workers.set(type, this.#worker(uid, state, container, snapshot, type, spec));
    }
    state.instances.set(snapshot.id, workers);
    this.#instances.set(snapshot.id, workers);
    if (state.terminating) {
      for (const worker of workers.values()) worker.podEnds();
    }
    const startup = workers.get('startup');
    // Not on their grids, as after a startup probe: those begin with the first run, and a clock has moved since they were made.
    if (startup !== undefined && startup.verdict !== 'success') startup.startNow();
    else for (const worker of workers.values()) worker.startNow();
  }

  #worker(
    uid: PodUID,
    state: PodState,
    container: Container,
    snapshot: ContainerSnapshot,
    type: ProbeType,
    spec: ProbeSpec,
  ): ProbeWorker {
    const { clock, tracer } = this.#options;
    const { id, startedAt } = snapshot;
    const adopted = startedAt < this.#agentStartedAt;
    const delay = firstRunDelay({
      ...probeSettings(spec),
      startedAt: epochMs(startedAt),
      agentStartedAt: this.#agentStartedAt,
      now: clock.now(),
      random: this.#random(),
    });
    const { namespace, name } = state.pod.metadata;
    return new ProbeWorker({
      type,
      spec,
      carried: adopted && type !== 'liveness' && reported(state.pod, id, type === 'startup' ? 'started' : 'ready'),
      anchor: plusMs(clock.monotonic(), delay),
      clock,
      timers: this.#timers,
      tracer,
      pod: { uid, namespace, name },
      container: container.name,
      target: () => probeTarget(spec, container, id, state.podIP),
      ask: (target, timeoutMs, signal) => runTarget(this.#runners, target, timeoutMs, signal),
      isGone: () => this.#isGone({ uid, namespace, name }, id),
      onOutcome: (outcome) => {
        const event = probeEvent(type, outcome);
        if (event === undefined) return;
        const reference = containerReference(state.pod, container.name);
        this.#options.recorder.event(reference, 'Warning', event.reason, event.message);
      },
      onVerdict: (verdict) => this.#changed(uid, state, id, type, verdict),
    });
  }

  async #isGone(pod: PodRef, id: ContainerId): Promise<boolean> {
    try {
      const { containers } = await this.#options.runtime.observePod(pod);
      const found = containers.find((container) => container.id === id);
      return found === undefined || found.state === 'exited';
    } catch (error) {
      // While the runtime does not answer, the probe's own error is all that is known.
      if (error instanceof RuntimeError) return false;
      throw error;
    }
  }

  #changed(uid: PodUID, state: PodState, id: ContainerId, type: ProbeType, verdict: ProbeVerdict): void {
    const cause: ProbeCause = `${type} probe ${verdict === 'success' ? 'succeeded' : 'failed'}`;
    for (const listener of this.#listeners) listener(uid, cause);
    if (type !== 'startup' || verdict !== 'success') return;
    const instance = state.instances.get(id);
    instance?.get('readiness')?.startNow();
    instance?.get('liveness')?.start();
  }
}

/** The probes of this node's pods. Nothing runs before a pod is observed with a running container. */
export function createPodProbes(options: PodProbesOptions): RunningPodProbes {
  return new ProbeManager(options);
}
