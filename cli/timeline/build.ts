// From evidence (spans, versions of the pod's object) to a timeline. Pure: the same evidence gives the same timeline.

import { isPodReady } from '../../agent/model/pod-ready.ts';
import { type EpochMs, elapsedMs, epochMs } from '../../lib/clock.ts';
import { UserError } from '../../lib/errors.ts';
import type { Span } from '../../lib/trace.ts';
import { type Causes, causesOf } from './causes.ts';
import { containerNames, lifetimes } from './containers.ts';
import { criticalPath } from './critical-path.ts';
import { attributeText, barName, laneOf, packRows } from './lanes.ts';
import {
  type Arrow,
  type Bar,
  type CriticalPath,
  type Evidence,
  LANES,
  type Lane,
  type Mark,
  type ObjectVersion,
  type Segment,
  type Timeline,
} from './model.ts';
import { boundAt, createdAt, describeVersion, type Moment, readyAt } from './objects.ts';

export interface BuildOptions {
  /** "namespace/name", or a name in any namespace; without it, everything is shown. */
  readonly pod?: string;
}

/** What happened in one moment is drawn this wide, as a part of the whole. */
const MOMENT_PART = 1 / 400;

type Draft = Omit<Bar, 'row'>;

const matches = (pod: string, namespace: string | undefined, name: string | undefined): boolean =>
  pod.includes('/') ? pod === `${namespace}/${name}` : pod === name;

/** The uid of the newest pod of this name that the evidence has anything of. */
function uidOf({ spans, objects }: Evidence, pod: string): string | undefined {
  const about = spans.filter((span) => span.pod !== undefined && matches(pod, span.pod.namespace, span.pod.name));
  const begun = new Map<string, number>();
  for (const { pod: ref, start } of about)
    if (ref !== undefined) begun.set(ref.uid, Math.min(begun.get(ref.uid) ?? start, start));
  const newest = [...begun].sort(([, a], [, b]) => b - a)[0]?.[0];
  const object = objects.findLast(({ object: { metadata } }) => matches(pod, metadata.namespace, metadata.name));
  return newest ?? object?.object.metadata.uid;
}

function select(evidence: Evidence, pod: string | undefined): Evidence {
  if (pod === undefined) return evidence;
  const uid = uidOf(evidence, pod);
  if (uid === undefined) {
    const names = new Set(
      evidence.spans.flatMap((span) => (span.pod === undefined ? [] : `${span.pod.namespace}/${span.pod.name}`)),
    );
    const known = names.size === 0 ? 'it has no pods' : `its pods are ${[...names].sort().join(', ')}`;
    throw new UserError(`nothing is recorded of the pod "${pod}" in ${evidence.source}: ${known}`);
  }
  return {
    ...evidence,
    spans: evidence.spans.filter((span) => span.pod?.uid === uid),
    objects: evidence.objects.filter(({ object }) => object.metadata.uid === uid),
  };
}

/** The spans of a pod, or all. Throws UserError when there is nothing of the pod. */
export const spansOf = (evidence: Evidence, pod: string | undefined): readonly Span[] => select(evidence, pod).spans;

function factsOf(span: Span, origin: EpochMs): Bar['facts'] {
  const facts = Object.entries(span.attributes).flatMap(([name, value]): (readonly [string, string])[] => {
    const text = attributeText(value);
    if (text === '') return name === 'decided' ? [[name, 'nothing']] : [];
    return name === 'wakeAt' && typeof value === 'number'
      ? [[name, `${((value - origin) / 1000).toFixed(2)} s`]]
      : [[name, text]];
  });
  return [...facts, ...Object.entries(span.detail ?? {})];
}

