// systemd's watchdog (sd_watchdog_enabled(3), sd_notify(3)): READY=1 once the agent serves, then WATCHDOG=1 twice per
// WatchdogSec, but only while the sync loop moves, as the kubelet does (pkg/kubelet/watchdog). Without it systemd kills the
// agent and starts another: pods run on. A runtime that hangs does not withhold it, since another agent would not help.
//
// The socket is a datagram socket, which Node does not have: systemd-notify sends each message, one process of some 5 ms
// CPU. It runs as a direct child and gives its parent as the sender: systemd accepts messages of the main process of a service
// alone (NotifyAccess=main).

import type { Clock } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { execOk } from '../../lib/exec.ts';
import type { Log } from '../../lib/log.ts';
import { getOwn } from '../../lib/own-property.ts';
import { repeat, retryUntilAborted, steadyPauses } from '../../lib/retry.ts';
import type { Tracer } from '../../lib/trace.ts';

/** A message that could not be sent is tried once more after this long, ms. */
const RETRY_MS = 1000;
const SEND_MS = 10_000;

type Environment = Readonly<Record<string, string | undefined>>;

export interface ServiceManager {
  /** Half of what the watchdog grants, in ms; undefined where there is none, or it watches another process. */
  readonly watchdogMs: number | undefined;
}

/**
 * The messages that systemd expects from the process `pid`; undefined without a notify socket. Throws UserError when WATCHDOG_USEC or
 * WATCHDOG_PID make no sense. Pure.
 */
export function serviceManager(env: Environment, pid: number): ServiceManager | undefined {
  const number = (name: string): number | undefined => {
    const text = getOwn(env, name) ?? '';
    if (text === '') return undefined;
    if (/^\d+$/.test(text) && Number(text) > 0) return Number(text);
    throw new UserError(`configure watchdog: ${name} is "${text}" and must be a positive number`);
  };
  const [microseconds, wanted] = [number('WATCHDOG_USEC'), number('WATCHDOG_PID')];
  if ((env['NOTIFY_SOCKET'] ?? '') === '') return undefined;
  const watched = microseconds !== undefined && (wanted === undefined || wanted === pid);
  return { watchdogMs: watched ? microseconds / 2000 : undefined };
}

export interface WatchdogOptions {
  /** Why the agent is not healthy; undefined while it is. */
  readonly problem: () => string | undefined;
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly log: Log;
  /** Sends one message to systemd; by default with systemd-notify. */
  readonly send?: (message: string) => Promise<void>;
}

const systemdNotify = async (message: string): Promise<void> => {
  await execOk('systemd-notify', ['--no-block', message], { timeoutMs: SEND_MS });
};

/** Sends READY=1, and then WATCHDOG=1 while the agent is healthy until `signal` aborts. Never rejects. */
export async function notifyServiceManager(
  manager: ServiceManager,
  options: WatchdogOptions,
  signal: AbortSignal,
): Promise<void> {
  const { clock, tracer, log, problem, send = systemdNotify } = options;
  const { watchdogMs } = manager;
  const notify = async (message: string): Promise<void> => {
    try {
      const options = { clock, policy: steadyPauses(RETRY_MS), maxTries: 2, signal };
      await retryUntilAborted(() => tracer.span('systemd', message, {}, () => send(message)), options);
    } catch (error) {
      log('warn', `systemd was not notified of ${message}: ${errorMessage(error)}`);
    }
  };
  await notify('READY=1');
  if (watchdogMs === undefined) return;
  log('info', "systemd's watchdog is fed", { everyMs: watchdogMs });
  const feed = async (): Promise<undefined> => {
    const why = problem();
    if (why === undefined) await notify('WATCHDOG=1');
    else log('error', `systemd's watchdog is not fed: the agent is not healthy: ${why}`);
  };
  await repeat(feed, { clock, everyMs: watchdogMs, signal });
}
