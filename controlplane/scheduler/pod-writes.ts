// What the scheduler writes of pods: why one has no node and which it is nominated to, and the eviction of victims. Decides
// nothing but whether a write would change something.

import { isConflict, isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Pod, PodCondition } from '../../client/types.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import type { ControllerContext, Recorder } from '../runtime.ts';

/** Of an event's message, in characters. */
const MAX_NOTE = 1024;
const CUT = ' ...';

export interface Failure {
  readonly reason: 'Unschedulable' | 'SchedulerError';
  readonly message: string;
  /** undefined: leave it as it is; '': none. */
  readonly nominatedNode: string | undefined;
}

const statusPath = ({ metadata: { namespace, name } }: Pod): string =>
  resourcePath('v1', 'pods', { namespace, name, subresource: 'status' });

const subject = (pod: Pod) => ({ ...pod, kind: 'Pod', apiVersion: 'v1' });

/** The condition with the time of its last transition, or undefined when the pod has it. */
function changed(pod: Pod, wanted: Omit<PodCondition, 'lastTransitionTime'>, now: string): PodCondition | undefined {
  const known = pod.status?.conditions?.find(({ type }) => type === wanted.type);
  const same = known?.status === wanted.status && known.reason === wanted.reason && known.message === wanted.message;
  if (same) return undefined;
  const { generation } = pod.metadata;
  const since = known?.status === wanted.status ? known.lastTransitionTime : undefined;
  return {
    ...wanted,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    lastTransitionTime: since ?? now,
  };
}

export class PodWrites {
  readonly #context: Pick<ControllerContext, 'client' | 'clock'>;
  /** The writes of each pod's status in the order in which they were decided. */
  readonly #last = new Map<string, Promise<void>>();

  constructor(context: Pick<ControllerContext, 'client' | 'clock'>) {
    this.#context = context;
  }

  /** Records why the pod has no node, as an event and in its status. Throws what the API server answers. */
  async failed(pod: Pod, { reason, message, nominatedNode }: Failure, recorder: Recorder): Promise<void> {
    const note = message.length <= MAX_NOTE ? message : message.slice(0, MAX_NOTE - CUT.length) + CUT;
    recorder.event(subject(pod), 'Warning', 'FailedScheduling', note);
    const condition = changed(pod, { type: 'PodScheduled', status: 'False', reason, message }, this.#now());
    const nominated = nominatedNode === undefined || nominatedNode === (pod.status?.nominatedNodeName ?? '');
    if (condition === undefined && nominated) return;
    await this.#patchStatus(pod, {
      ...(condition === undefined ? {} : { conditions: [condition] }),
      ...(nominated ? {} : { nominatedNodeName: nominatedNode === '' ? null : nominatedNode }),
    });
  }

  async clearNomination(pod: Pod): Promise<void> {
    if ((pod.status?.nominatedNodeName ?? '') !== '') await this.#patchStatus(pod, { nominatedNodeName: null });
  }

  /** Has the victim end, with its grace period, for the preemptor to come to its node. */
  async preempt(victim: Pod, preemptor: Pod, node: string, recorder: Recorder): Promise<void> {
    if (victim.metadata.deletionTimestamp !== undefined) return;
    const condition = changed(
      victim,
      {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'PreemptionByScheduler',
        message: `${preemptor.spec.schedulerName ?? ''}: preempting to accommodate a higher priority pod`,
      },
      this.#now(),
    );
    const { namespace, name, uid } = victim.metadata;
    try {
      if (condition !== undefined) {
        const body = { metadata: { uid }, status: { conditions: [condition] } };
        await this.#context.client.patch(statusPath(victim), body, 'strategic');
      }
      await this.#context.client.delete(resourcePath('v1', 'pods', { namespace, name }), { preconditions: { uid } });
    } catch (error) {
      // Gone already, or another pod has its name now.
      if (isNotFound(error) || isConflict(error)) return;
      throw error;
    }
    const message = `Preempted by pod ${preemptor.metadata.uid} on node ${node}`;
    recorder.event(subject(victim), 'Normal', 'Preempted', message);
  }

  #now(): string {
    return rfc3339(this.#context.clock.now());
  }

  async #patchStatus(pod: Pod, status: object): Promise<void> {
    const { uid } = pod.metadata;
    const before = this.#last.get(uid);
    const write = async (): Promise<void> => {
      await before?.catch(() => undefined);
      try {
        await this.#context.client.patch(statusPath(pod), { metadata: { uid }, status }, 'strategic');
      } catch (error) {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      }
    };
    const writing = write();
    this.#last.set(uid, writing);
    try {
      await writing;
    } finally {
      if (this.#last.get(uid) === writing) this.#last.delete(uid);
    }
  }
}
