// The cluster's ClusterTrustBundles, listed and watched while a pod of the node shows some of them, and not otherwise.
// There are few, and a signer's are known by their content alone, so that all are followed together, as the kubelet does.

import { randomUUID } from 'node:crypto';
import type { ApiClient } from '../../client/api.ts';
import { isNotFound } from '../../client/errors.ts';
import { Reflector } from '../../client/reflector.ts';
import { resolvesWithin } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import type { TrustRequest } from '../ports/api.ts';
import { type ClusterTrustBundle, trustAnchors } from './trust-anchors.ts';

export interface TrustBundlesOptions {
  readonly client: Pick<ApiClient, 'get' | 'list' | 'watch'>;
  readonly clock: Clock;
  readonly onFailure: (what: string, error: unknown) => void;
  /** Makes the order of anchors differ between runs of the agent. */
  readonly seed?: string;
  readonly random?: () => number;
}

const GROUP = '/apis/certificates.k8s.io';
/** Newest first. */
const VERSIONS = ['v1', 'v1beta1', 'v1alpha1'] as const;
const PLURAL = 'clustertrustbundles';
/** How long a pod waits for the first list before it fails and is tried again, ms. */
const FIRST_LIST_MS = 10_000;

interface Informer {
  readonly reflector: Reflector<ClusterTrustBundle>;
  readonly stopping: AbortController;
}

export class TrustBundles {
  readonly #options: TrustBundlesOptions;
  readonly #seed: string;
  /** By pod uid: what to call after a change. */
  readonly #users = new Map<string, () => void>();
  #informer: Promise<Informer> | undefined;

  constructor(options: TrustBundlesOptions) {
    this.#options = options;
    this.#seed = options.seed ?? randomUUID();
  }

  follow(uid: string, onChange: () => void): void {
    this.#users.set(uid, onChange);
  }

  release(uid: string): void {
    if (this.#users.delete(uid) && this.#users.size === 0) this.close();
  }

  close(): void {
    void this.#informer?.then(
      ({ stopping }) => stopping.abort(),
      () => undefined,
    );
    this.#informer = undefined;
  }

  /** The PEM text for a source. Rejects with the kubelet's message. */
  async anchors(request: TrustRequest): Promise<string> {
    this.#informer ??= this.#start().catch((error: unknown) => {
      this.#informer = undefined;
      throw error;
    });
    const { store } = (await this.#informer).reflector;
    if (!store.synced) await resolvesWithin(this.#options.clock, FIRST_LIST_MS, store.whenSynced());
    if (!store.synced) throw new Error('ClusterTrustBundle informer has not yet synced');
    return trustAnchors(request, store.list(), this.#seed);
  }

  async #start(): Promise<Informer> {
    const { client, clock, onFailure, random } = this.#options;
    const version = await this.#version();
    if (version === undefined) {
      throw new Error(
        'ClusterTrustBundle projection is not supported in static kubelet mode: the API server has no such kind',
      );
    }
    const stopping = new AbortController();
    const reflector = new Reflector<ClusterTrustBundle>({
      client,
      path: `${GROUP}/${version}/${PLURAL}`,
      clock,
      onFailure: (error) => onFailure(PLURAL, error),
      ...(random === undefined ? {} : { random }),
    });
    let first = true;
    reflector.store.onChange((changes) => {
      // The first list is what `anchors` waits for.
      const changed = !first && changes.length > 0;
      first = false;
      if (changed) for (const onChange of [...this.#users.values()]) onChange();
    });
    void reflector.run(stopping.signal);
    return { reflector, stopping };
  }

  /** The newest version in which the API server has the kind. */
  async #version(): Promise<string | undefined> {
    for (const version of VERSIONS) {
      try {
        const { resources } = await this.#options.client.get<{ resources: { name: string }[] }>(`${GROUP}/${version}`);
        if (resources.some(({ name }) => name === PLURAL)) return version;
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    return undefined;
  }
}
