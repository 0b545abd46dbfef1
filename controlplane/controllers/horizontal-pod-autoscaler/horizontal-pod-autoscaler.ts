// The HorizontalPodAutoscaler controller: every 15 s it reads what the pods of a target use, and sets the target's scale.
// replicas.ts, behavior.ts and compute.ts decide.

import type * as autoscaling from 'kubernetes-types/autoscaling/v2';
import { isConflict, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { objectKey } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { elapsedMs, type MonotonicMs } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { type DiscoveredResource, discover, groupOf } from '../../discovery.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { HORIZONTAL_POD_AUTOSCALER, type HorizontalPodAutoscaler, pathOf, subjectOf } from '../shared/objects.ts';
import {
  NO_HISTORY,
  type Normalized,
  normalizeByBehavior,
  normalizePlainly,
  type ScaleHistory,
  withScale,
} from './behavior.ts';
import { type Computed, computeReplicas } from './compute.ts';
import { AUTOSCALER_DEFAULTS, type AutoscalerSettings } from './pod-groups.ts';

interface Scale {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly resourceVersion?: string };
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly replicas?: number; readonly selector?: string };
}

type Status = Omit<autoscaling.HorizontalPodAutoscalerStatus, 'conditions'> & {
  conditions?: autoscaling.HorizontalPodAutoscalerCondition[];
};
type ConditionType = 'AbleToScale' | 'ScalingActive' | 'ScalingLimited';

/** Kinds are looked for again after this time, and at once where one is not found. ms. */
const KINDS_FOR_MS = 60_000;

/** The status of one autoscaler while it is worked on. */
class Work {
  readonly hpa: HorizontalPodAutoscaler;
  readonly now: string;
  conditions: readonly autoscaling.HorizontalPodAutoscalerCondition[];

  constructor(hpa: HorizontalPodAutoscaler, now: string) {
    this.hpa = hpa;
    this.now = now;
    this.conditions = hpa.status?.conditions ?? [];
  }

  set(type: ConditionType, status: boolean, reason: string, message: string): void {
    const known = this.conditions.find((each) => each.type === type);
    const word = status ? 'True' : 'False';
    const lastTransitionTime = known?.status === word ? known.lastTransitionTime : this.now;
    const next = {
      type,
      status: word,
      reason,
      message,
      ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }),
    };
    this.conditions =
      known === undefined
        ? [...this.conditions, next]
        : this.conditions.map((each) => (each.type === type ? next : each));
  }
}

/** Keys are those of autoscalers. */
export class HorizontalPodAutoscalerController implements Controller {
  readonly name = 'horizontal-pod-autoscaler';
  readonly workers = 5;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Pick<Informers, 'horizontalPodAutoscalers'>;
  readonly #settings: AutoscalerSettings;
  /** By the uid of the autoscaler. */
  readonly #histories = new Map<string, ScaleHistory>();
  /** What each autoscaler's target selects, by key. */
  readonly #selectors = new Map<string, string>();
  #kinds: readonly DiscoveredResource[] = [];
  #kindsReadAt: MonotonicMs | undefined;

  constructor(
    context: ControllerContext,
    informers: Pick<Informers, 'horizontalPodAutoscalers'>,
    settings: AutoscalerSettings = AUTOSCALER_DEFAULTS,
  ) {
    this.#context = context;
    this.#informers = informers;
    this.#settings = settings;
    this.queue = new WorkQueue({ clock: context.clock });
    informers.horizontalPodAutoscalers.onChange((changes) => {
      for (const change of changes) {
        const { object } = change;
        if (change.type === 'removed') {
          this.#histories.delete(object.metadata.uid);
          this.#selectors.delete(objectKey(object));
        } else if (change.type === 'added' || !sameJson(change.old.spec, object.spec))
          this.queue.add(objectKey(object));
      }
    });
  }

