// Storage objects in memory, for tests: claims, volumes, drivers, attachments; each watcher gets every change.

import type { CSIDriver, VolumeAttachment } from 'kubernetes-types/storage/v1';
import type { StorageObjects } from '../../../../../agent/ports/storage.ts';
import type { Claim, PV } from '../../../../../agent/volumes/claims.ts';
import type { Stored } from '../../../../../client/types.ts';
import { apiError } from '../../../../support/fake-client.ts';

type Follower<T> = (object: T | undefined) => void;

export class FakeStorage implements StorageObjects {
  readonly claims = new Map<string, Claim>();
  readonly volumes = new Map<string, PV>();
  readonly drivers = new Map<string, Stored<CSIDriver>>();
  readonly attachments = new Map<string, Stored<VolumeAttachment>>();
  readonly patches: object[] = [];
  failure: Error | undefined;
  readonly #claimFollowers = new Map<string, Set<Follower<Claim>>>();
  readonly #attachmentFollowers = new Map<string, Set<Follower<Stored<VolumeAttachment>>>>();
  #version = 1;

  async claim(namespace: string, name: string) {
    if (this.failure !== undefined) throw this.failure;
    return this.claims.get(`${namespace}/${name}`);
  }
  async volume(name: string) {
    return this.volumes.get(name);
  }
  async csiDriver(name: string) {
    return this.drivers.get(name);
  }
  followAttachment(name: string, onState: Follower<Stored<VolumeAttachment>>, signal: AbortSignal) {
    this.#follow(this.#attachmentFollowers, name, onState, signal, () => this.attachments.get(name));
  }
  followClaim(namespace: string, name: string, onState: Follower<Claim>, signal: AbortSignal) {
    const key = `${namespace}/${name}`;
    this.#follow(this.#claimFollowers, key, onState, signal, () => this.claims.get(key));
  }
  async patchClaimStatus(claim: Claim, status: object): Promise<Claim> {
    const key = `${claim.metadata.namespace}/${claim.metadata.name}`;
    const stored = this.claims.get(key);
    if (stored === undefined) throw apiError(404, 'NotFound');
    if (stored.metadata.resourceVersion !== claim.metadata.resourceVersion) throw apiError(409, 'Conflict');
    this.patches.push(status);
    const next = { ...stored, status: Object.assign({}, stored.status, status) };
    this.setClaim(next);
    return this.claims.get(key) ?? next;
  }

  /** How many follow something, for tests that nothing is followed for ever. */
  get followers(): number {
    const all = [...this.#claimFollowers.values(), ...this.#attachmentFollowers.values()];
    return all.reduce((sum, set) => sum + set.size, 0);
  }

  setClaim(claim: Claim): void {
    const key = `${claim.metadata.namespace}/${claim.metadata.name}`;
    const resourceVersion = String(++this.#version);
    this.claims.set(key, { ...claim, metadata: { ...claim.metadata, resourceVersion } });
    for (const tell of [...(this.#claimFollowers.get(key) ?? [])]) tell(this.claims.get(key));
  }

  setAttachment(name: string, status: VolumeAttachment['status']): void {
    const metadata = { name, uid: name, resourceVersion: String(++this.#version) };
    const spec = { attacher: 'fake.csi', nodeName: 'n1', source: {} };
    this.attachments.set(name, { metadata, spec, ...(status === undefined ? {} : { status }) });
    for (const tell of [...(this.#attachmentFollowers.get(name) ?? [])]) tell(this.attachments.get(name));
  }

  #follow<T>(
    followers: Map<string, Set<Follower<T>>>,
    key: string,
    onState: Follower<T>,
    signal: AbortSignal,
    present: () => T | undefined,
  ): void {
    const set = followers.get(key) ?? new Set();
    followers.set(key, set.add(onState));
    signal.addEventListener('abort', () => set.delete(onState), { once: true });
    if (signal.aborted) set.delete(onState);
    queueMicrotask(() => {
      if (!signal.aborted) onState(present());
    });
  }
}
