// Keeps what each pod has been promised and what its containers run with, grants resizes for which there is room, and
// remembers the promises across restarts of the agent. The rules are in allocation.ts; running containers are brought to
// the promise by actuate.ts.

import type { Container, Pod, PodCondition } from '../../../client/types.ts';
import { type Clock, type EpochMs, type Timer, ZERO_TIME } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { getOwn } from '../../../lib/own-property.ts';
import type { EventRecorder } from '../../ports/api.ts';
import type { ContainerId, PodSnapshot } from '../../ports/runtime.ts';
import { podReference } from '../events.ts';
import type { AllocationStore, NodeFacts, PodsLog } from '../options.ts';
import {
  allocationFromStatus,
  allocationOf,
  decideResize,
  inResizeOrder,
  type PodAllocation,
  type Resources,
  resizableContainers,
  roomFor,
  sameAllocation,
  sameResources,
  withAllocation,
} from './allocation.ts';
import {
  type ActuatedResources,
  type CheckpointTexts,
  parseCheckpoints,
  printCheckpoint,
  type SavedPod,
} from './checkpoint.ts';
import { type ResizeReport, resizeEventMessage } from './resize-status.ts';

export interface PodResizesOptions {
  readonly host: ResizeHost;
  readonly store: AllocationStore | undefined;
  readonly node: Pick<NodeFacts, 'allocatable'>;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly log: PodsLog;
}

/** What the manager of the pods lends. */
export interface ResizeHost {
  /** Pods that use the node, as they have been promised. */
  activePods(): readonly Pod[];
  /** The pod as it runs, or where its resize stands, is another one now. */
  resizeChanged(uid: string, effective: Pod): void;
}

interface Entry {
  /** As its source has it. */
  pod: Pod;
  effective: Pod;
  allocated: PodAllocation;
  /** By container name: the newest instance, and what it runs with. */
  readonly actual: Map<string, ActuatedResources>;
  /** By container name: what a call to the runtime was to give an instance. It failed, and may have been done all the same. */
  readonly attempted: Map<string, ActuatedResources>;
  /** By container name: what an instance is made with that is not known by its id yet. */
  readonly making: Map<string, Making>;
  /** Nothing is granted before what runs is known by its id. */
  observed: boolean;
  resizing: boolean;
  /** Generation of the pod whose resize was granted last. */
  granted: number | undefined;
  roomMade: boolean;
  pending: NonNullable<ResizeReport['pending']> | undefined;
  since: EpochMs;
  error: string | undefined;
}

interface Making {
  readonly resources: Resources;
  /** Its start is under way; otherwise that failed, and may have left an instance. */
  readonly underWay: boolean;
}

/** What the next decision needs to know of a resize that is under way. */
export interface ResizeFacts {
  /** What instances run with, where it is not what they have been promised. */
  readonly actual: ReadonlyMap<ContainerId, Resources>;
  /** A start is under way that began before the resize: its container can be resized once it runs. */
  readonly startsOutdated: boolean;
  readonly roomMade: boolean;
}

/** A pod that was only admitted is written a moment later, with others. ms. */
const SAVE_DELAY_MS = 1_000;
/** After a write that failed, ms. */
const SAVE_AGAIN_MS = 10_000;

