// What `nodelet tap` does from start to end: the socket, the proxy or the one that makes faults, the recording, the end.

import { whenAborted } from '../../lib/abort.ts';
import { ConnectionObserver } from './calls.ts';
import { socketPath } from './endpoint.ts';
import { FaultProxy } from './fault-proxy.ts';
import { readFaultFile } from './fault-rules.ts';
import { TapProxy } from './proxy.ts';
import { createRecording } from './recording-file.ts';

export interface TapOptions {
  readonly listen: string;
  readonly to: string;
  readonly record?: string;
  readonly redact?: boolean;
  readonly fault?: string;
}

/** Runs until `signal` aborts. Resolves with what it has done, in one line. Rejects with UserError. */
export async function runTap(options: TapOptions, signal: AbortSignal, log: (line: string) => void): Promise<string> {
  const listen = socketPath(options.listen, '--listen');
  const to = socketPath(options.to, '--to');
  const faults = options.fault === undefined ? undefined : await readFaultFile(options.fault);
  const recording =
    options.record === undefined
      ? undefined
      : await createRecording(options.record, { to, redact: options.redact === true, log });
  const sink = recording?.recorder;
  const proxy =
    faults === undefined
      ? new TapProxy({
          listen,
          to,
          log,
          observe: (connection) => (sink === undefined ? undefined : new ConnectionObserver(connection, sink)),
        })
      : new FaultProxy({ listen, to, log, faults, sink });
  try {
    await proxy.listen();
    log(
      `unix://${listen} passes on to unix://${to}${options.record === undefined ? '' : `, recorded in ${options.record}`}`,
    );
    await whenAborted(signal);
  } finally {
    await proxy.close();
    await recording?.close();
  }
  if (recording === undefined) return 'nothing was recorded';
  const { calls, lostLines, lostBytes } = recording.summary();
  const lost = lostLines === 0 ? '' : `; ${lostLines} lines of it (${lostBytes} bytes) were lost`;
  return `${calls} calls are recorded in ${options.record}${lost}`;
}
