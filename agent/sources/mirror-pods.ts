// Leads between static pods and their mirrors at the API server: no mirror is ever taken for a pod to run, and the status
// of a static pod is written to its mirror. It makes and removes no mirror: mirror-reconciler.ts does.

import type { Pod } from '../../client/types.ts';
import { Signal, type SignalSource } from '../../lib/signal.ts';
import { isMirrorPod, isStaticPod } from '../model/static-pods.ts';
import type { PodApi, PodSource } from '../ports/api.ts';
import { asApiPod, fullName, isMirrorOf, isUnderWay, withMirrorStatus } from './mirror-rules.ts';

export class MirrorPods {
  readonly #nodeName: string;
  /** By source; every one of them must have listed its pods. */
  readonly #statics = new Map<PodSource['name'], ReadonlyMap<string, Pod> | undefined>();
  #mirrors: Map<string, Pod> | undefined;
  /** What lists the pods of each source of static pods again. */
  readonly #listAgain = new Set<() => void>();
  readonly #listedAs = new WeakMap<Pod, Pod>();
  #stopped = false;
  readonly #changed = new Signal();
  readonly #mirrorSeen = new Signal<Pod>();

  constructor(nodeName: string) {
    this.#nodeName = nodeName;
  }

  /** Emits when static pods or mirrors have changed. */
  get changed(): SignalSource<void> {
    return this.#changed;
  }

  /** A mirror is new or another version of itself: it has the status of its pod. */
  get mirrorSeen(): SignalSource<Pod> {
    return this.#mirrorSeen;
  }

  /** The sources have been stopped. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** The mirrors on the API server, by namespace/name; undefined until they have been listed. */
  get mirrors(): ReadonlyMap<string, Pod> | undefined {
    return this.#mirrors;
  }

  /** The static pods of this node, by namespace/name; undefined until every source has listed its own. */
  staticPods(): ReadonlyMap<string, Pod> | undefined {
    const all: Pod[] = [];
    for (const pods of this.#statics.values()) {
      if (pods === undefined) return undefined;
      all.push(...pods.values());
    }
    return new Map(all.map((pod) => [fullName(pod), pod]));
  }

  /** A mirror was created that the watch may not show yet. */
  created(mirror: Pod): void {
    if (this.#mirrors?.has(fullName(mirror)) === false) this.#mirrors.set(fullName(mirror), mirror);
    this.#mirrorSeen.emit(mirror);
  }

  /** A mirror was deleted that the watch may still show. */
  deleted(mirror: Pod): void {
    const known = this.#mirrors?.get(fullName(mirror));
    if (known?.metadata.uid === mirror.metadata.uid) this.#mirrors?.delete(fullName(mirror));
  }

  /** The API source without mirror pods. */
  apiSource(inner: PodSource): PodSource {
    const nodeName = this.#nodeName;
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
          this.#changed.emit();
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
        const listed = new Map<string, Pod>();
        const list = (pods: ReadonlyMap<string, Pod>): void => {
          listed.clear();
          for (const [uid, pod] of pods) listed.set(uid, this.#withStatus(pod));
          listener(new Map(listed));
        };
        // Once its mirror is known, a pod is listed again, with the status that an agent before this one wrote.
        this.#listAgain.add(() => {
          const pods = this.#statics.get(inner.name);
          if (pods === undefined) return;
          if ([...pods].every(([uid, pod]) => listed.get(uid) === this.#withStatus(pod))) return;
          list(pods);
        });
        inner.start((pods) => {
          this.#statics.set(inner.name, pods);
          list(pods);
          this.#changed.emit();
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
        if (!isStaticPod(pod)) {
          const outcome = await inner.patchStatus(pod, patch);
          // The server shows the annotation by which a pod may claim to be a static one.
          return outcome.kind === 'ok' ? { ...outcome, value: asApiPod(outcome.value) } : outcome;
        }
        const mirror = this.#mirrorFor(pod);
        // The object that comes next is written to when it is seen.
        if (mirror === undefined) return { kind: 'unwritten' };
        const outcome = await inner.patchStatus(mirror, patch);
        return outcome.kind === 'ok'
          ? { kind: 'ok', value: withMirrorStatus(pod, outcome.value) }
          : { kind: 'unwritten' };
      },
      finalizeDelete: async (pod) => (isStaticPod(pod) ? { kind: 'ok', value: null } : await inner.finalizeDelete(pod)),
    };
  }

  /** The pod with what is written of it, where it ran and has not ended; the same object as long as the pod is. */
  #withStatus(pod: Pod): Pod {
    const known = this.#listedAs.get(pod);
    if (known !== undefined) return known;
    const mirror = this.#mirrorFor(pod);
    // A refused or terminated one is admitted again: its manifest may have been removed and added again.
    if (mirror === undefined || !isUnderWay(mirror)) return pod;
    const withStatus = withMirrorStatus(pod, mirror);
    this.#listedAs.set(pod, withStatus);
    return withStatus;
  }

  #mirrorFor(pod: Pod): Pod | undefined {
    const mirror = this.#mirrors?.get(fullName(pod));
    if (mirror === undefined || mirror.metadata.deletionTimestamp !== undefined) return undefined;
    return isMirrorOf(mirror, pod) ? mirror : undefined;
  }

  /** Mirrors as the API server has them now. */
  #see(mirrors: Map<string, Pod>): void {
    const before = this.#mirrors;
    this.#mirrors = mirrors;
    for (const [name, mirror] of mirrors) {
      if (before?.get(name) !== mirror) this.#mirrorSeen.emit(mirror);
    }
    for (const listAgain of this.#listAgain) listAgain();
  }
}