  async sync(key: string): Promise<void> {
    const hpa = this.#informers.horizontalPodAutoscalers.get(key);
    if (hpa === undefined) return;
    const work = new Work(hpa, rfc3339(this.#context.clock.now()));
    // Its time comes again whatever happens; failures show in its status, and are not tried again sooner.
    this.queue.addAfter(key, this.#settings.syncPeriodMs);
    const target = await this.#readScale(work);
    if (target === undefined) return;
    await this.#scale(work, key, target.path, target.scale);
  }

  #event(hpa: HorizontalPodAutoscaler, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#context.recorder.event(subjectOf(HORIZONTAL_POD_AUTOSCALER, hpa), type, reason, message);
  }

  async #readScale(work: Work): Promise<{ readonly path: string; readonly scale: Scale } | undefined> {
    const { hpa } = work;
    const { apiVersion = 'v1', kind, name } = hpa.spec.scaleTargetRef;
    const fail = async (message: string): Promise<undefined> => {
      this.#event(hpa, 'Warning', 'FailedGetScale', message);
      const text = `the HPA controller was unable to get the target's current scale: ${message}`;
      work.set('AbleToScale', false, 'FailedGetScale', text);
      await this.#report(work, hpa.status ?? { desiredReplicas: 0 });
      return undefined;
    };
    const resource = await this.#kindOf(apiVersion, kind);
    if (resource === undefined) return await fail(`no matches for kind "${kind}" in group "${groupOf(apiVersion)}"`);
    const { namespace } = hpa.metadata;
    const path = resourcePath(resource.apiVersion, resource.plural, { namespace, name, subresource: 'scale' });
    try {
      const scale = await this.#context.client.get<Scale>(path);
      const text = "the HPA controller was able to get the target's current scale";
      work.set('AbleToScale', true, 'SucceededGetScale', text);
      return { path, scale };
    } catch (error) {
      return await fail(errorMessage(error));
    }
  }

  async #kindOf(apiVersion: string, kind: string): Promise<DiscoveredResource | undefined> {
    const { client, clock } = this.#context;
    const find = () =>
      this.#kinds.find((each) => each.kind === kind && groupOf(each.apiVersion) === groupOf(apiVersion));
    if (
      find() === undefined ||
      this.#kindsReadAt === undefined ||
      elapsedMs(this.#kindsReadAt, clock.monotonic()) > KINDS_FOR_MS
    ) {
      this.#kinds = (await discover(client)).resources;
      this.#kindsReadAt = clock.monotonic();
    }
    return find();
  }

  async #scale(work: Work, key: string, path: string, scale: Scale): Promise<void> {
    const { hpa } = work;
    const { minReplicas: min = 1, maxReplicas: max, behavior } = hpa.spec;
    const current = scale.spec?.replicas ?? 0;
    const history = this.#histories.get(hpa.metadata.uid) ?? {
      ...NO_HISTORY,
      recommendations: [{ replicas: current, at: this.#context.clock.monotonic() }],
    };
    this.#histories.set(hpa.metadata.uid, history);
    if (current === 0 && min !== 0) {
      const text = 'scaling is disabled since the replica count of the target is zero';
      work.set('ScalingActive', false, 'ScalingDisabled', text);
      return await this.#report(work, this.#statusOf(hpa, current, current, []));
    }
    if (current > max)
      return await this.#rescale(work, path, scale, max, 'Current number of replicas above Spec.MaxReplicas', []);
    if (current < min)
      return await this.#rescale(work, path, scale, min, 'Current number of replicas below Spec.MinReplicas', []);

    const computed = await this.#compute(work, key, scale, current);
    const { replicas: wanted } = computed;
    if (wanted === undefined) {
      return await this.#report(work, this.#withoutMetrics(hpa, current));
    }
    const now = this.#context.clock.monotonic();
    const limits = { min, max, current };
    const { downscaleStabilizationMs } = this.#settings;
    const normalized =
      behavior === undefined
        ? normalizePlainly(wanted, limits, history, downscaleStabilizationMs, now)
        : normalizeByBehavior(wanted, limits, behavior, history, downscaleStabilizationMs, now);
    this.#histories.set(hpa.metadata.uid, normalized.history);
    this.#setConditions(work, normalized);
    if (normalized.replicas === current) {
      return await this.#report(work, this.#statusOf(hpa, current, current, computed.statuses));
    }
    const reason = wanted > current ? `${computed.metric} above target` : 'All metrics below target';
    await this.#rescale(work, path, scale, normalized.replicas, reason, computed.statuses);
  }

  #setConditions(work: Work, { ableToScale, isLimited, limit }: Normalized): void {
    work.set('AbleToScale', true, ableToScale.reason, ableToScale.message);
    work.set('ScalingLimited', isLimited, limit.reason, limit.message);
  }

