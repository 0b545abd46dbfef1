// Who caused what. The trace says it where one part of the agent knows the other (parent, links). Where the way leads through
// another process (API server, runtime, CNI shim, kernel) it is inferred, by ids and the order of time. Pure.

import type { Span } from '../../lib/trace.ts';

export interface Causes {
  /** The span that a span ran inside, by id; those of the trace and inferred ones. */
  readonly parents: ReadonlyMap<number, number>;
  /** The spans that caused a span without containing it. */
  readonly links: ReadonlyMap<number, readonly number[]>;
  /** "from>to" of what is not in the trace. */
  readonly inferred: ReadonlySet<string>;
}

export const edge = (from: number, to: number): string => `${from}>${to}`;

const endOf = ({ start, durationMs }: Span): number => start + durationMs;

/** Clocks of one machine, read in other processes: ms. */
const SLACK_MS = 1;

/** The calls of the runtime during which it runs CNI plugins, by the plugins' command. */
const CNI_CALLERS: ReadonlyMap<string, RegExp> = new Map([
  ['ADD', /^RunPodSandbox$/],
  ['DEL', /^(RunPodSandbox|StopPodSandbox|RemovePodSandbox)$/],
]);

const EVENT_CALLERS: ReadonlyMap<string, RegExp> = new Map([
  ['containerStarted', /^StartContainer$/],
  ['containerDied', /^(StopContainer|StopPodSandbox|RemovePodSandbox)$/],
  ['containerRemoved', /^(RemoveContainer|RemovePodSandbox)$/],
  ['CONTAINER_CREATED_EVENT', /^(CreateContainer|RunPodSandbox)$/],
  ['CONTAINER_STARTED_EVENT', /^(StartContainer|RunPodSandbox)$/],
  ['CONTAINER_STOPPED_EVENT', /^(StopContainer|StopPodSandbox|RemovePodSandbox)$/],
  ['CONTAINER_DELETED_EVENT', /^(RemoveContainer|RemovePodSandbox)$/],
]);

/** Those of `spans` that were running when `inner` began, the latest first. */
function around(spans: readonly Span[], inner: Span): Span[] {
  return spans
    .filter((each) => each.start <= inner.start + SLACK_MS && endOf(each) >= inner.start - SLACK_MS)
    .sort((a, b) => b.start - a.start);
}

/** `calls` and `networks`: of the same pod. The runtime's call that runs a CNI operation; the CNI operation during which the kernel made a link. */
function inferredParent(span: Span, calls: readonly Span[], networks: readonly Span[]): Span | undefined {
  if (span.kind === 'cni') {
    const pattern = CNI_CALLERS.get(/^[A-Z]+/.exec(span.name)?.[0] ?? '');
    if (pattern === undefined) return undefined;
    return around(calls, span).find((call) => pattern.test(call.name));
  }
  if (span.kind !== 'netlink') return undefined;
  const { containerId } = span.attributes;
  const command = span.name.startsWith('NEW') ? 'ADD' : 'DEL';
  const own = networks.filter(
    (each) => each.attributes['containerId'] === containerId && each.name.startsWith(command),
  );
  // The kernel's notification may be read after the plugin has ended.
  const during = around(own, span)[0];
  if (during !== undefined) return during;
  return own.filter((each) => endOf(each) <= span.start).sort((a, b) => endOf(b) - endOf(a))[0];
}

/** The event that a call of the agent brought about. */
function eventCause(event: Span, calls: readonly Span[]): Span | undefined {
  const pattern = EVENT_CALLERS.get(/(\w+)$/.exec(event.name)?.[1] ?? '');
  if (pattern === undefined) return undefined;
  const { containerId } = event.attributes;
  const about = calls.filter(
    (call) =>
      pattern.test(call.name) &&
      call.start <= event.start &&
      (call.attributes['container'] === containerId || /Sandbox$/.test(call.name)),
  );
  return about.sort((a, b) => b.start - a.start)[0];
}

/** The request whose response has the version that a watch event brought. */
function versionKey(span: Span): string | undefined {
  const { resourceVersion } = span.attributes;
  return span.pod === undefined || typeof resourceVersion !== 'string'
    ? undefined
    : `${span.pod.uid} ${resourceVersion}`;
}

/** Those of the same pod; none for a span of no pod. */
function byPod(spans: readonly Span[]): (span: Span) => readonly Span[] {
  const groups = Map.groupBy(spans, ({ pod }) => pod?.uid ?? '');
  return ({ pod }) => (pod === undefined ? [] : (groups.get(pod.uid) ?? []));
}

/** `spans` in any order. */
export function causesOf(spans: readonly Span[]): Causes {
  const byId = new Map(spans.map((span) => [span.id, span]));
  const calls = byPod(spans.filter(({ kind, durationMs }) => kind === 'cri' && durationMs > 0));
  const networks = byPod(spans.filter(({ kind }) => kind === 'cni'));
  const writes = new Map<string, Span>();
  for (const span of spans) {
    const key = /^(PATCH|PUT|POST) /.test(span.name) ? versionKey(span) : undefined;
    if (span.kind === 'api' && key !== undefined) writes.set(key, span);
  }
  const parents = new Map<number, number>();
  const links = new Map<number, readonly number[]>();
  const inferred = new Set<string>();
  for (const span of spans) {
    const known = (span.links ?? []).filter((id) => byId.has(id));
    if (known.length > 0) links.set(span.id, known);
    if (span.parent !== undefined && byId.has(span.parent)) {
      parents.set(span.id, span.parent);
      continue;
    }
    const container = inferredParent(span, calls(span), networks(span));
    if (container !== undefined && container !== span) {
      parents.set(span.id, container.id);
      inferred.add(edge(container.id, span.id));
    }
    if (known.length > 0 || span.durationMs > 0) continue;
    const cause =
      span.kind === 'cri'
        ? eventCause(span, calls(span))
        : span.kind === 'api'
          ? writes.get(versionKey(span) ?? '')
          : undefined;
    if (cause === undefined || cause.id === span.id) continue;
    links.set(span.id, [cause.id]);
    inferred.add(edge(cause.id, span.id));
  }
  return { parents, links, inferred };
}
