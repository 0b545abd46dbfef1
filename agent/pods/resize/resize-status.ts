// What is reported of resources and of a resize: allocatedResources and resources of each container, the conditions
// PodResizePending and PodResizeInProgress, status.resize for clients of old, and the events' texts. Pure.

import type { Container, ContainerStatus, Pod } from '../../../client/types.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { formatBytes, formatMilli } from '../../../lib/quantity.ts';
import { isSidecar } from '../../../lib/sidecar.ts';
import { cpuQuotaUs, cpuShares, resourceFigures } from '../../model/pod-resources.ts';
import type { ContainerResourceFigures, ContainerSnapshot } from '../../ports/runtime.ts';
import { type Quantities, type Resources, resourcesOf } from './allocation.ts';

/** Where a resize of the pod stands. */
export interface ResizeReport {
  /** It is asked for and not granted. */
  readonly pending?: { readonly reason: 'Deferred' | 'Infeasible'; readonly message: string };
  /** It is granted and not done; with what went wrong, if something did, and the generation of the pod that asked. */
  readonly inProgress?: { readonly error?: string; readonly generation?: number };
  /** What containers run with, by name, where it is not what they have been promised. */
  readonly actual: Readonly<Record<string, Resources>>;
}

/** PodStatus.resize: superseded by the conditions, and still read by clients of 1.27 to 1.32. */
export function resizeField(report: ResizeReport | undefined): 'Deferred' | 'Infeasible' | 'InProgress' | undefined {
  return report?.pending?.reason ?? (report?.inProgress === undefined ? undefined : 'InProgress');
}

export interface ResizeVerdictCondition {
  readonly status: 'True';
  readonly reason?: string;
  readonly message?: string;
  readonly observedGeneration?: number;
}

export function resizeConditions(report: ResizeReport | undefined): readonly [string, ResizeVerdictCondition][] {
  const found: [string, ResizeVerdictCondition][] = [];
  if (report?.pending !== undefined) found.push(['PodResizePending', { status: 'True', ...report.pending }]);
  if (report?.inProgress !== undefined) {
    const { error, generation } = report.inProgress;
    const failed = error === undefined ? {} : { reason: 'Error', message: error };
    // Of the spec that was granted, which may be an older one than is asked for by now.
    const observed = generation === undefined ? {} : { observedGeneration: generation };
    found.push(['PodResizeInProgress', { status: 'True', ...failed, ...observed }]);
  }
  return found;
}

/** The figure that the runtime tells goes before the one it was told; equal ones keep the user's spelling. */
function cpuLimitOf(told: string, { cpuQuota, cpuPeriod }: ContainerResourceFigures): string {
  if (cpuQuota === undefined || cpuPeriod === undefined || cpuQuota <= 0 || cpuPeriod <= 0) return told;
  if (cpuQuotaUs(resourceFigures({ cpu: told }).cpuMilli ?? 0, cpuPeriod) === cpuQuota) return told;
  return formatMilli(Math.ceil((cpuQuota * 1000) / cpuPeriod));
}

function cpuRequestOf(told: string, { cpuShares: shares }: ContainerResourceFigures): string {
  if (shares === undefined || shares <= 0) return told;
  if (cpuShares(resourceFigures({ cpu: told }).cpuMilli ?? 0) === shares) return told;
  return formatMilli(Math.ceil((shares * 1000) / 1024));
}

function memoryLimitOf(told: string, { memoryLimitBytes }: ContainerResourceFigures): string {
  if (memoryLimitBytes === undefined || memoryLimitBytes <= 0) return told;
  if (resourceFigures({ memory: told }).memoryBytes === memoryLimitBytes) return told;
  return formatBytes(memoryLimitBytes);
}

function replaced(quantities: Quantities, name: string, of: (told: string) => string): Quantities {
  const told = getOwn(quantities, name);
  return told === undefined ? quantities : { ...quantities, [name]: of(told) };
}

/**
 * `resources` and `allocatedResources` of a container's status, there once the runtime knows an instance of it. One that
 * does not run any more shows what it would run with.
 */
export function reportedResources(
  container: Pick<Container, 'resources'>,
  instance: ContainerSnapshot | undefined,
  actual: Resources | undefined,
): Pick<ContainerStatus, 'resources' | 'allocatedResources'> {
  if (instance === undefined) return {};
  const promised = resourcesOf(container);
  const runs = instance.state === 'running';
  let { requests, limits } = runs ? (actual ?? promised) : promised;
  const told = runs ? instance.resources : undefined;
  if (told !== undefined) {
    if (limits !== undefined) {
      limits = replaced(limits, 'cpu', (quantity) => cpuLimitOf(quantity, told));
      limits = replaced(limits, 'memory', (quantity) => memoryLimitOf(quantity, told));
    }
    if (requests !== undefined) requests = replaced(requests, 'cpu', (quantity) => cpuRequestOf(quantity, told));
  }
  return {
    ...(promised.requests === undefined ? {} : { allocatedResources: { ...promised.requests } }),
    resources: {
      ...(limits === undefined ? {} : { limits: { ...limits } }),
      ...(requests === undefined ? {} : { requests: { ...requests } }),
    },
  };
}

/** The kubelet's text of a resize event: the words, then what is asked for as JSON. */
export function resizeEventMessage(words: string, pod: Pod, error?: string): string {
  const summary = (container: Container) => ({ name: container.name, resources: resourcesOf(container) });
  const init = (pod.spec.initContainers ?? []).filter(isSidecar).map(summary);
  const details = {
    ...(init.length === 0 ? {} : { initContainers: init }),
    containers: pod.spec.containers.map(summary),
    generation: pod.metadata.generation ?? 0,
    ...(error === undefined ? {} : { error }),
  };
  return `${words}: ${JSON.stringify(details)}`;
}
