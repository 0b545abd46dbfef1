// How a simulated API server refuses a request. It only makes errors.

import { ApiError } from '../../client/errors.ts';
import type { Status } from '../../client/types.ts';

/** As the client sees a metav1.Status: HTTP code, reason and message. */
export function problem(code: number, reason: string, message: string): ApiError {
  const status: Status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message };
  return new ApiError(status, code, 'simulated');
}
