// The CsiNode port: the CSI drivers registered on this node, and their Node service. csi/registered-drivers implements
// it over gRPC; tests and the simulator in memory. Types only.

import type { CsiService } from '../../csi/client.ts';
import type { NodeDefinition } from '../../proto/gen/csi/v1/Node.ts';

export interface CsiNodeDriver {
  readonly name: string;
  /** The Node service; calls reject with CsiError. */
  readonly node: CsiService<NodeDefinition>;
  /** Capabilities of the Node service: "STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME", "VOLUME_MOUNT_GROUP", … */
  capabilities(): Promise<ReadonlySet<string>>;
}

export interface CsiNode {
  /** Undefined while no driver of this name is registered. */
  driver(name: string): CsiNodeDriver | undefined;
  /** Resolves as soon as one is. */
  registered(name: string): Promise<void>;
}
