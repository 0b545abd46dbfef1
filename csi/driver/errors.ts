// What the driver answers instead of a result: a gRPC status of the CSI specification's error scheme, with a message for a
// person. Whatever else is thrown becomes INTERNAL in server.ts.

/** The codes that the specification defines, and those every gRPC server may answer. */
export type DriverCode =
  | 'INVALID_ARGUMENT'
  | 'NOT_FOUND'
  | 'ALREADY_EXISTS'
  | 'RESOURCE_EXHAUSTED'
  | 'FAILED_PRECONDITION'
  | 'ABORTED'
  | 'OUT_OF_RANGE'
  | 'UNIMPLEMENTED'
  | 'UNAVAILABLE'
  | 'DEADLINE_EXCEEDED'
  | 'UNKNOWN'
  | 'INTERNAL'
  | 'PERMISSION_DENIED'
  | 'UNAUTHENTICATED';

export class DriverError extends Error {
  override name = 'DriverError';
  readonly code: DriverCode;
  constructor(code: DriverCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** "Missing required field" and "invalid or unsupported field" of the error scheme. */
export const invalid = (message: string): DriverError => new DriverError('INVALID_ARGUMENT', message);
export const notFound = (message: string): DriverError => new DriverError('NOT_FOUND', message);
export const conflict = (message: string): DriverError => new DriverError('ALREADY_EXISTS', message);
/** Wrong order of calls, or a volume that is used in a way that forbids the call. */
export const precondition = (message: string): DriverError => new DriverError('FAILED_PRECONDITION', message);
