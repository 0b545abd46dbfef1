// Writes what the workers report to the API server: the newest status of each pod, only what changed, one write per
// pod at a time, retried until it is there or the pod is not. It computes no status.

import type { Pod, PodStatus } from '../../client/types.ts';
import { type BackoffEntry, nextBackoff } from '../../lib/backoff.ts';
import { type Clock, elapsedMs, later, type MonotonicMs, plusMs, type Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Tracer } from '../../lib/trace.ts';
import { podUID } from '../model/pod-uid.ts';
import type { PodApi } from '../ports/api.ts';
import type { PodUID } from '../ports/runtime.ts';
import { isOwnedCondition } from './conditions.ts';
import { limitMessages } from './message-limits.ts';
import type { PodsConfig, PodsLog } from './options.ts';
import { keepPhase } from './phase.ts';
import { keepRestartCounts } from './restart-count.ts';
import {
  CONDITION_GENERATION,
  computeStatusPatch,
  containerField,
  NEWER_CONTAINER_FIELDS,
  sameValue,
} from './status-patch.ts';
import type { StatusUrgency } from './status-urgency.ts';

export interface StatusManagerOptions {
  readonly api: PodApi | undefined;
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly config: PodsConfig;
  readonly log: PodsLog;
  /** The object is gone from the server, or another one has its name. */
  readonly onGone: (uid: PodUID) => void;
  /** Called with every status that is reported, written or not. */
  readonly onStatus?: (pod: Pod, status: PodStatus) => void;
}

interface Entry {
  /** The object as the server last showed it. */
  pod: Pod;
  desired: PodStatus;
  /** The spans that reported it. */
  links: readonly number[];
  /** Finalize the object once the status is written. */
  finalize: boolean;
  writing: boolean;
  dirty: boolean;
  timer: { readonly at: MonotonicMs; readonly handle: Timer } | undefined;
  backoff: BackoffEntry | undefined;
  /** Not before: the server refused or was away. */
  retryAt: MonotonicMs | undefined;
}

/** Resource versions are opaque, but servers count: an older one than the newest that was seen shows nothing new. */
function isOlder(candidate: string, newest: string): boolean {
  if (!/^\d+$/.test(candidate) || !/^\d+$/.test(newest)) return false;
  return BigInt(candidate) < BigInt(newest);
}

export class StatusManager {
  readonly #options: StatusManagerOptions;
  readonly #entries = new Map<string, Entry>();
  /** Fields that this server takes but does not keep, because it is older than they are. */
  readonly #unsupported = new Set<string>();
  #stopped = false;

  constructor(options: StatusManagerOptions) {
    this.#options = options;
  }

  get(uid: string): PodStatus | undefined {
    return this.#entries.get(uid)?.desired;
  }

  /** Reports a status. What is not urgent waits, so that a more important one can take it along. */
  set(pod: Pod, status: PodStatus, urgency: StatusUrgency): void {
    // Messages that the API would refuse for their size are cut here, for every status.
    const limited = limitMessages(pod.spec, status);
    const entry = this.#entryFor(pod, limited);
    entry.desired = limited;
    entry.links = this.#options.tracer.origin();
    entry.dirty = true;
    this.#options.onStatus?.(pod, limited);
    this.#schedule(entry, this.#options.config.statusDelayMs[urgency]);
  }

  /** The server showed a newer object: fields of ours that another writer has changed are written again. */
  podSeen(pod: Pod): void {
    const entry = this.#entries.get(pod.metadata.uid);
    if (entry === undefined || isOlder(pod.metadata.resourceVersion, entry.pod.metadata.resourceVersion)) return;
    entry.pod = pod;
    entry.desired = keepPhase(keepRestartCounts(entry.desired, pod.status), pod.status);
    if (entry.writing || entry.dirty) return;
    if (computeStatusPatch(pod.status ?? {}, entry.desired, this.#unsupported) === undefined) return;
    entry.dirty = true;
    this.#schedule(entry, this.#options.config.statusDelayMs.soon);
  }

  /** The pod uses nothing of this node any more: its object is deleted from the server as soon as `status` is written. */
  finalize(pod: Pod, status: PodStatus): void {
    const entry = this.#entryFor(pod, status);
    entry.finalize = true;
    this.set(pod, status, 'now');
  }

  forget(uid: string): void {
    this.#entries.get(uid)?.timer?.handle.cancel();
    this.#entries.delete(uid);
  }

  stop(): void {
    this.#stopped = true;
    for (const entry of this.#entries.values()) entry.timer?.handle.cancel();
  }

  #entryFor(pod: Pod, status: PodStatus): Entry {
    let entry = this.#entries.get(pod.metadata.uid);
    if (entry === undefined) {
      entry = {
        pod,
        desired: status,
        links: [],
        finalize: false,
        writing: false,
        dirty: false,
        timer: undefined,
        backoff: undefined,
        retryAt: undefined,
      };
      this.#entries.set(pod.metadata.uid, entry);
    } else if (!isOlder(pod.metadata.resourceVersion, entry.pod.metadata.resourceVersion)) entry.pod = pod;
    return entry;
  }

  #schedule(entry: Entry, delayMs: number): void {
    if (this.#stopped || entry.writing) return;
    const now = this.#options.clock.monotonic();
    const at = later(plusMs(now, delayMs), entry.retryAt ?? now);
    if (at <= now) {
      entry.timer?.handle.cancel();
      entry.timer = undefined;
      void this.#write(entry);
      return;
    }
    if (entry.timer !== undefined) {
      if (entry.timer.at <= at) return;
      entry.timer.handle.cancel();
    }
    const handle = this.#options.clock.after(elapsedMs(now, at), () => {
      entry.timer = undefined;
      void this.#write(entry);
    });
    entry.timer = { at, handle };
  }

