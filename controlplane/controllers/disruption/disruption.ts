// The disruption controller: keeps the status of PodDisruptionBudgets, by which the API server allows evictions
// (apiserver/registry/subresources/eviction.ts), and takes back the DisruptionTarget condition of pods that were not deleted. budget.ts decides.

import { isConflict, isNotFound } from '../../../client/errors.ts';
import { type Change, objectKey } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { type EpochMs, elapsedMs } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { parseRfc3339, rfc3339 } from '../../../lib/rfc3339.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import {
  POD_DISRUPTION_BUDGET,
  type PodDisruptionBudget,
  type PodDisruptionBudgetStatus,
  pathOf,
  subjectOf,
} from '../shared/objects.ts';
import { controllerOf, selects } from '../shared/owners.ts';
import { POD } from '../shared/pods.ts';
import {
  budgetStatus,
  countHealthy,
  countsByScale,
  disruptedPods,
  expectedPods,
  failedStatus,
  sameBudgetStatus,
  selectorText,
} from './budget.ts';
import { type ScaleInformers, Scales } from './scales.ts';

/** A DisruptionTarget condition of a pod that is not deleted is taken back after this long. */
const STALE_TARGET_MS = 120_000;
/** Keys of pods. Names contain no colon. */
const STALE = 'pod:';
const UNMANAGED =
  'were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.';

type Needed = Pick<Informers, 'pods' | 'podDisruptionBudgets'> & ScaleInformers;

/** Ms until the pod's DisruptionTarget is stale, 0 when it is; undefined where it has none, or one that stays. */
export function targetStaleInMs({ metadata, status }: Pod, now: EpochMs): number | undefined {
  const condition = status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
  const ended = status?.phase === 'Succeeded' || status?.phase === 'Failed';
  if (condition?.status !== 'True' || ended || metadata.deletionTimestamp !== undefined) return undefined;
  // The kubelet's own may be there for as long as it ends the pod.
  if (condition.reason === 'TerminationByKubelet') return undefined;
  const at = parseRfc3339(condition.lastTransitionTime);
  return at === undefined ? 0 : Math.max(0, STALE_TARGET_MS - elapsedMs(at, now));
}

