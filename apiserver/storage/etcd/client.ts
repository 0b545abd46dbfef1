// Calls of etcd's v3 API, and one watch stream. A call that does not reach an endpoint is tried at the next one where that is
// safe. Knows keys and bytes, no objects.

import { readFileSync } from 'node:fs';
import {
  type ChannelCredentials,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { type EpochMs, elapsedMs, plusMs, systemClock } from '../../../lib/clock.ts';
import { errorMessage, UserError } from '../../../lib/errors.ts';
import type { Tracer } from '../../../lib/trace.ts';
import type { KVClient } from '../../../proto/gen/etcdserverpb/KV.ts';
import type { LeaseClient } from '../../../proto/gen/etcdserverpb/Lease.ts';
import type { MaintenanceClient } from '../../../proto/gen/etcdserverpb/Maintenance.ts';
import type { RangeRequest } from '../../../proto/gen/etcdserverpb/RangeRequest.ts';
import type { RangeResponse__Output } from '../../../proto/gen/etcdserverpb/RangeResponse.ts';
import type { TxnRequest } from '../../../proto/gen/etcdserverpb/TxnRequest.ts';
import type { TxnResponse__Output } from '../../../proto/gen/etcdserverpb/TxnResponse.ts';
import type { WatchClient } from '../../../proto/gen/etcdserverpb/Watch.ts';
import type { WatchRequest } from '../../../proto/gen/etcdserverpb/WatchRequest.ts';
import type { WatchResponse__Output } from '../../../proto/gen/etcdserverpb/WatchResponse.ts';
import { loadProto } from '../../../proto/load.ts';

export interface EtcdAddress {
  /** "http://127.0.0.1:2379", "https://etcd.example.com:2379" */
  readonly servers: readonly string[];
  /** Files, for https. */
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
}

/** A call that failed. */
export class EtcdError extends Error {
  override name = 'EtcdError';
  /** The gRPC status. */
  readonly code: number;
  constructor(method: string, { code, details, message }: ServiceError) {
    super(`etcd ${method}: ${details || message}`);
    this.code = code;
  }
}

/** As kube-apiserver's client. ms. */
const DEADLINE_MS = 10_000;

interface Endpoint {
  readonly kv: KVClient;
  readonly lease: LeaseClient;
  readonly maintenance: MaintenanceClient;
  readonly watch: WatchClient;
}

export type WatchStream = ClientDuplexStream<WatchRequest, WatchResponse__Output>;
type Done<T> = (error: ServiceError | null, value?: T) => void;

/** Host and port of a URL, and whether it is TLS. Throws UserError. */
export function parseServer(text: string): { readonly target: string; readonly tls: boolean } {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '') {
    throw new UserError(`--etcd-servers: ${JSON.stringify(text)} is not a URL as http://127.0.0.1:2379`);
  }
  const tls = url.protocol === 'https:';
  return { target: `${url.hostname}:${url.port === '' ? (tls ? '443' : '80') : url.port}`, tls };
}

function readFlagFile(flag: string, path: string | undefined): Buffer | null {
  if (path === undefined) return null;
  try {
    return readFileSync(path);
  } catch (error) {
    throw new UserError(`--etcd-${flag}: ${errorMessage(error)}`);
  }
}

function credentialsOf(address: EtcdAddress, tls: boolean): ChannelCredentials {
  if (!tls) return credentials.createInsecure();
  const [ca, key, cert] = [
    readFlagFile('cafile', address.caFile),
    readFlagFile('keyfile', address.keyFile),
    readFlagFile('certfile', address.certFile),
  ];
  if ((key === null) !== (cert === null)) throw new UserError('--etcd-certfile and --etcd-keyfile go together');
  return credentials.createSsl(ca, key, cert);
}

export class EtcdClient {
  readonly #endpoints: readonly [Endpoint, ...Endpoint[]];
  readonly #tracer: Tracer;
  readonly #onCall: ((operation: string, seconds: number) => void) | undefined;
  #current = 0;

