// How probes over the network find the simulated containers: by the address and port that the agent believes in, so that
// one that is out of date meets no listener, or another one.

import type { ProbeOutcome } from '../../agent/probes/outcome.ts';
import type { ProbeRunners } from '../../agent/probes/runners.ts';
import type { Clock } from '../../lib/clock.ts';
import type { SimCri } from './cri/runtime.ts';
import type { ProbeKind, Processes } from './processes.ts';

function kindOf(path: string): ProbeKind {
  return path === '/startup' ? 'startup' : path === '/readiness' ? 'readiness' : 'liveness';
}

export function simProbeRunners(
  runtime: SimCri,
  processes: Processes,
  clock: Clock,
): Pick<ProbeRunners, 'httpGet' | 'tcpSocket'> {
  const ask = async (host: string, port: number, kind: ProbeKind, signal: AbortSignal): Promise<ProbeOutcome> => {
    await clock.sleep(1, signal);
    const process = runtime.state.listener(host, port)?.process;
    if (process === undefined) return { kind: 'failure', output: `dial tcp ${host}:${port}: connection refused` };
    return processes.isWell(process, kind)
      ? { kind: 'success', output: 'ok' }
      : { kind: 'failure', output: 'HTTP probe failed with statuscode: 503' };
  };
  return {
    httpGet: ({ host, port, target }, _timeoutMs, signal) => ask(host, port, kindOf(target), signal),
    // Any listener is enough: a connection shows that a process is alive.
    tcpSocket: ({ host, port }, _timeoutMs, signal) => ask(host, port, 'liveness', signal),
  };
}
