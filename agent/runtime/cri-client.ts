// The connection to a CRI runtime: two typed clients, deadlines as the kubelet's, and failures as RuntimeError.
// It holds no state of pods and retries nothing; grpc-js reconnects by itself when the runtime comes back.

import { type ChannelOptions, type ClientReadableStream, credentials, Metadata } from '@grpc/grpc-js';
import type { Tracer } from '../../lib/trace.ts';
import type { Envelope__Output } from '../../proto/gen/containerd/types/Envelope.ts';
import type { ContainerEventResponse__Output } from '../../proto/gen/runtime/v1/ContainerEventResponse.ts';
import type { ImageServiceClient } from '../../proto/gen/runtime/v1/ImageService.ts';
import type { RuntimeServiceClient } from '../../proto/gen/runtime/v1/RuntimeService.ts';
import { loadProto } from '../../proto/load.ts';
import { GrpcError, type UnaryCaller, unaryCaller } from '../../proto/unary.ts';
import { RuntimeError } from '../ports/runtime.ts';

/** Version and Status answer from memory; a runtime that takes longer is not healthy. ms. */
export const SHORT_DEADLINE_MS = 10_000;
/** What a stop may take beyond its grace period. ms. */
export const STOP_MARGIN_MS = 120_000;

const CHANNEL_OPTIONS: ChannelOptions = {
  // A local socket either answers or does not exist: look again soon, so that a restarted runtime is found at once.
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.min_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  'grpc.max_receive_message_length': 16 * 1024 * 1024,
  'grpc.max_send_message_length': 16 * 1024 * 1024,
  // Asking again is the worker's decision, with the pod's state in view.
  'grpc.enable_retries': 0,
};

/** The message is the runtime's own words; whoever shows them with gRPC's frame around, as the kubelet does, adds it. */
export function toRuntimeError(error: unknown): unknown {
  if (!(error instanceof GrpcError)) return error;
  return new RuntimeError(error.method, error.code, error.message, { cause: error });
}

export function isRuntimeError(error: unknown, ...codes: readonly string[]): error is RuntimeError {
  return error instanceof RuntimeError && codes.includes(error.code);
}

/** grpc-js's form of an endpoint; a bare path is a unix socket. Throws RangeError for anything but a unix socket. */
export function grpcTarget(endpoint: string): string {
  const path = endpoint.startsWith('unix://') ? endpoint.slice('unix://'.length) : endpoint;
  if (!path.startsWith('/')) throw new RangeError(`container runtime endpoint "${endpoint}" is not unix:///path`);
  return `unix:${path}`;
}

export class CriClient {
  readonly runtime: RuntimeServiceClient;
  readonly images: ImageServiceClient;
  /** Calls a unary method as one span; rejects with RuntimeError. */
  readonly call: UnaryCaller;
  readonly #events: InstanceType<ReturnType<typeof eventsService>>;

  constructor(endpoint: string, imageEndpoint: string, tracer: Tracer) {
    const { RuntimeService, ImageService } = loadProto('cri').runtime.v1;
    const target = grpcTarget(endpoint);
    const plain = credentials.createInsecure();
    this.runtime = new RuntimeService(target, plain, CHANNEL_OPTIONS);
    this.images = new ImageService(grpcTarget(imageEndpoint), plain, CHANNEL_OPTIONS);
    this.#events = new (eventsService())(target, plain, CHANNEL_OPTIONS);
    const raw = unaryCaller(tracer, 'cri');
    this.call = (client, method, request, options) =>
      raw(client, method, request, options).catch((error: unknown) => {
        throw toRuntimeError(error);
      });
  }

  /** CRI's own event stream. UNIMPLEMENTED comes as the stream's error. */
  containerEvents(): ClientReadableStream<ContainerEventResponse__Output> {
    return this.runtime.GetContainerEvents({}, new Metadata());
  }

  /** containerd's event bus, on the same socket. UNIMPLEMENTED when the runtime is not containerd. */
  containerdEvents(filters: readonly string[]): ClientReadableStream<Envelope__Output> {
    return this.#events.Subscribe({ filters: [...filters] }, new Metadata());
  }

  close(): void {
    this.runtime.close();
    this.images.close();
    this.#events.close();
  }
}

function eventsService() {
  return loadProto('containerd-events').containerd.services.events.v1.Events;
}
