// The eviction loop: reads the node's signals every 10 s, updates the node's pressure conditions, reclaims the node's own
// resources, and evicts at most one pod per round until no threshold is met. The rules are in decide.ts, ranking.ts and
// local-storage.ts; measuring is in signals.ts and pod-usage.ts.

import type { Pod } from '../../client/types.ts';
import { resolvesWithin } from '../../lib/abort.ts';
import { errorMessage } from '../../lib/errors.ts';
import { repeat } from '../../lib/retry.ts';
import { TERMINATION_BY_KUBELET } from '../model/disruption.ts';
import { isCriticalPod } from '../model/static-pods.ts';
import { evictionGraceSeconds, IMMEDIATE_SECONDS, isResolved, nextPressureState } from './decide.ts';
import { hasLocalStorageLimit, localStorageViolation } from './local-storage.ts';
import { EVICTED, pressureMessage } from './messages.ts';
import type { EvictionManagerOptions } from './options.ts';
import { rankPods } from './ranking.ts';
import type { NodeSignals } from './signals.ts';
import { CONDITION_OF, parseThresholds, RESOURCE_OF, type Signal, type Threshold } from './thresholds.ts';

const INTERVAL_MS = 10_000;
/** How long an evicted pod may take to be gone before the next round begins anyway. */
const CLEANUP_MS = 30_000;
/** Walking over files may take this share of the time at most: a walk of 1 s is not repeated for 20 s. */
const WALK_SHARE = 20;

export class EvictionManager {
  readonly #options: EvictionManagerOptions;
  readonly #thresholds: readonly Threshold[];
  /** Pods that were evicted and are not gone yet. */
  readonly #evicted = new Set<string>();
  /** Not before (monotonic ms) are local storage limits checked again. */
  #nextWalk = Number.NEGATIVE_INFINITY;

  /** Throws RangeError for thresholds that make no sense. */
  constructor(options: EvictionManagerOptions) {
    this.#options = options;
    this.#thresholds = parseThresholds(options.config);
  }