  /** Connects with the first call. Throws UserError for addresses and files that cannot be. */
  constructor(address: EtcdAddress, tracer: Tracer, onCall?: (operation: string, seconds: number) => void) {
    const { KV, Lease, Maintenance, Watch } = loadProto('etcd').etcdserverpb;
    const options = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 };
    const [first, ...more] = address.servers.map((server): Endpoint => {
      const { target, tls } = parseServer(server);
      const secure = credentialsOf(address, tls);
      const kv = new KV(target, secure, options);
      // One connection for all services of an endpoint.
      const shared = { ...options, channelOverride: kv.getChannel() };
      return {
        kv,
        lease: new Lease(target, secure, shared),
        maintenance: new Maintenance(target, secure, shared),
        watch: new Watch(target, secure, shared),
      };
    });
    if (first === undefined) throw new UserError('--etcd-servers names no server');
    this.#endpoints = [first, ...more];
    this.#tracer = tracer;
    this.#onCall = onCall;
  }

  #endpoint(): Endpoint {
    return this.#endpoints[this.#current % this.#endpoints.length] ?? this.#endpoints[0];
  }

  /** `safe`: a call that may have been carried out is repeated at the next endpoint. */
  async #call<T>(
    method: string,
    safe: boolean,
    call: (endpoint: Endpoint, options: CallOptions, done: Done<T>) => void,
  ) {
    for (let tried = 1; ; tried++) {
      const endpoint = this.#endpoint();
      const began = systemClock.monotonic();
      try {
        return await this.#tracer.span('api', `etcd ${method}`, {}, () => {
          const { promise, resolve, reject } = Promise.withResolvers<T>();
          call(endpoint, { deadline: plusMs(systemClock.now(), DEADLINE_MS) }, (error, value) => {
            if (error !== null) reject(new EtcdError(method, error));
            else if (value === undefined) reject(new Error(`etcd ${method}: no message came`));
            else resolve(value);
          });
          return promise;
        });
      } catch (error) {
        if (!(error instanceof EtcdError) || error.code !== status.UNAVAILABLE) throw error;
        if (endpoint === this.#endpoint()) this.#current++;
        if (!safe || tried >= this.#endpoints.length) throw error;
      } finally {
        this.#onCall?.(method.toLowerCase(), elapsedMs(began, systemClock.monotonic()) / 1000);
      }
    }
  }

  range(request: RangeRequest): Promise<RangeResponse__Output> {
    return this.#call('Range', true, ({ kv }, options, done) => kv.range(request, new Metadata(), options, done));
  }

  txn(request: TxnRequest): Promise<TxnResponse__Output> {
    return this.#call('Txn', false, ({ kv }, options, done) => kv.txn(request, new Metadata(), options, done));
  }

  async compact(revision: number): Promise<void> {
    await this.#call('Compact', true, ({ kv }, options, done: Done<object>) =>
      kv.compact({ revision }, new Metadata(), options, done),
    );
  }

  /** The id of a new lease that ends after `seconds`. */
  async grantLease(seconds: number): Promise<string> {
    const { ID } = await this.#call('LeaseGrant', true, ({ lease }, options, done: Done<{ ID: string }>) =>
      lease.leaseGrant({ TTL: seconds }, new Metadata(), options, done),
    );
    return ID;
  }

  /** "3.5.16" */
  async version(): Promise<string> {
    const { version } = await this.#call('Status', true, ({ maintenance }, options, done: Done<{ version: string }>) =>
      maintenance.status({}, new Metadata(), options, done),
    );
    return version;
  }

  /** To one endpoint; the next one after it has failed. */
  watch(): WatchStream {
    // A watch waits at a member that has a leader; without one the stream ends.
    const metadata = new Metadata();
    metadata.set('hasleader', 'true');
    return this.#endpoint().watch.watch(metadata);
  }

  nextEndpoint(): void {
    this.#current++;
  }

  close(): void {
    for (const { kv } of this.#endpoints) kv.close();
  }
}

interface CallOptions {
  readonly deadline: EpochMs;
}
