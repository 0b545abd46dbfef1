// What the core of the server needs from schema/ and discovery/, which main.ts plugs in. The core knows no kind and no
// field beyond metadata; the rows and these two interfaces provide them.

import type { FieldError, ResourceKind } from './kinds/resource.ts';
import type { RowTable } from './kinds/rows.ts';

export interface DecodeResult {
  /** Unknown and duplicate fields: `unknown field "spec.foo"`. An error, a warning or nothing, by fieldValidation. */
  readonly strict: readonly string[];
  /** A value of the wrong JSON type, as the API words it: `json: cannot unmarshal string into Go struct field …`. */
  readonly fatal?: string;
}

/** Checks a parsed body against a row's schema, dropping unknown fields from `object` in place. */
export type CheckBody = (kind: ResourceKind, object: Record<string, unknown>, text?: string) => DecodeResult;

/** Documents served to GET for discovery: /api, /apis, /apis/<group>/<version>, /openapi/… */
export interface DiscoveryDocument {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The document at `path` for a client that accepts `accept`, or undefined when there is none there. */
export type Discovery = (path: string, accept: string, query: URLSearchParams) => DiscoveryDocument | undefined;

/** Everything about kinds that the core is given. */
export interface KindParts {
  readonly kinds: RowTable;
  readonly checkBody: CheckBody;
  readonly discovery: Discovery;
}

export type { FieldError };
