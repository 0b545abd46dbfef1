// Decoding of request bodies against the schema.
import type { KubeObject } from '../kinds/resource.ts';

/** A body that cannot be read as its kind: answered with 400 and this message. */
export class DecodeError extends Error {
  override name = 'DecodeError';
}

export interface Decoded {
  readonly object: KubeObject;
  /** `unknown field "spec.foo"`, `duplicate field "spec.bar"`: an error under fieldValidation=Strict, a warning under Warn. */
  readonly strictErrors: readonly string[];
}
export function decodeObject(_schemaName: string, _value: unknown): Decoded {
  throw new DecodeError('not there yet');
}
