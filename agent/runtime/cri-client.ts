// The only layer below the runtime adapter: CRI's unary calls and the two event streams, typed. grpc-cri-client.ts
// implements it over a socket, test/sim in memory. Types, names, deadlines and error helpers only; it holds no state of pods.

import type { Envelope__Output } from '../../proto/gen/containerd/types/Envelope.ts';
import type { ContainerEventResponse__Output } from '../../proto/gen/runtime/v1/ContainerEventResponse.ts';
import type { ImageServiceDefinition } from '../../proto/gen/runtime/v1/ImageService.ts';
import type { RuntimeServiceDefinition } from '../../proto/gen/runtime/v1/RuntimeService.ts';
import type { UnaryOptions } from '../../proto/unary.ts';
import { RuntimeError } from '../ports/runtime.ts';

/** Version and Status answer from memory; a runtime that takes longer is not healthy. ms. */
export const SHORT_DEADLINE_MS = 10_000;
/** What a stop may take beyond its grace period. ms. */
export const STOP_MARGIN_MS = 120_000;

type Known<D> = { readonly [K in keyof D as string extends K ? never : K]: D[K] };
type Definitions = Known<RuntimeServiceDefinition> & Known<ImageServiceDefinition>;
type Streams = 'GetContainerEvents' | `Stream${string}`;
interface Exchange<Request, Response> {
  readonly requestSerialize: (value: Request) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
}

/** The unary methods of CRI's RuntimeService and ImageService; their names are disjoint. */
export type CriMethod = Exclude<keyof Definitions, Streams>;
/** Those of ImageService. */
export const IMAGE_METHODS: ReadonlySet<CriMethod> = new Set([
  'ImageFsInfo',
  'ImageStatus',
  'ListImages',
  'PullImage',
  'RemoveImage',
] satisfies CriMethod[]);
export type CriRequest<M extends CriMethod> =
  Definitions[M] extends Exchange<infer Request, infer _Response> ? Request : never;
export type CriResponse<M extends CriMethod> =
  Definitions[M] extends Exchange<infer _Request, infer Response> ? Response : never;

/** Why an event stream is over. `unimplemented`: the runtime does not serve it at all. */
export interface CriStreamEnd {
  readonly unimplemented: boolean;
  readonly message: string;
}

export interface CriStream {
  /** Resolves once, when the stream is over for whatever reason; never rejects. */
  readonly ended: Promise<CriStreamEnd>;
  /** Ends the stream. No event comes afterwards. */
  cancel(): void;
}

export interface CriClient {
  /** Calls a method as one trace span. Rejects with RuntimeError, whose code is the gRPC status' name. */
  readonly call: <M extends CriMethod>(
    method: M,
    request: CriRequest<M>,
    options?: UnaryOptions,
  ) => Promise<CriResponse<M>>;
  /** CRI's own event stream (KEP-3386). */
  containerEvents(onEvent: (event: ContainerEventResponse__Output) => void): CriStream;
  /** containerd's event bus, on the same socket; unimplemented where the runtime is not containerd. */
  containerdEvents(filters: readonly string[], onEvent: (envelope: Envelope__Output) => void): CriStream;
  close(): void;
}

export function isRuntimeError(error: unknown, ...codes: readonly string[]): error is RuntimeError {
  return error instanceof RuntimeError && codes.includes(error.code);
}
