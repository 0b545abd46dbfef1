// One request and its response, as those who answer it get them. Types only.

import type { HttpRequest, HttpResponse } from '../../lib/http-message.ts';
import type { Caller } from '../registry/registry.ts';
import type { ApiRequest } from './request.ts';
import type { Visit } from './visit.ts';

/** An authenticated and authorized request; only its head has been read. */
export interface AdmittedRequest {
  readonly parsed: ApiRequest;
  readonly caller: Caller;
  readonly visit: Visit;
  /** From the request's head on; undefined for one without a limit. ms. */
  readonly timeoutMs: number | undefined;
}

export interface Exchange {
  readonly admitted: AdmittedRequest;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly body: Uint8Array;
  /** Takes the response out of the HTTP library's hands; nothing is replied after that. */
  readonly hijack: () => void;
}

export interface Reply {
  readonly code: number;
  readonly contentType: string;
  readonly body: string | Uint8Array;
  /** Of a long one, whose `body` is empty. */
  readonly parts?: readonly Uint8Array[];
  readonly headers: Readonly<Record<string, string | string[]>>;
}
