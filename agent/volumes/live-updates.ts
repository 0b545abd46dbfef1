// When a pod's content volumes that are up are to be brought up to date, whatever its other volumes do: at once when an
// object they show has changed, when a token of theirs is due, after a pause when the last attempt failed, and from time
// to time where objects are not watched. Only decides when; pod-volumes.ts does the work.

import type { Pod } from '../../client/types.ts';
import { type BackoffEntry, nextBackoff } from '../../lib/backoff.ts';
import { type Clock, type EpochMs, elapsedMs, type MonotonicMs, plusMs, type Timer } from '../../lib/clock.ts';
import type { FollowedObjects } from '../ports/api.ts';
import { MOUNT_BACKOFF } from './mount-failures.ts';

/** How often what a volume shows is compared with the API where objects are not watched: the kubelet's resync, spread over pods. */
const RESYNC_MIN_MS = 60_000;
const RESYNC_SPREAD_MS = 30_000;

export interface LiveUpdatesOptions {
  readonly clock: Clock;
  /** Absent where objects are not followed: then everything goes by time. */
  readonly followed?: FollowedObjects | undefined;
  readonly random: () => number;
  /** When the next token of the pod is to be renewed; undefined when it has none. */
  readonly nextRenewal: (uid: string) => EpochMs | undefined;
  /** Brings the pod's volumes up to date; `why` is for the trace. Rejects when that failed. */
  readonly refresh: (uid: string, why: string) => Promise<void>;
  /** Whether a volume of the pod is being set up, or waits for its next try. */
  readonly isMounting: (uid: string) => boolean;
  /** Something changed of a pod whose volumes are not all up yet. */
  readonly onChangeWhileMounting: (uid: string) => void;
}

interface Watched {
  /** Whether a volume of the pod is up whose content can change. */
  changing: boolean;
  timer: Timer | undefined;
  /** When the next resync is due; undefined before the first such volume is up and after each refresh. */
  resyncAt: MonotonicMs | undefined;
  backoff: BackoffEntry | undefined;
  /** A refresh is waiting for its turn: another change needs no second one. */
  queued: boolean;
  /** Something changed while a volume was being set up; what was read for it may be older. */
  missed: boolean;
}

export class LiveUpdates {
  readonly #options: LiveUpdatesOptions;
  readonly #pods = new Map<string, Watched>();
  #closed = false;

  constructor(options: LiveUpdatesOptions) {
    this.#options = options;
  }

  /** What the pod refers to is followed from now on; before its first object is read. Again for each newer version. */
  follow(pod: Pod): void {
    const { uid } = pod.metadata;
    if (!this.#pods.has(uid)) {
      this.#pods.set(uid, {
        changing: false,
        timer: undefined,
        resyncAt: undefined,
        backoff: undefined,
        queued: false,
        missed: false,
      });
    }
    this.#options.followed?.follow(pod, () => this.changed(uid));
  }

  /**
   * A volume of the pod is up whose content can change. It is kept up to date from now on: containers may run already
   * (those of an agent before this one), and another volume, a driver's, may take hours.
   */
  volumeUp(uid: string): void {
    const watched = this.#pods.get(uid);
    if (watched === undefined) return;
    watched.changing = true;
    if (watched.missed) this.#refresh(uid, watched, 'object changed');
    // A refresh that is due soon reads this volume as well.
    else if (!watched.queued && watched.backoff === undefined) this.#schedule(uid, watched);
  }

  /** All volumes of the pod are up. */
  allUp(uid: string): void {
    const watched = this.#pods.get(uid);
    if (watched !== undefined && !this.#options.isMounting(uid)) watched.missed = false;
  }

  /** Something that the pod's volumes may show is another now. */
  changed(uid: string): void {
    const watched = this.#pods.get(uid);
    if (watched === undefined) return;
    if (this.#options.isMounting(uid)) {
      watched.missed = true;
      this.#options.onChangeWhileMounting(uid);
    }
    if (watched.changing) this.#refresh(uid, watched, 'object changed');
  }

  /** The pod's volumes are taken down. */
  forget(uid: string): void {
    this.#pods.get(uid)?.timer?.cancel();
    this.#pods.delete(uid);
    this.#options.followed?.release(uid);
  }

  close(): void {
    this.#closed = true;
    for (const { timer } of this.#pods.values()) timer?.cancel();
  }

  #refresh(uid: string, watched: Watched, why: string): void {
    if (watched.queued || this.#closed) return;
    watched.queued = true;
    watched.timer?.cancel();
    // A change that comes while files are being written is one more refresh: what was read before is old.
    queueMicrotask(() => {
      watched.queued = false;
      if (this.#pods.get(uid) !== watched || this.#closed) return;
      this.#options.refresh(uid, why).then(
        () => this.#done(uid, watched, undefined),
        (error: unknown) => this.#done(uid, watched, error),
      );
    });
  }

  #done(uid: string, watched: Watched, error: unknown): void {
    if (this.#pods.get(uid) !== watched) return;
    if (error === undefined) watched.resyncAt = undefined;
    watched.backoff =
      error === undefined ? undefined : nextBackoff(MOUNT_BACKOFF, watched.backoff, this.#options.clock.monotonic());
    this.#schedule(uid, watched);
  }

  #schedule(uid: string, watched: Watched): void {
    watched.timer?.cancel();
    watched.timer = undefined;
    const ms = this.#pause(uid, watched);
    if (ms === undefined || this.#closed) return;
    watched.timer = this.#options.clock.after(ms, () => this.#refresh(uid, watched, 'volume resync'));
  }

  /** Ms until the next refresh; undefined when only a change can bring one. */
  #pause(uid: string, watched: Watched): number | undefined {
    const { clock, followed, random, nextRenewal } = this.#options;
    if (!watched.changing) return undefined;
    if (watched.backoff !== undefined) return watched.backoff.delayMs;
    const renewal = nextRenewal(uid);
    const now = clock.monotonic();
    // Another volume that comes up does not put it off.
    if (followed?.live !== true) watched.resyncAt ??= plusMs(now, RESYNC_MIN_MS + random() * RESYNC_SPREAD_MS);
    else watched.resyncAt = undefined;
    const due = [
      ...(renewal === undefined ? [] : [Math.max(0, elapsedMs(clock.now(), renewal))]),
      ...(watched.resyncAt === undefined ? [] : [Math.max(0, elapsedMs(now, watched.resyncAt))]),
    ];
    return due.length === 0 ? undefined : Math.min(...due);
  }
}
