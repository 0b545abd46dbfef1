// The binder against a server in memory that keeps versions: what two claims that want one volume come to.

import { expect, it } from 'vitest';
import { Store } from '../../../../../client/store.ts';
import type { Pod } from '../../../../../client/types.ts';
import { VolumeBinder } from '../../../../../controlplane/controllers/volume-binder/volume-binder.ts';
import { runController } from '../../../../../controlplane/runtime.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../../../../controlplane/storage/objects.ts';
import { apiError, FakeClient, type Write } from '../../../../support/fake-client.ts';
import { makeClaim, makeVolume, storageStores } from '../../../../support/storage-objects.ts';
import { settle, VirtualClock } from '../../../../support/virtual-clock.ts';

interface Stored {
  readonly metadata: { readonly resourceVersion: string };
  readonly spec?: object;
  readonly status?: object;
}

const VOLUME = '/api/v1/persistentvolumes/v';
const claimPath = (name: string): string => `/api/v1/namespaces/demo/persistentvolumeclaims/${name}`;

/** Objects as the server has them: a patch that carries another version than theirs is a conflict. */
class Server {
  readonly volumes = new Map<string, PersistentVolume>();
  readonly claims = new Map<string, PersistentVolumeClaim>();
  readonly conflicts: string[] = [];
  #version = 1000;

  patch(write: Write): unknown {
    return this.#patchOne(this.volumes, write) ?? this.#patchOne(this.claims, write);
  }

  #patchOne<T extends Stored>(objects: Map<string, T>, { path, body }: Write): T | undefined {
    const key = path.replace(/\/status$/, '');
    const known = objects.get(key);
    if (known === undefined) return undefined;
    const { metadata, spec, status } = body as Stored;
    if (metadata.resourceVersion !== known.metadata.resourceVersion) {
      this.conflicts.push(path);
      throw apiError(409, 'Conflict');
    }
    const next: T = {
      ...known,
      metadata: { ...known.metadata, ...metadata, resourceVersion: String(this.#version++) },
      spec: { ...known.spec, ...spec },
      status: { ...known.status, ...status },
    };
    objects.set(key, next);
    return next;
  }
}

it('gives a volume to one of two claims: a second bind while the first is under way is a conflict, and is decided again', async () => {
  const clock = new VirtualClock();
  const client = new FakeClient();
  const server = new Server();
  const informers = { ...storageStores(), pods: new Store<Pod>() };
  const show = (): void => {
    for (const volume of server.volumes.values()) informers.persistentVolumes.upsert(volume);
    for (const claim of server.claims.values()) informers.persistentVolumeClaims.upsert(claim);
  };
  // The first bind's answer is held up until the second one is on its way.
  const first = Promise.withResolvers<void>();
  const requested: Write[] = [];
  client.onWrite = async (write) => {
    if (write.path === VOLUME && requested.push(write) === 1) await first.promise;
    return server.patch(write);
  };
  const log = (): void => undefined;
  const context = { client, clock, log, recorder: { event: log } };
  const stop = new AbortController();
  void runController(new VolumeBinder(context, informers), log, stop.signal);

  server.volumes.set(VOLUME, makeVolume('v'));
  for (const name of ['a', 'b']) server.claims.set(claimPath(name), makeClaim(name));
  show();
  await settle();
  expect(requested).toHaveLength(2);
  first.resolve();
  await settle();
  show();
  await clock.advance(120_000);
  show();
  await clock.advance(120_000);

  const claims = [...server.claims.values()];
  const bound = claims.filter((claim) => claim.status?.phase === 'Bound');
  expect(server.conflicts[0]).toBe(VOLUME);
  expect(bound).toHaveLength(1);
  expect(server.volumes.get(VOLUME)?.spec?.claimRef?.name).toBe(bound[0]?.metadata.name);
  expect(claims.filter((claim) => claim.spec?.volumeName === 'v')).toHaveLength(1);
  stop.abort();
});