export class PodResizes {
  readonly #options: PodResizesOptions;
  readonly #entries = new Map<string, Entry>();
  /** What was read at the start, of pods that are still wanted. */
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
      options.log('error', 'what pods were promised is taken from their status instead', {
        error: errorMessage(error),
      });
    }
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** The pod as it is to run: with what it has been promised. A resize that there is room for is granted. */
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
    return this.#saved.get(pod.metadata.uid)?.allocated ?? allocationFromStatus(pod) ?? allocationOf(pod);
  }

  /** The pod was given its place on the node. */
  admitted(pod: Pod): void {
    const { uid } = pod.metadata;
    if (this.#entries.has(uid)) return;
    const saved = this.#saved.get(uid);
    const allocated = this.#initial(pod);
    const { actual } = stateOf({ allocated, actuated: saved?.actuated ?? {} });
    const entry: Entry = {
      pod,
      effective: withAllocation(pod, allocated),
      allocated,
      actual,
      attempted: new Map(),
      making: new Map(),
      observed: false,
      // The files do not say that only the pod's cgroup is left to do: the last status does.
      resizing: differing({ actual, attempted: new Map(), allocated }).length > 0 || isReportedInProgress(pod),
      granted: reportedResize(pod)?.observedGeneration,
      roomMade: false,
      pending: undefined,
      since: ZERO_TIME,
      error: undefined,
    };
    this.#entries.set(uid, entry);
    // Also what another format tells is written in this one: a kubelet may be the next to read it.
    if (isWorthSaving(entry)) this.#saveSoon();
  }

  /**
   * What runs now. An instance that is seen for the first time runs with what it was made with; where no start of this
   * agent made it, with what was promised.
   */
  observed(uid: string, snapshot: PodSnapshot): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return;
    for (const [name, promised] of Object.entries(entry.allocated)) {
      const newest = snapshot.containers.find((container) => container.name === name);
      const known = entry.actual.get(name);
      if (newest === undefined || newest.state === 'exited') entry.actual.delete(name);
      else if (known?.id !== newest.id) {
        const unnamed = known !== undefined && known.id === undefined ? known.resources : undefined;
        const resources = entry.making.get(name)?.resources ?? unnamed ?? promised;
        entry.making.delete(name);
        entry.actual.set(name, { id: newest.id, resources });
      }
    }
    if (entry.observed) return;
    entry.observed = true;
    if (this.#syncResize(entry)) this.#options.host.resizeChanged(uid, entry.effective);
  }

  /** The runtime is about to be called to give an instance other resources; until it has answered, it may have either. */
  updating(uid: string, name: string, id: ContainerId, resources: Resources): void {
    this.#entries.get(uid)?.attempted.set(name, { id, resources });
  }

  /** What a call that failed may have given an instance. */
  attempted(uid: string, name: string, id: ContainerId): Resources | undefined {
    const attempted = this.#entries.get(uid)?.attempted.get(name);
    return attempted?.id === id ? attempted.resources : undefined;
  }

  /** From now on, and until its start has ended, an instance may be made from this definition. */
  starting(uid: string, name: string, resources: Resources): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined || getOwn(entry.allocated, name) === undefined) return;
    entry.making.set(name, { resources, underWay: true });
  }

  /** The start failed. Whether it left an instance is not known: an answer may have been lost. */
  startFailed(uid: string, name: string): void {
    const { making } = this.#entries.get(uid) ?? {};
    const made = making?.get(name);
    if (made !== undefined) making?.set(name, { ...made, underWay: false });
  }

  /** An instance was made from this definition, and started. What is known of it already stays. */
  created(uid: string, name: string, id: ContainerId, resources: Resources): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined || getOwn(entry.allocated, name) === undefined) return;
    entry.making.delete(name);
    if (entry.actual.get(name)?.id !== id) entry.actual.set(name, { id, resources });
  }

  /** Undefined unless a resize is under way. */
  facts(uid: string): ResizeFacts | undefined {
    const entry = this.#entries.get(uid);
    if (entry === undefined || !entry.resizing) return undefined;
    // Once the pod has been observed, every instance that runs is known by its id.
    const actual = differing(entry).flatMap(([, { id, resources }]) =>
      id === undefined ? [] : [[id as ContainerId, resources] as const],
    );
    return { actual: new Map(actual), startsOutdated: outdatedStarts(entry).length > 0, roomMade: entry.roomMade };
  }

  report(uid: string): ResizeReport | undefined {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return undefined;
    const { pending, resizing, error, granted } = entry;
    if (pending === undefined && !resizing) return undefined;
    return {
      ...(pending === undefined ? {} : { pending }),
      ...(resizing
        ? {
            inProgress: {
              ...(error === undefined ? {} : { error }),
              ...(granted === undefined ? {} : { generation: granted }),
            },
          }
        : {}),
      actual: Object.fromEntries(differing(entry).map(([name, { resources }]) => [name, resources])),
    };
  }

  /** The pod as large as its cgroup must be for as long as containers are not what they are to be. */
  room(pod: Pod): Pod {
    const entry = this.#entries.get(pod.metadata.uid);
    if (entry === undefined || !entry.resizing) return pod;
    const differences = [...differing(entry), ...outdatedStarts(entry)];
    return roomFor(pod, Object.fromEntries(differences.map(([name, { resources }]) => [name, resources])));
  }

  /** `pod`: as it was promised when its room was made. Another resize may have been granted meanwhile. */
  roomMade(pod: Pod): void {
    const entry = this.#entries.get(pod.metadata.uid);
    if (entry !== undefined && isPromised(entry, pod)) entry.roomMade = true;
  }

  updated(uid: string, name: string, id: ContainerId, resources: Resources): void {
    const entry = this.#entries.get(uid);
    if (entry?.actual.get(name)?.id !== id) return;
    entry.actual.set(name, { id, resources });
    entry.attempted.delete(name);
  }

  unfinished(uid: string): boolean {
    const entry = this.#entries.get(uid);
    return entry !== undefined && (differing(entry).length > 0 || outdatedStarts(entry).length > 0);
  }

  /** `pod`: as it was promised. Another resize may have been granted meanwhile: that one is not done. */
  completed(pod: Pod): void {
    const { uid } = pod.metadata;
    const entry = this.#entries.get(uid);
    if (entry === undefined || !entry.resizing || !isPromised(entry, pod) || this.unfinished(uid)) return;
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

  /** Room may have come free: whoever waits for it is looked at again. */
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

  /** What is kept of pods that went while no agent ran is dropped. */
  prune(isKept: (uid: string) => boolean): void {
    for (const uid of [...this.#saved.keys()]) if (!isKept(uid)) this.forget(uid);
  }

  /** Resolves when everything granted so far is on disk. */
  async saved(): Promise<void> {
    while (this.#writing !== undefined || this.#dirty) await (this.#writing ?? this.#write());
  }

  /**
   * Resolves before an instance may be made, when what it is made with is on disk where it matters: whoever takes over
   * after a crash, nodelet or a kubelet, restarts a container whose resizePolicy wants that and whose resources it
   * does not find in `actuated_pods_state`.
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
      // A full disk keeps no pod from running.
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

  /** The desired resources are allocated: what runs is brought to them from now on. */
  #allocate(entry: Entry, allocated: PodAllocation): void {
    const { pod } = entry;
    entry.pending = undefined;
    entry.error = undefined;
    entry.allocated = allocated;
    entry.effective = pod;
    entry.resizing = true;
    entry.granted = pod.metadata.generation;
    entry.roomMade = false;
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
    this.#options.log('warn', 'what pods are promised was not written', { error: errorMessage(error) });
    this.#saveSoon(SAVE_AGAIN_MS);
  }

  #print(): Record<keyof CheckpointTexts, string> {
    const allocated = new Map<string, PodAllocation>();
    const actuated = new Map<string, PodAllocation>();
    const add = (uid: string, pod: ResourceState): void => {
      allocated.set(uid, pod.allocated);
      actuated.set(uid, actuatedOf(pod));
    };
    for (const [uid, saved] of this.#saved) if (!this.#entries.has(uid)) add(uid, stateOf(saved));
    for (const [uid, entry] of this.#entries) if (isWorthSaving(entry)) add(uid, entry);
    return { allocated: printCheckpoint(allocated), actuated: printCheckpoint(actuated) };
  }

  #write(): Promise<void> {
    this.#dirty = false;
    const texts = this.#print();
    const write = async (): Promise<void> => {
      try {
        // In this order: with a promise alone, the containers would be taken for what was promised last.
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
    // Not within it: a write that has nothing to do ends before it is known to be under way.
    this.#writing = write().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }
}

type ResourceState = Pick<Entry, 'allocated' | 'actual' | 'making'>;

function stateOf({ allocated, actuated }: SavedPod): ResourceState {
  return { allocated, actual: new Map(Object.entries(actuated)), making: new Map() };
}

/** What each container runs with, or would: one that does not run is made with what is allocated. */
function actuatedOf({ actual, making, allocated }: ResourceState): PodAllocation {
  return Object.fromEntries(
    Object.entries(allocated).map(([name, promised]) => [
      name,
      (making.get(name) ?? actual.get(name))?.resources ?? promised,
    ]),
  );
}

/** Starts under way whose instances will not have what is promised by now. */
function outdatedStarts({ making, allocated }: Pick<Entry, 'making' | 'allocated'>): [string, Making][] {
  return [...making].filter(
    ([name, { resources, underWay }]) => underWay && !sameResources(resources, getOwn(allocated, name) ?? {}),
  );
}

function isPromised({ allocated }: Entry, pod: Pod): boolean {
  return sameAllocation(allocationOf(pod), allocated);
}

function restartsForResize({ resizePolicy = [] }: Container): boolean {
  return resizePolicy.some(({ restartPolicy }) => restartPolicy === 'RestartContainer');
}

/** What an agent or a kubelet before this one reported of the pod. */
function reportedResize({ status }: Pod): PodCondition | undefined {
  return status?.conditions?.find(({ type }) => type === 'PodResizeInProgress');
}

function isReportedInProgress(pod: Pod): boolean {
  return pod.status?.resize === 'InProgress' || reportedResize(pod)?.status === 'True';
}

/** A pod that asks for nothing can be promised nothing else: its class would change. */
function isWorthSaving({ allocated }: Entry): boolean {
  return Object.values(allocated).some(({ requests, limits }) => requests !== undefined || limits !== undefined);
}

/** Instances that have, or may have, other resources than they have been promised, and those resources. */
function differing({
  actual,
  attempted,
  allocated,
}: Pick<Entry, 'actual' | 'attempted' | 'allocated'>): [string, ActuatedResources][] {
  return [...actual].flatMap(([name, known]): [string, ActuatedResources][] => {
    const promised = getOwn(allocated, name) ?? {};
    const tried = attempted.get(name);
    const candidates = tried?.id === known.id ? [known, tried] : [known];
    const other = candidates.find(
      (candidate) => candidate !== undefined && !sameResources(candidate.resources, promised),
    );
    return other === undefined ? [] : [[name, other]];
  });
}
