// The one copy of the runtime's truth in this process: owns the cache's state, applies every input to it, and emits
// lifecycle events for pods' workers. All others read records and keep no copy. No I/O.

import type { Clock, MonotonicMs } from '../../../lib/clock.ts';
import type { PodSandboxConfig } from '../../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import { isFresh, isStatusDue } from './freshness.ts';
import type { CacheChange, CacheInput } from './inputs.ts';
import {
  type CompleteRead,
  type ContainerRecord,
  emptyCache,
  type Provenance,
  type RuntimeRecord,
  type SandboxRecord,
} from './records.ts';
import { reduce } from './reduce.ts';
import { containersOf, recordsOf } from './step.ts';

/** Where each part of what is known of a sandbox or container came from. */
export interface RecordProvenance {
  readonly id: string;
  readonly kind: RuntimeRecord['kind'];
  readonly state: string;
  /** By group of fields: identity, state, exit, details, resources; a sandbox has network. */
  readonly groups: Readonly<Record<string, Provenance>>;
}

export class RuntimeCache {
  readonly #clock: Clock;
  readonly #freshLimitMs: number;
  readonly #state = emptyCache();
  /** Reads and calls under way, by the last input before them, and how many each. */
  readonly #open = new Map<number, number>();
  readonly #onChange: (change: CacheChange) => void;
  #activity = 0;

  /** `freshLimitMs`: how old a complete read may be before it has to be made again. */
  constructor(clock: Clock, freshLimitMs: number, onChange: (change: CacheChange) => void) {
    this.#clock = clock;
    this.#freshLimitMs = freshLimitMs;
    this.#onChange = onChange;
  }

  apply(input: CacheInput): void {
    const { changes } = reduce(this.#state, input, this.#clock.now());
    if (input.kind !== 'list' || changes.length > 0) this.#activity++;
    for (const change of changes) this.#onChange(change);
  }

  /** Runs a request whose response is as old as its beginning; it does not bring back what is removed in between. */
  async during<T>(request: (read: CompleteRead) => Promise<T>): Promise<T> {
    const seqBefore = this.#state.seq;
    this.#open.set(seqBefore, (this.#open.get(seqBefore) ?? 0) + 1);
    try {
      return await request({ seqBefore, beganAt: this.#clock.monotonic() });
    } finally {
      const left = (this.#open.get(seqBefore) ?? 1) - 1;
      if (left > 0) this.#open.set(seqBefore, left);
      else this.#open.delete(seqBefore);
      const oldest = Math.min(...this.#open.keys());
      for (const [id, seq] of this.#state.removed) if (seq <= oldest) this.#state.removed.delete(id);
    }
  }

  /** The number of inputs so far. */
  get seq(): number {
    return this.#state.seq;
  }

  /** The number of inputs that were more than a list of what was known. */
  get activity(): number {
    return this.#activity;
  }

  /** When the newest complete list was requested; undefined before the first. */
  get listedAt(): MonotonicMs | undefined {
    return this.#state.read?.beganAt;
  }

  get(id: string): RuntimeRecord | undefined {
    return this.#state.records.get(id);
  }

  sandbox(id: string): SandboxRecord | undefined {
    const record = this.#state.records.get(id);
    return record?.kind === 'sandbox' ? record : undefined;
  }

  container(id: string): ContainerRecord | undefined {
    const record = this.#state.records.get(id);
    return record?.kind === 'container' ? record : undefined;
  }

  recordsOf(uid: string): readonly RuntimeRecord[] {
    return recordsOf(this.#state, uid);
  }

  containersOf(uid: string): readonly ContainerRecord[] {
    return containersOf(this.#state, uid);
  }

  /** Every record, by the pods that have any. */
  pods(): ReadonlyMap<string, { readonly pod: RuntimeRecord['pod']; readonly records: readonly RuntimeRecord[] }> {
    const pods = new Map<string, { pod: RuntimeRecord['pod']; records: readonly RuntimeRecord[] }>();
    for (const [uid, { pod, ids }] of this.#state.pods) {
      if (ids.size > 0) pods.set(uid, { pod, records: recordsOf(this.#state, uid) });
    }
    return pods;
  }

  /** Whether what is known of the pod is all that there is, but for statuses that are due. */
  isFresh(uid: string): boolean {
    return isFresh(this.#state, uid, this.#clock.monotonic(), this.#freshLimitMs);
  }

  isStatusDue(record: RuntimeRecord, sinceSeq: number): boolean {
    return isStatusDue(record, sinceSeq, this.#clock.now());
  }

  /** Keeps the sandbox config, which every CreateContainer in it needs, for as long as the sandbox exists. */
  keepConfig(id: string, config: PodSandboxConfig): void {
    const record = this.sandbox(id);
    if (record !== undefined) record.config = config;
  }

  /** Where what is known of a sandbox or container came from; undefined when nothing is. */
  provenance(id: string): RecordProvenance | undefined {
    const record = this.#state.records.get(id);
    if (record === undefined) return undefined;
    return { id, kind: record.kind, state: record.snapshot.state, groups: Object.fromEntries(record.sources) };
  }
}
