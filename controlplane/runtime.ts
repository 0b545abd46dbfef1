// What every controller runs on: its context, and a work queue whose keys are processed until the signal aborts.
// Decides nothing itself.

import type { ApiClient } from '../client/api.ts';
import { isConflict } from '../client/errors.ts';
import type { EventSubject } from '../client/recorder.ts';
import type { WorkQueue } from '../client/workqueue.ts';
import type { Clock } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import type { Metric } from '../lib/metrics.ts';

/** One line for the process's log. */
export type Log = (message: string) => void;

export interface Recorder {
  event(subject: EventSubject, type: 'Normal' | 'Warning', reason: string, message: string): void;
}

/** What a controller is given. */
export interface ControllerContext {
  readonly client: Pick<ApiClient, 'get' | 'list' | 'create' | 'replace' | 'patch' | 'delete'>;
  readonly clock: Clock;
  readonly recorder: Recorder;
  readonly log: Log;
}

/** A controller: keys in a queue, and the work that makes one key's state right. */
export interface Controller {
  readonly name: string;
  readonly queue: WorkQueue;
  readonly workers: number;
  /** Its own figures, beside those of its queue. */
  readonly metrics?: Metric;
  sync(key: string): Promise<void>;
  /** What it does beside its queue, list-watches of its own for one, until `signal` aborts. Never throws. */
  background?(signal: AbortSignal): Promise<void>;
}

/** Works off a controller's queue until `signal` aborts; then only what is under way ends. Conflicts are ordinary and not logged. */
export async function runController(controller: Controller, log: Log, signal: AbortSignal): Promise<void> {
  const stop = (): void => controller.queue.shutDown();
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  await Promise.all([
    controller.background?.(signal),
    controller.queue.run(
      controller.workers,
      async (key) => {
        if (!signal.aborted) await controller.sync(key);
      },
      (key, error, retryInMs) => {
        if (signal.aborted || isConflict(error)) return;
        log(`${controller.name} ${key}: ${errorMessage(error)}; again in ${retryInMs} ms`);
      },
    ),
  ]);
}
