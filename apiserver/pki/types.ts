// The certificates, keys and kubeconfigs of one lab, as paths and as PEM text. Types only.

import type { EpochMs } from '../../lib/clock.ts';

export interface Credential {
  readonly certPath: string;
  readonly keyPath: string;
  /** PEM. */
  readonly cert: string;
  /** PEM, PKCS#8. */
  readonly key: string;
}

/** The client identities that `ensurePki` makes. */
export type ClientName =
  | 'admin'
  | 'agent'
  | 'scheduler'
  | 'controller-manager'
  | 'proxy'
  | 'dns'
  | 'netpol'
  | 'kubelet-client';

export interface Pki {
  readonly dir: string;
  readonly ca: Credential;
  readonly serving: Credential;
  readonly clients: Readonly<Record<ClientName, Credential>>;
  /** How this server shows itself to aggregated API servers; signed by a CA of its own, so that no user's certificate passes for it. */
  readonly frontProxy: { readonly ca: Credential; readonly client: Credential };
  /** Service account tokens: signed with the key, checked with the public key. */
  readonly serviceAccount: {
    readonly keyPath: string;
    readonly publicKeyPath: string;
    readonly key: string;
    readonly publicKey: string;
  };
}

export interface PkiOptions {
  /** Names and addresses of the API server besides those it always has (localhost, host name, service names). */
  readonly hosts: readonly string[];
  /** The agent's node: system:node:<nodeName>. */
  readonly nodeName: string;
  /** Epoch ms; certificates are renewed when less than a fifth of their life is left. */
  readonly now: EpochMs;
}

export interface KubeconfigOptions {
  readonly server: string;
  /** PEM. */
  readonly ca: string;
  readonly user: string;
  readonly client: Pick<Credential, 'cert' | 'key'>;
  /** Cluster and context name; "nodelet" by default. */
  readonly cluster?: string;
  readonly namespace?: string;
}
