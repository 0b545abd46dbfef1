// Creates and deletes the pods of a workload, with the events that every controller of pods records about it. Decides nothing.

import type { PodTemplateSpec } from 'kubernetes-types/core/v1';
import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Identified } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { ControllerContext } from '../../runtime.ts';
import { isNamespaceTerminating } from './namespace-terminating.ts';
import { controllerReference, pathOf, subjectOf, type WorkloadKind } from './objects.ts';
import { POD, podFromTemplate } from './pods.ts';

type Context = Pick<ControllerContext, 'client' | 'recorder'>;

/**
 * The pod that was created; undefined where the namespace is on its way out, in which nothing can be created any more.
 * Throws what else the server refused.
 */
export async function createPod(
  { client, recorder }: Context,
  kind: WorkloadKind,
  owner: Identified,
  template: PodTemplateSpec,
  generateName?: string,
): Promise<Pod | undefined> {
  const subject = subjectOf(kind, owner);
  const { namespace = '' } = owner.metadata;
  const body = podFromTemplate(template, controllerReference(kind, owner), generateName);
  try {
    const pod = await client.create<Pod>(resourcePath('v1', 'pods', { namespace }), body);
    recorder.event(subject, 'Normal', 'SuccessfulCreate', `Created pod: ${pod.metadata.name}`);
    return pod;
  } catch (error) {
    if (isNamespaceTerminating(error)) return undefined;
    recorder.event(subject, 'Warning', 'FailedCreate', `Error creating: ${errorMessage(error)}`);
    throw error;
  }
}

/** Whether the pod was there to be deleted. Throws what the server refused. */
export async function deletePod(
  { client, recorder }: Context,
  kind: WorkloadKind,
  owner: Identified,
  pod: Pod,
): Promise<boolean> {
  const subject = subjectOf(kind, owner);
  try {
    await client.delete(pathOf(POD, pod), { preconditions: { uid: pod.metadata.uid } });
    recorder.event(subject, 'Normal', 'SuccessfulDelete', `Deleted pod: ${pod.metadata.name}`);
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    recorder.event(subject, 'Warning', 'FailedDelete', `Error deleting: ${errorMessage(error)}`);
    throw new Error(`unable to delete pods: ${errorMessage(error)}`, { cause: error });
  }
}