function spanBars(
  spans: readonly Span[],
  causes: Causes,
  names: ReadonlyMap<string, string>,
  origin: EpochMs,
): Draft[] {
  return spans.map((span) => {
    const parent = causes.parents.get(span.id);
    return {
      id: String(span.id),
      lane: laneOf(span),
      name: barName(span, names),
      start: span.start - origin,
      end: span.start - origin + span.durationMs,
      outcome: span.attributes['open'] === true ? 'open' : span.outcome,
      ...(span.error === undefined ? {} : { error: span.error }),
      ...(span.pod === undefined ? {} : { pod: `${span.pod.namespace}/${span.pod.name}` }),
      ...(span.cause === undefined ? {} : { cause: span.cause }),
      ...(parent === undefined ? {} : { parent: String(parent) }),
      facts: factsOf(span, origin),
    };
  });
}

function lifetimeBars(
  spans: readonly Span[],
  names: ReadonlyMap<string, string>,
  origin: EpochMs,
  end: number,
): Draft[] {
  return lifetimes(spans, names).map((each) => ({
    id: `container ${each.id}`,
    lane: 'containers',
    name: each.name,
    start: each.start - origin,
    end: each.end === undefined ? end : each.end - origin,
    outcome: each.end === undefined ? 'open' : 'ok',
    ...(each.pod === undefined ? {} : { pod: `${each.pod.namespace}/${each.pod.name}` }),
    facts: [['id', each.id]],
  }));
}

const versionId = ({ object }: ObjectVersion): string => `object ${object.metadata.resourceVersion}`;

function versionBars(versions: readonly ObjectVersion[], origin: EpochMs): Draft[] {
  return versions.flatMap((version, index): Draft[] => {
    const { at, object } = version;
    if (at === undefined) return [];
    const { namespace, name, resourceVersion } = object.metadata;
    return [
      {
        id: versionId(version),
        lane: 'api',
        name: `pod ${describeVersion(versions[index - 1]?.object, object)}`,
        start: at - origin,
        end: at - origin,
        outcome: 'ok',
        pod: `${namespace}/${name}`,
        facts: [
          ['resourceVersion', resourceVersion],
          ['phase', object.status?.phase ?? ''],
          ['ready', String(isPodReady(object))],
        ],
      },
    ];
  });
}

interface Moments {
  readonly created: Moment | undefined;
  readonly bound: Moment | undefined;
  readonly ready: Moment | undefined;
}

/** A watch of ours may deliver later than the agent's own: nothing of a pod is done before it was created and bound. */
function momentsOf({ objects, spans }: Evidence): Moments {
  const first = spans[0]?.start;
  const clamp = (moment: Moment | undefined): Moment | undefined => {
    if (moment === undefined || first === undefined || moment.uncertainMs > 0) return moment;
    return { ...moment, at: epochMs(Math.min(moment.at, first)) };
  };
  return { created: clamp(createdAt(objects)), bound: clamp(boundAt(objects)), ready: readyAt(objects) };
}

/** The write that reported the pod as Ready for the first time; without an API server, the round that decided it. */
function readyBar(bars: readonly Draft[], links: ReadonlyMap<string, readonly string[]>): Draft | undefined {
  const round = bars.find(
    ({ name, facts }) => name === 'syncPod' && facts.some(([fact, value]) => fact === 'ready' && value === 'true'),
  );
  if (round === undefined) return undefined;
  return (
    bars.find(({ id, name }) => name === 'PATCH pods/status' && links.get(id)?.includes(round.id) === true) ?? round
  );
}

interface Goal {
  readonly bar: Draft;
  readonly name: string;
  /** ms from the origin. */
  readonly end: number;
}

/** `ready`: when a watch showed the pod as Ready, which may be before the write's own response: ms from the origin. */
function goalOf(
  bars: readonly Draft[],
  links: ReadonlyMap<string, readonly string[]>,
  ready: number | undefined,
): Goal | undefined {
  const write = readyBar(bars, links);
  if (write !== undefined) {
    const isWithin = ready !== undefined && ready > write.start && ready < write.end;
    return { bar: write, name: 'Ready', end: isWithin ? ready : write.end };
  }
  const version = bars.find(
    ({ id, name }) => id.startsWith('object ') && /\bReady$/.test(name) && !name.includes('not Ready'),
  );
  if (version !== undefined) return { bar: version, name: 'Ready', end: version.end };
  const started = bars.filter(({ name, outcome }) => name.startsWith('StartContainer') && outcome === 'ok');
  const last = started.reduce<Draft | undefined>((a, b) => (a === undefined || b.end > a.end ? b : a), undefined);
  return last === undefined ? undefined : { bar: last, name: 'the last container started', end: last.end };
}