  /** Runs until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, config, log } = this.#options;
    if (this.#thresholds.length === 0 && !config.localStorageCapacityIsolation) return;
    const round = async (): Promise<number | undefined> => {
      try {
        // After an eviction the next round begins at once: the threshold may still be met.
        return (await this.synchronize()) ? 0 : undefined;
      } catch (error) {
        log('warn', `Eviction manager: failed to synchronize: ${errorMessage(error)}`);
        return undefined;
      }
    };
    await repeat(round, { clock, everyMs: INTERVAL_MS, signal });
  }

  /** One round. Resolves to whether pods were evicted, after those are gone or their time to go is over. */
  async synchronize(): Promise<boolean> {
    const { clock, config, readSignals, pressure } = this.#options;
    const signals = await readSignals();
    const state = nextPressureState(
      this.#thresholds,
      signals.observations,
      pressure.current,
      clock.monotonic(),
      config.evictionPressureTransitionPeriod,
    );
    pressure.update(state);
    const pods = this.#candidates();
    if (await this.#enforceLocalStorage(pods, signals)) return true;
    const [threshold] = state.met;
    return threshold === undefined ? false : await this.#relieve(threshold, pods, signals);
  }

  /** Pods that run, and are not being evicted already. */
  #candidates(): readonly Pod[] {
    const active = this.#options.pods.activePods();
    const uids = new Set(active.map(({ metadata }) => metadata.uid));
    for (const uid of this.#evicted) if (!uids.has(uid)) this.#evicted.delete(uid);
    return active.filter(({ metadata }) => !this.#evicted.has(metadata.uid));
  }

  /** Limits on local storage hold whether or not the node is short of it. */
  async #enforceLocalStorage(pods: readonly Pod[], signals: NodeSignals): Promise<boolean> {
    const { clock, config, readUsage } = this.#options;
    const limited = config.localStorageCapacityIsolation ? pods.filter(hasLocalStorageLimit) : [];
    const start = clock.monotonic();
    if (limited.length === 0 || start < this.#nextWalk) return false;
    const usages = await readUsage(limited, { disk: true });
    const end = clock.monotonic();
    this.#nextWalk = end + (end - start) * WALK_SHARE;
    const evictions = limited.flatMap((pod) => {
      const usage = usages.get(pod.metadata.uid);
      const message = usage === undefined ? undefined : localStorageViolation(pod, usage, signals.layout);
      if (message === undefined || isCriticalPod(pod)) return [];
      return [this.#evict(pod, message, IMMEDIATE_SECONDS, false)];
    });
    await this.#gone(evictions);
    return evictions.length > 0;
  }

  async #relieve(threshold: Threshold, pods: readonly Pod[], signals: NodeSignals): Promise<boolean> {
    const { recorder, nodeName, readUsage, log, config } = this.#options;
    const { signal } = threshold;
    const node = { kind: 'Node', apiVersion: 'v1', metadata: { name: nodeName, uid: nodeName } };
    recorder.event(node, 'Warning', 'EvictionThresholdMet', `Attempting to reclaim ${RESOURCE_OF[signal]}`);
    if (await this.#reclaimFromNode(signal, signals)) return false;
    const usages = await readUsage(pods, { disk: CONDITION_OF[signal] === 'DiskPressure' });
    const usageOf = (pod: Pod) => usages.get(pod.metadata.uid);
    const [victim] = rankPods(pods, usageOf, signal, signals.layout).filter((pod) => !isCriticalPod(pod));
    if (victim === undefined) {
      log('warn', 'Eviction manager: unable to evict any pods from the node', { signal });
      return false;
    }
    const message = pressureMessage(
      signal,
      victim,
      usageOf(victim),
      this.#options.pressure.current.met,
      signals.observations,
    );
    const { terminationGracePeriodSeconds } = victim.spec;
    const grace = evictionGraceSeconds(threshold, config.evictionMaxPodGracePeriod, terminationGracePeriodSeconds);
    await this.#gone([this.#evict(victim, message, grace, true)]);
    return true;
  }

  /** Disk that no pod uses is freed before any pod is ended. Resolves to whether that was enough. */
  async #reclaimFromNode(signal: Signal, { layout }: NodeSignals): Promise<boolean> {
    const { pods, removeUnusedImages, readSignals, log } = this.#options;
    if (CONDITION_OF[signal] !== 'DiskPressure') return false;
    const onNodefs = signal.startsWith('nodefs.');
    const acts = [
      ...(layout === 'shared' || onNodefs === (layout === 'splitImagefs') ? [() => pods.removeEnded()] : []),
      ...(layout === 'shared' || !onNodefs ? [removeUnusedImages] : []),
    ];
    if (acts.length === 0) return false;
    for (const act of acts) {
      try {
        await act();
      } catch (error) {
        log(
          'warn',
          `Eviction manager: unexpected error when attempting to reduce ${RESOURCE_OF[signal]} pressure: ${errorMessage(error)}`,
        );
      }
    }
    return isResolved(this.#options.pressure.current.met, (await readSignals()).observations);
  }

  #evict(pod: Pod, message: string, graceSeconds: number, disrupted: boolean): Promise<void> {
    const { uid, namespace, name } = pod.metadata;
    const { pods, recorder, log } = this.#options;
    log('warn', 'Eviction manager: evicting pod', { pod: `${namespace}/${name}`, why: message });
    recorder.event({ kind: 'Pod', apiVersion: 'v1', metadata: pod.metadata }, 'Warning', EVICTED, message);
    this.#evicted.add(uid);
    return pods.endPod(uid, {
      reason: EVICTED,
      message,
      graceSeconds,
      ...(disrupted ? { disruption: { reason: TERMINATION_BY_KUBELET, message } } : {}),
    });
  }

  /** Waits until the pods are gone, though not for ever. */
  async #gone(evictions: readonly Promise<void>[]): Promise<void> {
    if (evictions.length === 0) return;
    await resolvesWithin(this.#options.clock, CLEANUP_MS, Promise.all(evictions));
  }
}
