// Keeps mirror pods at the API server for the static pods of this node, and leads between the two: no mirror is ever
// taken for a pod to run, and the status of a static pod is written to its mirror. What to do is decided in
// mirror-rules.ts.

import type { ApiClient } from '../../client/api.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Node, Pod } from '../../client/types.ts';
import { type BackoffEntry, type BackoffPolicy, nextBackoff } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { Tracer } from '../../lib/trace.ts';
import { isMirrorPod, isStaticPod } from '../model/static-pods.ts';
import type { PodApi, PodSource } from '../ports/api.ts';
import {
  asApiPod,
  decideMirrors,
  fullName,
  isMirrorOf,
  isUnderWay,
  type MirrorAction,
  mirrorOf,
  withMirrorStatus,
} from './mirror-rules.ts';

export interface MirrorPodsOptions {
  readonly client: Pick<ApiClient, 'create' | 'delete'>;
  readonly nodeName: string;
  /** The Node object; undefined until it is known, and no mirror is made before. */
  readonly node: () => Pick<Node, 'metadata'> | undefined;
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly log: Log;
}

/** What is asked of the pods agent. */
export interface MirroredPods {
  listPods(): readonly Pod[];
  statusSeen(pod: Pod): void;
}

const NAME_TAKEN = 'a pod of that name exists already';
const RETRY: BackoffPolicy = { initialMs: 1_000, maxMs: 60_000, factor: 2, resetMs: 300_000 };

export class MirrorPods {
  readonly #options: MirrorPodsOptions;
  #pods: MirroredPods | undefined;
  /** By source; all of them must have spoken. */
  readonly #statics = new Map<PodSource['name'], ReadonlyMap<string, Pod> | undefined>();
  #mirrors: Map<string, Pod> | undefined;
  /** What tells the pods of each source of static pods again. */
  readonly #tellAgain = new Set<() => void>();
  readonly #handedOn = new WeakMap<Pod, Pod>();
  readonly #busy = new Set<string>();
  readonly #backoffs = new Map<string, BackoffEntry & { readonly message: string }>();
  #stopped = false;

  constructor(options: MirrorPodsOptions) {
    this.#options = options;
  }

  /** Begins to act for these pods. */
  attach(pods: MirroredPods): void {
    this.#pods = pods;
    this.reconcile();
  }

  /** The API source without mirror pods. */
  apiSource(inner: PodSource): PodSource {
    const { nodeName } = this.#options;
    return {
      name: inner.name,
      start: (listener) =>
        inner.start((pods) => {
          const mirrors = new Map<string, Pod>();
          const real = new Map<string, Pod>();
          for (const [uid, pod] of pods) {
            if (!isMirrorPod(pod)) real.set(uid, asApiPod(pod));
            else if (pod.spec.nodeName === nodeName) mirrors.set(fullName(pod), pod);
          }
          this.#see(mirrors);
          listener(real);
          this.reconcile();
        }),
      stop: () => {
        this.#stopped = true;
        inner.stop();
      },
    };
  }

