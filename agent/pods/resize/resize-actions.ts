// The action of a resize on a running container: none, an update, or a restart; and the figures of an update. Follows the kubelet's computePodResizeAction. Pure.

import type { Container } from '../../../client/types.ts';
import { cpuQuotaUs, cpuShares } from '../../model/pod-resources.ts';
import type { ContainerResourceFigures } from '../../ports/runtime.ts';
import { type Figures, figuresOf, type Resources, resourcesOf } from './allocation.ts';

export type ContainerResize = 'none' | 'update' | 'restart';

type Resource = 'cpu' | 'memory';

function changed(from: Figures, to: Figures): readonly Resource[] {
  const cpu = from.cpuRequest !== to.cpuRequest || from.cpuLimit !== to.cpuLimit;
  const memory = from.memoryRequest !== to.memoryRequest || from.memoryLimit !== to.memoryLimit;
  return [...(cpu ? (['cpu'] as const) : []), ...(memory ? (['memory'] as const) : [])];
}

/** `actual`: the actuated resources. Without a resizePolicy no restart is needed. */
export function containerResize(container: Container, actual: Resources): ContainerResize {
  const resources = changed(figuresOf(actual), figuresOf(resourcesOf(container)));
  if (resources.length === 0) return 'none';
  const restarts = resources.some((resource) =>
    (container.resizePolicy ?? []).some(
      (policy) => policy.resourceName === resource && policy.restartPolicy === 'RestartContainer',
    ),
  );
  return restarts ? 'restart' : 'update';
}

export interface CpuSettings {
  readonly cpuCFSQuota: boolean;
  readonly cpuCFSQuotaPeriodUs: number;
}

/** The changed figures only: the runtime keeps the rest. */
export function runtimeFigures(from: Resources, to: Resources, settings: CpuSettings): ContainerResourceFigures {
  const [before, after] = [figuresOf(from), figuresOf(to)];
  const resources = changed(before, after);
  const quota = after.cpuLimit === 0 ? -1 : cpuQuotaUs(after.cpuLimit, settings.cpuCFSQuotaPeriodUs);
  return {
    ...(resources.includes('cpu')
      ? {
          // A container that states only a limit requests that limit.
          cpuShares: cpuShares(after.cpuRequest || after.cpuLimit),
          ...(settings.cpuCFSQuota && after.cpuLimit !== before.cpuLimit
            ? { cpuQuota: quota, cpuPeriod: settings.cpuCFSQuotaPeriodUs }
            : {}),
        }
      : {}),
    ...(after.memoryLimit === before.memoryLimit ? {} : { memoryLimitBytes: after.memoryLimit || -1 }),
  };
}

/** The figures that bring an instance to `to`, whichever of `possible` it has; none where only requests for memory differ. */
export function updateFigures(
  possible: readonly Resources[],
  to: Resources,
  settings: CpuSettings,
): ContainerResourceFigures | undefined {
  const figures: ContainerResourceFigures = Object.assign(
    {},
    ...possible.map((from) => runtimeFigures(from, to, settings)),
  );
  return Object.keys(figures).length === 0 ? undefined : figures;
}

/** Why a memory limit of `bytes` is refused: the container uses that much. `used`: undefined where it is not known. */
export function memoryRefusal(name: string, bytes: number, used: number | undefined): string | undefined {
  if (used === undefined || used < bytes) return undefined;
  return `attempting to set container "${name}" memory limit (${bytes}) below current usage (${used})`;
}

/** Bytes below which the container may no longer be, when its memory limit comes down; undefined when it does not. */
export function shrinksMemoryTo(from: Resources, to: Resources): number | undefined {
  const [before, after] = [figuresOf(from).memoryLimit, figuresOf(to).memoryLimit];
  return after > 0 && (before === 0 || after < before) ? after : undefined;
}
