// Deduplicates events of a controller that syncs an object repeatedly: an event is recorded again only when it differs,
// or after a while.

import type { EventSubject } from '../../client/recorder.ts';
import { type Clock, elapsedMs, type MonotonicMs } from '../../lib/clock.ts';
import type { Recorder } from '../runtime.ts';

/** The real controller's resync period: after this long the same words are worth saying again. */
const AGAIN_MS = 15_000;

export class OnceRecorder {
  readonly #recorder: Recorder;
  readonly #clock: Clock;
  readonly #recorded = new Map<string, { readonly words: string; readonly at: MonotonicMs }>();

  constructor(recorder: Recorder, clock: Clock) {
    this.#recorder = recorder;
    this.#clock = clock;
  }

  event(subject: EventSubject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const words = `${reason}: ${message}`;
    const last = this.#recorded.get(subject.metadata.uid);
    const now = this.#clock.monotonic();
    if (last !== undefined && last.words === words && elapsedMs(last.at, now) < AGAIN_MS) return;
    this.#recorded.set(subject.metadata.uid, { words, at: now });
    this.#recorder.event(subject, type, reason, message);
  }

  /** The object is gone. */
  forget(uid: string): void {
    this.#recorded.delete(uid);
  }
}

export function claimSubject(claim: { readonly metadata: EventSubject['metadata'] }): EventSubject {
  return { kind: 'PersistentVolumeClaim', apiVersion: 'v1', metadata: claim.metadata };
}

export function volumeSubject(volume: { readonly metadata: EventSubject['metadata'] }): EventSubject {
  return { kind: 'PersistentVolume', apiVersion: 'v1', metadata: volume.metadata };
}
