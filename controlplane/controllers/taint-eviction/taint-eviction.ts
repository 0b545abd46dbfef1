// The taint eviction controller: deletes pods of nodes with NoExecute taints that they do not tolerate, or not any longer.
// toleration-time.ts decides how long. A pod of a node that is away stays as an object until its kubelet confirms its end.

import { isConflict, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { objectKey } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { elapsedMs, type MonotonicMs } from '../../../lib/clock.ts';
import { Counter } from '../../../lib/metrics.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { tolerationMs } from './toleration-time.ts';

type Needed = Pick<Informers, 'nodes' | 'pods'>;

const REASON = 'TaintManagerEviction';

/** Keys are those of pods. */
export class TaintEvictionController implements Controller {
  readonly name = 'taint-eviction';
  readonly workers = 2;
  readonly queue: WorkQueue;
  readonly metrics = new Counter(
    'taint_eviction_controller_pod_deletions_total',
    '[ALPHA] Total number of Pods deleted by TaintEvictionController since its start.',
  );
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  /** By uid: since when (monotonic ms) a pod's node has had taints that it does not tolerate for ever. */
  readonly #since = new Map<string, MonotonicMs>();

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    this.queue = new WorkQueue({ clock: context.clock });
    informers.pods.onChange((changes) => {
      for (const change of changes) {
        if (change.type === 'removed') this.#since.delete(change.object.metadata.uid);
        else this.queue.add(objectKey(change.object));
      }
    });
    informers.nodes.onChange((changes) => {
      const tainted = changes.flatMap((change) =>
        change.type === 'modified' && hasSameTaints(change.old.spec?.taints, change.object.spec?.taints)
          ? []
          : [change.object.metadata.name],
      );
      if (tainted.length === 0) return;
      for (const pod of informers.pods.list()) {
        if (tainted.includes(pod.spec.nodeName ?? '')) this.queue.add(objectKey(pod));
      }
    });
  }

  async sync(key: string): Promise<void> {
    const { clock, recorder } = this.#context;
    const pod = this.#informers.pods.get(key);
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return;
    const { uid, namespace, name } = pod.metadata;
    const taints = this.#informers.nodes.get(pod.spec.nodeName ?? '')?.spec?.taints ?? [];
    const limitMs = tolerationMs(pod, taints);
    if (limitMs === undefined) {
      if (this.#since.delete(uid))
        recorder.event(pod, 'Normal', REASON, `Cancelling deletion of Pod ${namespace}/${name}`);
      return;
    }
    const since = this.#since.get(uid) ?? clock.monotonic();
    this.#since.set(uid, since);
    const leftMs = limitMs - elapsedMs(since, clock.monotonic());
    if (leftMs > 0) this.queue.addAfter(key, leftMs);
    else await this.#delete(pod);
  }

  async #delete(pod: Pod): Promise<void> {
    const { client, clock, recorder } = this.#context;
    const { uid, namespace, name } = pod.metadata;
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'DeletionByTaintManager',
      message: 'Taint manager: deleting due to NoExecute taint',
      lastTransitionTime: rfc3339(clock.now()),
    };
    const status = { metadata: { uid }, status: { conditions: [condition] } };
    recorder.event(pod, 'Normal', REASON, `Marking for deletion Pod ${namespace}/${name}`);
    try {
      await client.patch(resourcePath('v1', 'pods', { namespace, name, subresource: 'status' }), status, 'strategic');
      await client.delete(resourcePath('v1', 'pods', { namespace, name }), { preconditions: { uid } });
      this.metrics.inc();
    } catch (error) {
      // It is gone, or another pod has its name.
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }
}

function hasSameTaints(a: readonly object[] | undefined, b: readonly object[] | undefined): boolean {
  return a === b || JSON.stringify(a ?? []) === JSON.stringify(b ?? []);
}
