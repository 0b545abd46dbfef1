// The terms of the CNI specification (https://www.cni.dev/docs/spec/, 1.1.0) as types, with its error codes.
// Types, constants and the one error class; nothing here reads or runs anything.

export type CniCommand = 'ADD' | 'DEL' | 'CHECK' | 'STATUS' | 'GC' | 'VERSION';

export type JsonObject = Readonly<Record<string, unknown>>;

/** One entry of a conflist's `plugins`, as it was written: plugins own most of its keys. */
export interface PluginConfig extends JsonObject {
  readonly type: string;
  /** Capabilities the plugin declares; only `true` ones get their runtimeConfig. */
  readonly capabilities?: Readonly<Record<string, boolean>>;
}

/** A network: the chain of plugins that every attachment goes through. */
export interface NetworkConfigList {
  readonly name: string;
  /** The version in force, the result of negotiation: what plugins and results use. */
  readonly cniVersion: string;
  readonly disableCheck: boolean;
  readonly disableGC: boolean;
  readonly plugins: readonly PluginConfig[];
}

/** Capability arguments by capability name: portMappings, bandwidth, dns, ips, mac, … */
export type CapabilityArgs = Readonly<Record<string, unknown>>;

/** The parameters of one attachment: one interface of one container on one network. */
export interface Attachment {
  readonly containerId: string;
  /** Path of the network namespace; empty on DEL when the namespace is gone. */
  readonly netns: string;
  readonly ifName: string;
  /** CNI_ARGS, "KEY=VALUE;KEY=VALUE"; containerd puts K8S_POD_NAMESPACE, K8S_POD_NAME and K8S_POD_UID there. */
  readonly args: string;
  readonly capabilityArgs: CapabilityArgs;
}

export interface CniInterface {
  readonly name: string;
  readonly mac?: string | undefined;
  /** Bytes. */
  readonly mtu?: number | undefined;
  /** Network namespace the interface is in; empty for the host's. */
  readonly sandbox?: string | undefined;
  readonly socketPath?: string | undefined;
  readonly pciID?: string | undefined;
}

export interface CniIP {
  /** CIDR notation. */
  readonly address: string;
  readonly gateway?: string | undefined;
  /** Index into `interfaces`. */
  readonly interface?: number | undefined;
}

export interface CniRoute {
  readonly dst: string;
  readonly gw?: string | undefined;
  readonly mtu?: number | undefined;
  readonly advmss?: number | undefined;
  readonly priority?: number | undefined;
  readonly table?: number | undefined;
  readonly scope?: number | undefined;
}

export interface CniDns {
  readonly nameservers?: readonly string[] | undefined;
  readonly domain?: string | undefined;
  readonly search?: readonly string[] | undefined;
  readonly options?: readonly string[] | undefined;
}

/** The result of an ADD in the shape of 1.1.0, whatever version the plugin spoke. */
export interface CniResult {
  readonly interfaces: readonly CniInterface[];
  readonly ips: readonly CniIP[];
  readonly routes: readonly CniRoute[];
  readonly dns: CniDns;
}

/** Error codes of the specification; 100 and up belong to plugins. */
export const CniErrorCode = {
  incompatibleVersion: 1,
  unsupportedField: 2,
  /** "Container unknown or does not exist": the runtime need not clean up. */
  unknownContainer: 3,
  invalidEnvironment: 4,
  ioFailure: 5,
  decodingFailure: 6,
  invalidNetworkConfig: 7,
  tryAgainLater: 11,
  /** STATUS: the plugin cannot serve ADD. */
  pluginNotAvailable: 50,
  /** STATUS: the plugin cannot serve ADD and running containers have limited connectivity. */
  pluginNotAvailableLimited: 51,
  /** Our own: nothing in the specification fits (the libcni family uses 999 likewise). */
  internal: 999,
} as const;

/** An operation that failed, in the form a plugin reports it. `msg` is the plugin's own message. */
export class CniError extends Error {
  override name = 'CniError';
  readonly code: number;
  readonly msg: string;
  readonly details: string;
  /** The plugin that failed; undefined when the runtime itself refused. */
  readonly plugin: string | undefined;
  readonly command: CniCommand | undefined;
  /**
   * The plugin was started and gave no error of its own (it was killed, it crashed, its result cannot be read): nothing
   * shows that it cleaned up, and what it made may still be there.
   */
  readonly unanswered: boolean;

  constructor(
    fault: {
      code: number;
      msg: string;
      details?: string;
      plugin?: string;
      command?: CniCommand;
      unanswered?: boolean;
    },
    options?: ErrorOptions,
  ) {
    super(`${summaryOf(fault)}${fault.details ? `; ${fault.details}` : ''}`, options);
    this.code = fault.code;
    this.msg = fault.msg;
    this.details = fault.details ?? '';
    this.plugin = fault.plugin;
    this.command = fault.command;
    this.unanswered = fault.unanswered ?? false;
  }

  /** The message without the details: which plugin, which command, its own message. */
  get summary(): string {
    return summaryOf(this);
  }
}

function summaryOf(fault: { msg: string; plugin?: string | undefined; command?: CniCommand | undefined }): string {
  if (fault.plugin === undefined) return fault.msg;
  // libcni's wording, which users search for.
  return `plugin type="${fault.plugin}" failed (${(fault.command ?? '').toLowerCase()}): ${fault.msg}`;
}

/** Identity of an attachment in `cni.dev/valid-attachments`, with the specification's key names. */
export interface AttachmentRef {
  readonly containerID: string;
  readonly ifname: string;
}
