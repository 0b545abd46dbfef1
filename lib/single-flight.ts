// Concurrent callers share one call: a second call is made only after the first has settled.

/** As `call`, but callers that come while one is in flight get its promise, rejections too. */
export function singleFlight<T>(call: () => Promise<T>): () => Promise<T> {
  let inFlight: Promise<T> | undefined;
  return () => {
    inFlight ??= call().finally(() => {
      inFlight = undefined;
    });
    return inFlight;
  };
}
