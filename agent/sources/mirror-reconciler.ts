// Makes mirror pods at the API server for the static pods of this node, and removes those that are mirrors of nothing.
// What to do is decided in mirror-rules.ts; what there is is known to mirror-pods.ts.

import type { ApiClient } from '../../client/api.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Node, Pod } from '../../client/types.ts';
import { type BackoffEntry, type BackoffPolicy, nextBackoff } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { Tracer } from '../../lib/trace.ts';
import { isStaticPod } from '../model/static-pods.ts';
import type { MirrorPods } from './mirror-pods.ts';
import { decideMirrors, fullName, isMirrorOf, type MirrorAction, mirrorOf, withMirrorStatus } from './mirror-rules.ts';

/** The pods agent, as far as mirrors are concerned. */
export interface MirroredPods {
  listPods(): readonly Pod[];
  statusSeen(pod: Pod): void;
}

export interface MirrorReconcilerOptions {
  readonly mirrors: MirrorPods;
  readonly pods: MirroredPods;
  readonly client: Pick<ApiClient, 'create' | 'delete'>;
  /** The Node object; undefined until it is known, and no mirror is made before. */
  readonly node: () => Pick<Node, 'metadata'> | undefined;
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly log: Log;
}

const NAME_TAKEN = 'a pod of that name exists already';
const RETRY: BackoffPolicy = { initialMs: 1_000, maxMs: 60_000, factor: 2, resetMs: 300_000 };

export class MirrorReconciler {
  readonly #options: MirrorReconcilerOptions;
  /** Names (namespace/name) of mirrors that are being made or removed, or wait for another try. */
  readonly #busy = new Set<string>();
  readonly #backoffs = new Map<string, BackoffEntry & { readonly message: string }>();

  constructor(options: MirrorReconcilerOptions) {
    this.#options = options;
    options.mirrors.changed.subscribe(() => this.reconcile());
    options.mirrors.mirrorSeen.subscribe((mirror) => this.#passOnStatus(mirror));
    this.reconcile();
  }

  /** Also to be called when a pod is gone, or the Node has become known. */
  reconcile(): void {
    const { mirrors } = this.#options;
    if (mirrors.stopped) return;
    const statics = mirrors.staticPods();
    // Every change of any pod comes here, and most nodes have no static pods.
    if (statics?.size === 0 && mirrors.mirrors?.size === 0) return;
    for (const action of decideMirrors({ statics, mirrors: mirrors.mirrors, present: this.#present() })) {
      void this.#act(action);
    }
  }

  #present(): ReadonlyMap<string, readonly string[]> {
    const present = new Map<string, string[]>();
    for (const pod of this.#options.pods.listPods()) {
      if (!isStaticPod(pod)) continue;
      const name = fullName(pod);
      present.set(name, [...(present.get(name) ?? []), pod.metadata.uid]);
    }
    return present;
  }

  #passOnStatus(mirror: Pod): void {
    const { pods } = this.#options;
    const pod = pods.listPods().find((each) => isStaticPod(each) && isMirrorOf(mirror, each));
    if (pod !== undefined) pods.statusSeen(withMirrorStatus(pod, mirror));
  }

  async #act(action: MirrorAction): Promise<void> {
    const subject = action.kind === 'create' ? action.pod : action.mirror;
    const name = fullName(subject);
    const { clock, tracer } = this.#options;
    if (this.#busy.has(name)) return;
    if (action.kind === 'create' && this.#options.node() === undefined) return;
    this.#busy.add(name);
    let waitMs = 0;
    try {
      const cause = action.kind === 'create' ? 'static pod has no mirror' : `mirror pod ${action.why}`;
      const { uid, namespace, name: podName } = subject.metadata;
      await tracer.within({ pod: { uid, namespace, name: podName }, cause }, () => this.#perform(action));
      this.#backoffs.delete(name);
    } catch (error) {
      waitMs = this.#failed(action, name, errorMessage(error));
    }
    if (waitMs > 0) await clock.sleep(waitMs);
    this.#busy.delete(name);
    this.reconcile();
  }

  async #perform(action: MirrorAction): Promise<void> {
    const { client, log, mirrors } = this.#options;
    if (action.kind === 'delete') {
      const { name, namespace, uid } = action.mirror.metadata;
      try {
        const path = resourcePath('v1', 'pods', { namespace, name });
        await client.delete(path, { gracePeriodSeconds: 0, preconditions: { uid } });
      } catch (error) {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      }
      log('info', `Deleted mirror pod ${namespace}/${name}`, { why: action.why });
      mirrors.deleted(action.mirror);
      return;
    }
    const { name, namespace } = action.pod.metadata;
    const node = this.#options.node();
    if (node === undefined) return;
    try {
      const mirror = await client.create<Pod>(resourcePath('v1', 'pods', { namespace }), mirrorOf(action.pod, node));
      log('info', `Created mirror pod ${namespace}/${name}`);
      mirrors.created(mirror);
    } catch (error) {
      // Our own mirror, which the watch has not delivered yet, or a foreign pod with the name: either way it is retried.
      if (isAlreadyExists(error)) throw new Error(NAME_TAKEN, { cause: error });
      throw error;
    }
  }

  #failed(action: MirrorAction, name: string, message: string): number {
    const { clock, log } = this.#options;
    const before = this.#backoffs.get(name);
    const next = { ...nextBackoff(RETRY, before, clock.monotonic()), message };
    this.#backoffs.set(name, next);
    const what = action.kind === 'create' ? 'made' : 'removed';
    // The first time it is most likely ours, and the watch lags.
    const early = before === undefined && message === NAME_TAKEN;
    if (early) this.#backoffs.set(name, { ...next, message: '' });
    else if (before?.message !== message) log('warn', `mirror pod ${name} could not be ${what}: ${message}`);
    return next.delayMs;
  }
}
