// How `up` and `demo`, which have a lab to take down, come to an end: every end but SIGKILL is a request to stop, after
// which the command takes its lab down and exits. Takes nothing down itself.

import { errnoOf, errorMessage, UserError } from '../../lib/errors.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
/** The disk under the output is full, or may hold no more of it. */
const FULL = ['ENOSPC', 'EDQUOT', 'EFBIG'];
/** After an exception: the time, in ms, that the command has for taking its lab down before it is done for it. */
const RESCUE_MS = 90_000;

/** What of a process an ending needs; the process itself outside tests. */
export interface EndingProcess {
  readonly pid: number;
  readonly stdout: Pick<NodeJS.WriteStream, 'write' | 'on'>;
  readonly stderr: Pick<NodeJS.WriteStream, 'write' | 'on'>;
  on(event: (typeof SIGNALS)[number], listener: (signal: NodeJS.Signals) => void): unknown;
  on(event: 'uncaughtException', listener: (error: unknown) => void): unknown;
  exit(code: number): unknown;
}

export interface EndingOptions {
  /** A line that cannot be written since a disk is full ends the command; otherwise it goes on without. */
  readonly endWhenFull: boolean;
  /** Takes the lab down without the command's help, for when an exception has left it hanging. */
  readonly rescue: () => Promise<unknown>;
  /** Started with nohup: SIGHUP ends nothing. Default: what scripts/ignored-hangup has found. */
  readonly ignoreHangup?: boolean;
  readonly process?: EndingProcess;
  readonly after?: (ms: number, work: () => void) => void;
}

export interface Ending {
  /** Aborts at the first signal, when the output's reader is gone, and at an uncaught exception. */
  readonly signal: AbortSignal;
  /** Writes a line to stdout. Never throws, whatever has become of it. */
  say(line: string): void;
  /** The command's exit code, given the one it came to: 1 unless a signal, or the command itself, was what ended it. */
  exitCode(code: number): number;
}

const afterReal = (ms: number, work: () => void): void => void setTimeout(work, ms).unref();

/** To be called once, before there is anything to take down. */
export function commandEnding(options: EndingOptions): Ending {
  const { endWhenFull, rescue, process: own = process, after = afterReal } = options;
  const ignoreHangup = options.ignoreHangup ?? process.env['NODELET_NOHUP'] !== undefined;
  const controller = new AbortController();
  let failed = false;
  let unread = false;
  const note = (line: string): void => {
    try {
      own.stderr.write(`nodelet: ${line}\n`);
    } catch {
      // Its reader is gone as well; the shutdown is under way.
    }
  };
  const fail = (error: Error): void => {
    if (controller.signal.aborted) return;
    failed = true;
    note(`${error.message}: taking everything down`);
    controller.abort(error);
  };
  const onOutput = (error: unknown): void => {
    const code = errnoOf(error) ?? 'unknown';
    if (FULL.includes(code) && !endWhenFull) return;
    unread = !FULL.includes(code);
    fail(new UserError(`nothing can be written to the output any more (${code})`));
  };
  own.stdout.on('error', onOutput);
  // What is written there explains what happens; it happens without, too.
  own.stderr.on('error', () => undefined);
  for (const name of SIGNALS) {
    own.on(name, (signal) => {
      if (signal === 'SIGHUP' && ignoreHangup) return;
      // npm passes Ctrl-C on to a process that the terminal has sent it to already.
      if (controller.signal.aborted)
        note(`taking everything down already (kill -9 ${own.pid} leaves it to nodelet down)`);
      else controller.abort(new UserError(`stopped by ${signal}`));
    });
  }
  own.on('uncaughtException', (error) => {
    note(error instanceof Error ? (error.stack ?? error.message) : errorMessage(error));
    if (controller.signal.aborted) {
      failed = true;
    } else fail(error instanceof Error ? error : new Error(errorMessage(error)));
    after(RESCUE_MS, () => {
      void rescue().finally(() => own.exit(1));
    });
  });
  return {
    signal: controller.signal,
    say: (line) => {
      if (unread) return;
      try {
        own.stdout.write(`${line}\n`);
      } catch (error) {
        // A file is written synchronously and fails synchronously.
        onOutput(error);
      }
    },
    exitCode: (code) => (failed ? 1 : code),
  };
}
