// The objects that a pod names: ConfigMaps, Secrets, claims, its service account and RuntimeClass. Of Secrets and ConfigMaps
// nothing but the keys is kept.

import type { PersistentVolume, PersistentVolumeClaim } from 'kubernetes-types/core/v1';
import type { CSIDriver, CSINode, StorageClass, VolumeAttachment } from 'kubernetes-types/storage/v1';
import { parsePullSecret } from '../../../agent/pods/image-credentials.ts';
import { configMapNames, secretNames } from '../../../apiserver/auth/pod-references.ts';
import type { ApiClient } from '../../../client/api.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { ConfigMap, Pod, Secret, Stored } from '../../../client/types.ts';
import { claimNamesOf } from '../../../controlplane/storage/objects.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { ClaimFact, KeyedObject, Lookup, References } from '../facts.ts';
import { collectEvents } from './events.ts';
import { found, type Gaps, type Sources } from './source.ts';

/** Names of the ConfigMaps and Secrets that the pod refers to, in alphabetical order. Pure. */
export function namedObjects(pod: Pod): { readonly configMaps: Set<string>; readonly secrets: Set<string> } {
  return { configMaps: new Set(configMapNames(pod).sort()), secrets: new Set(secretNames(pod).sort()) };
}

async function lookups<T>(
  names: Iterable<string>,
  look: (name: string) => Promise<Lookup<T>>,
): Promise<ReadonlyMap<string, Lookup<T>>> {
  const pairs = [...names].map(async (name): Promise<[string, Lookup<T>]> => [name, await look(name)]);
  return new Map(await Promise.all(pairs));
}

function keysOf({ data, binaryData }: { data?: object; binaryData?: object }): KeyedObject {
  return { keys: [...Object.keys(data ?? {}), ...Object.keys(binaryData ?? {})].sort() };
}

/** Of a Secret's values only where it logs in, and as whom. Pure. */
export function secretFact(secret: Secret): KeyedObject {
  const keys = keysOf(secret);
  try {
    const credentials = parsePullSecret(secret);
    if (credentials.length === 0) return keys;
    return { ...keys, accounts: credentials.map(({ location, auth }) => ({ location, user: auth.username ?? '' })) };
  } catch (error) {
    // Its data is not what its type says: the agent cannot use it either.
    return { ...keys, problem: errorMessage(error) };
  }
}

async function namesOf(client: ApiClient, namespace: string, plural: string): Promise<readonly string[]> {
  const { items } = await client.list<Stored<object>>(resourcePath('v1', plural, { namespace }));
  return items.map(({ metadata }) => metadata.name);
}

/** A claim with its volume, class and events. */
export async function collectClaim(
  sources: Sources,
  gaps: Gaps,
  namespace: string,
  name: string,
): Promise<Lookup<ClaimFact>> {
  const { client } = sources;
  const path = resourcePath('v1', 'persistentvolumeclaims', { namespace, name });
  const claim = await gaps.lookup(`claim ${name}`, () => client.get<Stored<PersistentVolumeClaim>>(path));
  if (claim.state !== 'found') return claim;
  const { volumeName = '', storageClassName = '' } = claim.value.spec ?? {};
  const named = async <T>(what: string, apiVersion: string, plural: string, object: string): Promise<T | undefined> =>
    object === ''
      ? undefined
      : found(
          await gaps.lookup(`${what} ${object}`, () =>
            client.get<T>(resourcePath(apiVersion, plural, { name: object })),
          ),
        );
  const [volume, storageClass, events] = await Promise.all([
    named<Stored<PersistentVolume>>('volume', 'v1', 'persistentvolumes', volumeName),
    named<Stored<StorageClass>>('class', 'storage.k8s.io/v1', 'storageclasses', storageClassName),
    collectEvents(sources, gaps, 'PersistentVolumeClaim', { namespace, name, uid: claim.value.metadata.uid }),
  ]);
  return { state: 'found', value: { claim: claim.value, volume, storageClass, events } };
}

/** A kubelet without a driver sends null in place of the list, and an API server may leave the field out. Pure. */
export function driverNames(node: { readonly spec: Partial<CSINode['spec']> } | undefined): readonly string[] {
  return (node?.spec.drivers ?? []).map(({ name }) => name);
}

