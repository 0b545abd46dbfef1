// Which pod every sandbox and container id belongs to, learned from what the adapter makes, lists and reads. Lets an
// event that carries an id alone find its pod without a round trip. In memory only; rebuilt from lists.

import type { PodRef } from '../ports/runtime.ts';

export interface KnownId {
  readonly kind: 'sandbox' | 'container';
  readonly pod: PodRef;
}

export class IdRegistry {
  readonly #known = new Map<string, KnownId>();

  get(id: string): KnownId | undefined {
    return this.#known.get(id);
  }

  learn(id: string, kind: KnownId['kind'], pod: PodRef): void {
    if (!this.#known.has(id)) this.#known.set(id, { kind, pod });
  }

  forget(id: string): void {
    this.#known.delete(id);
  }

  /** Whether a sandbox of the pod other than `except` is known. */
  hasOtherSandbox(uid: string, except: string): boolean {
    for (const [id, known] of this.#known) {
      if (id !== except && known.kind === 'sandbox' && known.pod.uid === uid) return true;
    }
    return false;
  }

  /** Forgets everything that a complete list, begun after they were all learned, no longer shows. */
  retain(candidates: Iterable<string>, present: ReadonlySet<string>): void {
    for (const id of candidates) if (!present.has(id)) this.#known.delete(id);
  }

  ids(): string[] {
    return [...this.#known.keys()];
  }

  idsOf(uid: string): string[] {
    return [...this.#known].filter(([, known]) => known.pod.uid === uid).map(([id]) => id);
  }
}
