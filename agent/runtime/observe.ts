// Reads a pod's truth from the runtime with as few round trips as it takes: two filtered lists side by side, then a
// status only for what a list cannot tell and has not been told before. Decides nothing about pods.

import type { Clock } from '../../lib/clock.ts';
import type { Container__Output } from '../../proto/gen/runtime/v1/Container.ts';
import type { ContainerStatus__Output } from '../../proto/gen/runtime/v1/ContainerStatus.ts';
import type { PodSandbox__Output } from '../../proto/gen/runtime/v1/PodSandbox.ts';
import type { PodSandboxStatus__Output } from '../../proto/gen/runtime/v1/PodSandboxStatus.ts';
import type { ContainerSnapshot, PodRef, PodSnapshot, PodUID, SandboxSnapshot } from '../ports/runtime.ts';
import { LABEL_POD_UID, podRefOf } from './config/labels.ts';
import {
  containerState,
  fullContainer,
  type SandboxDetail,
  sandboxDetail,
  sandboxSnapshot,
  shallowContainer,
} from './convert.ts';
import { type CriClient, isRuntimeError } from './cri-client.ts';
import type { IdRegistry } from './registry.ts';
import { terminationMessage } from './termination-message.ts';

/** A runtime may learn of the OOM kill after the exit itself; until then a SIGKILL's reason is not final. ms. */
const OOM_SETTLE_MS = 2000;
const EXIT_SIGKILL = 137;

/** Whether nothing about a container will change any more. */
export function isFinal(container: ContainerSnapshot, now: number): boolean {
  if (container.state !== 'exited') return false;
  if (container.exitCode !== EXIT_SIGKILL || container.reason === 'OOMKilled') return true;
  return now - container.finishedAt > OOM_SETTLE_MS;
}

/** Whether what was read before still tells everything about a container that a list shows in `state` now. */
export function isCurrent(cached: ContainerSnapshot, state: ContainerSnapshot['state'], now: number): boolean {
  // A container that has exited never runs again: a list that still shows it running is behind.
  if (cached.state === 'exited') return state !== 'exited' || isFinal(cached, now);
  return cached.state === state && (state === 'running' || state === 'created');
}

interface Aged {
  readonly createdAt: number;
  readonly attempt?: number;
  readonly restartCount?: number;
}

function attemptOf({ attempt, restartCount }: Aged): number {
  return attempt ?? restartCount ?? 0;
}

/** The attempt counts before the time: a clock that was set back must not make an old instance the newest. */
function newestFirst<T extends Aged>(items: T[]): T[] {
  return items.sort((a, b) => attemptOf(b) - attemptOf(a) || b.createdAt - a.createdAt);
}

interface CachedContainer {
  readonly snapshot: ContainerSnapshot;
  /** What it was made from, as long as it runs: an announced exit completes it. */
  readonly status?: ContainerStatus__Output;
  /** An exit that was announced and that the runtime's own state does not show yet. */
  readonly announced?: boolean;
}

/** Whether two readings of the same exited container say the same of its end. */
export function sameExit(a: ContainerSnapshot, b: ContainerSnapshot): boolean {
  return a.exitCode === b.exitCode && a.reason === b.reason && a.message === b.message;
}

export class Observer {
  readonly #client: CriClient;
  readonly #registry: IdRegistry;
  readonly #clock: Clock;
  readonly #deadlineMs: number;
  readonly #sandboxes = new Map<string, SandboxDetail>();
  readonly #containers = new Map<string, CachedContainer>();
  /** Sandboxes that were made and not looked at yet. */
  readonly #made = new Map<string, SandboxSnapshot>();
  /** Containers in which the kernel killed something for want of memory. */
  readonly #oomKilled = new Set<string>();

  constructor(client: CriClient, registry: IdRegistry, clock: Clock, deadlineMs: number) {
    this.#client = client;
    this.#registry = registry;
    this.#clock = clock;
    this.#deadlineMs = deadlineMs;
  }

