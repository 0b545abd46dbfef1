// Rules about stateful sets: pods are made in order, leave in the reverse order, and an update leaves those below the partition
// alone.

import type { Pod } from '../../../client/types.ts';
import type { StatefulSet } from '../../../controlplane/controllers/shared/objects.ts';
import type { Clock, MonotonicMs } from '../../../lib/clock.ts';
import { controllerKind, controllerUid, isLeaving, isOver, isReady, ordinalOf } from './facts.ts';
import { Recent } from './recent.ts';

interface Spec {
  readonly replicas: number;
  readonly start: number;
  /** The first ordinal that an update may touch. */
  readonly partition: number;
  readonly ordered: boolean;
}

interface Known {
  readonly spec: Recent<Spec>;
  leaving: boolean;
  /** By ordinal: when a pod of it was ready last. */
  readonly readyAt: Map<number, MonotonicMs>;
  /** By ordinal. */
  readonly pods: Map<number, { pod: Pod; readonly since: MonotonicMs }>;
}

function specOf({ spec }: StatefulSet): Spec {
  const start = spec.ordinals?.start ?? 0;
  return {
    replicas: spec.replicas ?? 1,
    start,
    partition: start + (spec.updateStrategy?.rollingUpdate?.partition ?? 0),
    ordered: spec.podManagementPolicy !== 'Parallel',
  };
}

export class StatefulRules {
  readonly #clock: Clock;
  readonly #break: (what: string) => void;
  readonly #staleMs: () => number;
  readonly #sets = new Map<string, Known>();

  constructor(clock: Clock, breaks: (what: string) => void, staleMs: () => number) {
    this.#clock = clock;
    this.#break = breaks;
    this.#staleMs = staleMs;
  }

  written(type: 'ADDED' | 'MODIFIED' | 'DELETED', set: StatefulSet): void {
    const { uid, deletionTimestamp } = set.metadata;
    const known = this.#sets.get(uid);
    if (type === 'DELETED') {
      if (known !== undefined) known.leaving = true;
    } else if (known === undefined) {
      const spec = new Recent(this.#clock, specOf(set));
      this.#sets.set(uid, { spec, leaving: false, readyAt: new Map(), pods: new Map() });
    } else {
      known.spec.set(specOf(set));
      known.leaving ||= deletionTimestamp !== undefined;
    }
  }

  pod(type: 'ADDED' | 'MODIFIED' | 'DELETED', actor: string, pod: Pod, previous: Pod | undefined): void {
    if (controllerKind(pod) !== 'StatefulSet') return;
    const known = this.#sets.get(controllerUid(pod) ?? '');
    if (known === undefined) return;
    const ordinal = ordinalOf(pod);
    const now = this.#clock.monotonic();
    if (previous !== undefined && isReady(previous)) known.readyAt.set(ordinal, now);
    const isGone = type === 'DELETED';
    const begins = previous !== undefined && !isLeaving(previous) && (isGone || isLeaving(pod));
    if (begins && actor.startsWith('plane') && !known.leaving) this.#leaves(known, ordinal, previous);
    if (isGone) known.pods.delete(ordinal);
    else known.pods.set(ordinal, { pod, since: known.pods.get(ordinal)?.since ?? now });
    if (type === 'ADDED' && actor.startsWith('plane')) this.#created(known, ordinal, pod);
  }

  #created(known: Known, ordinal: number, pod: Pod): void {
    const stale = this.#staleMs();
    const specs = known.spec.within(stale);
    const name = `pod ${pod.metadata.namespace}/${pod.metadata.name}`;
    if (specs.every(({ start, replicas }) => ordinal < start || ordinal >= start + replicas)) {
      this.#break(`${name} is made, which its set does not want`);
    }
    if (specs.some(({ ordered }) => !ordered)) return;
    const now = this.#clock.monotonic();
    for (let before = Math.max(...specs.map(({ start }) => start)); before < ordinal; before++) {
      const there = known.pods.get(before);
      const isReadyNow = there !== undefined && isReady(there.pod) && !isLeaving(there.pod);
      if (isReadyNow || (known.readyAt.get(before) ?? Number.NEGATIVE_INFINITY) >= now - stale) continue;
      this.#break(`${name} is made before ${before} is ready`);
    }
  }

  /** A live pod is deleted by the control plane: because it is not wanted, or has the revision before. */
  #leaves(known: Known, ordinal: number, pod: Pod): void {
    if (isOver(pod)) return;
    const stale = this.#staleMs();
    const specs = known.spec.within(stale);
    const name = `pod ${pod.metadata.namespace}/${pod.metadata.name}`;
    const isSurplus = specs.every(({ start, replicas }) => ordinal >= start + replicas || ordinal < start);
    const isWanted = specs.every(({ start, replicas }) => ordinal >= start && ordinal < start + replicas);
    if (isWanted && specs.every(({ partition }) => ordinal < partition) && !tolerationsEnd(pod)) {
      this.#break(`${name} is deleted, which is below the partition`);
    }
    if (!isSurplus || specs.some(({ ordered }) => !ordered)) return;
    const from = this.#clock.monotonic() - stale;
    for (const [other, { since }] of known.pods) {
      if (other > ordinal && since < from) this.#break(`${name} is deleted while ${other} is there`);
    }
  }
}

/** Its node is lost, and the taint of that evicts it. */
function tolerationsEnd({ status }: Pod): boolean {
  return (
    status?.conditions?.some(({ type, status: value }) => type === 'DisruptionTarget' && value === 'True') === true
  );
}
