// What a failed CSI call means: certainly not done, or possibly done. And the message for it. Pure.

import { CsiError } from '../../../csi/client.ts';
import { errorMessage } from '../../../lib/errors.ts';

/** Codes after which the driver may still be at it, or have done it: the kubelet's list. */
const UNCERTAIN: ReadonlySet<string> = new Set([
  'CANCELLED',
  'DEADLINE_EXCEEDED',
  'UNAVAILABLE',
  'RESOURCE_EXHAUSTED',
  'ABORTED',
]);

/** Codes of NodeExpandVolume that no further try will change. */
const INFEASIBLE: ReadonlySet<string> = new Set(['INVALID_ARGUMENT', 'OUT_OF_RANGE', 'NOT_FOUND']);

/**
 * True when the driver has answered that it did nothing. What failed before a call was made may hide an earlier call's
 * outcome, and so is not final either.
 */
export function isFinal(error: unknown): boolean {
  return error instanceof CsiError && !UNCERTAIN.has(error.code);
}

export function isInfeasible(error: unknown): boolean {
  return error instanceof CsiError && INFEASIBLE.has(error.code);
}

/** gRPC's names as Go prints them: DEADLINE_EXCEEDED is DeadlineExceeded, CANCELLED is Canceled. */
function grpcCodeName(code: string): string {
  if (code === 'CANCELLED') return 'Canceled';
  return code.toLowerCase().replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The driver's message as gRPC formats it, and as in a kubelet's events. */
export function csiMessage(error: unknown): string {
  if (!(error instanceof CsiError)) return errorMessage(error);
  return `rpc error: code = ${grpcCodeName(error.code)} desc = ${error.message}`;
}

/** The kubelet's message about a driver without a registered socket. */
export function notRegistered(driver: string): string {
  return `driver name ${driver} not found in the list of registered CSI drivers`;
}
