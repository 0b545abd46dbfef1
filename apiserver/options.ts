// The options of the embedded API server and what starting it returns. Types only: the server itself is
// server.ts, the command line is main.ts.
//
// The parts of this folder: http/ (requests in, JSON, tables and watch streams out), auth/ (authentication and authorization),
// registry/ (what a request means, for any kind), patch/ (the three patches), storage/ (objects and revisions in
// SQLite), kinds/ + schema/ (one row per kind), crd/ (rows of custom kinds), cel/ (their rules' language), discovery/
// (kubectl's first requests), proxy/ (to a kubelet), aggregation/ (to other API servers),
// audit/ (what is recorded of requests), flowcontrol/ (who is served when), pki/ (certificates, tokens' key, kubeconfigs).

import type { Clock } from '../lib/clock.ts';
import type { ConnectionTimeouts } from '../lib/connection-guard.ts';
import type { ConnectionLimits } from '../lib/connection-limits.ts';
import type { Tracer } from '../lib/trace.ts';
import type { PluginChoice } from './admission/table.ts';
import type { AuditOptions } from './audit/audit.ts';
import type { AuthOptions } from './auth/options.ts';
import type { Component } from './component-status.ts';
import type { RequestLimits } from './http/in-flight.ts';
import type { Pki } from './pki/types.ts';

/** kube-apiserver's --etcd-servers, --etcd-cafile, --etcd-certfile, --etcd-keyfile, --etcd-prefix. */
export interface EtcdOptions {
  readonly servers: readonly string[];
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly prefix?: string;
  /** How long the other servers count on one that no longer renews its lease. For tests; kube-apiserver's 15 s by default. */
  readonly masterLeaseSeconds?: number;
}

/** kube-apiserver's --disable-http2-serving, --http2-max-streams-per-connection and --goaway-chance. */
export interface Http2ServingOptions {
  /** HTTP/1.1 alone is served. */
  readonly isDisabled: boolean;
  /** Requests of one connection that are open at a time. */
  readonly maxStreams: number;
  /** The fraction of requests after which the client is to connect anew (GOAWAY): 0 to 0.02. */
  readonly goawayChance: number;
}

export interface ApiServerOptions {
  /** Directory of the certificates and keys; filled by `ensurePki` when something is missing. */
  readonly pkiDir: string;
  /** The SQLite file; its directory is created. */
  readonly dbPath: string;
  /** Address to listen on: "127.0.0.1", "0.0.0.0", "::". */
  readonly address: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** More names and addresses for the serving certificate. */
  readonly hosts: readonly string[];
  /** The host in `url`; defaults to `address`, or 127.0.0.1 when that is the unspecified one. */
  readonly advertiseHost?: string;
  /** --advertise-address: where other members of the cluster reach this server. Default: found among the machine's. */
  readonly advertiseAddress?: string;
  /** What `kubectl get componentstatuses` shows. Default: nothing. */
  readonly components?: readonly Component[];
  /** Names the agent's client certificate (system:node:<nodeName>). Defaults to the machine's host name. */
  readonly nodeName?: string;
  /**
   * Audiences that nodes may request pods' tokens for though no volume of the pod needs them: those of image credential
   * providers. A cluster with RBAC grants the verb request-serviceaccounts-token-audience instead. Default: none.
   */
  readonly nodeAudiences?: readonly string[];
  /** A file with an EncryptionConfiguration (apiserver.config.k8s.io/v1). Default: everything is stored as it is. */
  readonly encryptionProviderConfig?: string;
  /** --encryption-provider-config-automatic-reload: the file is followed while the server runs. Default: false. */
  readonly encryptionReload?: boolean;
  /** Admission plugins beside those that are on by default, and without some of them. */
  readonly admission?: PluginChoice;
  /** Keeps everything in etcd instead of the SQLite file. */
  readonly etcd?: EtcdOptions;
  readonly auth?: AuthOptions;
  /** Default: no request is recorded. */
  readonly audit?: AuditOptions;
  readonly limits?: Partial<RequestLimits>;
  /** HTTP/2 beside HTTP/1.1. Default: served, with 100 streams, without a chance of GOAWAY. */
  readonly http2?: Partial<Http2ServingOptions>;
  /** --service-cluster-ip-range: one range, or one of each family, the default one first. Default: 10.96.0.0/16. */
  readonly serviceCidrs?: readonly string[];
  readonly tracer: Tracer;
  readonly clock: Clock;
  /** For tests; by default as many connections as the process's descriptors allow, and the usual time-outs. */
  readonly connections?: { readonly limits?: ConnectionLimits; readonly timeouts?: Partial<ConnectionTimeouts> };
  /** Logs one line; nothing by default. */
  readonly log?: (line: string) => void;
}

export interface RunningApiServer {
  /** "https://127.0.0.1:6443" */
  readonly url: string;
  readonly port: number;
  /** What clients need to connect. */
  readonly pki: Pki;
  /** Ends watches and tunnels, stops listening and closes the store. Idempotent. */
  close(): Promise<void>;
}
