// The errors of the OCI distribution API: codes, HTTP statuses and messages as CNCF Distribution words them. Pure.

const ERRORS = {
  BLOB_UNKNOWN: [404, 'blob unknown to registry'],
  DENIED: [403, 'requested access to the resource is denied'],
  DIGEST_INVALID: [400, 'provided digest did not match uploaded content'],
  MANIFEST_UNKNOWN: [404, 'manifest unknown'],
  NAME_INVALID: [400, 'invalid repository name'],
  NAME_UNKNOWN: [404, 'repository name not known to registry'],
  RANGE_INVALID: [416, 'invalid content range'],
  TAG_INVALID: [400, 'manifest tag did not match URI'],
  TOOMANYREQUESTS: [429, 'too many requests'],
  UNAUTHORIZED: [401, 'authentication required'],
  UNAVAILABLE: [503, 'service unavailable'],
  UNSUPPORTED: [405, 'The operation is unsupported.'],
} as const satisfies Record<string, readonly [number, string]>;

export interface RegistryError {
  readonly code: keyof typeof ERRORS;
  /** In place of the usual message. */
  readonly message?: string;
  readonly detail?: unknown;
}

export function statusOf({ code }: RegistryError): number {
  return ERRORS[code][0];
}

/** The JSON body of the response. */
export function errorBody({ code, message = ERRORS[code][1], detail }: RegistryError): string {
  return JSON.stringify({ errors: [{ code, message, ...(detail === undefined ? {} : { detail }) }] });
}
