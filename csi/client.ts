// The connection to one CSI driver: its Identity, Controller and Node services as typed promises, each call with a
// deadline and one span, failures as CsiError with the driver's own message. It keeps no state of volumes and retries
// nothing: the caller decides what a failure means (agent/volumes/csi/outcome.ts).

import { type ChannelOptions, credentials } from '@grpc/grpc-js';
import type { MethodDefinition } from '@grpc/proto-loader';
import { setOwn } from '../lib/own-property.ts';
import { type SpanAttributes, Tracer } from '../lib/trace.ts';
import type { ControllerDefinition } from '../proto/gen/csi/v1/Controller.ts';
import type { IdentityDefinition } from '../proto/gen/csi/v1/Identity.ts';
import type { NodeDefinition } from '../proto/gen/csi/v1/Node.ts';
import { loadProto } from '../proto/load.ts';
import { GrpcError, type UnaryCaller, unaryCaller } from '../proto/unary.ts';

/** The kubelet's time limit of a CSI call (csiTimeout), ms. */
export const CSI_TIMEOUT_MS = 120_000;

/** A CSI call that failed: the message is the driver's, `code` the gRPC status name, `call` the method. */
export class CsiError extends Error {
  override name = 'CsiError';
  readonly code: string;
  readonly call: string;
  constructor(code: string, message: string, call: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.call = call;
  }
}

export function isCsiError(error: unknown, ...codes: readonly string[]): error is CsiError {
  return error instanceof CsiError && (codes.length === 0 || codes.includes(error.code));
}

export interface CsiCallOptions {
  /** Milliseconds until DEADLINE_EXCEEDED; the kubelet's 2 minutes when absent. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

/** The methods of a generated service definition as promises, under the names that the CSI specification uses. */
export type CsiService<D> = {
  readonly [M in keyof D as string extends M ? never : number extends M ? never : M]: D[M] extends MethodDefinition<
    infer Request,
    infer _Response,
    infer _Seen,
    infer Answer
  >
    ? (request: Request, options?: CsiCallOptions) => Promise<Answer>
    : never;
};

export interface CsiClient {
  readonly endpoint: string;
  readonly identity: CsiService<IdentityDefinition>;
  readonly controller: CsiService<ControllerDefinition>;
  readonly node: CsiService<NodeDefinition>;
  close(): void;
}

const CHANNEL_OPTIONS: ChannelOptions = {
  // A local socket either answers or does not exist: a short retry finds a restarted driver soon.
  'grpc.initial_reconnect_backoff_ms': 50,
  'grpc.min_reconnect_backoff_ms': 50,
  'grpc.max_reconnect_backoff_ms': 1000,
  // Whether a call may be sent again depends on the volume's state, which is not known here.
  'grpc.enable_retries': 0,
};

/** grpc-js's form of a unix endpoint: unix:///path, unix:/path or a bare absolute path. Throws RangeError for another. */
export function csiTarget(endpoint: string): string {
  const path = endpoint.replace(/^unix:(\/\/)?/, '');
  if (!path.startsWith('/')) throw new RangeError(`CSI endpoint "${endpoint}" is not unix:///path`);
  return `unix:${path}`;
}

/** What a span may show of a request; secrets and contexts never. */
function shown(request: object): SpanAttributes {
  const attributes: Record<string, string> = {};
  for (const [field, value] of Object.entries(request)) {
    if (/^(volume_id|name|node_id|snapshot_id|target_path|staging_target_path|volume_path)$/.test(field)) {
      setOwn(attributes, field, String(value));
    }
  }
  return attributes;
}

/** Opens no connection yet: the first call does. Spans of the calls go to `tracer`. */
export function connectCsi(endpoint: string, options: { readonly tracer?: Tracer } = {}): CsiClient {
  const { Identity, Controller, Node } = loadProto('csi').csi.v1;
  const target = csiTarget(endpoint);
  const plain = credentials.createInsecure();
  const identity = new Identity(target, plain, CHANNEL_OPTIONS);
  const controller = new Controller(target, plain, CHANNEL_OPTIONS);
  const node = new Node(target, plain, CHANNEL_OPTIONS);
  const raw = unaryCaller(options.tracer ?? new Tracer(), 'csi');
  const call: UnaryCaller = async (client, method, request, given = {}) => {
    const attributes = shown(typeof request === 'object' && request !== null ? request : {});
    try {
      return await raw(client, method, request, { deadlineMs: CSI_TIMEOUT_MS, ...given, attributes });
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error;
      throw new CsiError(error.code, error.message, error.method, { cause: error });
    }
  };
  return {
    endpoint,
    identity: {
      GetPluginInfo: (request, given) => call(identity, 'GetPluginInfo', request, given),
      GetPluginCapabilities: (request, given) => call(identity, 'GetPluginCapabilities', request, given),
      Probe: (request, given) => call(identity, 'Probe', request, given),
    },
    controller: {
      CreateVolume: (request, given) => call(controller, 'CreateVolume', request, given),
      DeleteVolume: (request, given) => call(controller, 'DeleteVolume', request, given),
      ControllerPublishVolume: (request, given) => call(controller, 'ControllerPublishVolume', request, given),
      ControllerUnpublishVolume: (request, given) => call(controller, 'ControllerUnpublishVolume', request, given),
      ValidateVolumeCapabilities: (request, given) => call(controller, 'ValidateVolumeCapabilities', request, given),
      ListVolumes: (request, given) => call(controller, 'ListVolumes', request, given),
      GetCapacity: (request, given) => call(controller, 'GetCapacity', request, given),
      ControllerGetCapabilities: (request, given) => call(controller, 'ControllerGetCapabilities', request, given),
      CreateSnapshot: (request, given) => call(controller, 'CreateSnapshot', request, given),
      DeleteSnapshot: (request, given) => call(controller, 'DeleteSnapshot', request, given),
      ListSnapshots: (request, given) => call(controller, 'ListSnapshots', request, given),
      GetSnapshot: (request, given) => call(controller, 'GetSnapshot', request, given),
      ControllerExpandVolume: (request, given) => call(controller, 'ControllerExpandVolume', request, given),
      ControllerGetVolume: (request, given) => call(controller, 'ControllerGetVolume', request, given),
      ControllerModifyVolume: (request, given) => call(controller, 'ControllerModifyVolume', request, given),
    },
    node: {
      NodeStageVolume: (request, given) => call(node, 'NodeStageVolume', request, given),
      NodeUnstageVolume: (request, given) => call(node, 'NodeUnstageVolume', request, given),
      NodePublishVolume: (request, given) => call(node, 'NodePublishVolume', request, given),
      NodeUnpublishVolume: (request, given) => call(node, 'NodeUnpublishVolume', request, given),
      NodeGetVolumeStats: (request, given) => call(node, 'NodeGetVolumeStats', request, given),
      NodeExpandVolume: (request, given) => call(node, 'NodeExpandVolume', request, given),
      NodeGetCapabilities: (request, given) => call(node, 'NodeGetCapabilities', request, given),
      NodeGetInfo: (request, given) => call(node, 'NodeGetInfo', request, given),
    },
    close() {
      identity.close();
      controller.close();
      node.close();
    },
  };
}
