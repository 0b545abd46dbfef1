// Trying to unstage volumes that no pod uses, until it is done or a pod uses them again. What one try does, and whether
// it is still due, is up to node-volumes.ts.

import { resolvesWithin } from '../../../lib/abort.ts';
import type { Clock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { retryUntilAborted } from '../../../lib/retry.ts';
import type { CsiNode } from '../../ports/csi.ts';
import { MOUNT_BACKOFF } from '../mount-failures.ts';

/** How long a pod's end waits for the volume to be unstaged; it goes on without that, and unstaging goes on without it. */
const UNSTAGE_WAIT_MS = 5000;

export interface UnstagingOptions {
  readonly csi: CsiNode;
  readonly clock: Clock;
  /** The driver of a volume that is staged and used by no pod; undefined when there is nothing to do. */
  readonly driverOf: (key: string) => string | undefined;
  readonly unstage: (key: string) => Promise<void>;
  readonly onError: (message: string) => void;
  readonly signal: AbortSignal;
}

export class Unstaging {
  readonly #options: UnstagingOptions;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(options: UnstagingOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  untilDone(key: string): Promise<void> {
    const known = this.#underWay.get(key);
    if (known !== undefined) return known;
    const work = this.#try(key).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, work);
    return work;
  }

  /** Resolves when it is done, or has taken long enough to be waited for. */
  async untilDoneOrTimeout(key: string): Promise<void> {
    await resolvesWithin(this.#options.clock, UNSTAGE_WAIT_MS, this.untilDone(key));
  }

  async #try(key: string): Promise<void> {
    const { clock, csi, driverOf, unstage, onError, signal } = this.#options;
    const attempt = async (): Promise<void> => {
      if (driverOf(key) !== undefined) await unstage(key);
    };
    await retryUntilAborted(attempt, {
      clock,
      policy: MOUNT_BACKOFF,
      onFailure: (error) => onError(errorMessage(error)),
      // A driver that comes back is called at once.
      wake: () => {
        const driver = driverOf(key);
        return driver !== undefined && csi.driver(driver) === undefined ? csi.registered(driver) : undefined;
      },
      signal,
    });
  }
}