  async #write(entry: Entry): Promise<void> {
    if (entry.writing || !entry.dirty || this.#stopped) return;
    entry.writing = true;
    const { uid, namespace, name } = entry.pod.metadata;
    try {
      const context = { pod: { uid, namespace, name }, cause: 'status changed' };
      while (entry.dirty && this.#entries.get(uid) === entry) {
        entry.dirty = false;
        await this.#options.tracer.causedBy(entry.links, context, () => this.#writeOnce(entry));
      }
      entry.backoff = undefined;
      entry.retryAt = undefined;
      entry.writing = false;
    } catch (error) {
      const { clock, config, log } = this.#options;
      entry.dirty = true;
      entry.writing = false;
      entry.backoff = nextBackoff(config.statusBackoff, entry.backoff, clock.monotonic());
      entry.retryAt = plusMs(clock.monotonic(), entry.backoff.delayMs);
      log('warn', 'Failed to update status for pod, will retry', {
        pod: `${namespace}/${name}`,
        podUID: uid,
        inMs: entry.backoff.delayMs,
        err: errorMessage(error),
      });
    }
    if (entry.dirty && this.#entries.get(uid) === entry) this.#schedule(entry, 0);
  }

  async #writeOnce(entry: Entry): Promise<void> {
    const { api } = this.#options;
    const wanted = entry.desired;
    const patch = computeStatusPatch(entry.pod.status ?? {}, wanted, this.#unsupported);
    if (api !== undefined && patch !== undefined) {
      const outcome = await api.patchStatus(entry.pod, patch);
      if (outcome.kind === 'gone') {
        this.#gone(entry);
        return;
      }
      if (outcome.kind === 'ok') {
        const { value } = outcome;
        if (!isOlder(value.metadata.resourceVersion, entry.pod.metadata.resourceVersion)) entry.pod = value;
        this.#noteUnsupported(patch, wanted, value);
      }
    }
    if (!entry.finalize || entry.desired !== wanted) return;
    if (api !== undefined) await api.finalizeDelete(entry.pod);
    this.#gone(entry);
  }

  /** An older server drops fields it does not know; writing them again and again would change nothing. */
  #noteUnsupported(patch: object, wanted: PodStatus, written: Pod): void {
    if ('observedGeneration' in patch && written.status?.observedGeneration === undefined) {
      this.#unsupported.add('observedGeneration');
    }
    const generations = (conditions: PodStatus['conditions']): boolean =>
      (conditions ?? []).some((condition) => isOwnedCondition(condition) && condition.observedGeneration !== undefined);
    if ('conditions' in patch && generations(wanted.conditions) && !generations(written.status?.conditions)) {
      this.#unsupported.add(CONDITION_GENERATION);
    }
    if ('hostIPs' in patch && written.status?.hostIPs === undefined) this.#unsupported.add('hostIPs');
    if (wanted.resize !== undefined && written.status?.resize === undefined) this.#unsupported.add('resize');
    for (const list of ['containerStatuses', 'initContainerStatuses'] as const) {
      for (const status of wanted[list] ?? []) {
        const kept = written.status?.[list]?.find(({ name }) => name === status.name);
        for (const field of NEWER_CONTAINER_FIELDS) {
          const lost =
            kept !== undefined &&
            !(field in kept) &&
            field in status &&
            !sameValue(Reflect.get(status, field), undefined);
          if (lost) this.#unsupported.add(containerField(field));
        }
      }
    }
  }

  #gone(entry: Entry): void {
    const { uid } = entry.pod.metadata;
    entry.dirty = false;
    if (this.#entries.get(uid) === entry) this.#entries.delete(uid);
    this.#options.onGone(podUID(uid));
  }
}
