// The agent's options in one frozen value: flags merged over the configuration file. Types only.

import type { KubeletConfiguration } from './kubelet-fields.ts';

export type { KubeletConfiguration } from './kubelet-fields.ts';

export interface AgentOptions {
  /** Path of the kubeconfig; undefined runs static pods alone. */
  readonly kubeconfig: string | undefined;
  /** The name of the Node object. */
  readonly nodeName: string;
  /** --node-ip, primary first; empty lets the node part detect it. */
  readonly nodeIPs: readonly string[];
  /** --node-labels, given to the Node when it registers. */
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** State of the agent: pods/, plugins/, plugins_registry/, pki/. */
  readonly rootDir: string;
  /** trace.sock and cni.sock. Apart from rootDir for roots whose names are too long for a socket (107 bytes). */
  readonly socketDir: string;
  /** Where the serving certificate is kept when the configuration names none. */
  readonly certDir: string;
  /** Both always "unix:///absolute/path". */
  readonly containerRuntimeEndpoint: string;
  readonly imageServiceEndpoint: string;
  /** Who runs CNI: this agent, or the runtime by its own configuration. */
  readonly network: 'agent' | 'runtime';
  readonly cni: {
    /** Where the conflist of the chain is found; the first by name counts. */
    readonly confDir: string;
    /** Searched in order for plugin binaries. */
    readonly binDirs: readonly string[];
    /** Results of ADD. */
    readonly cacheDir: string;
    /** Where the runtime is pointed at: the conflist in net.d/, the shim in bin/. */
    readonly shimDir: string;
  };
  /** --image-credential-provider-config (a file or a directory) and --image-credential-provider-bin-dir. */
  readonly credentialProviders?: { readonly config: string; readonly binDir: string };
  /** -v; 0 is quiet. */
  readonly verbosity: number;
  /** The KubeletConfiguration with flags applied and defaults filled in. */
  readonly config: KubeletConfiguration;
  /** What the user set and nodelet does not do, each with the reason: logged once, at the start. */
  readonly withoutEffect: readonly string[];
}
