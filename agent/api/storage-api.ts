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

/** Follows until `signal` aborts. */
export function createStorageApi(options: StorageApiOptions, signal: AbortSignal): StorageObjects {
  return new StorageApi(options, signal);
}

class StorageApi implements StorageObjects {
  readonly #options: StorageApiOptions;
  readonly #signal: AbortSignal;
  #drivers: Reflector<Stored<CSIDriver>> | undefined;

  constructor(options: StorageApiOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
  }

  claim(namespace: string, name: string): Promise<Stored<PersistentVolumeClaim> | undefined> {
    return this.#read(resourcePath('v1', 'persistentvolumeclaims', { namespace, name }));
  }

  volume(name: string): Promise<Stored<PersistentVolume> | undefined> {
    return this.#read(resourcePath('v1', 'persistentvolumes', { name }));
  }

  async csiDriver(name: string): Promise<Stored<CSIDriver> | undefined> {
    this.#drivers ??= this.#reflect(resourcePath(STORAGE, 'csidrivers'), undefined, this.#signal);
    const { store } = this.#drivers;
    if (!store.synced) {
      await resolvesWithin(this.#options.clock, FIRST_LIST_MS, store.whenSynced(), this.#signal);
      if (!store.synced) throw new Error('CSIDrivers have not been read at least once');
    }
    return store.list().find(({ metadata }) => metadata.name === name);
  }

  followAttachment(
    name: string,
    onState: (attachment: Stored<VolumeAttachment> | undefined) => void,
    signal: AbortSignal,
  ): void {
    this.#follow(resourcePath(STORAGE, 'volumeattachments'), name, onState, signal);
  }

  followClaim(
    namespace: string,
    name: string,
    onState: (claim: Stored<PersistentVolumeClaim> | undefined) => void,
    signal: AbortSignal,
  ): void {
    this.#follow(resourcePath('v1', 'persistentvolumeclaims', { namespace }), name, onState, signal);
  }

  patchClaimStatus(claim: Stored<PersistentVolumeClaim>, status: object): Promise<Stored<PersistentVolumeClaim>> {
    const { name, namespace = '', resourceVersion } = claim.metadata;
    const path = resourcePath('v1', 'persistentvolumeclaims', { namespace, name, subresource: 'status' });
    return this.#options.client.patch(path, { metadata: { resourceVersion }, status }, 'merge');
  }

  async #read<T>(path: string): Promise<T | undefined> {
    try {
      return await this.#options.client.get<T>(path);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  #reflect<T extends Identified>(
    path: string,
    name: string | undefined,
    until: AbortSignal,
    onForbidden?: () => void,
  ): Reflector<T> {
    const { client, clock, onError } = this.#options;
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

  #follow<T extends Identified>(
    path: string,
    name: string,
    onState: (object: T | undefined) => void,
    until: AbortSignal,
  ): void {
    const end = AbortSignal.any([until, this.#signal]);
    const watching = new AbortController();
    const { store } = this.#reflect<T>(path, name, AbortSignal.any([end, watching.signal]), () => {
      watching.abort();
      void this.#poll(`${path}/${encodeURIComponent(name)}`, onState, end);
    });
    store.onChange(() => {
      if (!until.aborted) onState(store.list().find(({ metadata }) => metadata.name === name));
    });
  }

  /** Calls back with the first state and with each that differs from the one before. */
  async #poll<T extends Identified>(
    path: string,
    onState: (object: T | undefined) => void,
    end: AbortSignal,
  ): Promise<void> {
    const { clock, onError } = this.#options;
    let last: string | undefined;
    const look = async (): Promise<undefined> => {
      try {
        const object = await this.#read<T>(path);
        const version = object?.metadata.resourceVersion ?? '';
        if (!end.aborted && version !== last) onState(object);
        last = version;
      } catch (error) {
        onError(`Failed to get ${path}: ${errorMessage(error)}`);
      }
    };
    await repeat(look, { clock, everyMs: POLL_MS, signal: end });
  }
}
