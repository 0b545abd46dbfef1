// Keeps the allocated resources of each pod and the actuated ones of its containers, allocates resizes that fit on the node,
// and checkpoints both across restarts of the agent. The rules are in allocation.ts; actuate.ts applies allocated resources
// to running containers.

import type { Container, Pod, PodCondition } from '../../../client/types.ts';
import { type Clock, type EpochMs, type Timer, ZERO_TIME } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { getOwn } from '../../../lib/own-property.ts';
import type { EventRecorder } from '../../ports/api.ts';
import type { ContainerId, PodSnapshot } from '../../ports/runtime.ts';
import { podReference } from '../events.ts';
import type { AllocationStore, NodeFacts, PodsLog } from '../options.ts';
import { ActuatedPod } from './actuated.ts';
import {
  allocationFromStatus,
  allocationOf,
  completeAllocation,
  decideResize,
  inResizeOrder,
  type PodAllocation,
  type Resources,
  resizableContainers,
  roomFor,
  sameAllocation,
  withAllocation,
} from './allocation.ts';
import { type CheckpointTexts, parseCheckpoints, printCheckpoint, type SavedPod } from './checkpoint.ts';
import { type ResizeReport, resizeEventMessage } from './resize-status.ts';

export interface PodResizesOptions {
  readonly host: ResizeHost;
  readonly store: AllocationStore | undefined;
  readonly node: Pick<NodeFacts, 'allocatable'>;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly log: PodsLog;
}

/** The part of the pod manager that resizes need. */
export interface ResizeHost {
  /** Pods that use resources of the node, with their allocated resources. */
  activePods(): readonly Pod[];
  /** The pod's allocated resources, or the state of its resize, have changed. */
  resizeChanged(uid: string, effective: Pod): void;
}

interface Entry {
  /** As its source has it. */
  pod: Pod;
  effective: Pod;
  allocated: PodAllocation;
  readonly actuated: ActuatedPod;
  /** Nothing is allocated before the running instances are known by their ids. */
  observed: boolean;
  resizing: boolean;
  /** metadata.generation of the pod whose resize was allocated last. */
  allocatedGeneration: number | undefined;
  /** The pod's cgroup is large enough for the resize. */
  cgroupEnlarged: boolean;
  pending: NonNullable<ResizeReport['pending']> | undefined;
  since: EpochMs;
  error: string | undefined;
}

/** The facts of a resize in progress that the next decision needs. */
export interface ResizeFacts {
  /** Actuated resources of instances, where they differ from the allocated ones. */
  readonly actual: ReadonlyMap<ContainerId, Resources>;
  /** A start is under way that began before the resize: its container can be resized once it runs. */
  readonly startsOutdated: boolean;
  readonly cgroupEnlarged: boolean;
}

/** A pod that was only admitted is written a moment later, with others. ms. */
const SAVE_DELAY_MS = 1_000;
/** After a write that failed, ms. */
const SAVE_AGAIN_MS = 10_000;

export class PodResizes {
  readonly #options: PodResizesOptions;
  readonly #entries = new Map<string, Entry>();
  /** What was read at the start, of pods that still exist. */
  #saved: Map<string, SavedPod> = new Map();
  #timer: Timer | undefined;
  #writing: Promise<void> | undefined;
  #dirty = false;
  /** What is on disk. */
  readonly #texts: { -readonly [File in keyof CheckpointTexts]: CheckpointTexts[File] };

