// Failures of a CSI driver in the words that Kubernetes' events use for them. Pure.

import { isCsiError } from '../../../csi/client.ts';
import { errorMessage } from '../../../lib/errors.ts';

/** A failure as events quote it; a driver's as `rpc error: code = OutOfRange desc = …`. */
export function driverMessage(error: unknown): string {
  return isCsiError(error) ? `rpc error: code = ${goCode(error.code)} desc = ${error.message}` : errorMessage(error);
}

/** "OUT_OF_RANGE" → "OutOfRange". */
function goCode(code: string): string {
  return code
    .toLowerCase()
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}
