// Ctrl-C and TERM as an AbortSignal, for commands that run until they are told to stop.

/** Aborts on the first SIGINT or SIGTERM. A second one ends the process at once, as people expect of Ctrl-C. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(signal === 'SIGINT' ? 130 : 143);
    controller.abort(signal);
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return controller.signal;
}