  constructor(options: PodResizesOptions) {
    this.#options = options;
    this.#texts = { allocated: undefined, actuated: undefined, ...options.store?.initial };
    if (options.store === undefined) return;
    try {
      this.#saved = parseCheckpoints(options.store.initial);
    } catch (error) {
      options.log(
        'error',
        'Failed to read the checkpoints of pod resources; allocations are taken from the pod statuses instead',
        {
          error: errorMessage(error),
        },
      );
    }
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** The pod with its allocated resources. A resize that fits on the node is allocated. */
  seen(pod: Pod): Pod {
    const entry = this.#entries.get(pod.metadata.uid);
    if (entry === undefined) return withAllocation(pod, this.#initial(pod));
    if (entry.pod === pod) return entry.effective;
    entry.pod = pod;
    entry.effective = withAllocation(pod, entry.allocated);
    // Servers before 1.33 count no generations of pods: the worker would take the new spec for an echo.
    if (this.#syncResize(entry)) this.#options.host.resizeChanged(pod.metadata.uid, entry.effective);
    return entry.effective;
  }

  #initial(pod: Pod): PodAllocation {
    return completeAllocation(pod, this.#saved.get(pod.metadata.uid)?.allocated ?? allocationFromStatus(pod));
  }

  /** The node admitted the pod. */
  admitted(pod: Pod): void {
    const { uid } = pod.metadata;
    if (this.#entries.has(uid)) return;
    const saved = this.#saved.get(uid);
    const allocated = this.#initial(pod);
    const actuated = new ActuatedPod(saved?.actuated);
    const entry: Entry = {
      pod,
      effective: withAllocation(pod, allocated),
      allocated,
      actuated,
      observed: false,
      // The files do not say that only the pod's cgroup is left to do: the last status does.
      resizing: actuated.differing(allocated).length > 0 || isReportedInProgress(pod),
      allocatedGeneration: reportedResize(pod)?.observedGeneration,
      cgroupEnlarged: false,
      pending: undefined,
      since: ZERO_TIME,
      error: undefined,
    };
    this.#entries.set(uid, entry);
    // What was read from another format is written in this one as well: a kubelet may be the next to read it.
    if (isWorthSaving(entry)) this.#saveSoon();
  }

  /** The running instances. */
  observed(uid: string, snapshot: Pick<PodSnapshot, 'containers'>): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return;
    entry.actuated.observed(snapshot.containers, entry.allocated);
    // A start that failed for the agent may have been executed after all, before the resize was allocated.
    if (!entry.resizing && entry.actuated.differing(entry.allocated).length > 0) {
      entry.resizing = true;
      entry.cgroupEnlarged = false;
    }
    if (entry.observed) return;
    entry.observed = true;
    if (this.#syncResize(entry)) this.#options.host.resizeChanged(uid, entry.effective);
  }

  /** UpdateContainerResources is about to be called. */
  updating(uid: string, name: string, id: ContainerId, resources: Resources): void {
    this.#entries.get(uid)?.actuated.updating(name, id, resources);
  }

  /** Further resources that the instance may have: of calls that failed, and may have been executed all the same. */
  uncertain(uid: string, name: string, id: ContainerId): readonly Resources[] {
    return this.#entries.get(uid)?.actuated.uncertain(name, id) ?? [];
  }

  /** From now on, and until its start has ended, an instance may be created with these resources. */
  starting(uid: string, name: string, resources: Resources): void {
    this.#resizable(uid, name)?.starting(name, resources);
  }

  /** The start failed. `attempted`: CreateContainer was called, and may have created an instance all the same. */
  startFailed(uid: string, name: string, attempted: boolean): void {
    this.#entries.get(uid)?.actuated.startFailed(name, attempted);
  }

  /** An instance was created with these resources, and started. */
  created(uid: string, name: string, id: ContainerId, resources: Resources): void {
    this.#resizable(uid, name)?.created(name, id, resources);
  }

  #resizable(uid: string, name: string): ActuatedPod | undefined {
    const entry = this.#entries.get(uid);
    return entry === undefined || getOwn(entry.allocated, name) === undefined ? undefined : entry.actuated;
  }

  /** undefined unless a resize is in progress. */
  facts(uid: string): ResizeFacts | undefined {
    const entry = this.#entries.get(uid);
    if (entry === undefined || !entry.resizing) return undefined;
    // Once the pod has been observed, every instance that runs is known by its id.
    const { actuated, allocated } = entry;
    const actual = actuated
      .differing(allocated)
      .flatMap(([, { id, resources }]) => (id === undefined ? [] : [[id as ContainerId, resources] as const]));
    return {
      actual: new Map(actual),
      startsOutdated: actuated.outdatedStarts(allocated).length > 0,
      cgroupEnlarged: entry.cgroupEnlarged,
    };
  }

  report(uid: string): ResizeReport | undefined {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return undefined;
    const { pending, resizing, error, allocatedGeneration, actuated, allocated } = entry;
    // As in the kubelet: a pod without a container, which waits for its volumes for instance, has nothing to be resized.
    const inProgress = resizing && (error !== undefined || actuated.hasInstances);
    if (pending === undefined && !inProgress) return undefined;
    return {
      ...(pending === undefined ? {} : { pending }),
      ...(inProgress
        ? {
            inProgress: {
              ...(error === undefined ? {} : { error }),
              ...(allocatedGeneration === undefined ? {} : { generation: allocatedGeneration }),
            },
          }
        : {}),
      actual: Object.fromEntries(actuated.differing(allocated).map(([name, { resources }]) => [name, resources])),
    };
  }

  /** The pod with the resources that its containers have. */
  actuatedPod(pod: Pod): Pod {
    const entry = this.#entries.get(pod.metadata.uid);
    if (entry === undefined || !entry.resizing) return pod;
    const differences = entry.actuated.differing(entry.allocated);
    return withAllocation(pod, Object.fromEntries(differences.map(([name, { resources }]) => [name, resources])));
  }

  /** The pod with the resources that its cgroup needs until every container has its allocated ones. */
  room(pod: Pod): Pod {
    const entry = this.#entries.get(pod.metadata.uid);
    if (entry === undefined || !entry.resizing) return pod;
    const { actuated, allocated } = entry;
    const differences = [...actuated.differing(allocated), ...actuated.outdatedStarts(allocated)];
    return roomFor(pod, Object.fromEntries(differences.map(([name, { resources }]) => [name, resources])));
  }

  /** `pod`: with the resources for which its cgroup was enlarged. Another resize may have been allocated since. */
  cgroupEnlarged(pod: Pod): void {
    const entry = this.#entries.get(pod.metadata.uid);
    if (entry !== undefined && isAllocated(entry, pod)) entry.cgroupEnlarged = true;
  }

  updated(uid: string, name: string, id: ContainerId, resources: Resources): void {
    this.#entries.get(uid)?.actuated.updated(name, id, resources);
  }

  unfinished(uid: string): boolean {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return false;
    const { actuated, allocated } = entry;
    return actuated.differing(allocated).length > 0 || actuated.outdatedStarts(allocated).length > 0;
  }

  /** `pod`: with the actuated resources. Another resize that was allocated since is not completed. */
  completed(pod: Pod): void {
    const { uid } = pod.metadata;
    const entry = this.#entries.get(uid);
    if (entry === undefined || !entry.resizing || !isAllocated(entry, pod) || this.unfinished(uid)) return;
    entry.resizing = false;
    entry.error = undefined;
    this.#event(entry, 'Normal', 'ResizeCompleted', resizeEventMessage('Pod resize completed', entry.effective));
    this.#saveSoon();
  }

  failed(uid: string, error: string): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined || entry.error === error) return;
    entry.error = error;
    this.#event(entry, 'Warning', 'ResizeError', resizeEventMessage('Pod resize error', entry.effective, error));
  }

  /** Resources of the node may have become free: deferred resizes are decided again. */
  retry(): void {
    const waiting = [...this.#entries.values()].filter((entry) => entry.pending?.reason === 'Deferred');
    for (const entry of inResizeOrder(waiting)) {
      if (this.#syncResize(entry)) this.#options.host.resizeChanged(entry.pod.metadata.uid, entry.effective);
    }
  }

  forget(uid: string): void {
    const known = this.#entries.get(uid);
    this.#entries.delete(uid);
    if (this.#saved.delete(uid) || (known !== undefined && isWorthSaving(known))) this.#saveSoon();
  }

  /** Drops the saved resources of pods that were deleted while no agent ran. */
  prune(isKept: (uid: string) => boolean): void {
    for (const uid of [...this.#saved.keys()]) if (!isKept(uid)) this.forget(uid);
  }

  /** Resolves when every allocation so far is on disk. */
  async saved(): Promise<void> {
    while (this.#writing !== undefined || this.#dirty) await (this.#writing ?? this.#write());
  }

  /**
   * To be awaited before an instance is created: its resources are on disk where that matters. The next agent or kubelet
   * restarts a container with resizePolicy RestartContainer whose resources it does not find in `actuated_pods_state`.
   */
  async recorded(uid: string): Promise<void> {
    const entry = this.#entries.get(uid);
    if (entry === undefined || this.#options.store === undefined || !isWorthSaving(entry)) return;
    if (!entry.resizing && !resizableContainers(entry.pod).some(restartsForResize)) return;
    const { actuated, allocated } = this.#print();
    if (this.#texts.actuated === actuated && this.#texts.allocated === allocated) return;
    this.#dirty = true;
    try {
      await this.saved();
    } catch (error) {
      // A full disk does not prevent pods from running.
      this.#notWritten(error);
    }
  }

  /** Decides about the resources that the pod's spec wants; true when something about the resize changed. */
  #syncResize(entry: Entry): boolean {
    const { pod } = entry;
    const node = (): ReturnType<Parameters<typeof decideResize>[0]['node']> => ({
      others: this.#options.host.activePods().filter(({ metadata }) => metadata.uid !== pod.metadata.uid),
      allocatable: this.#options.node.allocatable(),
    });
    const decision = decideResize({ ...entry, node });
    switch (decision.kind) {
      case 'unchanged':
        return false;
      case 'withdrawn':
        entry.pending = undefined;
        return true;
      case 'pending': {
        const { reason, message } = decision.why;
        if (decision.since === 'now') entry.since = this.#options.clock.now();
        entry.pending = decision.why;
        this.#event(entry, 'Warning', `Resize${reason}`, resizeEventMessage(`Pod resize ${reason}`, pod, message));
        return true;
      }
      case 'allocated':
        this.#allocate(entry, decision.allocated);
        return true;
    }
  }

  /** The desired resources are allocated: from now on they are actuated. */
  #allocate(entry: Entry, allocated: PodAllocation): void {
    const { pod } = entry;
    entry.pending = undefined;
    entry.error = undefined;
    entry.allocated = allocated;
    entry.effective = pod;
    entry.resizing = true;
    entry.allocatedGeneration = pod.metadata.generation;
    entry.cgroupEnlarged = false;
    this.#dirty = true;
    this.#event(entry, 'Normal', 'ResizeStarted', resizeEventMessage('Pod resize started', pod));
  }

  #event({ pod }: Entry, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#options.recorder.event(podReference(pod), type, reason, message);
  }

  #saveSoon(delayMs = SAVE_DELAY_MS): void {
    this.#dirty = true;
    if (this.#options.store === undefined || this.#timer !== undefined) return;
    this.#timer = this.#options.clock.after(delayMs, () => {
      this.#timer = undefined;
      this.saved().catch((error) => this.#notWritten(error));
    });
  }

  #notWritten(error: unknown): void {
    this.#options.log('warn', 'Failed to checkpoint the resources of pods', { error: errorMessage(error) });
    this.#saveSoon(SAVE_AGAIN_MS);
  }

  #print(): Record<keyof CheckpointTexts, string> {
    const allocated = new Map<string, PodAllocation>();
    const actuated = new Map<string, PodAllocation>();
    const add = (uid: string, pod: Pick<Entry, 'allocated' | 'actuated'>): void => {
      allocated.set(uid, pod.allocated);
      actuated.set(uid, pod.actuated.saved(pod.allocated));
    };
    for (const [uid, saved] of this.#saved) {
      if (this.#entries.has(uid)) continue;
      add(uid, { allocated: saved.allocated, actuated: new ActuatedPod(saved.actuated) });
    }
    for (const [uid, entry] of this.#entries) if (isWorthSaving(entry)) add(uid, entry);
    return { allocated: printCheckpoint(allocated), actuated: printCheckpoint(actuated) };
  }

  #write(): Promise<void> {
    this.#dirty = false;
    const texts = this.#print();
    const write = async (): Promise<void> => {
      try {
        // In this order: with allocated resources alone, running containers would be taken to have the last allocated ones.
        for (const file of ['actuated', 'allocated'] as const) {
          if (this.#texts[file] === texts[file]) continue;
          await this.#options.store?.save(file, texts[file]);
          this.#texts[file] = texts[file];
        }
      } catch (error) {
        this.#dirty = true;
        throw error;
      }
    };
    // Not inside `write`: a write without changes ends before `#writing` is set.
    this.#writing = write().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }
}

function isAllocated({ allocated }: Entry, pod: Pod): boolean {
  return sameAllocation(allocationOf(pod), allocated);
}

function restartsForResize({ resizePolicy = [] }: Container): boolean {
  return resizePolicy.some(({ restartPolicy }) => restartPolicy === 'RestartContainer');
}

/** The condition that an earlier agent or kubelet reported. */
function reportedResize({ status }: Pod): PodCondition | undefined {
  return status?.conditions?.find(({ type }) => type === 'PodResizeInProgress');
}

function isReportedInProgress(pod: Pod): boolean {
  return pod.status?.resize === 'InProgress' || reportedResize(pod)?.status === 'True';
}

/** The resources of a pod without any cannot be resized: its QoS class would change. */
function isWorthSaving({ allocated }: Entry): boolean {
  return Object.values(allocated).some(({ requests, limits }) => requests !== undefined || limits !== undefined);
}
