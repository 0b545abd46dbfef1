// The life of containers, put together from three sources: the runtime's events, each with its moment; lists with a status of
// each container, which say whose a container is and have what no event has reported; and the agent's calls, for a container that no
// list has had while it was there. What one source has shown the others do not show again. Pure: nothing is read here.

import type { RuntimeEvent } from '../../../agent/runtime/events/runtime-event.ts';
import { type EpochMs, ZERO_TIME } from '../../../lib/clock.ts';
import type { Span } from '../../../lib/trace.ts';
import type { ContainerObservation } from '../observation.ts';

/** What is known of a container; ZERO_TIME for what has not happened. */
export interface ContainerState {
  readonly id: string;
  readonly pod: string;
  readonly podUid: string;
  readonly container: string;
  readonly attempt: number;
  readonly createdAt: EpochMs;
  readonly startedAt: EpochMs;
  readonly finishedAt: EpochMs;
  readonly exitCode: number;
  readonly reason: string;
}

/** A container that the agent has made or started, and when it was there at the latest. */
export type NamedContainer = Pick<ContainerState, 'id' | 'pod' | 'podUid' | 'container' | 'attempt' | 'createdAt'>;

/** From a call by which a container is known: undefined for any other. Pure. */
export function containerOfCall({ name, outcome, pod, attributes, start }: Span): NamedContainer | undefined {
  const isStart = name === 'StartContainer';
  if (outcome === 'error' || pod === undefined || !(isStart || name === 'CreateContainer')) return undefined;
  const [id, container] = isStart
    ? [attributes['container'], attributes['containerName']]
    : [attributes['id'], attributes['container']];
  const attempt = Number(attributes['attempt'] ?? Number.NaN);
  if (typeof id !== 'string' || typeof container !== 'string' || Number.isNaN(attempt)) return undefined;
  return { id, pod: `${pod.namespace}/${pod.name}`, podUid: pod.uid, container, attempt, createdAt: start };
}

/** An observation by the wall clock. */
export type ContainerChange = Omit<ContainerObservation, 'at'> & { readonly at: EpochMs };

export type ContainerStates = ReadonlyMap<string, ContainerState>;

/** What events have shown of a container or sandbox; ZERO_TIME for what they have not. */
interface Reported {
  readonly startedAt: EpochMs;
  readonly finishedAt: EpochMs;
  readonly exitCode: number;
  readonly isOom: boolean;
  readonly removedAt: EpochMs;
}

const NOTHING: Reported = {
  startedAt: ZERO_TIME,
  finishedAt: ZERO_TIME,
  exitCode: 0,
  isOom: false,
  removedAt: ZERO_TIME,
};

function reportedAfter(before: Reported, { kind, at, exitCode = 0 }: RuntimeEvent): Reported {
  switch (kind) {
    case 'started':
      return { ...before, startedAt: at };
    case 'oom':
      return { ...before, isOom: true };
    case 'exited':
      return { ...before, finishedAt: at, exitCode };
    case 'removed':
      return { ...before, removedAt: at };
  }
}

/** As containerd's CRI part names the end of a container. */
function exitReason({ exitCode, isOom }: Reported): string {
  if (isOom) return 'OOMKilled';
  return exitCode === 0 ? 'Completed' : 'Error';
}

/** The state with what events have shown besides. An exit without a start is one of a start that failed: its status describes it. */
function withReported(state: ContainerState, reported: Reported): ContainerState {
  const startedAt = state.startedAt > 0 ? state.startedAt : reported.startedAt;
  if (state.finishedAt > 0 || reported.finishedAt === ZERO_TIME || startedAt === ZERO_TIME)
    return { ...state, startedAt };
  const { finishedAt, exitCode } = reported;
  return { ...state, startedAt, finishedAt, exitCode, reason: exitReason(reported) };
}

function identity({
  pod,
  container,
  attempt,
}: ContainerState): Pick<ContainerChange, 'type' | 'pod' | 'container' | 'attempt'> {
  return { type: 'container', pod, container, attempt };
}

function changesOf(before: ContainerState | undefined, now: ContainerState): ContainerChange[] {
  const same = identity(now);
  const exit = { exitCode: now.exitCode, ...(now.reason === '' ? {} : { reason: now.reason }) };
  return [
    ...(before === undefined ? [{ ...same, change: 'created' as const, at: now.createdAt }] : []),
    ...(now.startedAt > 0 && !(before !== undefined && before.startedAt > 0)
      ? [{ ...same, change: 'started' as const, at: now.startedAt }]
      : []),
    ...(now.finishedAt > 0 && !(before !== undefined && before.finishedAt > 0)
      ? [{ ...same, change: 'exited' as const, at: now.finishedAt, ...exit }]
      : []),
  ];
}

