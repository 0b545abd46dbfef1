// What `nodelet ui` knows: the newest spans of an agent and the versions of its pods, bounded. Spans of an agent that was started
// again go on with the numbers of the one before, so that they are one history. No I/O.

import { isPodReady } from '../../agent/model/pod-ready.ts';
import type { Pod } from '../../client/types.ts';
import { type EpochMs, later, plusMs, ZERO_TIME } from '../../lib/clock.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { Signal } from '../../lib/signal.ts';
import type { Span } from '../../lib/trace.ts';
import type { Evidence, ObjectVersion } from '../timeline/model.ts';
import { createdAt, readyAt } from '../timeline/objects.ts';

const MAX_SPANS = 20_000;
/** Of one pod: a pod in CrashLoopBackOff gets new ones for as long as it lives. */
const MAX_VERSIONS = 300;
const MAX_PODS = 500;

export interface PodRow {
  /** "namespace/name" */
  readonly name: string;
  readonly uid: string;
  readonly phase: string;
  readonly ready: boolean;
  readonly deleted: boolean;
  readonly restarts: number;
  /** From create to Ready for the first time, ms. */
  readonly startMs: number | undefined;
  /** How far `startMs` may be off, ms: times in the object are whole seconds. */
  readonly uncertainMs: number;
  /** Calls of the agent for it that failed, of those that are kept. */
  readonly failed: number;
  /** The end of the newest span, "12:30:05" in UTC; empty without one. */
  readonly last: string;
}

interface PodHistory {
  readonly versions: ObjectVersion[];
  deleted: boolean;
}

interface PodActivity {
  /** "namespace/name" */
  readonly name: string;
  readonly spans: Span[];
  failed: number;
  /** The end of the newest span. */
  lastAt: EpochMs;
}

const nameOf = ({ namespace, name }: { readonly namespace?: string; readonly name: string }): string =>
  `${namespace ?? 'default'}/${name}`;

/** Whether a pod ("namespace/name") is the one that is meant by the same, or by a name in any namespace. */
export function isNamed(name: string, pod: string): boolean {
  return name === pod || name.endsWith(`/${pod}`);
}

/** What there is something new of: a pod ("namespace/name"), what is of no pod, or the sources themselves. */
export type StoreChange = { readonly pod: string } | 'node' | 'problems';

export class UiStore {
  readonly changed = new Signal<StoreChange>();
  readonly #spans: Span[] = [];
  readonly #keys = new Set<string>();
  readonly #pods = new Map<string, PodHistory>();
  /** By uid: what `#spans` has of each pod. */
  readonly #activities = new Map<string, PodActivity>();
  readonly #problems = new Map<string, string>();
  /** Added to the numbers of the agent's spans. */
  #offset = 0;
  /** The highest number in this run of the agent, as the agent counts. */
  #highest = 0;
  #connectionBegins = true;

  /** A new connection to the agent: it begins with the spans that the agent keeps. */
  beginConnection(): void {
    this.#connectionBegins = true;
  }

