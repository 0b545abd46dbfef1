// What the agent of a simulated world gets from it: a client whose requests are spans, probes over the network, and the part of
// eviction that can come about there.

import type { KubeletConfiguration } from '../../../agent/config/kubelet-fields.ts';
import type { ProbeRunners } from '../../../agent/probes/runners.ts';
import { requestInfo } from '../../../client/paths.ts';
import type { SimMachine } from '../../../labs/sim/agent.ts';
import type { SimCluster } from '../../../labs/sim/cluster.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { Tracer } from '../../../lib/trace.ts';
import type { ExperimentMachine } from './machine.ts';

/** The agent's requests are spans, by the names that its own client gives them. */
export function tracedApi(cluster: SimCluster, tracer: Tracer): SimMachine['api'] {
  const spanOf = <T>(verb: string, path: string, body: () => Promise<T>): Promise<T> => {
    const { resource, namespace, name } = requestInfo(path);
    return tracer.span('api', `${verb} ${resource}`, { path, namespace, name }, body);
  };
  return {
    list: (path, query) => spanOf('LIST', path, () => cluster.list(path, query)),
    watch: (path, query, signal) => cluster.watch(path, query, signal),
    get: (path, query, options) => spanOf('GET', path, () => cluster.get(path, query, options)),
    create: (path, body, options) => spanOf('POST', path, () => cluster.create(path, body, options)),
    replace: (path, body, options) => spanOf('PUT', path, () => cluster.replace(path, body, options)),
    patch: (path, body, type, options) => spanOf('PATCH', path, () => cluster.patch(path, body, type, options)),
    delete: (path, options) => spanOf('DELETE', path, () => cluster.delete(path, options)),
  };
}

const COUNTED: ReadonlySet<string> = new Set(['memory.available', 'nodefs.available', 'imagefs.available']);

/** Memory and disk run out here: thresholds of inodes and process ids are never met, and are left out. */
export function evictionOf(config: KubeletConfiguration) {
  const { evictionHard, evictionSoft, evictionSoftGracePeriod, evictionMinimumReclaim } = config;
  return {
    evictionHard: Object.fromEntries(Object.entries(evictionHard).filter(([signal]) => COUNTED.has(signal))),
    evictionSoft,
    evictionSoftGracePeriod,
    evictionMinimumReclaim,
    evictionMaxPodGracePeriod: config.evictionMaxPodGracePeriod,
    evictionPressureTransitionPeriod: config.evictionPressureTransitionPeriod,
  };
}

/** Probes over the network: a process of a container that listens on the port answers. */
export function probeRunnersOf(
  { runtime, processes }: ExperimentMachine,
  clock: Clock,
): Pick<ProbeRunners, 'httpGet' | 'tcpSocket'> {
  const answer = (host: string, port: number, path: string): number | undefined => {
    for (const instance of runtime.state.instances()) {
      const sandbox = runtime.state.sandbox(instance.sandboxId);
      if (instance.process === undefined || sandbox?.ips.includes(host) !== true) continue;
      const status = processes.httpStatus(instance.process, port, path);
      if (status !== undefined) return status;
    }
    return undefined;
  };
  return {
    httpGet: async ({ host, port, target }, _timeoutMs, signal) => {
      await clock.sleep(1, signal);
      const status = answer(host, port, target);
      if (status === undefined)
        return {
          kind: 'failure',
          output: `Get "http://${host}:${port}${target}": dial tcp ${host}:${port}: connect: connection refused`,
        };
      if (status < 400) return { kind: 'success', output: 'ok' };
      return { kind: 'failure', output: `HTTP probe failed with statuscode: ${status}` };
    },
    tcpSocket: async ({ host, port }, _timeoutMs, signal) => {
      await clock.sleep(1, signal);
      return answer(host, port, '/') === undefined
        ? { kind: 'failure', output: `dial tcp ${host}:${port}: connect: connection refused` }
        : { kind: 'success', output: 'ok' };
    },
  };
}
