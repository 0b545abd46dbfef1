// Makes many requests, few at first: where the first is refused, by a quota or a webhook, the others would be, too.

/** Size of the first batch; each one that succeeds as a whole doubles the next. */
const FIRST_BATCH = 1;

export interface SlowStart {
  readonly succeeded: number;
  /** Of the batch that failed; the rest was not tried. */
  readonly error?: unknown;
}

/**
 * Calls `request` `count` times, with 0, 1 and so on, in growing batches, and stops after the first batch in which one
 * fails.
 */
export async function slowStart(count: number, request: (index: number) => Promise<void>): Promise<SlowStart> {
  let succeeded = 0;
  let size = Math.min(FIRST_BATCH, count);
  for (let left = count; size > 0; size = Math.min(2 * size, left)) {
    const first = count - left;
    const results = await Promise.allSettled(Array.from({ length: size }, (_, index) => request(first + index)));
    const failures = results.filter((result) => result.status === 'rejected');
    succeeded += size - failures.length;
    const [failure] = failures;
    if (failure !== undefined) return { succeeded, error: failure.reason };
    left -= size;
  }
  return { succeeded };
}
