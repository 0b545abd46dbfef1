// Opens the store that the options name: the SQLite file with its snapshots, or etcd.

import type { Clock } from '../lib/clock.ts';
import { UserError } from '../lib/errors.ts';
import type { Tracer } from '../lib/trace.ts';
import { decodeProtobuf } from './http/protobuf.ts';
import type { KubeObject, ResourceKind } from './kinds/resource.ts';
import type { Metrics } from './metrics.ts';
import type { ApiServerOptions } from './options.ts';
import { isObject } from './patch/json-value.ts';
import { loadEncryption, ReloadedEncryption } from './storage/encryption/load.ts';
import type { ObjectStore } from './storage/object-store.ts';
import { Store } from './storage/store.ts';
import { SnapshotKeeper } from './storage/take-snapshot.ts';

export interface OpenedStore {
  readonly store: ObjectStore;
  /** Absent where etcd has snapshots of its own. */
  readonly snapshots?: SnapshotKeeper;
  /** Ends what follows files; the store is closed by itself. */
  readonly stop: () => void;
}

export interface OpenStoreParts {
  readonly kinds: readonly ResourceKind[];
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly log: (line: string) => void;
  readonly metrics: Metrics;
}

/** Rejects with UserError: a file in use or damaged, an etcd that cannot be reached, a configuration that is not valid. */
export async function openStore(options: ApiServerOptions, parts: OpenStoreParts): Promise<OpenedStore> {
  const { clock, tracer, log, metrics } = parts;
  const { encryptionProviderConfig: file, encryptionReload = false, etcd } = options;
  if (encryptionReload && file === undefined) {
    const flag = '--encryption-provider-config';
    throw new UserError(`${flag}-automatic-reload must be set with ${flag}`);
  }
  const reloaded = file !== undefined && encryptionReload ? new ReloadedEncryption(file) : undefined;
  const encryption = file === undefined ? {} : { encryption: reloaded ?? loadEncryption(file) };
  const follow = (changed: () => void): (() => void) => reloaded?.follow(changed, { clock, log }) ?? (() => undefined);
  if (etcd === undefined) {
    const onWrite = (operation: string, resource: string, seconds: number): void =>
      metrics.storeRequest(operation, seconds, resource);
    const store = new Store(options.dbPath, { clock, log, onWrite, ...encryption });
    const stop = follow(() => store.encryptionChanged());
    return { store, snapshots: new SnapshotKeeper(store, clock, log), stop };
  }
  const resources = parts.kinds
    .filter(({ storedAs }) => storedAs === undefined)
    .map(({ group, plural }) => `${group}/${plural}`);
  // With its gRPC, an eighth of the processor time of loading a server, which one with a file does without.
  const { EtcdStore } = await import('./storage/etcd/etcd-store.ts');
  const store = await EtcdStore.open({
    address: etcd,
    ...(etcd.prefix === undefined ? {} : { prefix: etcd.prefix }),
    ...(etcd.masterLeaseSeconds === undefined ? {} : { masterLeaseSeconds: etcd.masterLeaseSeconds }),
    resources: [...new Set(resources)],
    ...encryption,
    decodeProtobuf: objectOfProtobuf,
    clock,
    tracer,
    log,
    onCall: (operation, seconds) => metrics.storeRequest(operation, seconds),
  });
  return { store, stop: follow(() => undefined) };
}

function objectOfProtobuf(bytes: Uint8Array): KubeObject {
  const { metadata, kind, apiVersion, ...rest } = decodeProtobuf(bytes);
  return { kind: String(kind), apiVersion: String(apiVersion), metadata: isObject(metadata) ? metadata : {}, ...rest };
}
