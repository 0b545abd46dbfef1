// Has a pod's volumes bound: writes what the claims' controllers act on, and waits until they have. Decides nothing.

import type { ReadableStore } from '../../client/store.ts';
import { type Clock, elapsedMs, plusMs } from '../../lib/clock.ts';
import type { ControllerContext } from '../runtime.ts';
import { ANNOTATIONS, annotation, isBound, type PersistentVolumeClaim } from '../storage/objects.ts';
import { CLAIMS, patchAsRead, VOLUMES } from '../storage/write.ts';
import { claimReference } from './storage-assumptions.ts';
import type { VolumeStep } from './volumes.ts';

export class VolumeWrites {
  readonly #client: ControllerContext['client'];
  readonly #clock: Clock;
  readonly #claims: ReadableStore<PersistentVolumeClaim>;
  readonly #signal: AbortSignal | undefined;

  constructor(
    { client, clock }: Pick<ControllerContext, 'client' | 'clock'>,
    claims: ReadableStore<PersistentVolumeClaim>,
    signal?: AbortSignal,
  ) {
    this.#client = client;
    this.#clock = clock;
    this.#claims = claims;
    this.#signal = signal;
  }

  /** Throws when a step is refused (409: decided on something old) and as `whenBound` does. `claims`: "namespace/name". */
  async bind(steps: readonly VolumeStep[], claims: readonly string[], node: string, timeoutMs: number): Promise<void> {
    for (const step of steps) {
      if (step.kind === 'provision') {
        const annotations = { [ANNOTATIONS.selectedNode]: node };
        await patchAsRead(this.#client, CLAIMS, step.claim, { metadata: { annotations } });
      } else {
        await patchAsRead(this.#client, VOLUMES, step.volume, {
          metadata: { annotations: { [ANNOTATIONS.boundByController]: 'yes' } },
          spec: { claimRef: claimReference(step.claim) },
        });
      }
    }
    const provisioned = new Set(
      steps.flatMap(({ kind, claim }) =>
        kind === 'provision' ? `${claim.metadata.namespace}/${claim.metadata.name}` : [],
      ),
    );
    await this.#whenBound(claims, provisioned, timeoutMs);
  }

  /** Throws when a claim goes, when its provisioner gives the node up, and after `timeoutMs`. */
  #whenBound(claims: readonly string[], provisioned: ReadonlySet<string>, timeoutMs: number): Promise<void> {
    const deadline = plusMs(this.#clock.monotonic(), timeoutMs);
    /** Claims whose annotation has been seen: where it is missing afterwards, it has been taken away. */
    const seen = new Set<string>();
    const bound = (): boolean => {
      for (const key of claims) {
        const claim = this.#claims.get(key);
        const name = key.slice(key.indexOf('/') + 1);
        if (claim === undefined) throw new Error(`persistentvolumeclaim "${name}" not found`);
        if (isBound(claim)) continue;
        if (annotation(claim, ANNOTATIONS.selectedNode) !== undefined) seen.add(key);
        else if (provisioned.has(key) && seen.has(key)) throw new Error(`provisioning failed for PVC "${name}"`);
        if (elapsedMs(this.#clock.monotonic(), deadline) <= 0) throw new Error('timed out waiting for the condition');
        return false;
      }
      return true;
    };
    return new Promise((resolve, reject) => {
      const check = (): void => {
        try {
          if (bound()) end(resolve);
          else if (this.#signal?.aborted === true) end(() => reject(this.#signal?.reason));
        } catch (error) {
          end(() => reject(error));
        }
      };
      const stopWatching = this.#claims.onChange(check);
      const timer = this.#clock.after(timeoutMs, check);
      this.#signal?.addEventListener('abort', check, { once: true });
      const end = (settle: () => void): void => {
        stopWatching();
        timer.cancel();
        this.#signal?.removeEventListener('abort', check);
        settle();
      };
      check();
    });
  }
}