/** Keys are those of budgets, and of pods with a prefix. */
export class DisruptionController implements Controller {
  readonly name = 'disruption';
  readonly workers = 2;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #scales: Scales;

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    this.#scales = new Scales(context.client, informers);
    this.queue = new WorkQueue({ clock: context.clock });
    informers.podDisruptionBudgets.onChange((changes) => {
      for (const { type, object } of changes) if (type !== 'removed') this.queue.add(objectKey(object));
    });
    informers.pods.onChange((changes) => {
      for (const change of changes) this.#podChanged(change);
    });
  }

  #podChanged(change: Change<Pod>): void {
    const { object: pod } = change;
    const budgets = this.#budgetsOf(pod);
    const before = change.type === 'modified' ? this.#budgetsOf(change.old) : [];
    for (const budget of new Set([...budgets, ...before])) this.queue.add(objectKey(budget));
    if (change.type === 'removed') return;
    const [first, second] = budgets;
    if (first !== undefined && second !== undefined) {
      const { namespace, name } = pod.metadata;
      const message = `Pod "${namespace}"/"${name}" matches multiple PodDisruptionBudgets.  Chose "${first.metadata.name}" arbitrarily.`;
      this.#context.recorder.event(subjectOf(POD, pod), 'Warning', 'MultiplePodDisruptionBudgets', message);
    }
    const staleInMs = targetStaleInMs(pod, this.#context.clock.now());
    if (staleInMs !== undefined) this.queue.addAfter(STALE + objectKey(pod), staleInMs);
  }

  #budgetsOf(pod: Pod): readonly PodDisruptionBudget[] {
    return this.#informers.podDisruptionBudgets
      .list()
      .filter(({ metadata, spec }) => metadata.namespace === pod.metadata.namespace && selects(spec.selector, pod));
  }

  async sync(key: string): Promise<void> {
    if (key.startsWith(STALE)) {
      await this.#takeBackTarget(key, key.slice(STALE.length));
      return;
    }
    const budget = this.#informers.podDisruptionBudgets.get(key);
    if (budget === undefined) return;
    try {
      await this.#syncBudget(key, budget);
    } catch (error) {
      // Another eviction was faster: its change comes.
      if (isConflict(error)) throw error;
      const message = errorMessage(error);
      this.#context.log(`${this.name} ${key}: ${message}`);
      await this.#write(budget, failedStatus(budget, message, this.#context.clock.now()));
    }
  }

  async #syncBudget(key: string, budget: PodDisruptionBudget): Promise<void> {
    const { clock, recorder } = this.#context;
    const { namespace, name } = budget.metadata;
    const pods = this.#informers.pods
      .list()
      .filter((pod) => pod.metadata.namespace === namespace && selects(budget.spec.selector, pod));
    const subject = subjectOf(POD_DISRUPTION_BUDGET, budget);
    if (pods.length === 0) recorder.event(subject, 'Normal', 'NoPods', 'No matching pods found');
    const count = countsByScale(budget) ? await this.#countByScale(budget, pods) : pods.length;
    const now = clock.now();
    const disrupted = disruptedPods(budget, pods, now);
    for (const pod of disrupted.notDeleted) {
      const message = `Pod was expected by PDB ${namespace}/${name} to be deleted but it wasn't`;
      recorder.event(subjectOf(POD, pod), 'Warning', 'NotDeleted', message);
    }
    const expected = expectedPods(budget, count);
    const healthy = countHealthy(pods, disrupted.pods);
    await this.#write(budget, budgetStatus(budget, expected, healthy, disrupted.pods, now));
    if (disrupted.recheckMs !== undefined) this.queue.addAfter(key, disrupted.recheckMs);
  }

  /** What the controllers of the pods want together. */
  async #countByScale(budget: PodDisruptionBudget, pods: readonly Pod[]): Promise<number> {
    const { recorder } = this.#context;
    const subject = subjectOf(POD_DISRUPTION_BUDGET, budget);
    const owners = new Map(pods.map((pod) => [controllerOf(pod)?.uid, pod]));
    const replicas = new Map<string, number>();
    for (const pod of owners.values()) {
      const owner = controllerOf(pod);
      if (owner === undefined) continue;
      try {
        const scale = await this.#scales.of(owner, budget.metadata.namespace);
        if (scale === undefined) throw new Error(`found no controllers for pod "${pod.metadata.name}"`);
        replicas.set(scale.uid, scale.replicas);
      } catch (error) {
        const message = `Failed to calculate the number of expected pods: ${errorMessage(error)}`;
        recorder.event(subject, 'Warning', 'CalculateExpectedPodCountFailed', message);
        throw error;
      }
    }
    if (owners.has(undefined)) {
      const selector = selectorText(budget.spec.selector ?? {});
      const message = `Pods selected by this PodDisruptionBudget (selector: ${selector}) ${UNMANAGED}`;
      recorder.event(subject, 'Warning', 'UnmanagedPods', message);
    }
    return [...replicas.values()].reduce((sum, each) => sum + each, 0);
  }

  async #write(budget: PodDisruptionBudget, status: PodDisruptionBudgetStatus): Promise<void> {
    if (sameBudgetStatus(budget.status, status)) return;
    const { apiVersion, kind } = POD_DISRUPTION_BUDGET;
    try {
      await this.#context.client.replace(pathOf(POD_DISRUPTION_BUDGET, budget, 'status'), {
        ...budget,
        apiVersion,
        kind,
        status,
      });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async #takeBackTarget(key: string, podKey: string): Promise<void> {
    const { client, clock } = this.#context;
    const pod = this.#informers.pods.get(podKey);
    const staleInMs = pod === undefined ? undefined : targetStaleInMs(pod, clock.now());
    if (pod === undefined || staleInMs === undefined) return;
    if (staleInMs > 0) {
      this.queue.addAfter(key, staleInMs);
      return;
    }
    const condition = {
      type: 'DisruptionTarget',
      status: 'False',
      reason: null,
      message: null,
      lastTransitionTime: rfc3339(clock.now()),
    };
    const patch = { metadata: { uid: pod.metadata.uid }, status: { conditions: [condition] } };
    try {
      await client.patch(pathOf(POD, pod, 'status'), patch, 'strategic');
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
