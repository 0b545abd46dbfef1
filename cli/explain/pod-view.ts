// Questions that several rules ask about a pod: its containers with their statuses, the last events of a reason, the last
// failed call in the trace. Pure.

import type { Container, ContainerStatus, PodCondition } from '../../client/types.ts';
import { type EpochMs, epochMs, plusMs } from '../../lib/clock.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { Span } from '../../lib/trace.ts';
import type { EventFact, PodFacts } from './facts.ts';
import type { Cause } from './finding.ts';

export interface ContainerView {
  readonly spec: Container;
  readonly status: ContainerStatus | undefined;
  readonly init: boolean;
}

/** Init containers first, each in the order of the spec. */
export function containers({ pod }: PodFacts): readonly ContainerView[] {
  const { initContainers = [], containers: main } = pod.spec;
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  const view =
    (init: boolean, statuses: readonly ContainerStatus[]) =>
    (spec: Container): ContainerView => ({
      spec,
      init,
      status: statuses.find(({ name }) => name === spec.name),
    });
  return [...initContainers.map(view(true, initContainerStatuses)), ...main.map(view(false, containerStatuses))];
}

/** An init container that goes on beside the containers (KEP-753). */
export function isSidecar({ init, spec }: ContainerView): boolean {
  return init && spec.restartPolicy === 'Always';
}

/** The first container that waits for one of these reasons. */
export function waitingFor(facts: PodFacts, ...reasons: readonly string[]): ContainerView | undefined {
  return containers(facts).find(({ status }) => reasons.includes(status?.state?.waiting?.reason ?? ''));
}

export function condition({ pod }: PodFacts, type: string): PodCondition | undefined {
  return pod.status?.conditions?.find((each) => each.type === type);
}

export function isScheduled({ pod }: PodFacts): boolean {
  return (pod.spec.nodeName ?? '') !== '';
}

export function isEnded({ pod }: PodFacts): boolean {
  return pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded';
}

export function isDeleted({ pod }: PodFacts): boolean {
  return pod.metadata.deletionTimestamp !== undefined;
}

export function created({ pod }: PodFacts): EpochMs | undefined {
  return parseRfc3339(pod.metadata.creationTimestamp);
}

/** "-n demo web": the pod for a command of kubectl. */
export function podArgument({ pod }: PodFacts): string {
  return `-n ${pod.metadata.namespace} ${pod.metadata.name}`;
}

/** The newest event of one of the reasons whose message fits, or contains the text. */
export function lastEvent(
  { events }: Pick<PodFacts, 'events'>,
  reasons: readonly string[],
  message: RegExp | string = '',
): EventFact | undefined {
  return events.findLast((event) => {
    const fits = typeof message === 'string' ? event.message.includes(message) : message.test(event.message);
    return fits && reasons.includes(event.reason);
  });
}

/** Since when and how often, as the event counts. */
export function timing(event: EventFact | undefined): Pick<Cause, 'since' | 'at' | 'count'> {
  if (event === undefined) return {};
  return event.count > 1 ? { since: event.first, count: event.count } : { at: event.last };
}

export function endOf(span: Span): EpochMs {
  return epochMs(span.start + span.durationMs);
}

/** Spans that `accept` takes, from the end back to the last that succeeded: the failures since then, oldest first. */
export function failuresInARow(spans: readonly Span[], accept: (span: Span) => boolean): readonly Span[] {
  const own = spans.filter(accept);
  const good = own.findLastIndex(({ outcome }) => outcome === 'ok');
  return own.slice(good + 1);
}

interface Pauses {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly factor: number;
}

/**
 * When something is tried again that is tried after growing pauses: the end of the last try and the pause after so many
 * failures, from the trace, or else from the event. Undefined without failures.
 */
export function nextTry(
  failures: readonly Span[],
  event: EventFact | undefined,
  { initialMs, maxMs, factor }: Pauses,
): EpochMs | undefined {
  const span = failures.at(-1);
  const last = span === undefined ? event?.last : endOf(span);
  // The trace may begin after the first failure.
  const count = Math.max(failures.length, event?.count ?? 0);
  return last === undefined ? undefined : plusMs(last, Math.min(initialMs * factor ** (count - 1), maxMs));
}

/** Whether any container has ever been started. */
export function hasStarted(facts: PodFacts): boolean {
  return containers(facts).some(
    ({ status }) =>
      status?.state?.running !== undefined ||
      (status?.restartCount ?? 0) > 0 ||
      status?.state?.terminated !== undefined,
  );
}