  addSpan(span: Span): void {
    const key = `${span.id} ${span.start}`;
    const known = this.#keys.has(key);
    // An agent that was started again counts from 1. One whose spans were missed meanwhile goes on above.
    if (this.#connectionBegins && !known && span.id <= this.#highest) {
      this.#offset += this.#highest;
      this.#highest = 0;
    }
    this.#connectionBegins = false;
    if (known) return;
    this.#keys.add(key);
    this.#highest = Math.max(this.#highest, span.id);
    const kept = renumbered(span, this.#offset);
    this.#spans.push(kept);
    this.#addActivity(kept);
    if (this.#keys.size > MAX_SPANS * 1.25) this.#forgetOldSpans();
    this.changed.emit(span.pod === undefined ? 'node' : { pod: nameOf(span.pod) });
  }

  /** A version of a pod, when it came; undefined for one that was there before. */
  addVersion(object: Pod, at: EpochMs | undefined): void {
    const { uid } = object.metadata;
    const history = this.#pods.get(uid) ?? { versions: [], deleted: false };
    history.versions.push({ at, object });
    // The first ones have the creation and the binding.
    if (history.versions.length > MAX_VERSIONS) history.versions.splice(MAX_VERSIONS / 2, MAX_VERSIONS / 4);
    this.#pods.delete(uid);
    this.#pods.set(uid, history);
    this.#forgetOldPods();
    this.changed.emit({ pod: nameOf(object.metadata) });
  }

  removePod(object: Pod): void {
    const history = this.#pods.get(object.metadata.uid);
    if (history !== undefined) history.deleted = true;
    this.changed.emit({ pod: nameOf(object.metadata) });
  }

  /** What cannot be read now, by its source ("agent", "API server"); undefined: it can. */
  setProblem(source: string, problem: string | undefined): void {
    if (this.#problems.get(source) === problem) return;
    if (problem === undefined) this.#problems.delete(source);
    else this.#problems.set(source, problem);
    this.changed.emit('problems');
  }

  get problems(): readonly string[] {
    return [...this.#problems.values()];
  }

  #addActivity(span: Span): void {
    const { pod, outcome, start, durationMs } = span;
    if (pod === undefined) return;
    const activity = this.#activities.get(pod.uid) ?? { name: nameOf(pod), spans: [], failed: 0, lastAt: ZERO_TIME };
    this.#activities.set(pod.uid, activity);
    activity.spans.push(span);
    if (outcome === 'error') activity.failed++;
    activity.lastAt = later(activity.lastAt, plusMs(start, durationMs));
  }

  /** What is kept of the pods of this name; everything where that is nothing, and without a name. */
  evidence(pod?: string): Evidence {
    const all = { source: 'nodelet', problems: this.problems };
    if (pod !== undefined) {
      const activities = [...this.#activities.values()].filter(({ name }) => isNamed(name, pod));
      const histories = [...this.#pods.values()].filter((history) => isNamed(nameOfPod(history), pod));
      const spans = activities.flatMap((activity) => activity.spans);
      const objects = histories.flatMap(({ versions }) => versions);
      if (spans.length + objects.length > 0) return { ...all, spans, objects };
    }
    return { ...all, spans: this.#spans, objects: [...this.#pods.values()].flatMap(({ versions }) => versions) };
  }

  /** Every pod that is known, the newest activity first. */
  rows(): readonly PodRow[] {
    const rows = [...new Set([...this.#activities.keys(), ...this.#pods.keys()])].map((uid) => {
      const { name = '', failed = 0, lastAt = ZERO_TIME } = this.#activities.get(uid) ?? {};
      const history = this.#pods.get(uid);
      const last = lastAt === ZERO_TIME ? '' : rfc3339(lastAt).slice(11, 19);
      const row = { ...describePod(history), name: name === '' ? nameOfPod(history) : name, uid, failed, last };
      return { row, lastAt };
    });
    const sorted = rows.sort((a, b) => b.lastAt - a.lastAt || (a.row.name < b.row.name ? -1 : 1));
    return sorted.map(({ row }) => row);
  }

  #forgetOldSpans(): void {
    this.#spans.splice(0, this.#spans.length - MAX_SPANS);
    const keys = [...this.#keys];
    this.#keys.clear();
    for (const key of keys.slice(-MAX_SPANS)) this.#keys.add(key);
    this.#activities.clear();
    for (const span of this.#spans) this.#addActivity(span);
  }

  /** Deleted ones first. */
  #forgetOldPods(): void {
    if (this.#pods.size <= MAX_PODS) return;
    const [oldest] = [...this.#pods].filter(([, { deleted }]) => deleted);
    const [first] = this.#pods.keys();
    const uid = oldest?.[0] ?? first;
    if (uid !== undefined) this.#pods.delete(uid);
  }
}

function renumbered(span: Span, offset: number): Span {
  if (offset === 0) return span;
  return {
    ...span,
    id: span.id + offset,
    ...(span.parent === undefined ? {} : { parent: span.parent + offset }),
    ...(span.root === undefined ? {} : { root: span.root + offset }),
    ...(span.links === undefined ? {} : { links: span.links.map((id) => id + offset) }),
  };
}

function nameOfPod(history: PodHistory | undefined): string {
  const metadata = history?.versions.at(-1)?.object.metadata;
  return metadata === undefined ? '' : nameOf(metadata);
}

function describePod(
  history: PodHistory | undefined,
): Pick<PodRow, 'phase' | 'ready' | 'deleted' | 'restarts' | 'startMs' | 'uncertainMs'> {
  const last = history?.versions.at(-1)?.object;
  // Without an API server there is no object: a static pod, or an agent alone.
  if (history === undefined || last === undefined)
    return { phase: '', ready: false, deleted: false, restarts: 0, startMs: undefined, uncertainMs: 0 };
  const created = createdAt(history.versions);
  const ready = readyAt(history.versions);
  return {
    phase: last.status?.phase ?? '',
    ready: isPodReady(last),
    deleted: history.deleted,
    restarts: (last.status?.containerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0),
    startMs: created === undefined || ready === undefined ? undefined : ready.at - created.at,
    uncertainMs: (created?.uncertainMs ?? 0) + (ready?.uncertainMs ?? 0),
  };
}
