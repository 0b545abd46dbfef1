// CRI over a unix socket: two typed services for CRI and one for containerd's event bus, deadlines of the caller's
// choice, and failures as RuntimeError. It holds no state of pods and retries nothing; grpc-js reconnects by itself when
// the runtime comes back.

import {
  type ChannelOptions,
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { errorMessage } from '../../lib/errors.ts';
import type { Tracer } from '../../lib/trace.ts';
import { loadProto } from '../../proto/load.ts';
import { GrpcError, type UnaryOptions, untypedUnaryCaller } from '../../proto/unary.ts';
import { RuntimeError } from '../ports/runtime.ts';
import { type CriClient, type CriMethod, type CriStream, type CriStreamEnd, IMAGE_METHODS } from './cri-client.ts';

const CHANNEL_OPTIONS: ChannelOptions = {
  // A local socket either responds or does not exist: a short retry finds a restarted runtime soon.
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.min_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  'grpc.max_receive_message_length': 16 * 1024 * 1024,
  'grpc.max_send_message_length': 16 * 1024 * 1024,
  // Retries are the worker's decision, which depends on the pod's state.
  'grpc.enable_retries': 0,
};

/** The message is the runtime's own; code that shows it with gRPC's prefix, as the kubelet does, adds that. */
export function toRuntimeError(error: unknown): unknown {
  if (!(error instanceof GrpcError)) return error;
  return new RuntimeError(error.method, error.code, error.message, { cause: error });
}

/** grpc-js's form of an endpoint; a bare path is a unix socket. Throws RangeError for anything but a unix socket. */
export function grpcTarget(endpoint: string): string {
  const path = endpoint.startsWith('unix://') ? endpoint.slice('unix://'.length) : endpoint;
  if (!path.startsWith('/')) throw new RangeError(`container runtime endpoint "${endpoint}" is not unix:///path`);
  return `unix:${path}`;
}

/** `endpoint` and `imageEndpoint`: unix:///path or a bare path. The runtime need not be up: calls fail until it is. */
export function createCriClient(endpoint: string, imageEndpoint: string, tracer: Tracer): CriClient {
  const { RuntimeService, ImageService } = loadProto('cri').runtime.v1;
  const { Events } = loadProto('containerd-events').containerd.services.events.v1;
  const target = grpcTarget(endpoint);
  const plain = credentials.createInsecure();
  const runtime = new RuntimeService(target, plain, CHANNEL_OPTIONS);
  const images = new ImageService(grpcTarget(imageEndpoint), plain, CHANNEL_OPTIONS);
  const bus = new Events(target, plain, CHANNEL_OPTIONS);
  const unary = untypedUnaryCaller(tracer, 'cri');
  const call = (method: CriMethod, request: object, options?: UnaryOptions): Promise<unknown> =>
    unary(IMAGE_METHODS.has(method) ? images : runtime, method, request, options).catch((error: unknown) => {
      throw toRuntimeError(error);
    });
  return {
    // The two services are the ones that CriMethod names; stated only here.
    call: call as CriClient['call'],
    containerEvents: (onEvent) => criStream(runtime.GetContainerEvents({}, new Metadata()), onEvent),
    containerdEvents: (filters, onEvent) =>
      criStream(bus.Subscribe({ filters: [...filters] }, new Metadata()), onEvent),
    close() {
      runtime.close();
      images.close();
      bus.close();
    },
  };
}

function criStream<T>(stream: ClientReadableStream<T>, onEvent: (event: T) => void): CriStream {
  stream.on('data', onEvent);
  const ended = new Promise<CriStreamEnd>((resolve) => {
    stream.on('error', (error: ServiceError) => {
      resolve({ unimplemented: error.code === status.UNIMPLEMENTED, message: errorMessage(error) });
    });
    stream.on('end', () => resolve({ unimplemented: false, message: 'ended by the runtime' }));
  });
  return { ended, cancel: () => stream.cancel() };
}
