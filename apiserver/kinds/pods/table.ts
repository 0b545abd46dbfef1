// How kubectl get prints pods. The STATUS column is computed from the whole status, in the order in
// which the real server does it, since scripts parse it.

import { type EpochMs, elapsedMs, later } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import { isSidecar } from '../../../lib/sidecar.ts';
import { type Cell, humanDuration, namedTable, text } from '../columns.ts';
import type { ResourceStrategy } from '../resource.ts';
import { type Pod, type PodStatus, podOf } from '../shapes.ts';

type ContainerStatus = NonNullable<PodStatus['containerStatuses']>[number];

export const podTable: NonNullable<ResourceStrategy['table']> = namedTable(
  [
    text('Ready', 'The aggregate readiness state of this pod for accepting traffic.'),
    text('Status', 'The aggregate status of the containers in this pod.'),
    text(
      'Restarts',
      'The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.',
    ),
  ],
  (object, now) => {
    const summary = summarize(podOf(object));
    return [`${summary.ready}/${summary.total}`, summary.reason, restarts(summary, now)];
  },
  {
    columns: [
      text(
        'IP',
        'IP address allocated to the pod. Routable at least within the cluster. Empty if not yet allocated.',
        1,
      ),
      text('Node', 'NodeName indicates in which node this pod is scheduled.', 1),
      text('Nominated Node', 'nominatedNodeName is set only when this pod preempts other pods on the node.', 1),
      text('Readiness Gates', 'Conditions that the pod needs besides its containers.', 1),
    ],
    cells: (object) => wideCells(podOf(object)),
  },
);

interface Summary {
  readonly ready: number;
  readonly total: number;
  readonly reason: string;
  readonly restarts: number;
  /** Of the newest restart. */
  readonly lastRestart: EpochMs | undefined;
}

function restarts(summary: Summary, now: EpochMs): string {
  if (summary.restarts === 0 || summary.lastRestart === undefined) return String(summary.restarts);
  return `${summary.restarts} (${humanDuration(elapsedMs(summary.lastRestart, now))} ago)`;
}

function wideCells(pod: Pod): readonly Cell[] {
  const status = pod.status;
  const gates = pod.spec?.readinessGates ?? [];
  const fulfilled = gates.filter((gate) =>
    (status?.conditions ?? []).some((one) => one.type === gate.conditionType && one.status === 'True'),
  );
  return [
    nonEmpty(status?.podIPs?.[0]?.ip ?? status?.podIP),
    nonEmpty(pod.spec?.nodeName),
    nonEmpty(status?.nominatedNodeName),
    gates.length === 0 ? '<none>' : `${fulfilled.length}/${gates.length}`,
  ];
}

function nonEmpty(value: string | undefined): string {
  return value === undefined || value === '' ? '<none>' : value;
}

/** The STATUS column and the figures around it. */
export function summarize(pod: Pod): Summary {
  const spec = pod.spec ?? {};
  const status = pod.status ?? {};
  const phase = status.phase ?? '';
  let reason = status.reason !== undefined && status.reason !== '' ? status.reason : phase;
  if ((status.conditions ?? []).some((one) => one.type === 'PodScheduled' && one.reason === 'SchedulingGated')) {
    reason = 'SchedulingGated';
  }

  const sidecars = new Set((spec.initContainers ?? []).filter(isSidecar).map(({ name }) => name));
  const init = summarizeInit(pod, sidecars);
  let { restarts: restartCount, lastRestart } = init;
  let ready = init.ready;
  const initializing = init.reason !== undefined;
  if (init.reason !== undefined) reason = init.reason;

  if (!initializing || isTrue(status, 'Initialized')) {
    // Only the sidecars' restarts count once the others are done.
    restartCount = init.sidecarRestarts;
    lastRestart = init.sidecarLastRestart;
    let running = false;
    for (const container of [...(status.containerStatuses ?? [])].reverse()) {
      restartCount += container.restartCount ?? 0;
      lastRestart = newest(lastRestart, container);
      const { waiting, terminated } = container.state ?? {};
      if (waiting?.reason !== undefined && waiting.reason !== '') reason = waiting.reason;
      else if (terminated !== undefined) reason = terminatedReason(terminated);
      else if (container.ready === true && container.state?.running !== undefined) {
        running = true;
        ready++;
      }
    }
    if (reason === 'Completed' && running) reason = isTrue(status, 'Ready') ? 'Running' : 'NotReady';
  }

  if (pod.metadata.deletionTimestamp !== undefined) {
    if (status.reason === 'NodeLost') reason = 'Unknown';
    else if (phase !== 'Failed' && phase !== 'Succeeded') reason = 'Terminating';
  }
  return {
    ready,
    total: (spec.containers ?? []).length + sidecars.size,
    reason,
    restarts: restartCount,
    lastRestart,
  };
}

interface InitSummary {
  /** Undefined when initialisation is over. */
  readonly reason: string | undefined;
  readonly ready: number;
  readonly restarts: number;
  readonly lastRestart: EpochMs | undefined;
  readonly sidecarRestarts: number;
  readonly sidecarLastRestart: EpochMs | undefined;
}

function summarizeInit(pod: Pod, sidecars: ReadonlySet<string | undefined>): InitSummary {
  const specs = pod.spec?.initContainers ?? [];
  const figures = { ready: 0, restarts: 0, sidecarRestarts: 0 };
  let lastRestart: EpochMs | undefined;
  let sidecarLastRestart: EpochMs | undefined;
  let reason: string | undefined;
  for (const [index, container] of (pod.status?.initContainerStatuses ?? []).entries()) {
    const sidecar = sidecars.has(container.name);
    figures.restarts += container.restartCount ?? 0;
    lastRestart = newest(lastRestart, container);
    if (sidecar) {
      figures.sidecarRestarts += container.restartCount ?? 0;
      sidecarLastRestart = newest(sidecarLastRestart, container);
    }
    if (container.state?.terminated?.exitCode === 0 && container.state.terminated !== undefined) continue;
    if (sidecar && container.started === true) {
      if (container.ready === true) figures.ready++;
      continue;
    }
    reason = initReason(container, index, specs.length);
    break;
  }
  return { ...figures, lastRestart, sidecarLastRestart, reason };
}

function initReason(container: ContainerStatus, index: number, total: number): string {
  const { waiting, terminated } = container.state ?? {};
  if (terminated !== undefined) return `Init:${terminatedReason(terminated)}`;
  const why = waiting?.reason ?? '';
  if (why !== '' && why !== 'PodInitializing') return `Init:${why}`;
  return `Init:${index}/${total}`;
}

type Terminated = NonNullable<NonNullable<ContainerStatus['state']>['terminated']>;

function terminatedReason(terminated: Terminated): string {
  if (terminated.reason !== undefined && terminated.reason !== '') return terminated.reason;
  const signal = terminated.signal ?? 0;
  return signal === 0 ? `ExitCode:${terminated.exitCode ?? 0}` : `Signal:${signal}`;
}

function newest(known: EpochMs | undefined, container: ContainerStatus): EpochMs | undefined {
  const finished = parseRfc3339(container.lastState?.terminated?.finishedAt);
  return finished === undefined || known === undefined ? (finished ?? known) : later(finished, known);
}

function isTrue(status: PodStatus, type: string): boolean {
  return (status.conditions ?? []).some((one) => one.type === type && one.status === 'True');
}