  /** All of a pod; with `since`, what was made or started after that look beside what was seen then. */
  async observe(pod: PodRef, since?: PodSnapshot): Promise<PodSnapshot> {
    const observedAt = this.#clock.now();
    const added = since === undefined ? undefined : await this.#observeMade(pod.uid, since);
    if (since !== undefined && added !== undefined) {
      const fresh = new Set<string>(added.containers.map(({ id }) => id));
      return {
        pod,
        observedAt,
        sandboxes: newestFirst([...since.sandboxes, ...added.sandboxes]),
        containers: newestFirst([...since.containers.filter(({ id }) => !fresh.has(id)), ...added.containers]),
      };
    }
    // What was made a moment ago is in the lists for certain: its status is asked for at the same time.
    const ahead = this.#readAhead(pod.uid);
    const [sandboxes, containers] = await this.#lists({ [LABEL_POD_UID]: pod.uid });
    const found = await Promise.all([
      Promise.all(sandboxes.map((item) => this.#sandbox(item, ahead.sandboxes.get(item.id)))),
      Promise.all(containers.map((item) => this.#container(item, ahead.containers.get(item.id)))),
    ]);
    for (const item of sandboxes) this.#registry.learn(item.id, 'sandbox', pod);
    for (const item of containers) this.#registry.learn(item.id, 'container', pod);
    return {
      pod,
      observedAt,
      sandboxes: newestFirst(found[0].filter((item) => item !== undefined)),
      containers: newestFirst(found[1].filter((item) => item !== undefined)),
    };
  }

  /**
   * What the registry knows of a pod and a look before this one did not see, or saw before it was started: a status
   * each, and no lists. Undefined when that is nothing, or when it does not fit together: then all is looked at.
   */
  async #observeMade(
    uid: PodUID,
    since: PodSnapshot,
  ): Promise<Pick<PodSnapshot, 'sandboxes' | 'containers'> | undefined> {
    const seen = new Set<string>([
      ...since.sandboxes.map(({ id }) => id),
      ...since.containers.filter(({ state }) => state !== 'created').map(({ id }) => id),
    ]);
    const made = this.#registry.idsOf(uid).filter((id) => !seen.has(id));
    const isSandbox = (id: string): boolean => this.#registry.get(id)?.kind === 'sandbox';
    const [sandboxes, containers] = await Promise.all([
      Promise.all(made.filter(isSandbox).map((id) => this.#takeMade(id) ?? this.#madeSandbox(id))),
      Promise.all(made.filter((id) => !isSandbox(id)).map((id) => this.readStatus(id))),
    ]);
    const [sandbox, another] = [...since.sandboxes, ...sandboxes.filter((snapshot) => snapshot !== undefined)];
    if (made.length === 0 || sandbox === undefined || another !== undefined) return undefined;
    if (sandboxes.includes(undefined) || containers.includes(undefined)) return undefined;
    return {
      sandboxes: sandboxes.filter((snapshot) => snapshot !== undefined),
      containers: containers
        .filter((status) => status !== undefined)
        .map((status) => this.#remember(sandbox.id, status)),
    };
  }

  /** The runtime has just said that it made this sandbox: the look that follows need not ask for it. */
  made(sandbox: SandboxSnapshot): void {
    this.#made.set(sandbox.id, sandbox);
    this.#sandboxes.set(sandbox.id, { ips: sandbox.ips, hostNetwork: sandbox.hostNetwork });
  }

  #takeMade(id: string): SandboxSnapshot | undefined {
    const made = this.#made.get(id);
    this.#made.delete(id);
    return made;
  }

  #detailOf(status: PodSandboxStatus__Output): SandboxDetail {
    const detail = sandboxDetail(status);
    // A ready sandbox that should have an address and has none may still get one.
    if (detail.hostNetwork || detail.ips.length > 0) this.#sandboxes.set(status.id, detail);
    return detail;
  }

  async #madeSandbox(id: string): Promise<SandboxSnapshot | undefined> {
    const status = await this.#sandboxStatus(id);
    return status === undefined ? undefined : sandboxSnapshot(status, this.#detailOf(status));
  }

  /** Every pod, from two lists alone. Teaches the registry and drops what is gone from the caches. */
  async list(): Promise<readonly PodSnapshot[]> {
    const observedAt = this.#clock.now();
    const knownBefore = this.#registry.ids();
    const [sandboxes, containers] = await this.#lists();
    const pods = new Map<PodUID, { pod: PodRef; sandboxes: PodSandbox__Output[]; containers: Container__Output[] }>();
    const group = (pod: PodRef) => {
      const known = pods.get(pod.uid);
      if (known !== undefined) return known;
      const fresh = { pod, sandboxes: [], containers: [] };
      pods.set(pod.uid, fresh);
      return fresh;
    };
    for (const item of sandboxes) {
      const pod = podRefOf(item.labels);
      if (pod === undefined) continue;
      group(pod).sandboxes.push(item);
      this.#registry.learn(item.id, 'sandbox', pod);
    }
    for (const item of containers) {
      const pod = podRefOf(item.labels);
      if (pod === undefined) continue;
      group(pod).containers.push(item);
      this.#registry.learn(item.id, 'container', pod);
    }
    const present = new Set([...sandboxes, ...containers].map((item) => item.id));
    this.#registry.retain(knownBefore, present);
    for (const id of knownBefore) if (!present.has(id)) this.forget(id);
    return [...pods.values()].map((entry) => ({
      pod: entry.pod,
      observedAt,
      sandboxes: newestFirst(
        entry.sandboxes.map((item) =>
          sandboxSnapshot(item, this.#sandboxes.get(item.id) ?? { ips: [], hostNetwork: false }),
        ),
      ),
      containers: newestFirst(
        entry.containers.map((item) => {
          const cached = this.#containers.get(item.id)?.snapshot;
          const usable =
            cached !== undefined && (cached.state === 'exited' || cached.state === containerState(item.state));
          return usable ? cached : shallowContainer(item);
        }),
      ),
    }));
  }

  /** Learns whose container it is, past the cache; false when the runtime does not know it. */
  async lookUpContainer(id: string): Promise<boolean> {
    const status = await this.readStatus(id);
    if (status === undefined) return false;
    const pod = podRefOf(status.labels);
    if (pod !== undefined) this.#registry.learn(id, 'container', pod);
    return true;
  }

  /** What is known of a container without asking. */
  cached(id: string): ContainerSnapshot | undefined {
    return this.#containers.get(id)?.snapshot;
  }

  /**
   * Takes in the status that came with an event; only an exit is final enough to be kept, and only of a container that
   * has not been forgotten meanwhile.
   */
  prime(sandbox: string, status: ContainerStatus__Output): void {
    if (status.state !== 'CONTAINER_EXITED' || this.#registry.get(status.id) === undefined) return;
    this.#remember(sandbox, status);
  }

  /**
   * Takes in an exit that the runtime has announced but may not show yet, so that the next observation shows it. False
   * when it cannot be told in full: nothing was read of the container before, or its message is in a log that is still
   * being written.
   */
  announceExit(id: string, exitCode: number, finishedAt: number): boolean {
    const known = this.#containers.get(id);
    if (known?.status === undefined) return false;
    // The runtime's own rule for the reason.
    const reason = this.#oomKilled.has(id) ? 'OOMKilled' : exitCode === 0 ? 'Completed' : 'Error';
    const status = {
      ...known.status,
      state: 'CONTAINER_EXITED',
      exit_code: exitCode,
      finished_at: `${finishedAt}000000`,
      reason,
    } as const;
    const message = terminationMessage(status, { logIsComplete: false });
    if (message === undefined) return false;
    const snapshot = fullContainer(known.snapshot.sandboxId, status, message);
    this.#containers.set(id, { snapshot, announced: true });
    return true;
  }

  /** Whether the runtime's own state shows that the container is dead, or gone. Past the cache, unless that knows. */
  async confirmExit(id: string): Promise<boolean> {
    const known = this.#containers.get(id);
    if (known?.snapshot.state === 'exited' && known.announced !== true) return true;
    const status = await this.readStatus(id);
    // It may die before the runtime has written down that it began.
    if (status?.state === 'CONTAINER_RUNNING' || status?.state === 'CONTAINER_CREATED') return false;
    if (status !== undefined) this.#remember(known?.snapshot.sandboxId ?? '', status);
    return true;
  }

  /** True when what was told of the container's end is wrong now: it was memory that it died of. */
  noteOom(id: string): boolean {
    this.#oomKilled.add(id);
    const known = this.#containers.get(id)?.snapshot;
    if (known?.state !== 'exited' || known.reason === 'OOMKilled') return false;
    this.#containers.delete(id);
    return true;
  }

  /** Whether the sandbox is ready now; undefined when the runtime does not know it. Past the cache. */
  async readSandboxReady(id: string): Promise<boolean | undefined> {
    const response = await this.#sandboxStatus(id);
    if (response === undefined) return undefined;
    const pod = podRefOf(response.labels);
    if (pod !== undefined) this.#registry.learn(id, 'sandbox', pod);
    return response.state === 'SANDBOX_READY';
  }

  /** Drops what is cached about an id, so that the next observation reads it again. */
  forget(id: string): void {
    this.#sandboxes.delete(id);
    this.#made.delete(id);
    this.#containers.delete(id);
    this.#oomKilled.delete(id);
  }

  async #lists(labels?: Record<string, string>): Promise<[PodSandbox__Output[], Container__Output[]]> {
    const filter = labels === undefined ? {} : { filter: { label_selector: labels } };
    const options = { deadlineMs: this.#deadlineMs };
    const { call } = this.#client;
    const [sandboxes, containers] = await Promise.all([
      call('ListPodSandbox', filter, options),
      call('ListContainers', filter, options),
    ]);
    return [sandboxes.items, containers.containers];
  }

  /** Statuses of what is known of the pod by id alone, asked for without waiting for the lists. */
  #readAhead(uid: PodUID) {
    const sandboxes = new Map<string, Promise<PodSandboxStatus__Output | undefined>>();
    const containers = new Map<string, Promise<ContainerStatus__Output | undefined>>();
    for (const id of this.#registry.idsOf(uid)) {
      const isSandbox = this.#registry.get(id)?.kind === 'sandbox';
      if (isSandbox && !this.#sandboxes.has(id)) sandboxes.set(id, this.#sandboxStatus(id));
      else if (!isSandbox && !this.#containers.has(id)) containers.set(id, this.readStatus(id));
    }
    // Whoever finds the id in a list takes the outcome; one that is in no list has no outcome that matters.
    for (const reading of [...sandboxes.values(), ...containers.values()]) reading.catch(() => undefined);
    return { sandboxes, containers };
  }

  async #sandbox(
    item: PodSandbox__Output,
    ahead: Promise<PodSandboxStatus__Output | undefined> | undefined,
  ): Promise<PodSnapshot['sandboxes'][number] | undefined> {
    const cached = this.#sandboxes.get(item.id);
    if (cached !== undefined) return sandboxSnapshot(item, cached);
    const status = await (ahead ?? this.#sandboxStatus(item.id));
    if (status === undefined) return undefined;
    return sandboxSnapshot(item, this.#detailOf(status));
  }

  async #sandboxStatus(id: string) {
    try {
      const response = await this.#client.call(
        'PodSandboxStatus',
        { pod_sandbox_id: id },
        { deadlineMs: this.#deadlineMs, attributes: { sandbox: id } },
      );
      return response.status ?? undefined;
    } catch (error) {
      if (isRuntimeError(error, 'NOT_FOUND')) return undefined;
      throw error;
    }
  }

  async #container(
    item: Container__Output,
    ahead: Promise<ContainerStatus__Output | undefined> | undefined,
  ): Promise<ContainerSnapshot | undefined> {
    const entry = this.#containers.get(item.id);
    const cached = entry?.snapshot;
    if (cached !== undefined && isCurrent(cached, containerState(item.state), this.#clock.now())) {
      if (cached.sandboxId === item.pod_sandbox_id) return cached;
      const complete = { ...cached, sandboxId: shallowContainer(item).sandboxId };
      this.#containers.set(item.id, { ...entry, snapshot: complete });
      return complete;
    }
    let status = await ahead;
    // Read before the list was, it may be older than the list.
    if (status?.state !== item.state) status = await this.readStatus(item.id);
    return status === undefined ? undefined : this.#remember(item.pod_sandbox_id, status);
  }

  /** A container's status in CRI's own words; undefined when the runtime does not know it. Past the cache. */
  async readStatus(id: string): Promise<ContainerStatus__Output | undefined> {
    try {
      const response = await this.#client.call(
        'ContainerStatus',
        { container_id: id },
        { deadlineMs: this.#deadlineMs, attributes: { container: id } },
      );
      return response.status ?? undefined;
    } catch (error) {
      if (isRuntimeError(error, 'NOT_FOUND')) return undefined;
      throw error;
    }
  }

  #remember(sandbox: string, status: ContainerStatus__Output): ContainerSnapshot {
    const known = this.#containers.get(status.id)?.snapshot;
    // Asked for before the end was known, and answered after that.
    if (known?.state === 'exited' && status.state !== 'CONTAINER_EXITED') return known;
    const exited = status.state === 'CONTAINER_EXITED';
    const message = exited ? (terminationMessage(status, { logIsComplete: true }) ?? '') : status.message;
    const snapshot = fullContainer(sandbox, status, message);
    this.#containers.set(status.id, { snapshot, ...(status.state === 'CONTAINER_RUNNING' ? { status } : {}) });
    return snapshot;
  }
}
