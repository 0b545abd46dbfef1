// Splits long work over several turns of the event loop, so that other work runs between them.

/** Resolves in a later turn, after the I/O that is ready now. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