function pathOf(
  bars: readonly Bar[],
  goal: Goal,
  links: PathLinks,
  from: { readonly name: string; readonly offset: number },
): CriticalPath {
  const beginning: Pick<Segment, 'owner' | 'text'> = {
    owner: 'scheduler',
    text: 'waiting for the scheduler, and for the watch',
  };
  const last = bars.find(({ id }) => id === goal.bar.id);
  const candidates = bars.filter(({ lane, end }) => lane !== 'containers' && end >= from.offset);
  const segments =
    last === undefined ? [] : criticalPath({ bars: candidates, links, beginning }, last, from.offset, goal.end);
  return { from: from.name, to: goal.name, start: from.offset, end: goal.end, segments };
}

type PathLinks = ReadonlyMap<string, readonly string[]>;

/** The span that wrote each version of an object, by resourceVersion. */
function writersOf(spans: readonly Span[]): ReadonlyMap<string, Span> {
  const writers = new Map<string, Span>();
  for (const span of spans) {
    const { resourceVersion } = span.attributes;
    if (span.kind !== 'api' || !span.name.startsWith('PATCH') || typeof resourceVersion !== 'string') continue;
    if (!writers.has(resourceVersion)) writers.set(resourceVersion, span);
  }
  return writers;
}

/** Causes by bar id: those of the spans, and what the versions of the object add. */
function linksOf(
  causes: Causes,
  evidence: Evidence,
  scheduler: boolean,
): { links: PathLinks; inferred: ReadonlySet<string> } {
  const links = new Map<string, readonly string[]>();
  const inferred = new Set(causes.inferred);
  const writers = writersOf(evidence.spans);
  for (const [id, from] of causes.links) links.set(String(id), from.map(String));
  for (const version of evidence.objects) {
    if (version.at === undefined) continue;
    const writer = writers.get(version.object.metadata.resourceVersion);
    if (writer === undefined) continue;
    links.set(versionId(version), [String(writer.id)]);
    inferred.add(`${writer.id}>${versionId(version)}`);
  }
  const added = evidence.spans.find(({ name }) => name === 'SyncLoop ADD');
  if (scheduler && added !== undefined) {
    links.set(String(added.id), [SCHEDULER_ID]);
    inferred.add(`${SCHEDULER_ID}>${added.id}`);
  }
  return { links, inferred };
}

const SCHEDULER_ID = 'scheduler';

function arrowsOf(bars: readonly Bar[], links: PathLinks, inferred: ReadonlySet<string>): Arrow[] {
  const ids = new Set(bars.map(({ id }) => id));
  const arrow = (from: string, to: string): Arrow => ({
    from,
    to,
    kind: inferred.has(`${from}>${to}`) ? 'inferred' : 'recorded',
  });
  return bars.flatMap(({ id, parent }) => [
    ...(parent === undefined || !ids.has(parent) ? [] : [arrow(parent, id)]),
    ...(links.get(id) ?? []).filter((from) => ids.has(from)).map((from) => arrow(from, id)),
  ]);
}

function withRows(drafts: readonly Draft[], total: number): { bars: Bar[]; lanes: Lane[] } {
  const bars: Bar[] = [];
  const lanes: Lane[] = [];
  for (const [id, title] of LANES) {
    const own = drafts.filter(({ lane }) => lane === id);
    if (own.length === 0) continue;
    const rows = packRows(own, total * MOMENT_PART);
    lanes.push({ id, title, rows: Math.max(...rows) + 1 });
    for (const [index, bar] of own.entries()) bars.push({ ...bar, row: rows[index] ?? 0 });
  }
  bars.sort((a, b) => a.start - b.start || a.end - b.end);
  return { bars, lanes };
}