async function collectDrivers({ client }: Sources, gaps: Gaps, pod: Pod): Promise<readonly string[] | undefined> {
  const name = pod.spec.nodeName ?? '';
  const usesVolumes = (pod.spec.volumes ?? []).some((volume) => volume.csi ?? volume.persistentVolumeClaim);
  if (name === '' || !usesVolumes) return undefined;
  const node = await gaps.lookup('CSINode', () =>
    client.get<Stored<CSINode>>(resourcePath('storage.k8s.io/v1', 'csinodes', { name })),
  );
  if (node.state === 'unknown') return undefined;
  return driverNames(found(node));
}

interface Attachments {
  readonly attachments: readonly Stored<VolumeAttachment>[];
  readonly attachDrivers: readonly string[];
}

/** What is to be attached to the pod's node for it, as far as CSI drivers do that. */
async function collectAttachments(
  { client }: Sources,
  gaps: Gaps,
  pod: Pod,
  claims: ReadonlyMap<string, Lookup<ClaimFact>>,
): Promise<Attachments> {
  const volumes = [...claims.values()].flatMap((claim) => found(claim)?.volume ?? []);
  const names = [...new Set(volumes.flatMap(({ spec }) => spec?.csi?.driver ?? []))];
  const node = pod.spec.nodeName ?? '';
  if (names.length === 0 || node === '') return { attachments: [], attachDrivers: [] };
  const [all, drivers] = await Promise.all([
    gaps.attempt<readonly Stored<VolumeAttachment>[]>(
      'VolumeAttachments',
      [],
      async () =>
        (await client.list<Stored<VolumeAttachment>>(resourcePath('storage.k8s.io/v1', 'volumeattachments'))).items,
    ),
    Promise.all(
      names.map((name) =>
        gaps.lookup(`CSIDriver ${name}`, () =>
          client.get<Stored<CSIDriver>>(resourcePath('storage.k8s.io/v1', 'csidrivers', { name })),
        ),
      ),
    ),
  ]);
  const own = new Set(volumes.map(({ metadata }) => metadata.name));
  return {
    attachments: all.filter(({ spec }) => spec.nodeName === node && own.has(spec.source.persistentVolumeName ?? '')),
    // A driver without an object has to attach, too; here it only counts where that is known.
    attachDrivers: drivers.flatMap((driver) => {
      const value = found(driver);
      return value !== undefined && value.spec.attachRequired !== false ? [value.metadata.name] : [];
    }),
  };
}

export async function collectReferences(sources: Sources, gaps: Gaps, pod: Pod): Promise<References> {
  const { client } = sources;
  const { namespace } = pod.metadata;
  const wanted = namedObjects(pod);
  const get = <T>(plural: string, name: string): Promise<T> =>
    client.get<T>(resourcePath('v1', plural, { namespace, name }));
  const account = pod.spec.serviceAccountName ?? 'default';
  const runtimeClass = pod.spec.runtimeClassName;
  const [configMaps, secrets, claims, serviceAccount, handler, drivers] = await Promise.all([
    lookups(wanted.configMaps, (name) =>
      gaps.lookup(`ConfigMap ${name}`, async () => keysOf(await get<ConfigMap>('configmaps', name))),
    ),
    lookups(wanted.secrets, (name) =>
      gaps.lookup(`Secret ${name}`, async () => secretFact(await get<Secret>('secrets', name))),
    ),
    lookups(claimNamesOf(pod), (name) => collectClaim(sources, gaps, namespace, name)),
    gaps.lookup(`ServiceAccount ${account}`, () => get<object>('serviceaccounts', account)),
    runtimeClass === undefined
      ? undefined
      : gaps.lookup(`RuntimeClass ${runtimeClass}`, () =>
          client.get<{ handler: string }>(resourcePath('node.k8s.io/v1', 'runtimeclasses', { name: runtimeClass })),
        ),
    collectDrivers(sources, gaps, pod),
  ]);
  const attachments = await collectAttachments(sources, gaps, pod, claims);
  // Names are only needed beside a missing one.
  const lacks = (map: ReadonlyMap<string, Lookup<unknown>>): boolean =>
    [...map.values()].some(({ state }) => state === 'absent');
  const names = (plural: string, map: ReadonlyMap<string, Lookup<unknown>>): Promise<readonly string[]> =>
    lacks(map) ? gaps.attempt(`names of ${plural}`, [], () => namesOf(client, namespace, plural)) : Promise.resolve([]);
  const [configMapNames, secretNames] = await Promise.all([names('configmaps', configMaps), names('secrets', secrets)]);
  return {
    configMaps,
    secrets,
    claims,
    serviceAccount,
    runtimeClass: handler,
    configMapNames,
    secretNames,
    drivers,
    ...attachments,
  };
}
