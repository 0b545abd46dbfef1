// The life of containers as the runtime itself reports it: lists are compared with what was there before, and the moments are
// the runtime's own, so that how often one looks decides only how soon something is seen. What was created and removed between
// two looks is not seen.

import { RuntimeError } from '../../../agent/ports/runtime.ts';
import type { CriClient } from '../../../agent/runtime/cri-client.ts';
import { createCriClient } from '../../../agent/runtime/grpc-cri-client.ts';
import { type Clock, type EpochMs, epochMs } from '../../../lib/clock.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { Tracer } from '../../../lib/trace.ts';
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

/** An observation by the wall clock. */
export type ContainerChange = Omit<ContainerObservation, 'at'> & { readonly at: EpochMs };

type States = ReadonlyMap<string, ContainerState>;

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

/** What has happened from one look to the next, oldest first. `lookedAt`: the moment of what is gone. Pure. */
export function containerChanges(before: States, now: States, lookedAt: EpochMs): readonly ContainerChange[] {
  const changes = [
    ...[...now.values()].flatMap((state) => changesOf(before.get(state.id), state)),
    ...[...before.values()].flatMap((state) =>
      now.has(state.id) ? [] : [{ ...identity(state), change: 'removed' as const, at: lookedAt }],
    ),
  ];
  return changes.sort((a, b) => a.at - b.at);
}

const NANOSECONDS = 1e6;
/** An answer that takes longer is looked for again. */
const CALL_MS = 5_000;
const POD_NAME = 'io.kubernetes.pod.name';
const POD_NAMESPACE = 'io.kubernetes.pod.namespace';
const POD_UID = 'io.kubernetes.pod.uid';

/** Whether the runtime is away, busy, or has just started: containerd answers before its CRI plugin has read what is there. */
export function isAway(error: unknown): boolean {
  if (!(error instanceof RuntimeError)) return false;
  return (
    ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'CANCELLED'].includes(error.code) ||
    error.message.includes('server is not initialized yet')
  );
}

/** Reads the runtime's containers again and again. */
export class ContainerWatch {
  readonly #cri: CriClient;
  #known = new Map<string, ContainerState>();
  /** Ids with what the list says of them: a status is read only for what has changed. */
  #seen = new Map<string, string>();

  constructor(socket: string) {
    this.#cri = createCriClient(`unix://${socket}`, `unix://${socket}`, new Tracer());
  }

  /** Those that exist, by id. */
  get containers(): States {
    return this.#known;
  }

  /** Undefined while the runtime does not answer. `clock`: for what is gone, of which the runtime has no moment. */
  async look(clock: Pick<Clock, 'now'>): Promise<readonly ContainerChange[] | undefined> {
    try {
      const { containers } = await this.#cri.call('ListContainers', {}, { deadlineMs: CALL_MS });
      const next = new Map<string, ContainerState>();
      const seen = new Map<string, string>();
      for (const { id, state } of containers) {
        const known = this.#known.get(id);
        const fresh = known !== undefined && this.#seen.get(id) === state ? known : await this.#status(id);
        if (fresh === undefined) continue;
        next.set(id, fresh);
        seen.set(id, state);
      }
      const changes = containerChanges(this.#known, next, clock.now());
      this.#known = next;
      this.#seen = seen;
      return changes;
    } catch (error) {
      // The runtime was killed, or is busy: what has happened meanwhile is seen at the next look.
      if (isAway(error)) return undefined;
      throw error;
    }
  }

  async #status(id: string): Promise<ContainerState | undefined> {
    try {
      const { status } = await this.#cri.call('ContainerStatus', { container_id: id }, { deadlineMs: CALL_MS });
      if (status === null) return undefined;
      const { labels, metadata } = status;
      const at = (nanoseconds: string): EpochMs => epochMs(Number(nanoseconds) / NANOSECONDS);
      return {
        id,
        pod: `${getOwn(labels, POD_NAMESPACE) ?? ''}/${getOwn(labels, POD_NAME) ?? ''}`,
        podUid: getOwn(labels, POD_UID) ?? '',
        container: metadata?.name ?? '',
        attempt: metadata?.attempt ?? 0,
        createdAt: at(status.created_at),
        startedAt: at(status.started_at),
        finishedAt: at(status.finished_at),
        exitCode: status.exit_code,
        reason: status.reason,
      };
    } catch (error) {
      // Removed since the list was made.
      if (error instanceof RuntimeError && error.code === 'NOT_FOUND') return undefined;
      throw error;
    }
  }

  /** The pid of a running container's first process; undefined when there is none. */
  async pid(pod: string, container: string): Promise<number | undefined> {
    const found = [...this.#known.values()].find(
      (each) => each.pod === pod && each.container === container && each.startedAt > 0 && each.finishedAt === 0,
    );
    if (found === undefined) return undefined;
    const { info } = await this.#cri.call(
      'ContainerStatus',
      { container_id: found.id, verbose: true },
      { deadlineMs: CALL_MS },
    );
    const details: unknown = JSON.parse(getOwn(info, 'info') ?? '{}');
    const pid = typeof details === 'object' && details !== null && 'pid' in details ? details.pid : undefined;
    return typeof pid === 'number' && pid > 0 ? pid : undefined;
  }

  async version(): Promise<string> {
    const { runtime_name, runtime_version } = await this.#cri.call('Version', {}, { deadlineMs: CALL_MS });
    return `${runtime_name} ${runtime_version}`;
  }

  close(): void {
    this.#cri.close();
  }
}