  /** A source of static pods that get mirrors. */
  staticSource(inner: PodSource): PodSource {
    this.#statics.set(inner.name, undefined);
    return {
      name: inner.name,
      start: (listener) => {
        const told = new Map<string, Pod>();
        // Once its mirror is known, a pod is told again, with what an agent before this one wrote of it.
        this.#tellAgain.add(() => {
          const pods = this.#statics.get(inner.name);
          if (pods === undefined) return;
          if ([...pods].every(([uid, pod]) => told.get(uid) === this.#remembered(pod))) return;
          listener(this.#told(pods, told));
        });
        inner.start((pods) => {
          this.#statics.set(inner.name, pods);
          listener(this.#told(pods, told));
          this.reconcile();
        });
      },
      stop: () => inner.stop(),
    };
  }

  /** Writes about static pods go to their mirrors, or nowhere while there is none. */
  podApi(inner: PodApi): PodApi {
    return {
      get: (namespace, name) => inner.get(namespace, name),
      patchStatus: async (pod, patch) => {
        if (!isStaticPod(pod)) return await inner.patchStatus(pod, patch);
        const mirror = this.#mirrorFor(pod);
        // The object that comes next is written to when it is seen.
        if (mirror === undefined) return { kind: 'ok', value: pod };
        const outcome = await inner.patchStatus(mirror, patch);
        return { kind: 'ok', value: outcome.kind === 'gone' ? pod : withMirrorStatus(pod, outcome.value) };
      },
      finalizeDelete: async (pod) => (isStaticPod(pod) ? { kind: 'ok', value: null } : await inner.finalizeDelete(pod)),
    };
  }

  /** Looks again: a pod has ended, or the Node has become known. */
  reconcile(): void {
    if (this.#stopped || this.#pods === undefined) return;
    const statics = this.#wanted();
    // Every change of any pod comes here, and most nodes have no static pods.
    if (statics?.size === 0 && this.#mirrors?.size === 0) return;
    for (const action of decideMirrors({ statics, mirrors: this.#mirrors, present: this.#present() })) {
      void this.#act(action);
    }
  }

  #told(pods: ReadonlyMap<string, Pod>, told: Map<string, Pod>): ReadonlyMap<string, Pod> {
    told.clear();
    for (const [uid, pod] of pods) told.set(uid, this.#remembered(pod));
    return new Map(told);
  }

  /** The pod with what is written of it, where it ran and has not ended; the same object as long as the pod is. */
  #remembered(pod: Pod): Pod {
    const known = this.#handedOn.get(pod);
    if (known !== undefined) return known;
    const mirror = this.#mirrorFor(pod);
    // One that was refused or has ended is judged anew: its manifest may have gone and come back meanwhile.
    if (mirror === undefined || !isUnderWay(mirror)) return pod;
    const handedOn = withMirrorStatus(pod, mirror);
    this.#handedOn.set(pod, handedOn);
    return handedOn;
  }

  #mirrorFor(pod: Pod): Pod | undefined {
    const mirror = this.#mirrors?.get(fullName(pod));
    if (mirror === undefined || mirror.metadata.deletionTimestamp !== undefined) return undefined;
    return isMirrorOf(mirror, pod) ? mirror : undefined;
  }

  #wanted(): ReadonlyMap<string, Pod> | undefined {
    const all: Pod[] = [];
    for (const pods of this.#statics.values()) {
      if (pods === undefined) return undefined;
      all.push(...pods.values());
    }
    return new Map(all.map((pod) => [fullName(pod), pod]));
  }

  #present(): ReadonlyMap<string, readonly string[]> {
    const present = new Map<string, string[]>();
    for (const pod of this.#pods?.listPods() ?? []) {
      if (!isStaticPod(pod)) continue;
      const name = fullName(pod);
      present.set(name, [...(present.get(name) ?? []), pod.metadata.uid]);
    }
    return present;
  }

  /** Mirrors as the API server has them now; those that changed tell what is written of their pods. */
  #see(mirrors: Map<string, Pod>): void {
    const before = this.#mirrors;
    this.#mirrors = mirrors;
    for (const [name, mirror] of mirrors) {
      if (before?.get(name) !== mirror) this.#tellStatus(mirror);
    }
    for (const tellAgain of this.#tellAgain) tellAgain();
  }

  #tellStatus(mirror: Pod): void {
    const pod = this.#pods?.listPods().find((each) => isStaticPod(each) && isMirrorOf(mirror, each));
    if (pod !== undefined) this.#pods?.statusSeen(withMirrorStatus(pod, mirror));
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
    const { client, log } = this.#options;
    if (action.kind === 'delete') {
      const { name, namespace, uid } = action.mirror.metadata;
      try {
        const path = resourcePath('v1', 'pods', { namespace, name });
        await client.delete(path, { gracePeriodSeconds: 0, preconditions: { uid } });
      } catch (error) {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      }
      log('info', `removed mirror pod ${namespace}/${name}`, { why: action.why });
      const held = this.#mirrors?.get(fullName(action.mirror));
      if (held?.metadata.uid === uid) this.#mirrors?.delete(fullName(action.mirror));
      return;
    }
    const { name, namespace } = action.pod.metadata;
    const node = this.#options.node();
    if (node === undefined) return;
    try {
      const mirror = await client.create<Pod>(resourcePath('v1', 'pods', { namespace }), mirrorOf(action.pod, node));
      log('info', `made mirror pod ${namespace}/${name}`);
      if (this.#mirrors?.has(fullName(mirror)) === false) this.#mirrors.set(fullName(mirror), mirror);
      this.#tellStatus(mirror);
    } catch (error) {
      // Ours that the watch has not shown yet, or somebody's pod that has the name: either way it is looked at again.
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
    // The first time it is most likely ours, and the watch just late.
    const early = before === undefined && message === NAME_TAKEN;
    if (early) this.#backoffs.set(name, { ...next, message: '' });
    else if (before?.message !== message) log('warn', `mirror pod ${name} could not be ${what}: ${message}`);
    return next.delayMs;
  }
}
