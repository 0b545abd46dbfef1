// The CsiNode port: the CSI drivers registered on this node, and their Node service. csi/registered-drivers implements
// it over gRPC; tests and the simulator in memory. Methods and fields have the CSI specification's names, and no type of
// a protocol's code comes through. Types only.

/** A volume's VolumeCapability: how it is used, and whether as a file system or as a device. */
export interface VolumeCapability {
  readonly access_mode: { readonly mode: AccessMode };
  readonly access_type: 'mount' | 'block';
  readonly mount?: { readonly fs_type: string; readonly mount_flags: string[]; readonly volume_mount_group: string };
  readonly block?: Readonly<Record<string, never>>;
}

export type AccessMode =
  | 'SINGLE_NODE_WRITER'
  | 'SINGLE_NODE_READER_ONLY'
  | 'MULTI_NODE_READER_ONLY'
  | 'MULTI_NODE_SINGLE_WRITER'
  | 'MULTI_NODE_MULTI_WRITER'
  | 'SINGLE_NODE_SINGLE_WRITER'
  | 'SINGLE_NODE_MULTI_WRITER';

type Strings = Record<string, string>;

/** Numbers of bytes and of inodes come as decimal strings: they have 64 bits. */
export interface NodeVolumeStats {
  readonly usage: readonly {
    readonly unit: 'UNKNOWN' | 'BYTES' | 'INODES';
    readonly total: string;
    readonly available: string;
    readonly used: string;
  }[];
  readonly volume_condition: { readonly abnormal: boolean; readonly message: string } | null;
}

export interface CsiCallOptions {
  /** Milliseconds until DEADLINE_EXCEEDED; the kubelet's 2 minutes when absent. */
  readonly deadlineMs?: number;
}

/** The calls of a driver's Node service that the agent makes. Each rejects with CsiError. */
export interface CsiNodeService {
  NodeStageVolume(request: {
    readonly volume_id: string;
    readonly publish_context: Strings;
    readonly staging_target_path: string;
    readonly volume_capability: VolumeCapability;
    readonly secrets: Strings;
    readonly volume_context: Strings;
  }): Promise<unknown>;
  NodeUnstageVolume(request: { readonly volume_id: string; readonly staging_target_path: string }): Promise<unknown>;
  NodePublishVolume(request: {
    readonly volume_id: string;
    readonly publish_context: Strings;
    /** '' where the driver does not stage. */
    readonly staging_target_path: string;
    readonly target_path: string;
    readonly volume_capability: VolumeCapability;
    readonly readonly: boolean;
    readonly secrets: Strings;
    readonly volume_context: Strings;
  }): Promise<unknown>;
  NodeUnpublishVolume(request: { readonly volume_id: string; readonly target_path: string }): Promise<unknown>;
  NodeGetVolumeStats(
    request: { readonly volume_id: string; readonly volume_path: string; readonly staging_target_path: string },
    options?: CsiCallOptions,
  ): Promise<NodeVolumeStats>;
  NodeExpandVolume(request: {
    readonly volume_id: string;
    readonly volume_path: string;
    /** Bytes, as a decimal string. */
    readonly capacity_range: { readonly required_bytes: string };
    readonly staging_target_path: string;
    readonly volume_capability: VolumeCapability;
    readonly secrets: Strings;
  }): Promise<unknown>;
}

export interface CsiNodeDriver {
  readonly name: string;
  readonly node: CsiNodeService;
  /** Capabilities of the Node service: "STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME", "VOLUME_MOUNT_GROUP", … */
  capabilities(): Promise<ReadonlySet<string>>;
}

export interface CsiNode {
  /** Undefined while no driver of this name is registered. */
  driver(name: string): CsiNodeDriver | undefined;
  /** Resolves as soon as one is. */
  registered(name: string): Promise<void>;
}
