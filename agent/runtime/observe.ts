// Returns a pod from the cache, after reading what the cache lacks: nothing or a few statuses where the
// pod's entry is fresh, else two lists side by side and statuses in parallel. Decides nothing about pods.

import type { Clock, EpochMs } from '../../lib/clock.ts';
import type { PodRef, PodSnapshot } from '../ports/runtime.ts';
import type { CompleteRead, RuntimeRecord } from './cache/records.ts';
import type { RuntimeCache } from './cache/runtime-cache.ts';
import { LABEL_POD_UID, podRefOf } from './config/labels.ts';
import { sandboxSnapshot, shallowContainer } from './convert.ts';
import type { CriClient } from './cri-client.ts';
import type { StatusReader } from './status-reader.ts';

/** A status that is due again when it has been read (a start beside it) is read again this often. */
const STATUS_ROUNDS = 3;

interface Aged {
  readonly createdAt: EpochMs;
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

function snapshotOf(pod: PodRef, records: readonly RuntimeRecord[], observedAt: EpochMs): PodSnapshot {
  const of = <K extends RuntimeRecord['kind']>(kind: K) =>
    records.filter((record): record is Extract<RuntimeRecord, { readonly kind: K }> => record.kind === kind);
  return {
    pod,
    observedAt,
    sandboxes: newestFirst(of('sandbox').map(({ snapshot }) => snapshot)),
    containers: newestFirst(of('container').map(({ snapshot }) => snapshot)),
  };
}

export class Observer {
  readonly #client: CriClient;
  readonly #cache: RuntimeCache;
  readonly #statuses: StatusReader;
  readonly #clock: Clock;
  readonly #deadlineMs: number;

  constructor(client: CriClient, cache: RuntimeCache, statuses: StatusReader, clock: Clock, deadlineMs: number) {
    this.#client = client;
    this.#cache = cache;
    this.#statuses = statuses;
    this.#clock = clock;
    this.#deadlineMs = deadlineMs;
  }

  /** All of a pod. Rejects with RuntimeError. */
  async observe(pod: PodRef): Promise<PodSnapshot> {
    const observedAt = this.#clock.now();
    if (this.#cache.isFresh(pod.uid)) await this.#readDue(pod.uid, this.#cache.seq);
    // It was not, or a status showed a change without an event.
    if (!this.#cache.isFresh(pod.uid)) await this.#cache.during((read) => this.#readAll(pod, read));
    return snapshotOf(pod, this.#cache.recordsOf(pod.uid), observedAt);
  }

  /** Every pod, from two lists alone: how a container ended may be missing. Rejects with RuntimeError. */
  async list(): Promise<readonly PodSnapshot[]> {
    const observedAt = this.#clock.now();
    await this.#cache.during((read) => this.#readLists(undefined, read));
    return [...this.#cache.pods().values()].map(({ pod, records }) => snapshotOf(pod, records, observedAt));
  }

  async #readAll(pod: PodRef, read: CompleteRead): Promise<void> {
    // What is known by id alone is in the lists for certain: its status is requested at the same time.
    const ahead = this.#cache
      .recordsOf(pod.uid)
      .filter((record) => this.#cache.isStatusDue(record, read.seqBefore))
      .map((record) => ({ id: record.id, reading: this.#read(record) }));
    // Statuses of containers that the lists contain are awaited, and read again if that failed.
    for (const { reading } of ahead) reading.catch(() => undefined);
    await this.#readLists(pod, read);
    await Promise.allSettled(ahead.filter(({ id }) => this.#cache.get(id) !== undefined).map(({ reading }) => reading));
    await this.#readDue(pod.uid, read.seqBefore);
  }

  async #readDue(uid: string, sinceSeq: number): Promise<void> {
    for (let round = 0; round < STATUS_ROUNDS; round++) {
      const due = this.#cache.recordsOf(uid).filter((record) => this.#cache.isStatusDue(record, sinceSeq));
      if (due.length === 0) return;
      await Promise.all(due.map((record) => this.#read(record)));
    }
  }

  #read({ id, kind }: RuntimeRecord): Promise<unknown> {
    return kind === 'sandbox' ? this.#statuses.sandbox(id) : this.#statuses.container(id);
  }

  /** Both lists, of one pod or of everything, into the cache. */
  async #readLists(pod: PodRef | undefined, { seqBefore, beganAt }: CompleteRead): Promise<void> {
    const filter = pod === undefined ? {} : { filter: { label_selector: { [LABEL_POD_UID]: pod.uid } } };
    const options = { deadlineMs: this.#deadlineMs };
    const [sandboxes, containers] = await Promise.all([
      this.#client.call('ListPodSandbox', filter, options),
      this.#client.call('ListContainers', filter, options),
    ]);
    const ownerOf = (item: { readonly labels: Readonly<Record<string, string>> }): PodRef | undefined =>
      pod ?? podRefOf(item.labels);
    this.#cache.apply({
      kind: 'list',
      seqBefore,
      beganAt,
      pod,
      sandboxes: sandboxes.items.flatMap((item) => {
        const owner = ownerOf(item);
        const snapshot = sandboxSnapshot(item, { ips: [], hostNetwork: false });
        return owner === undefined ? [] : [{ pod: owner, snapshot }];
      }),
      containers: containers.containers.flatMap((item) => {
        const owner = ownerOf(item);
        return owner === undefined ? [] : [{ pod: owner, snapshot: shallowContainer(item) }];
      }),
    });
  }
}