function marksOf({ created, bound, ready }: Moments, origin: EpochMs): Mark[] {
  const mark = (name: string, moment: Moment | undefined): Mark[] =>
    moment === undefined ? [] : [{ name, offset: moment.at - origin, uncertainMs: moment.uncertainMs }];
  return [...mark('created', created), ...mark('bound to a node', bound), ...mark('Ready', ready)];
}

function schedulerBars({ created, bound }: ExactMoments, origin: EpochMs): Draft[] {
  if (created === undefined || bound === undefined) return [];
  const span = { start: created - origin, end: bound - origin };
  return [{ id: SCHEDULER_ID, lane: 'scheduler', name: 'bind', ...span, outcome: 'ok', facts: [] }];
}

/** Those that are known to the millisecond. */
interface ExactMoments {
  readonly created: EpochMs | undefined;
  readonly bound: EpochMs | undefined;
  readonly ready: EpochMs | undefined;
}

function exactMoments({ created, bound, ready }: Moments): ExactMoments {
  const exact = (moment: Moment | undefined): EpochMs | undefined =>
    moment?.uncertainMs === 0 ? moment.at : undefined;
  return { created: exact(created), bound: exact(bound), ready: exact(ready) };
}

/** Where the timeline begins. */
function originOf({ spans, objects, source }: Evidence, created: EpochMs | undefined): EpochMs {
  const first = created ?? spans[0]?.start ?? objects.find(({ at }) => at !== undefined)?.at;
  if (first === undefined) throw new UserError(`${source} has no spans`);
  return epochMs(Math.min(first, spans[0]?.start ?? first));
}

/** The end of the last span or version, ms from `origin`. */
function endOf({ spans, objects }: Evidence, origin: EpochMs): number {
  const ofSpans = spans.reduce((end, { start, durationMs }) => Math.max(end, start + durationMs - origin), 0);
  return objects.reduce((end, { at }) => (at === undefined ? end : Math.max(end, at - origin)), ofSpans);
}

/** The first moment of the critical path, in words. */
function beginningOf(created: EpochMs | undefined, bars: readonly Bar[]): string {
  if (created !== undefined) return 'created';
  return bars[0]?.name === 'SyncLoop ADD' ? 'seen by the agent' : 'the first call';
}

/** Throws UserError when there is nothing of the pod. */
export function buildTimeline(all: Evidence, options: BuildOptions = {}): Timeline {
  const chosen = select(all, options.pod);
  const spans = [...chosen.spans].sort((a, b) => a.start - b.start || a.id - b.id);
  const evidence = { ...chosen, spans };
  const moments = momentsOf(evidence);
  const exact = exactMoments(moments);
  const origin = originOf(evidence, exact.created);
  const end = endOf(evidence, origin);
  const causes = causesOf(spans);
  const names = containerNames(spans);
  const scheduler = schedulerBars(exact, origin);
  const drafts = [
    ...spanBars(spans, causes, names, origin),
    ...lifetimeBars(spans, names, origin, end),
    ...versionBars(evidence.objects, origin),
    ...scheduler,
  ].sort((a, b) => a.start - b.start || b.end - a.end);
  const { bars, lanes } = withRows(drafts, end);
  const { links, inferred } = linksOf(causes, evidence, scheduler.length > 0);
  const isOnePod = new Set(spans.flatMap(({ pod }) => pod?.uid ?? [])).size === 1;
  const ready = exact.ready === undefined ? undefined : elapsedMs(origin, exact.ready);
  const goal = isOnePod ? goalOf(bars, links, ready) : undefined;
  return {
    title: options.pod === undefined ? 'All pods' : titleOf(spans, options.pod),
    source: evidence.source,
    origin,
    end,
    lanes,
    bars,
    arrows: arrowsOf(bars, links, inferred),
    marks: marksOf(moments, origin),
    critical:
      goal === undefined ? undefined : pathOf(bars, goal, links, { name: beginningOf(exact.created, bars), offset: 0 }),
    problems: evidence.problems,
  };
}

function titleOf(spans: readonly Span[], pod: string): string {
  const ref = spans.find((span) => span.pod !== undefined)?.pod;
  return ref === undefined ? pod : `${ref.namespace}/${ref.name}`;
}
