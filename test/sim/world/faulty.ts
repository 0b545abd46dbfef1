// Agents that are wrong on purpose, so that it can be tested whether the rules notice: what a fault says is done between
// the pods' workers and their ports.

import type { PodProbes } from '../../../agent/ports/probes.ts';
import type { ContainerId, ContainerRuntime } from '../../../agent/ports/runtime.ts';
import type { RuntimeState } from '../../../labs/sim/cri/state.ts';
import type { Faults } from '../../../labs/sim/faults.ts';
import type { BackoffPolicy } from '../../../lib/backoff.ts';
import { isSidecar } from '../../../lib/sidecar.ts';

export function faultyRuntime<R extends ContainerRuntime>(runtime: R, faults: Faults, state: RuntimeState): R {
  const stopSidecars = (id: ContainerId, graceSeconds: number): void => {
    const stopped = state.instance(id);
    if (stopped === undefined) return;
    for (const other of state.pods.get(stopped.pod.uid)?.instances ?? []) {
      const { container } = other.spec;
      if (other === stopped || !('restartPolicy' in container) || !isSidecar(container)) continue;
      runtime.stopContainer(other.id as ContainerId, graceSeconds).catch(() => undefined);
    }
  };
  const stops = new Map<ContainerId, Promise<void>>();
  const stopOnce = (id: ContainerId, graceSeconds: number): Promise<void> => {
    const underWay = stops.get(id);
    if (underWay !== undefined) return underWay;
    const stop = runtime.stopContainer(id, graceSeconds).finally(() => stops.delete(id));
    stops.set(id, stop);
    return stop;
  };
  const wrong: Partial<ContainerRuntime> = {
    ...(faults.has('the agent forgets preStop hooks')
      ? {
          execSync: (id, command, timeoutMs) => {
            if (command[1] !== 'preStop') return runtime.execSync(id, command, timeoutMs);
            const none = Buffer.alloc(0);
            return Promise.resolve({ stdout: none, stderr: none, exitCode: 0, timedOut: false });
          },
        }
      : {}),
    ...(faults.has('the agent shortens grace periods')
      ? { stopContainer: (id, graceSeconds) => runtime.stopContainer(id, Math.floor(graceSeconds / 3)) }
      : {}),
    ...(faults.has('the agent ignores shortened grace periods') ? { stopContainer: stopOnce } : {}),
    ...(faults.has('the agent stops sidecars with the rest')
      ? {
          stopContainer: (id, graceSeconds) => {
            stopSidecars(id, graceSeconds);
            return runtime.stopContainer(id, graceSeconds);
          },
        }
      : {}),
    ...(faults.has('the agent says that it resized and did not')
      ? { updateContainerResources: () => Promise.resolve() }
      : {}),
  };
  return { ...runtime, ...wrong };
}

export function faultyProbes<P extends PodProbes>(probes: P, faults: Faults): P {
  const { results } = probes;
  const wrong = {
    ...(faults.has('the agent believes that everything is alive') ? { liveness: () => 'success' as const } : {}),
    ...(faults.has('the agent believes that everything is ready') ? { readiness: () => 'success' as const } : {}),
  };
  if (Object.keys(wrong).length === 0) return probes;
  const wrongResults = {
    liveness: (id: ContainerId) => results.liveness(id),
    readiness: (id: ContainerId) => results.readiness(id),
    startup: (id: ContainerId) => results.startup(id),
    ...wrong,
  };
  return new Proxy(probes, {
    get: (target, key) => {
      if (key === 'results') return wrongResults;
      const member: unknown = Reflect.get(target, key, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

export function faultyBackoff(faults: Faults): { restartBackoff?: BackoffPolicy } {
  if (faults.has('the agent restarts too late')) {
    return { restartBackoff: { initialMs: 600_000, maxMs: 600_000, factor: 1, resetMs: 600_000 } };
  }
  if (!faults.has('the agent restarts at once')) return {};
  return { restartBackoff: { initialMs: 1, maxMs: 1, factor: 1, resetMs: 1 } };
}
