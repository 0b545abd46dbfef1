// Follows the end of a container or sandbox from the moment it is announced until the runtime's own state shows it.
// The announcement is the kernel's word and comes first; the runtime is then still tearing the task down, and may not
// even have written down that it began. It wakes workers and does nothing else.

import { type BackoffEntry, type BackoffPolicy, nextBackoff } from '../../../lib/backoff.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { PodLifecycleEvent } from '../../ports/runtime.ts';
import { type Observer, sameExit } from '../observe.ts';
import type { KnownId } from '../registry.ts';
import type { RuntimeEvent } from './runtime-event.ts';

/**
 * How long an announced exit may take to show in the runtime's own state, ms: on a machine that has far too much to do,
 * containerd takes seconds. After that it is left to the slow list.
 */
const CONFIRM_LIMIT_MS = 10_000;
/**
 * How often it is looked for: while somebody waits for it, and when it only may bring more detail. A runtime that takes
 * long is asked less and less: what is lost is a third of the wait at most.
 */
const CONFIRM_FAST: BackoffPolicy = { initialMs: 1, maxMs: 100, factor: 1.5, resetMs: CONFIRM_LIMIT_MS };
const CONFIRM_SLOW: BackoffPolicy = { ...CONFIRM_FAST, initialMs: 16 };

export interface EndsOptions {
  readonly observer: Observer;
  readonly clock: Clock;
  /** Nothing is followed any further once it is aborted. */
  readonly signal: AbortSignal;
  /** The next observation shows the end: told just before the event. */
  readonly onDead: (id: string, known: KnownId) => void;
  readonly emit: (id: string, known: KnownId, type: PodLifecycleEvent['type'], at: number) => void;
}

export class Ends {
  readonly #options: EndsOptions;
  /** What is being followed: two streams may tell of the same end. */
  readonly #followed = new Set<string>();
  /** Containers that are dead, whose end the runtime is still busy with. */
  readonly #settling = new Map<string, Promise<unknown>>();

  constructor(options: EndsOptions) {
    this.#options = options;
  }

  /**
   * Waits until the runtime has finished with the ends of the containers that are `concerned`. Until then it answers a
   * stop or a removal with an error from a shim that is just going away.
   */
  async settled(concerned: (id: string) => boolean): Promise<void> {
    await Promise.all([...this.#settling].filter(([id]) => concerned(id)).map(([, settled]) => settled));
  }

  async follow(event: RuntimeEvent, known: KnownId): Promise<void> {
    if (this.#followed.has(event.id)) return;
    this.#followed.add(event.id);
    try {
      await this.#follow(event, known);
    } finally {
      this.#followed.delete(event.id);
    }
  }

  async #follow({ id, at, exitCode }: RuntimeEvent, known: KnownId): Promise<void> {
    const { observer, onDead, emit } = this.#options;
    const announce = (): boolean => exitCode !== undefined && observer.announceExit(id, exitCode, at);
    let announced = announce();
    let dead = announced;
    if (!announced) {
      dead = await this.#until(CONFIRM_FAST, async () => {
        if (await this.#isDead(id, known)) return true;
        // Whoever started it may have read by now what was missing.
        announced = announce();
        return announced;
      });
    }
    const told = observer.cached(id);
    let confirmation: Promise<boolean> | undefined;
    if (announced) {
      confirmation = this.#until(CONFIRM_SLOW, () => this.#isDead(id, known));
      const done = (): boolean => this.#settling.delete(id);
      // A failure to confirm is reported below; whoever waits for the end of it need only know that it ended.
      this.#settling.set(id, confirmation.then(done, done));
    }
    // Woken for an end that the runtime's state does not show yet: told again by whatever shows it later.
    if (dead) onDead(id, known);
    emit(id, known, 'containerDied', at);
    if (confirmation === undefined) return;
    // What was told is the kernel's word; what the runtime makes of it may say more (OOMKilled).
    await confirmation;
    const confirmed = observer.cached(id);
    if (told !== undefined && confirmed !== undefined && !sameExit(told, confirmed)) emit(id, known, 'podSync', at);
  }

  /** Past what is cached: the runtime's own state. */
  async #isDead(id: string, known: KnownId): Promise<boolean> {
    const { observer } = this.#options;
    return known.kind === 'sandbox' ? (await observer.readSandboxReady(id)) !== true : await observer.confirmExit(id);
  }

  /** Waits for what is asked for, less and less eagerly. False when it has not come by the limit. */
  async #until(policy: BackoffPolicy, asked: () => Promise<boolean>): Promise<boolean> {
    const { clock, signal } = this.#options;
    const deadline = clock.monotonic() + CONFIRM_LIMIT_MS;
    let pause: BackoffEntry | undefined;
    while (!(await asked())) {
      if (clock.monotonic() >= deadline) return false;
      pause = nextBackoff(policy, pause, clock.now());
      await clock.sleep(pause.delayMs, signal);
    }
    return true;
  }
}
