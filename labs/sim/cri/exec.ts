// ExecSync of a simulated runtime: runs a command beside the process of a container, for as long as it may take. It changes
// nothing of the container.

import type { Clock } from '../../../lib/clock.ts';
import type { ProcessTable } from '../processes.ts';
import { criError } from './errors.ts';
import type { RuntimeEvents } from './events.ts';
import type { Instance } from './state.ts';

const DAY_MS = 86_400_000;

export interface ExecParts {
  readonly clock: Clock;
  readonly processes: ProcessTable;
  readonly events: RuntimeEvents;
  /** Waits, unless the runtime goes away before that. */
  readonly waits: <T>(what: Promise<T>) => Promise<T>;
}

export interface ExecRequest {
  /** Of the container. */
  readonly id: string;
  readonly command: readonly string[];
  /** 0 is no limit. */
  readonly timeoutSeconds: number;
}

/** `instance`: undefined where the runtime has no such container. Rejects with CRI's error. */
export async function execSync(
  instance: Instance | undefined,
  { id, command, timeoutSeconds }: ExecRequest,
  { clock, processes, events, waits }: ExecParts,
) {
  const call = 'ExecSync';
  if (instance === undefined) throw criError(call, 'NOT_FOUND', `no container ${id}`);
  if (instance.shown !== 'running') throw criError(call, 'UNKNOWN', `container is in ${instance.shown} state`);
  if (instance.process === undefined) throw criError(call, 'UNKNOWN', 'ttrpc: closed: unknown');
  const limitMs = timeoutSeconds > 0 ? timeoutSeconds * 1000 : DAY_MS;
  const outcome = await waits(processes.exec(instance.process, command, limitMs));
  const process = `exec-${clock.monotonic()}`;
  events.emitBus({ topic: '/tasks/exit', id, process, exitCode: outcome.exitCode });
  if (outcome.timedOut) throw criError(call, 'DEADLINE_EXCEEDED', `command timed out: timeout ${limitMs} exceeded`);
  return outcome;
}
