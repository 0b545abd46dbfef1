// The plugins of one profile, run at each extension point in their order. Decides what follows from their answers: the first
// rejection ends a node's filters, scores are normalised and weighted, a failed reservation is undone.

import type { MonotonicMs } from '../../../lib/clock.ts';
import type { NodeInfo } from '../cache/node-info.ts';
import type { PodInfo } from '../cache/pod-info.ts';
import type { Snapshot } from '../cache/snapshot.ts';
import type { CycleState } from './cycle-state.ts';
import type { DryRun, NodeStatuses, Plugin, PostFilterResult, Sortable } from './plugin.ts';
import { type Rejection, unresolvable } from './status.ts';

/** The names are those of KubeSchedulerConfiguration. */
export const EXTENSION_POINTS = [
  'preEnqueue',
  'queueSort',
  'preFilter',
  'filter',
  'postFilter',
  'preScore',
  'score',
  'reserve',
  'permit',
  'preBind',
  'bind',
  'postBind',
] as const;
export type ExtensionPoint = (typeof EXTENSION_POINTS)[number];

/** For each extension point the plugins in their order, those of `score` with their weights. */
export type PluginSet = Readonly<
  Record<ExtensionPoint, readonly { readonly plugin: Plugin; readonly weight: number }[]>
>;

/** Pods that are to come to a node when its victims are gone. */
export interface Nominations {
  on(node: string): readonly PodInfo[];
}

/** Takes the time of extension points; the names are those of kube-scheduler's metrics. SchedulerMetrics has this shape. */
export interface PointTimes {
  now(): MonotonicMs;
  ran(point: string, status: string, profile: string, startedAt: MonotonicMs): void;
}

export type PreFiltered =
  | { readonly kind: 'go'; readonly nodes: ReadonlySet<string> | undefined; readonly narrowedBy: readonly string[] }
  | { readonly kind: 'reject'; readonly rejection: Rejection };

export class Framework implements DryRun {
  readonly profile: string;
  /** undefined: as the scheduler's. */
  readonly percentageOfNodesToScore: number | undefined;
  /** By name. */
  readonly plugins: ReadonlyMap<string, Plugin>;
  readonly #plugins: PluginSet;
  readonly #nominations: Nominations;
  readonly #times: PointTimes | undefined;

  constructor(
    profile: string,
    plugins: PluginSet,
    nominations: Nominations,
    percentageOfNodesToScore?: number,
    times?: PointTimes,
  ) {
    this.profile = profile;
    this.#times = times;
    this.percentageOfNodesToScore = percentageOfNodesToScore;
    this.#plugins = plugins;
    const all = EXTENSION_POINTS.flatMap((point) => plugins[point].map(({ plugin }) => plugin));
    this.plugins = new Map(all.map((plugin) => [plugin.name, plugin]));
    this.#nominations = nominations;
  }

  at(point: ExtensionPoint): readonly Plugin[] {
    return this.#plugins[point].map(({ plugin }) => plugin);
  }

  get scores(): boolean {
    return this.#plugins.score.length > 0;
  }

  /** Runs the plugins of one point, `status` says how it ended. What they throw is thrown. */
  timed<T>(point: string, run: () => T, status: (result: T) => string = () => 'Success'): T {
    const times = this.#times;
    if (times === undefined) return run();
    const startedAt = times.now();
    let how = 'Error';
    try {
      const result = run();
      how = status(result);
      return result;
    } finally {
      times.ran(point, how, this.profile, startedAt);
    }
  }

  /** The same where the plugins wait for something. */
  async timedAsync(point: string, run: () => Promise<void>): Promise<void> {
    const startedAt = this.#times?.now();
    let how = 'Error';
    try {
      await run();
      how = 'Success';
    } finally {
      if (startedAt !== undefined) this.#times?.ran(point, how, this.profile, startedAt);
    }
  }

  compare(a: Sortable, b: Sortable): number {
    return this.#plugins.queueSort[0]?.plugin.compare?.(a, b) ?? 0;
  }

  preEnqueue(pod: PodInfo): Rejection | undefined {
    for (const { plugin } of this.#plugins.preEnqueue) {
      const rejection = plugin.preEnqueue?.(pod);
      if (rejection !== undefined) return { ...rejection, plugin: plugin.name };
    }
    return undefined;
  }

  preFilter(state: CycleState, pod: PodInfo, snapshot: Snapshot): PreFiltered {
    return this.timed(
      'PreFilter',
      () => this.#preFilter(state, pod, snapshot),
      (result) => (result.kind === 'reject' ? result.rejection.code : 'Success'),
    );
  }

