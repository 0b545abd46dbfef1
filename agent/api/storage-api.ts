// The StorageObjects port over the API server: claims and volumes read fresh, CSIDrivers from a copy that is watched
// from the first use on, single objects followed while a volume waits for them.

import type { PersistentVolume, PersistentVolumeClaim } from 'kubernetes-types/core/v1';
import type { CSIDriver, VolumeAttachment } from 'kubernetes-types/storage/v1';
import type { ApiClient } from '../../client/api.ts';
import { isForbidden, isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import { Reflector } from '../../client/reflector.ts';
import type { Identified } from '../../client/store.ts';
import type { Stored } from '../../client/types.ts';
import { resolvesWithin } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { repeat } from '../../lib/retry.ts';
import type { StorageObjects } from '../ports/storage.ts';

const STORAGE = 'storage.k8s.io/v1';
/** How long a volume waits for the first list of CSIDrivers. */
const FIRST_LIST_MS = 10_000;
/** The poll interval for a server whose authorizer lets a node get these objects but not watch them (kube-apiserver). ms. */
const POLL_MS = 1000;

export interface StorageApiOptions {
  readonly client: Pick<ApiClient, 'get' | 'list' | 'watch' | 'patch'>;
  readonly clock: Clock;
  readonly onError: (message: string) => void;
}

export function createStorageApi(options: StorageApiOptions, signal: AbortSignal): StorageObjects {
  const { client, clock, onError } = options;
  let drivers: Reflector<Stored<CSIDriver>> | undefined;

  async function read<T>(path: string): Promise<T | undefined> {
    try {
      return await client.get<T>(path);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  function reflect<T extends Identified>(
    path: string,
    name: string | undefined,
    until: AbortSignal,
    onForbidden?: () => void,
  ): Reflector<T> {
    const reflector = new Reflector<T>({
      client,
      path,
      clock,
      ...(name === undefined ? {} : { query: { fieldSelector: `metadata.name=${name}` } }),
      onFailure: (error) => {
        if (onForbidden !== undefined && isForbidden(error)) onForbidden();
        else onError(`Failed to watch ${path}${name === undefined ? '' : `/${name}`}: ${errorMessage(error)}`);
      },
    });
    void reflector.run(until);
    return reflector;
  }

  function follow<T extends Identified>(
    path: string,
    name: string,
    onState: (object: T | undefined) => void,
    until: AbortSignal,
  ): void {
    const end = AbortSignal.any([until, signal]);
    const watching = new AbortController();
    const { store } = reflect<T>(path, name, AbortSignal.any([end, watching.signal]), () => {
      watching.abort();
      void poll(`${path}/${encodeURIComponent(name)}`, onState, end);
    });
    store.onChange(() => {
      if (!until.aborted) onState(store.list().find(({ metadata }) => metadata.name === name));
    });
  }

  /** Calls back with the first state and with each that differs from the one before. */
  async function poll<T extends Identified>(
    path: string,
    onState: (object: T | undefined) => void,
    end: AbortSignal,
  ): Promise<void> {
    let last: string | undefined;
    const look = async (): Promise<undefined> => {
      try {
        const object = await read<T>(path);
        const version = object?.metadata.resourceVersion ?? '';
        if (!end.aborted && version !== last) onState(object);
        last = version;
      } catch (error) {
        onError(`Failed to get ${path}: ${errorMessage(error)}`);
      }
    };
    await repeat(look, { clock, everyMs: POLL_MS, signal: end });
  }

  return {
    claim: (namespace, name) =>
      read<Stored<PersistentVolumeClaim>>(resourcePath('v1', 'persistentvolumeclaims', { namespace, name })),
    volume: (name) => read<Stored<PersistentVolume>>(resourcePath('v1', 'persistentvolumes', { name })),
    async csiDriver(name) {
      drivers ??= reflect<Stored<CSIDriver>>(resourcePath(STORAGE, 'csidrivers'), undefined, signal);
      const { store } = drivers;
      if (!store.synced) {
        await resolvesWithin(clock, FIRST_LIST_MS, store.whenSynced(), signal);
        if (!store.synced) throw new Error('CSIDrivers have not been read at least once');
      }
      return store.list().find(({ metadata }) => metadata.name === name);
    },
    followAttachment: (name, onState, until) =>
      follow<Stored<VolumeAttachment>>(resourcePath(STORAGE, 'volumeattachments'), name, onState, until),
    followClaim: (namespace, name, onState, until) =>
      follow<Stored<PersistentVolumeClaim>>(
        resourcePath('v1', 'persistentvolumeclaims', { namespace }),
        name,
        onState,
        until,
      ),
    patchClaimStatus: (claim, status) => {
      const { name, namespace = '', resourceVersion } = claim.metadata;
      const path = resourcePath('v1', 'persistentvolumeclaims', { namespace, name, subresource: 'status' });
      return client.patch<Stored<PersistentVolumeClaim>>(path, { metadata: { resourceVersion }, status }, 'merge');
    },
  };
}
