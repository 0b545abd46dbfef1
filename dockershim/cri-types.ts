// CRI's methods as a server has them: what each receives and what it replies. Types only.

import type { ImageServiceDefinition } from '../proto/gen/runtime/v1/ImageService.ts';
import type { RuntimeServiceDefinition } from '../proto/gen/runtime/v1/RuntimeService.ts';

type Known<D> = { readonly [K in keyof D as string extends K ? never : K]: D[K] };
type Definitions = Known<RuntimeServiceDefinition> & Known<ImageServiceDefinition>;

/** The methods with one request and one response. */
export type CriMethod = Exclude<keyof Definitions, 'GetContainerEvents' | `Stream${string}`>;
/** A request as it is read: with every field. */
export type Received<M extends CriMethod> = Definitions[M] extends {
  requestDeserialize: (bytes: Buffer) => infer Request;
}
  ? Request
  : never;
export type Reply<M extends CriMethod> = Definitions[M] extends { responseSerialize: (value: infer Response) => Buffer }
  ? Response
  : never;

/** `signal` aborts when the client has gone or its deadline is over. */
export type Handlers = {
  readonly [M in CriMethod]?: (request: Received<M>, signal: AbortSignal) => Promise<Reply<M>>;
};
