// The lifetimes of sandboxes and containers, from the calls that started and ended them. Pure.

import { type EpochMs, earlier, later, plusMs } from '../../lib/clock.ts';
import type { Span } from '../../lib/trace.ts';
import { attributeText } from './lanes.ts';

export interface Lifetime {
  readonly id: string;
  /** "web", "sandbox" */
  readonly name: string;
  readonly pod: Span['pod'];
  readonly start: EpochMs;
  /** Undefined while it runs. */
  readonly end: EpochMs | undefined;
  /** The span after which it ran. */
  readonly startedBy: number;
}

const endOf = ({ start, durationMs }: Span): EpochMs => plusMs(start, durationMs);

const ENDING_CALLS = /^(StopContainer|RemoveContainer)$/;
const ENDING_EVENTS = /(containerDied|CONTAINER_STOPPED_EVENT)$/;
const ENDING_SANDBOX = /^(StopPodSandbox|RemovePodSandbox)$/;

/** Names of containers by id: of the action that started each, or of the call that created it. */
export function containerNames(spans: readonly Span[]): Map<string, string> {
  const byId = new Map(spans.map((span) => [span.id, span]));
  const names = new Map<string, string>();
  for (const { kind, name, attributes, parent } of spans) {
    if (kind !== 'cri') continue;
    const { container, id } = attributes;
    if (name === 'CreateContainer' && typeof container === 'string' && typeof id === 'string') names.set(id, container);
    if (name !== 'StartContainer' || typeof container !== 'string') continue;
    const started = /^start (.+)$/.exec(attributeText(byId.get(parent ?? -1)?.attributes['action']))?.[1];
    if (started !== undefined) names.set(container, started);
  }
  return names;
}

function containerLifetimes(spans: readonly Span[], names: ReadonlyMap<string, string>): Lifetime[] {
  return spans.flatMap((span): Lifetime[] => {
    const id = attributeText(span.attributes['container']);
    if (span.kind !== 'cri' || span.name !== 'StartContainer' || span.outcome === 'error' || id === '') return [];
    const ends = spans.flatMap((each) => {
      if (each.kind !== 'cri' || each.outcome === 'error' || each.start < span.start) return [];
      if (ENDING_EVENTS.test(each.name) && each.attributes['containerId'] === id) return [each.start];
      return ENDING_CALLS.test(each.name) && each.attributes['container'] === id ? [endOf(each)] : [];
    });
    const [firstEnd, ...otherEnds] = ends;
    return [
      {
        id,
        name: names.get(id) ?? id.slice(0, 12),
        pod: span.pod,
        start: endOf(span),
        end: firstEnd === undefined ? undefined : later(endOf(span), otherEnds.reduce(earlier, firstEnd)),
        startedBy: span.id,
      },
    ];
  });
}

/** A sandbox ends with the next call that stops one of its pod. */
function sandboxLifetimes(spans: readonly Span[]): Lifetime[] {
  return spans.flatMap((span): Lifetime[] => {
    if (span.kind !== 'cri' || span.name !== 'RunPodSandbox' || span.outcome === 'error') return [];
    const stop = spans.find(
      (each) =>
        each.kind === 'cri' &&
        ENDING_SANDBOX.test(each.name) &&
        each.pod?.uid === span.pod?.uid &&
        each.start >= endOf(span),
    );
    return [
      {
        id: `sandbox ${span.id}`,
        name: 'sandbox',
        pod: span.pod,
        start: endOf(span),
        end: stop === undefined ? undefined : endOf(stop),
        startedBy: span.id,
      },
    ];
  });
}

/** `spans` by start. */
export function lifetimes(spans: readonly Span[], names: ReadonlyMap<string, string>): Lifetime[] {
  return [...sandboxLifetimes(spans), ...containerLifetimes(spans, names)].sort((a, b) => a.start - b.start);
}
