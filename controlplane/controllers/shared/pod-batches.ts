// Creates and deletes pods of an owner that has many alike: in growing batches, with an event for each, and with what its cache
// does not show yet as an expectation. Decides nothing.

import type { PodTemplateSpec } from 'kubernetes-types/core/v1';
import type { Identified } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { ControllerContext } from '../../runtime.ts';
import type { Expectations } from './expectations.ts';
import type { WorkloadKind } from './objects.ts';
import { createPod, deletePod } from './pod-control.ts';
import { slowStart } from './slow-start.ts';

/** Pods that one sync creates or deletes at most; the next one follows when they are seen. */
export const BURST = 500;

interface Owner {
  readonly kind: WorkloadKind;
  readonly object: Identified;
}

export class PodBatches {
  readonly #context: Pick<ControllerContext, 'client' | 'recorder'>;
  readonly #expectations: Expectations;

  constructor(context: Pick<ControllerContext, 'client' | 'recorder'>, expectations: Expectations) {
    this.#context = context;
    this.#expectations = expectations;
  }

  /** Creates a pod of each of `templates` and deletes those of `surplus`, up to BURST of either; returns the first failure. */
  async apply(
    owner: Owner,
    templates: readonly PodTemplateSpec[],
    surplus: readonly Pod[],
  ): Promise<Error | undefined> {
    const { uid } = owner.object.metadata;
    const created = templates.slice(0, BURST);
    const deleted = surplus.slice(0, BURST);
    if (created.length + deleted.length === 0) return undefined;
    this.#expectations.expect(
      uid,
      created.length,
      deleted.map((pod) => pod.metadata.uid),
    );
    const { succeeded, error } = await slowStart(created.length, async (index) => {
      const template = created[index];
      if (template !== undefined) await this.#create(owner, template);
    });
    this.#expectations.notCreated(uid, created.length - succeeded);
    const results = await Promise.all(deleted.map((pod) => this.#delete(owner, pod)));
    return error === undefined ? results.find((result) => result !== undefined) : asError(error);
  }

  async #create({ kind, object }: Owner, template: PodTemplateSpec): Promise<void> {
    const { uid } = object.metadata;
    const pod = await createPod(this.#context, kind, object, template);
    // Where the namespace goes the owner goes with it.
    if (pod === undefined) this.#expectations.notCreated(uid, 1);
    else this.#expectations.created(uid, pod.metadata.uid);
  }

  async #delete({ kind, object }: Owner, pod: Pod): Promise<Error | undefined> {
    const unseen = (): void => this.#expectations.observedDeletion(object.metadata.uid, pod.metadata.uid);
    try {
      if (!(await deletePod(this.#context, kind, object, pod))) unseen();
      return undefined;
    } catch (error) {
      unseen();
      return asError(error);
    }
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(errorMessage(error));
}