  /** What the metrics ask for; failures are events and a condition. */
  async #compute(work: Work, key: string, scale: Scale, current: number): Promise<Computed> {
    const { hpa } = work;
    const { client, clock } = this.#context;
    const { namespace } = hpa.metadata;
    const nothing: Computed = { replicas: undefined, metric: '', statuses: [], failures: [] };
    const selector = scale.status?.selector ?? '';
    const refuse = (eventReason: string, event: string, reason: string, message: string): Computed => {
      this.#event(hpa, 'Warning', eventReason, event);
      work.set('ScalingActive', false, reason, message);
      this.#event(hpa, 'Warning', 'FailedComputeMetricsReplicas', event);
      return nothing;
    };
    if (selector === '') {
      const text = "the HPA target's scale is missing a selector";
      return refuse('SelectorRequired', 'selector is required', 'InvalidSelector', text);
    }
    this.#selectors.set(key, selector);
    const { items: pods } = await client.list<Pod>(resourcePath('v1', 'pods', { namespace }), {
      labelSelector: selector,
    });
    const others = this.#sameTarget(key, selector);
    if (others.length > 1) {
      const text = `pods by selector ${selector} are controlled by multiple HPAs: [${others.join(' ')}]`;
      return refuse('AmbiguousSelector', text, 'AmbiguousSelector', text);
    }
    const specs = hpa.spec.metrics ?? [];
    for (const { object } of specs)
      if (object !== undefined)
        await this.#kindOf(object.describedObject.apiVersion ?? 'v1', object.describedObject.kind);
    const computed = await computeReplicas(client, specs, {
      namespace,
      selector,
      current,
      statusReplicas: scale.status?.replicas ?? 0,
      pods,
      settings: this.#settings,
      now: clock.now(),
      kindOf: (apiVersion, kind) =>
        this.#kinds.find((each) => each.kind === kind && groupOf(each.apiVersion) === groupOf(apiVersion)),
    });
    for (const { reason, message } of computed.failures) this.#event(hpa, 'Warning', reason, message);
    const [failure] = computed.failures;
    if (computed.replicas === undefined && failure !== undefined) {
      const text = `invalid metrics (${computed.failures.length} invalid out of ${specs.length}), first error is: ${failure.full}`;
      work.set(
        'ScalingActive',
        false,
        failure.reason,
        `the HPA was unable to compute the replica count: ${failure.message}`,
      );
      this.#event(hpa, 'Warning', 'FailedComputeMetricsReplicas', text);
    } else {
      const text = `the HPA was able to successfully calculate a replica count from ${computed.metric}`;
      work.set('ScalingActive', true, 'ValidMetricFound', text);
    }
    return computed;
  }

  /** Names of the autoscalers of this namespace whose targets have this selector, in order. */
  #sameTarget(key: string, selector: string): readonly string[] {
    const namespace = key.slice(0, key.indexOf('/') + 1);
    return [...this.#selectors]
      .flatMap(([other, its]) => (its === selector && other.startsWith(namespace) ? [other] : []))
      .sort();
  }

  async #rescale(
    work: Work,
    path: string,
    scale: Scale,
    replicas: number,
    reason: string,
    statuses: readonly autoscaling.MetricStatus[],
  ): Promise<void> {
    const { hpa } = work;
    const { client, clock } = this.#context;
    const current = scale.spec?.replicas ?? 0;
    try {
      await client.replace(path, { ...scale, spec: { ...scale.spec, replicas } });
    } catch (error) {
      const why = errorMessage(error);
      this.#event(hpa, 'Warning', 'FailedRescale', `New size: ${replicas}; reason: ${reason}; error: ${why}`);
      work.set(
        'AbleToScale',
        false,
        'FailedUpdateScale',
        `the HPA controller was unable to update the target scale: ${why}`,
      );
      await this.#report(work, this.#withoutMetrics(hpa, current));
      throw error;
    }
    work.set(
      'AbleToScale',
      true,
      'SucceededRescale',
      `the HPA controller was able to update the target scale to ${replicas}`,
    );
    this.#event(hpa, 'Normal', 'SuccessfulRescale', `New size: ${replicas}; reason: ${reason}`);
    const history = this.#histories.get(hpa.metadata.uid) ?? NO_HISTORY;
    this.#histories.set(hpa.metadata.uid, withScale(history, hpa.spec.behavior, current, replicas, clock.monotonic()));
    await this.#report(work, { ...this.#statusOf(hpa, current, replicas, statuses), lastScaleTime: work.now });
  }

  /** Nothing new is known but the present number: the rest stays. The server shows a status without metrics with `null`. */
  #withoutMetrics(hpa: HorizontalPodAutoscaler, current: number): Status {
    const { desiredReplicas, currentMetrics } = hpa.status ?? {};
    return this.#statusOf(hpa, current, desiredReplicas ?? 0, currentMetrics ?? []);
  }

  #statusOf(
    { status }: HorizontalPodAutoscaler,
    currentReplicas: number,
    desiredReplicas: number,
    currentMetrics: readonly autoscaling.MetricStatus[],
  ): Status {
    const { lastScaleTime, observedGeneration } = status ?? {};
    return {
      ...(observedGeneration === undefined ? {} : { observedGeneration }),
      ...(lastScaleTime === undefined ? {} : { lastScaleTime }),
      currentReplicas,
      desiredReplicas,
      currentMetrics: [...currentMetrics],
    };
  }

  async #report({ hpa, conditions }: Work, status: Status): Promise<void> {
    const next = { ...status, conditions: [...conditions] };
    if (sameJson(hpa.status, next)) return;
    const { apiVersion, kind } = HORIZONTAL_POD_AUTOSCALER;
    try {
      const path = pathOf(HORIZONTAL_POD_AUTOSCALER, hpa, 'status');
      await this.#context.client.replace(path, { ...hpa, apiVersion, kind, status: next });
    } catch (error) {
      // A conflict: the autoscaler has changed, and is on its way back here.
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }
}