  #preFilter(state: CycleState, pod: PodInfo, snapshot: Snapshot): PreFiltered {
    let nodes: ReadonlySet<string> | undefined;
    let rejection: Rejection | undefined;
    const narrowedBy: string[] = [];
    for (const { plugin } of this.#plugins.preFilter) {
      const result = plugin.preFilter?.(state, pod, snapshot);
      if (result === undefined) continue;
      if (result.kind === 'skip') state.skippedFilters.add(plugin.name);
      else if (result.kind === 'reject') {
        rejection = { ...result.rejection, plugin: plugin.name };
        if (rejection.code === 'UnschedulableAndUnresolvable') break;
      } else if (result.nodes !== undefined) {
        narrowedBy.push(plugin.name);
        const [before, now] = [nodes, result.nodes];
        nodes = before === undefined ? now : new Set([...now].filter((name) => before.has(name)));
        if (nodes.size > 0) continue;
        const plugins = narrowedBy.toSorted();
        const by = plugins.length === 1 ? `plugin ${plugins[0]}` : `plugin(s) [${plugins.join(' ')}] simultaneously`;
        rejection = { ...unresolvable(`node(s) didn't satisfy ${by}`), plugin: plugin.name };
        break;
      }
    }
    return rejection === undefined ? { kind: 'go', nodes, narrowedBy } : { kind: 'reject', rejection };
  }

  #filterAlone(state: CycleState, pod: PodInfo, node: NodeInfo): Rejection | undefined {
    for (const { plugin } of this.#plugins.filter) {
      if (state.skippedFilters.has(plugin.name)) continue;
      const rejection = plugin.filter?.(state, pod, node);
      if (rejection !== undefined) return { ...rejection, plugin: plugin.name };
    }
    return undefined;
  }

  /**
   * The filters, twice where pods of at least this priority are nominated to the node: the pod has to fit beside them, and
   * also if they do not come after all (it may want to be near them).
   */
  filter(state: CycleState, pod: PodInfo, node: NodeInfo): Rejection | undefined {
    const coming = this.#nominations
      .on(node.name)
      .filter(({ uid, priority }) => uid !== pod.uid && priority >= pod.priority && !node.pods.has(uid));
    if (coming.length > 0) {
      const [stateWith, nodeWith] = [state.clone(), node.clone()];
      for (const nominated of coming) {
        nodeWith.addPod(nominated);
        this.addPod(stateWith, pod, nominated, nodeWith);
      }
      const rejection = this.#filterAlone(stateWith, pod, nodeWith);
      if (rejection !== undefined) return rejection;
    }
    return this.#filterAlone(state, pod, node);
  }

  addPod(state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo): void {
    for (const { plugin } of this.#plugins.preFilter) {
      if (!state.skippedFilters.has(plugin.name)) plugin.addPod?.(state, pod, added, node);
    }
  }

  removePod(state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo): void {
    for (const { plugin } of this.#plugins.preFilter) {
      if (!state.skippedFilters.has(plugin.name)) plugin.removePod?.(state, pod, removed, node);
    }
  }

  /** The first plugin that nominates a node ends it; else all their messages. */
  postFilter(state: CycleState, pod: PodInfo, snapshot: Snapshot, statuses: NodeStatuses): PostFilterResult {
    return this.timed(
      'PostFilter',
      () => this.#postFilter(state, pod, snapshot, statuses),
      ({ kind }) => (kind === 'nominate' ? 'Success' : 'Unschedulable'),
    );
  }

  #postFilter(state: CycleState, pod: PodInfo, snapshot: Snapshot, statuses: NodeStatuses): PostFilterResult {
    const messages: string[] = [];
    let clear = false;
    for (const { plugin } of this.#plugins.postFilter) {
      const result = plugin.postFilter?.(state, pod, snapshot, statuses, this);
      if (result?.kind === 'nominate') return result;
      if (result === undefined) continue;
      messages.push(result.message);
      clear ||= result.clear;
    }
    return { kind: 'unschedulable', message: messages.join(', '), clear };
  }

  /** The weighted sum of each node's scores, in the order of `nodes`. */
  score(state: CycleState, pod: PodInfo, snapshot: Snapshot, nodes: readonly NodeInfo[]): readonly number[] {
    this.timed('PreScore', () => {
      for (const { plugin } of this.#plugins.preScore) {
        if (plugin.preScore?.(state, pod, snapshot, nodes) === 'skip') state.skippedScores.add(plugin.name);
      }
    });
    return this.timed('Score', () => this.#totals(state, pod, nodes));
  }

  #totals(state: CycleState, pod: PodInfo, nodes: readonly NodeInfo[]): readonly number[] {
    const totals = new Array<number>(nodes.length).fill(0);
    for (const { plugin, weight } of this.#plugins.score) {
      if (state.skippedScores.has(plugin.name)) continue;
      const scores = nodes.map((node) => plugin.score?.(state, pod, node) ?? 0);
      plugin.normalizeScores?.(state, pod, scores, nodes);
      scores.forEach((score, index) => {
        totals[index] = (totals[index] ?? 0) + score * weight;
      });
    }
    return totals;
  }

  reserve(state: CycleState, pod: PodInfo, node: NodeInfo): Rejection | undefined {
    return this.timed(
      'Reserve',
      () => this.#reserve(state, pod, node),
      (rejection) => rejection?.code ?? 'Success',
    );
  }

  #reserve(state: CycleState, pod: PodInfo, node: NodeInfo): Rejection | undefined {
    for (const { plugin } of this.#plugins.reserve) {
      const rejection = plugin.reserve?.(state, pod, node);
      if (rejection !== undefined) return { ...rejection, plugin: plugin.name };
    }
    return undefined;
  }

  unreserve(state: CycleState, pod: PodInfo, node: string): void {
    this.timed('Unreserve', () => {
      for (const { plugin } of this.#plugins.reserve.toReversed()) plugin.unreserve?.(state, pod, node);
    });
  }
}