/** Whether it has ended, or never ran: nothing but its removal can come any more. */
function isOver({ startedAt, finishedAt }: ContainerState): boolean {
  return finishedAt > 0 || startedAt === ZERO_TIME;
}

/** So many that have gone, and whose names are not known, are remembered: sandboxes never get one here. */
const MAX_UNNAMED = 500;

export class ContainerLives {
  readonly #known = new Map<string, ContainerState>();
  /** By id, for as long as it is there. Of sandboxes too: an event does not say what it is about. */
  readonly #reported = new Map<string, Reported>();
  /** By id, of those that no list has had yet. */
  readonly #names = new Map<string, NamedContainer>();
  /** Ids that are gone, until a list is without them: one that was under way when they went still has them. */
  readonly #gone = new Set<string>();

  /** Those that exist, by id. */
  get containers(): ContainerStates {
    return this.#known;
  }

  /** Whether a known one is not listed, although no event has shown all of its end. */
  isMissing(states: ContainerStates): boolean {
    return [...this.#known.keys()].some((id) => !states.has(id));
  }

  /**
   * What an event shows that was not known, oldest first. Of a container that no list had yet, it comes with the list, or, where it
   * has gone, with its name.
   */
  event(event: RuntimeEvent): readonly ContainerChange[] {
    const { id } = event;
    if (this.#gone.has(id)) return [];
    const reported = reportedAfter(this.#reported.get(id) ?? NOTHING, event);
    this.#reported.set(id, reported);
    const before = this.#known.get(id);
    return before === undefined ? this.#complete(id) : this.#update(before, withReported(before, reported), reported);
  }

  /** What a list shows that was not known, oldest first. `listedAt`: the moment of what is gone without an event. */
  listed(states: ContainerStates, listedAt: EpochMs): readonly ContainerChange[] {
    const changes: ContainerChange[] = [];
    for (const [id, listed] of states) {
      if (this.#gone.has(id)) continue;
      const before = this.#known.get(id);
      const reported = this.#reported.get(id) ?? NOTHING;
      changes.push(...this.#update(before, withReported(keepEnd(before, listed), reported), reported));
    }
    for (const [id, state] of this.#known) {
      if (states.has(id)) continue;
      const removedAt = this.#reported.get(id)?.removedAt ?? ZERO_TIME;
      changes.push({ ...identity(state), change: 'removed', at: removedAt > 0 ? removedAt : listedAt });
      this.#forget(id);
    }
    for (const id of this.#gone) if (!states.has(id)) this.#gone.delete(id);
    this.#dropOldest();
    return changes.sort((a, b) => a.at - b.at);
  }

  /** A call of the agent shows whose a container is that no list had: what events have shown of it, oldest first. */
  named(container: NamedContainer): readonly ContainerChange[] {
    const { id } = container;
    if (this.#known.has(id) || this.#gone.has(id)) return [];
    this.#names.set(id, container);
    return this.#complete(id);
  }

  /** One that has gone and that no list had, once its name is known. */
  #complete(id: string): readonly ContainerChange[] {
    const name = this.#names.get(id);
    const reported = this.#reported.get(id);
    if (name === undefined || reported === undefined || reported.removedAt === ZERO_TIME) return [];
    const state = { ...name, startedAt: ZERO_TIME, finishedAt: ZERO_TIME, exitCode: 0, reason: '' };
    return this.#update(undefined, withReported(state, reported), reported);
  }

  #dropOldest(): void {
    const unnamed = [...this.#reported].filter(([id, { removedAt }]) => removedAt > 0 && !this.#known.has(id));
    for (const [id] of unnamed.slice(0, -MAX_UNNAMED)) this.#reported.delete(id);
  }

  #update(before: ContainerState | undefined, now: ContainerState, { removedAt }: Reported): ContainerChange[] {
    this.#known.set(now.id, now);
    this.#names.delete(now.id);
    const changes = changesOf(before, now);
    // Of one that is gone and still ran, the exit is on its way: parts of containerd publish what they know independently.
    if (removedAt === ZERO_TIME || !isOver(now)) return changes;
    this.#forget(now.id);
    return [...changes, { ...identity(now), change: 'removed', at: removedAt }];
  }

  #forget(id: string): void {
    this.#known.delete(id);
    this.#reported.delete(id);
    this.#gone.add(id);
  }
}

/** A status that is older than what an event has shown already does not take it back. */
function keepEnd(before: ContainerState | undefined, listed: ContainerState): ContainerState {
  if (before === undefined || before.finishedAt === ZERO_TIME || listed.finishedAt > 0) return listed;
  const { startedAt, finishedAt, exitCode, reason } = before;
  return { ...listed, startedAt, finishedAt, exitCode, reason };
}
