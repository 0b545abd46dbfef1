// Writes what revisions.ts decides: the revision of an object's template, and the deletion of old ones.

import type { PodTemplateSpec } from 'kubernetes-types/core/v1';
import { isAlreadyExists, isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { StoredMeta } from '../../../client/types.ts';
import type { ControllerContext } from '../../runtime.ts';
import {
  CONTROLLER_REVISION,
  type ControllerRevision,
  controllerReference,
  pathOf,
  type WorkloadKind,
} from './objects.ts';
import { controllerOf } from './owners.ts';
import { hasTemplate, type RevisionStep, revisionData, revisionName } from './revisions.ts';
import { templateHash } from './template-hash.ts';

type Client = ControllerContext['client'];

/** What a revision is made of. */
export interface Revised {
  readonly kind: WorkloadKind;
  readonly object: { readonly metadata: StoredMeta & { readonly namespace: string } };
  readonly template: PodTemplateSpec;
  /** The label that has the hash. */
  readonly hashLabel: string;
  /** status.collisionCount. */
  readonly collisions: number | undefined;
}

export interface CurrentRevision {
  readonly revision: ControllerRevision;
  /** Larger by one for each name that was taken by something else. */
  readonly collisions: number | undefined;
}

/** The revision of the template, after the step. Throws when the server refuses it. */
export async function writeRevision(client: Client, revised: Revised, step: RevisionStep): Promise<CurrentRevision> {
  const { collisions } = revised;
  switch (step.kind) {
    case 'keep':
      return { revision: step.revision, collisions };
    case 'renumber': {
      const { revision, number } = step;
      const path = pathOf(CONTROLLER_REVISION, revision);
      const { apiVersion, kind } = CONTROLLER_REVISION;
      const body = { ...revision, apiVersion, kind, revision: number };
      return { revision: await client.replace<ControllerRevision>(path, body), collisions };
    }
    case 'create':
      return await createRevision(client, revised, step.number);
  }
}

async function createRevision(client: Client, revised: Revised, revision: number): Promise<CurrentRevision> {
  const { kind, object, template, hashLabel } = revised;
  const { namespace, name: owner, annotations } = object.metadata;
  const data = revisionData(template);
  for (let { collisions } = revised; ; collisions = (collisions ?? 0) + 1) {
    const hash = templateHash(data, collisions);
    const name = revisionName(owner, hash);
    const body = {
      apiVersion: CONTROLLER_REVISION.apiVersion,
      kind: CONTROLLER_REVISION.kind,
      metadata: {
        name,
        namespace,
        labels: { ...template.metadata?.labels, [hashLabel]: hash },
        ...(annotations === undefined ? {} : { annotations }),
        ownerReferences: [controllerReference(kind, object)],
      },
      data,
      revision,
    };
    const path = resourcePath(CONTROLLER_REVISION.apiVersion, CONTROLLER_REVISION.plural, { namespace });
    try {
      return { revision: await client.create<ControllerRevision>(path, body), collisions };
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    // The cache did not show it yet, or the name is taken: by another template, or by an object of the same name before.
    const existing = await client.get<ControllerRevision>(`${path}/${name}`);
    const other = controllerOf(existing);
    const own = other === undefined || other.uid === object.metadata.uid;
    if (own && hasTemplate(existing, template)) return { revision: existing, collisions };
  }
}

export async function deleteRevisions(client: Client, revisions: readonly ControllerRevision[]): Promise<void> {
  for (const revision of revisions) {
    const preconditions = { uid: revision.metadata.uid };
    await client.delete(pathOf(CONTROLLER_REVISION, revision), { preconditions }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }
}
