// What a controller has done and its cache does not show yet. As long as something is outstanding the controller neither
// creates nor deletes again, or a cache that lags would make it do the same twice. Objects are known by uid, so that nothing
// else that appears or goes is taken for what is expected.

import { type Clock, elapsedMs, type MonotonicMs } from '../../../lib/clock.ts';

/** After this long, in ms, the cache is believed again whatever is outstanding: an event may have been missed. */
export const EXPECTATION_MS = 300_000;

interface Outstanding {
  readonly since: MonotonicMs;
  /** Requests under way. */
  creating: number;
  /** Seen in the cache while requests were under way: the answer to one of them may come later. */
  readonly seen: Set<string>;
  readonly creations: Set<string>;
  readonly deletions: Set<string>;
}

/** One for each controller; keys are uids of owners, values uids of their dependents. */
export class Expectations {
  readonly #clock: Clock;
  readonly #byOwner = new Map<string, Outstanding>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True when the cache shows everything that was done for this owner, or has had long enough. */
  satisfied(owner: string): boolean {
    return this.unsatisfiedForMs(owner) === undefined;
  }

  /**
   * How long the expectations still hold, ms; undefined where `satisfied`. The owner is to be synced again then: a watch event
   * that is outstanding may never come, as for a dependent that came and went while the list-watch was broken.
   */
  unsatisfiedForMs(owner: string): number | undefined {
    const outstanding = this.#byOwner.get(owner);
    if (outstanding === undefined) return undefined;
    const { creating, creations, deletions, since } = outstanding;
    if (creating + creations.size + deletions.size === 0) return undefined;
    const left = EXPECTATION_MS - elapsedMs(since, this.#clock.monotonic());
    // Believed only once more than the whole time has passed.
    return left < 0 ? undefined : left + 1;
  }

  /** Begins anew: `creations` dependents are about to be created, and those of `deletions` to be deleted. */
  expect(owner: string, creations: number, deletions: readonly string[]): void {
    const outstanding = this.#begin(owner);
    outstanding.creating = creations;
    for (const uid of deletions) outstanding.deletions.add(uid);
  }

  /** As `expect`, where nothing is deleted. */
  expectCreations(owner: string, count: number): void {
    this.expect(owner, count, []);
  }

  /** As `expect`, where nothing is created. */
  expectDeletions(owner: string, uids: readonly string[]): void {
    this.expect(owner, 0, uids);
  }

  /** A request made this dependent. */
  created(owner: string, uid: string): void {
    const outstanding = this.#byOwner.get(owner);
    if (outstanding === undefined) return;
    outstanding.creating--;
    if (!outstanding.seen.delete(uid)) outstanding.creations.add(uid);
  }

  /** So many requests made nothing, or were not sent. */
  notCreated(owner: string, count: number): void {
    const outstanding = this.#byOwner.get(owner);
    if (outstanding !== undefined) outstanding.creating -= count;
  }

  /** The cache shows this dependent. */
  observedCreation(owner: string, uid: string): void {
    const outstanding = this.#byOwner.get(owner);
    if (outstanding === undefined || outstanding.creations.delete(uid)) return;
    if (outstanding.creating > 0) outstanding.seen.add(uid);
  }

  /** The cache shows that this dependent is gone or on its way out; or its deletion was refused. */
  observedDeletion(owner: string, uid: string): void {
    const outstanding = this.#byOwner.get(owner);
    outstanding?.deletions.delete(uid);
    this.observedCreation(owner, uid);
  }

  forget(owner: string): void {
    this.#byOwner.delete(owner);
  }

  #begin(owner: string): Outstanding {
    const outstanding: Outstanding = {
      since: this.#clock.monotonic(),
      creating: 0,
      seen: new Set(),
      creations: new Set(),
      deletions: new Set(),
    };
    this.#byOwner.set(owner, outstanding);
    return outstanding;
  }
}
