// Everything about one claim: itself with volume, class and events, the volumes and classes there are, and the pods that use it.

import type { PersistentVolume } from 'kubernetes-types/core/v1';
import { resourcePath } from '../../../client/paths.ts';
import type { Pod, Stored } from '../../../client/types.ts';
import { claimNamesOf } from '../../../controlplane/storage/objects.ts';
import { UserError } from '../../../lib/errors.ts';
import type { ClaimFacts } from '../facts.ts';
import { absent } from './absent.ts';
import { collectClaim } from './references.ts';
import { Gaps, type Sources } from './source.ts';

/** Rejects with UserError when there is no such claim. */
export async function collectClaimFacts(sources: Sources, namespace: string, name: string): Promise<ClaimFacts> {
  const { client } = sources;
  const gaps = new Gaps();
  const claim = await collectClaim(sources, gaps, namespace, name);
  if (claim.state === 'unknown') throw new UserError(`the claim cannot be read: ${claim.why}`);
  const list = <T>(what: string, path: string): Promise<readonly T[]> =>
    gaps.attempt<readonly T[]>(what, [], async () => (await client.list<T>(path)).items);
  if (claim.state === 'absent') {
    const claims = await list<Stored<object>>('claims', resourcePath('v1', 'persistentvolumeclaims', { namespace }));
    const names = claims.map(({ metadata }) => metadata.name);
    throw absent('claim', namespace, name, names);
  }
  const [volumes, classes, pods] = await Promise.all([
    list<Stored<PersistentVolume>>('volumes', '/api/v1/persistentvolumes'),
    list<Stored<object>>('classes', resourcePath('storage.k8s.io/v1', 'storageclasses')),
    list<Pod>('pods', resourcePath('v1', 'pods', { namespace })),
  ]);
  return {
    kind: 'pvc',
    now: sources.now(),
    gaps: gaps.list,
    events: claim.value.events,
    claim: claim.value,
    volumes,
    classNames: classes.map(({ metadata }) => metadata.name),
    pods: pods.filter((pod) => claimNamesOf(pod).includes(name)),
  };
}
