// Creates and deletes pods of an owner that has many alike: in growing batches, with an event for each, and with what its cache
// does not show yet as an expectation. Decides nothing.

import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Pod } from '../../../client/types.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { ControllerContext } from '../../runtime.ts';
import type { Expectations } from './expectations.ts';
import { isNamespaceTerminating } from './namespace-terminating.ts';
import { pathOf, subjectOf, type WorkloadKind } from './objects.ts';
import { POD } from './pods.ts';
import { slowStart } from './slow-start.ts';

/** Pods that one sync creates or deletes at most; the next one follows when they are seen. */
export const BURST = 500;

interface Owner {
  readonly kind: WorkloadKind;
  readonly object: Parameters<typeof subjectOf>[1];
}

export class PodBatches {
  readonly #context: Pick<ControllerContext, 'client' | 'recorder'>;
  readonly #expectations: Expectations;

  constructor(context: Pick<ControllerContext, 'client' | 'recorder'>, expectations: Expectations) {
    this.#context = context;
    this.#expectations = expectations;
  }

  /** Creates a pod for each of `bodies` and deletes those of `surplus`, up to BURST of either; returns the first failure. */
  async apply(owner: Owner, bodies: readonly object[], surplus: readonly Pod[]): Promise<Error | undefined> {
    const { uid } = owner.object.metadata;
    const created = bodies.slice(0, BURST);
    const deleted = surplus.slice(0, BURST);
    if (created.length + deleted.length === 0) return undefined;
    this.#expectations.expect(
      uid,
      created.length,
      deleted.map((pod) => pod.metadata.uid),
    );
    const { succeeded, error } = await slowStart(created.length, async (index) => {
      const body = created[index];
      if (body !== undefined) await this.#create(owner, body);
    });
    this.#expectations.notCreated(uid, created.length - succeeded);
    const results = await Promise.all(deleted.map((pod) => this.#delete(owner, pod)));
    return error === undefined ? results.find((result) => result !== undefined) : asError(error);
  }

  async #create({ kind, object }: Owner, body: object): Promise<void> {
    const { client, recorder } = this.#context;
    const { uid, namespace = '' } = object.metadata;
    const subject = subjectOf(kind, object);
    try {
      const pod = await client.create<Pod>(resourcePath('v1', 'pods', { namespace }), body);
      this.#expectations.created(uid, pod.metadata.uid);
      recorder.event(subject, 'Normal', 'SuccessfulCreate', `Created pod: ${pod.metadata.name}`);
    } catch (error) {
      if (isNamespaceTerminating(error)) {
        // Nothing can be created there any more; the owner goes with its namespace.
        this.#expectations.notCreated(uid, 1);
        return;
      }
      recorder.event(subject, 'Warning', 'FailedCreate', `Error creating: ${errorMessage(error)}`);
      throw error;
    }
  }

  async #delete({ kind, object }: Owner, pod: Pod): Promise<Error | undefined> {
    const { client, recorder } = this.#context;
    const subject = subjectOf(kind, object);
    try {
      await client.delete(pathOf(POD, pod), { preconditions: { uid: pod.metadata.uid } });
      recorder.event(subject, 'Normal', 'SuccessfulDelete', `Deleted pod: ${pod.metadata.name}`);
      return undefined;
    } catch (error) {
      this.#expectations.observedDeletion(object.metadata.uid, pod.metadata.uid);
      if (isNotFound(error)) return undefined;
      recorder.event(subject, 'Warning', 'FailedDelete', `Error deleting: ${errorMessage(error)}`);
      return new Error(`unable to delete pods: ${errorMessage(error)}`, { cause: error });
    }
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(errorMessage(error));
}
