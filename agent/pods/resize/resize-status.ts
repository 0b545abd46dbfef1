// What is reported of resources and of a resize: allocatedResources and resources of each container, the conditions
// PodResizePending and PodResizeInProgress, status.resize for old clients, and the events' texts. Pure.

import type { Container, ContainerStatus, Pod } from '../../../client/types.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { formatBytes, formatMilli } from '../../../lib/quantity.ts';
import { isSidecar } from '../../../lib/sidecar.ts';
import { cpuQuotaUs, cpuShares, resourceFigures } from '../../model/pod-resources.ts';
import type { ContainerResourceFigures, ContainerSnapshot } from '../../ports/runtime.ts';
import { type Quantities, type Resources, resourcesOf } from './allocation.ts';

/** The state of a pod's resize. */
export interface ResizeReport {
  /** Desired and not allocated. */
  readonly pending?: { readonly reason: 'Deferred' | 'Infeasible'; readonly message: string };
  /** Allocated and not actuated, with the last error and the generation of the pod whose resize was allocated. */
  readonly inProgress?: { readonly error?: string; readonly generation?: number };
  /** Actuated resources by container name, where they differ from the allocated ones. */
  readonly actual: Readonly<Record<string, Resources>>;
}

/** PodStatus.resize: superseded by the conditions, and still read by clients of 1.27 to 1.32. */
export function resizeField(report: ResizeReport | undefined): 'Deferred' | 'Infeasible' | 'InProgress' | undefined {
  return report?.pending?.reason ?? (report?.inProgress === undefined ? undefined : 'InProgress');
}

export interface ResizeCondition {
  readonly status: 'True';
  readonly reason?: string;
  readonly message?: string;
  readonly observedGeneration?: number;
}

export function resizeConditions(report: ResizeReport | undefined): readonly [string, ResizeCondition][] {
  const found: [string, ResizeCondition][] = [];
  if (report?.pending !== undefined) found.push(['PodResizePending', { status: 'True', ...report.pending }]);
  if (report?.inProgress !== undefined) {
    const { error, generation } = report.inProgress;
    const failed = error === undefined ? {} : { reason: 'Error', message: error };
    // Of the spec that was allocated, which may be older than the present one.
    const observed = generation === undefined ? {} : { observedGeneration: generation };
    found.push(['PodResizeInProgress', { status: 'True', ...failed, ...observed }]);
  }
  return found;
}

/** The runtime's figure, unless it equals the allocated quantity: then the user's spelling stays. */
function cpuLimitOf(allocated: string, { cpuQuota, cpuPeriod }: ContainerResourceFigures): string {
  if (cpuQuota === undefined || cpuPeriod === undefined || cpuQuota <= 0 || cpuPeriod <= 0) return allocated;
  if (cpuQuotaUs(resourceFigures({ cpu: allocated }).cpuMilli ?? 0, cpuPeriod) === cpuQuota) return allocated;
  return formatMilli(Math.ceil((cpuQuota * 1000) / cpuPeriod));
}

function cpuRequestOf(allocated: string, { cpuShares: shares }: ContainerResourceFigures): string {
  if (shares === undefined || shares <= 0) return allocated;
  if (cpuShares(resourceFigures({ cpu: allocated }).cpuMilli ?? 0) === shares) return allocated;
  return formatMilli(Math.ceil((shares * 1000) / 1024));
}

function memoryLimitOf(allocated: string, { memoryLimitBytes }: ContainerResourceFigures): string {
  if (memoryLimitBytes === undefined || memoryLimitBytes <= 0) return allocated;
  if (resourceFigures({ memory: allocated }).memoryBytes === memoryLimitBytes) return allocated;
  return formatBytes(memoryLimitBytes);
}

function replaced(quantities: Quantities, name: string, of: (allocated: string) => string): Quantities {
  const allocated = getOwn(quantities, name);
  return allocated === undefined ? quantities : { ...quantities, [name]: of(allocated) };
}

/**
 * `resources` and `allocatedResources` of a container's status, there once the runtime knows an instance of it. One that
 * does not run shows the allocated resources.
 */
export function reportedResources(
  container: Pick<Container, 'resources'>,
  instance: ContainerSnapshot | undefined,
  actual: Resources | undefined,
): Pick<ContainerStatus, 'resources' | 'allocatedResources'> {
  if (instance === undefined) return {};
  const allocated = resourcesOf(container);
  const runs = instance.state === 'running';
  let { requests, limits } = runs ? (actual ?? allocated) : allocated;
  const runtimeResources = runs ? instance.resources : undefined;
  if (runtimeResources !== undefined) {
    if (limits !== undefined) {
      limits = replaced(limits, 'cpu', (quantity) => cpuLimitOf(quantity, runtimeResources));
      limits = replaced(limits, 'memory', (quantity) => memoryLimitOf(quantity, runtimeResources));
    }
    if (requests !== undefined)
      requests = replaced(requests, 'cpu', (quantity) => cpuRequestOf(quantity, runtimeResources));
  }
  return {
    ...(allocated.requests === undefined ? {} : { allocatedResources: { ...allocated.requests } }),
    resources: {
      ...(limits === undefined ? {} : { limits: { ...limits } }),
      ...(requests === undefined ? {} : { requests: { ...requests } }),
    },
  };
}

/** The kubelet's text of a resize event: the text, then the desired resources as JSON. */
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
